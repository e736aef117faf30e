//! `wellspring export`: the events of a log as a file, whole or not at all.

use crate::exit::{Code, Failure, InputKind};
use crate::import::Format;
use crate::import::cloudevents::{
    ID_METADATA, METADATA_ATTRIBUTE, POSITION_ATTRIBUTE, RECORDED_AT_ATTRIBUTE, TAGS_ATTRIBUTE,
};
use crate::import::csv_rows::EXPORT_COLUMNS;
use crate::interrupt::on_interrupt;
use crate::lines::{LineEnd, LineReader};
use crate::numbers::{counted, grouped, megabytes};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::query::{QueryArgs, add_parameter};
use crate::target::Target;
use crate::wire::{RecordedEvent, push_string};
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wellspring_host::client::message::Head;
use wellspring_host::client::{Request, Stream};
use wellspring_host::clock::parse_rfc3339;

/// What `wellspring export` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Exports the events that the log held when the export began. FILE is written as FILE.part and renamed \
when it is complete. If the connection breaks, the export fails and says where to continue (--after); \
then, and after Ctrl-C, no file is left behind.

Examples:
  wellspring export -o all.ndjson.gz
  wellspring export --tag customer:7 --format csv | head")]
pub struct ExportArgs {
    /// Write to this file instead of standard output (-); .gz compresses
    ///
    /// The file replaces one of the same name. A name that ends in .gz is compressed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the events [default: by the name of FILE, else ndjson]
    ///
    /// Names that end in .csv or .cloudevents (before .gz) select that format. `import` reads all
    /// formats back.
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    query: QueryArgs,
    /// Only events after this position [default: 0]
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
    #[command(flatten)]
    target: Target,
}

impl ExportArgs {
    /// The format, as given or by the name of the file.
    fn format(&self) -> Format {
        let told = || Format::of_name(&self.output.as_ref()?.to_string_lossy());
        self.format.or_else(told).unwrap_or(Format::Ndjson)
    }
}

/// Runs an export to its end.
pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let part = Arc::new(OnceLock::<PathBuf>::new());
    let unfinished = Arc::clone(&part);
    on_interrupt(move || {
        if let Some(part) = unfinished.get() {
            let _ = fs::remove_file(part);
            eprintln!("\nInterrupted; no file was written.");
        }
    });
    let stream = open(args)?;
    let mut output = Output::open(args.output.as_deref())?;
    if let Some((unfinished, _)) = &output.rename {
        // Set once, here.
        let _ = part.set(unfinished.clone());
    }
    let mut progress = Progress::start("export", None);
    // A progress bar would overwrite events on the same terminal.
    let quiet = args.output.is_none();
    let copied = copy(stream, args.format(), &mut output, &mut |bytes, events| {
        if !quiet {
            progress.update(bytes, events);
        }
    });
    progress.end();
    let (events, bytes) = copied?;
    output.finish()?;
    let seconds = progress.seconds();
    eprintln!(
        "Exported {}, {}, in {seconds:.1} s: {} events/s",
        counted(events, "event", "events"),
        megabytes(bytes),
        grouped((events as f64 / seconds) as u64)
    );
    Ok(())
}

fn open(args: &ExportArgs) -> Result<Stream, Failure> {
    let mut path = args.target.path("events");
    args.query.add_to(&mut path);
    if let Some(after) = args.after {
        add_parameter(&mut path, "after", &after.to_string());
    }
    let mut client = args.target.client()?;
    events_stream(&args.target, &mut client, &path)
}

/// Asks for events as NDJSON.
pub(crate) fn events_stream(
    target: &Target,
    client: &mut wellspring_host::client::Client,
    path: &str,
) -> Result<Stream, Failure> {
    let (head, body) = client.open(&Request::get(path, &[("Accept", "application/x-ndjson")]))?;
    if head.status == 200 && head.is_type("application/x-ndjson") {
        return Ok(body);
    }
    Err(refused(target, &head, body).0)
}

/// The refusal that came instead of events, and after how many seconds to try again, if it says so.
pub(crate) fn refused(target: &Target, head: &Head, body: impl Read) -> (Failure, Option<u64>) {
    let mut bytes = Vec::new();
    // A problem that is cut off still has its status.
    let _ = body.take(1 << 20).read_to_end(&mut bytes);
    let problem = Problem::of_head(head, &bytes);
    (target.refusal(&problem, InputKind::Arguments), problem.retry_after_s)
}

/// Copies events; returns how many, and the bytes written.
fn copy(
    source: impl BufRead,
    format: Format,
    output: &mut Output,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(u64, u64), Failure> {
    let mut lines = EventLines::new(source);
    let (mut events, mut bytes) = (0u64, 0u64);
    let mut row = Vec::new();
    if format == Format::Csv {
        row.extend_from_slice(EXPORT_COLUMNS.join(",").as_bytes());
        row.push(b'\n');
    }
    loop {
        output.write(&row)?;
        bytes += row.len() as u64;
        row.clear();
        let Some((line, event)) = lines.next()? else { break };
        match format {
            Format::Ndjson => row.extend_from_slice(line.as_bytes()),
            Format::Cloudevents => push_cloudevent(&mut row, &event),
            Format::Csv => push_csv(&mut row, &event),
        }
        if format != Format::Csv {
            row.push(b'\n');
        }
        events += 1;
        if events.is_multiple_of(1024) {
            progress(bytes, events);
        }
    }
    Ok((events, bytes))
}

/// Events of an NDJSON answer, each a line; checks that they are whole and in order.
pub(crate) struct EventLines<R> {
    lines: LineReader<R>,
    line: Vec<u8>,
    last: u64,
}

impl<R: BufRead> EventLines<R> {
    /// Events of an answer's body.
    pub(crate) fn new(source: R) -> EventLines<R> {
        EventLines { lines: LineReader::new(source), line: Vec::new(), last: 0 }
    }

    /// The next event, as it came and as read.
    pub(crate) fn next(&mut self) -> Result<Option<(&str, RecordedEvent<'_>)>, Failure> {
        self.line.clear();
        let read = self.lines.read_into(&mut self.line);
        let last = self.last;
        let cut = |why: &str| {
            let message = format!(
                "the stream broke off after position {last}: {why}; continue from there with --after {last}"
            );
            Failure::new(Code::Unavailable, message)
        };
        match read.map_err(|broken| cut(&broken.what))? {
            None => return Ok(None),
            Some(LineEnd::Cut) => return Err(cut("the last line is incomplete")),
            Some(LineEnd::Whole) => drop(self.line.pop()),
        }
        let line = std::str::from_utf8(&self.line).map_err(|_| cut("a line is not UTF-8"))?;
        let event = RecordedEvent::parse(line).map_err(|what| cut(&what))?;
        if event.position <= last {
            return Err(cut(&format!("position {} came after it", event.position)));
        }
        self.last = event.position;
        Ok(Some((line, event)))
    }
}

fn push_cloudevent(out: &mut Vec<u8>, event: &RecordedEvent<'_>) {
    let mut member = |name: &str, value: &str| {
        out.extend_from_slice(if out.is_empty() { b"{" } else { b"," });
        push_string(out, name);
        out.push(b':');
        push_string(out, value);
    };
    let tag = |key: &str| event.tags.iter().find_map(|tag| tag.0.strip_prefix(key));
    let given = event.id.as_ref().map(|id| id.0.to_string());
    // An event without an id is identified by its position, which is as unique.
    let id = event.metadata_value(ID_METADATA).or(given);
    member("specversion", "1.0");
    member("id", &id.unwrap_or_else(|| event.position.to_string()));
    member("source", tag("source:").unwrap_or("wellspring"));
    member("type", &event.event_type);
    if let Some(subject) = tag("subject:") {
        member("subject", subject);
    }
    let recorded_at = event.recorded_at.as_ref().map(|time| time.0.to_string());
    // Metadata hold any text; the attribute is a moment as RFC 3339 has it, or it is no CloudEvent.
    let given = event.metadata_value("time").filter(|time| is_rfc3339(time));
    if let Some(time) = given.or(recorded_at.clone()) {
        member("time", &time);
    }
    if let Some(time) = recorded_at {
        member(RECORDED_AT_ATTRIBUTE, &time);
    }
    member(POSITION_ATTRIBUTE, &event.position.to_string());
    let tags: Vec<&str> = event.tags.iter().map(|tag| &*tag.0).collect();
    member(TAGS_ATTRIBUTE, &json_list(&tags));
    // There even if empty: it tells import not to make metadata of the attributes above.
    let metadata = event.metadata.as_ref().map_or_else(|| "{}".to_owned(), json_object);
    member(METADATA_ATTRIBUTE, &metadata);
    match (&event.data, &event.data_base64) {
        (_, Some(bytes)) => member("data_base64", &bytes.0),
        (Some(data), None) => {
            member("datacontenttype", "application/json");
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.get().as_bytes());
        }
        (None, None) => {}
    }
    out.push(b'}');
}

/// Whether a text is a `date-time` of RFC 3339: parsing takes dates alone and a space for the `T`
/// as well.
fn is_rfc3339(text: &str) -> bool {
    text.as_bytes().get(10).is_some_and(|byte| b"Tt".contains(byte))
        && parse_rfc3339(text).is_some()
}

fn json_list(items: &[&str]) -> String {
    serde_json::to_string(items).unwrap_or_default()
}

fn json_object(fields: &crate::wire::Fields<'_>) -> String {
    let mut out = vec![b'{'];
    for (i, (name, raw)) in fields.0.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(raw.get().as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a row as RFC 4180 has it.
fn push_csv(out: &mut Vec<u8>, event: &RecordedEvent<'_>) {
    let tags: Vec<&str> = event.tags.iter().map(|tag| &*tag.0).collect();
    let text = |value: &Option<crate::wire::Text<'_>>| {
        value.as_ref().map(|text| text.0.to_string()).unwrap_or_default()
    };
    let cells = [
        event.position.to_string(),
        text(&event.recorded_at),
        event.event_type.to_string(),
        json_list(&tags),
        text(&event.id),
        event.metadata.as_ref().map(json_object).unwrap_or_default(),
        event.data.map(|data| data.get().to_owned()).unwrap_or_default(),
        text(&event.data_base64),
    ];
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if cell.contains(['"', ',', '\r', '\n']) {
            out.extend_from_slice(format!("\"{}\"", cell.replace('"', "\"\"")).as_bytes());
        } else {
            out.extend_from_slice(cell.as_bytes());
        }
    }
    out.push(b'\n');
}

/// The path of an export, symbolic links resolved. The file is renamed to it when it is complete,
/// which would replace a device, a pipe or a folder of that name.
fn place_of(path: &Path) -> Result<PathBuf, Failure> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(path.to_owned()) };
    let usage = |why: &str| {
        let message = format!("-o {}: {why}", path.display());
        Err(Failure::new(Code::Usage, message))
    };
    if found.is_symlink() {
        return match fs::canonicalize(path) {
            Ok(place) => place_of(&place),
            Err(_) => usage("is a dangling symbolic link; remove it or name another file"),
        };
    }
    if !found.is_file() {
        return usage(
            "is not a regular file, and an export would replace it; to write into it, omit -o and \
             redirect standard output",
        );
    }
    Ok(path.to_owned())
}

/// Where an export goes. A file gets its name only when it is complete.
struct Output {
    writer: Box<dyn Finish>,
    name: String,
    rename: Option<(PathBuf, PathBuf)>,
}

trait Finish: Write {
    /// Writes what is left, so that it survives.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

struct Plain(BufWriter<File>);
struct Gzip(GzEncoder<BufWriter<File>>);
struct Standard(BufWriter<io::Stdout>);

macro_rules! write_through {
    ($($name:ty),*) => {$(
        impl Write for $name {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                self.0.flush()
            }
        }
    )*};
}
write_through!(Plain, Gzip, Standard);

impl Finish for Plain {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl Finish for Gzip {
    fn finish(self: Box<Self>) -> io::Result<()> {
        Box::new(Plain(self.0.finish()?)).finish()
    }
}

impl Finish for Standard {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

impl Output {
    fn open(path: Option<&Path>) -> Result<Output, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let writer = Box::new(Standard(BufWriter::with_capacity(1 << 16, io::stdout())));
            return Ok(Output { writer, name: "standard output".to_owned(), rename: None });
        };
        let name = path.display().to_string();
        let path = place_of(path)?;
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create(&part)
            .map_err(|error| Failure::new(Code::Io, format!("cannot write {name}: {error}")))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        let writer: Box<dyn Finish> =
            if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz")) {
                Box::new(Gzip(GzEncoder::new(file, flate2::Compression::default())))
            } else {
                Box::new(Plain(file))
            };
        Ok(Output { writer, name, rename: Some((part, path)) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.writer.write_all(bytes).map_err(|error| Failure::output(&self.name, &error))
    }

    fn finish(mut self) -> Result<(), Failure> {
        let rename = self.rename.take();
        let writer =
            std::mem::replace(&mut self.writer, Box::new(Standard(BufWriter::new(io::stdout()))));
        let done = writer.finish().and_then(|()| match &rename {
            Some((part, whole)) => fs::rename(part, whole),
            None => Ok(()),
        });
        done.map_err(|error| Failure::output(&self.name, &error))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.rename {
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"position":7,"type":"T","tags":["source:/s","subject:b"],"data":{"a":"x, \"y\""},"id":"018f5c3e-9b2a-7c11-8d3e-0123456789ab","metadata":{"k":"v"},"recorded_at":"2026-01-01T00:00:00.000000Z"}"#;

    #[test]
    fn an_export_replaces_regular_files_only() {
        use std::os::unix::net::UnixListener;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let write = |path: &Path| {
            let mut output = Output::open(Some(path))?;
            output.write(b"whole")?;
            output.finish()
        };
        write(&at("new")).unwrap();
        fs::write(at("old"), "of before").unwrap();
        std::os::unix::fs::symlink(at("old"), at("link")).unwrap();
        write(&at("link")).unwrap();
        for name in ["new", "old", "link"] {
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "whole", "{name}");
        }
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        for name in ["socket", "folder", "dangling"] {
            let failure = write(&at(name)).unwrap_err();
            assert_eq!(failure.code, Code::Usage, "{name}");
        }
        assert!(!fs::symlink_metadata(at("socket")).unwrap().is_file());
        // Standard output.
        assert!(Output::open(Some(Path::new("-"))).unwrap().rename.is_none());
        assert!(!Path::new("-").exists());
    }

    #[test]
    fn the_name_of_the_file_tells_the_format_unless_it_is_given() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            args: ExportArgs,
        }
        let format =
            |words: &[&str]| Line::try_parse_from([&["x"], words].concat()).unwrap().args.format();
        for (name, expected) in [
            ("a.csv", Format::Csv),
            ("a.b/A.CSV.GZ", Format::Csv),
            ("a.cloudevents.json", Format::Cloudevents),
            ("a.ndjson", Format::Ndjson),
            ("a.jsonl.gz", Format::Ndjson),
            // Import takes it for cells between tabs, which export does not write.
            ("a.tsv", Format::Ndjson),
            ("csv", Format::Ndjson),
            ("-", Format::Ndjson),
        ] {
            assert_eq!(format(&["-o", name]), expected, "{name}");
            assert_eq!(format(&["-o", name, "--format", "csv"]), Format::Csv, "{name}");
        }
        assert_eq!(format(&[]), Format::Ndjson);
    }

    #[test]
    fn a_cloudevent_can_be_imported_again() {
        let mut out = Vec::new();
        push_cloudevent(&mut out, &RecordedEvent::parse(LINE).unwrap());
        let text = String::from_utf8(out).unwrap();
        let event = crate::import::cloudevents::event(&text, &mut 0).unwrap();
        assert_eq!(event.tags, ["source:/s", "subject:b"]);
        let recorded_at = ("recorded_at".to_owned(), "2026-01-01T00:00:00.000000Z".to_owned());
        assert_eq!(event.metadata, [("k".to_owned(), "v".to_owned()), recorded_at]);
        assert_eq!(event.data, br#"{"a":"x, \"y\""}"#);
        assert!(event.id.is_some());
        let mut out = Vec::new();
        push_cloudevent(
            &mut out,
            &RecordedEvent::parse(r#"{"position":1,"type":"T","data":1}"#).unwrap(),
        );
        let event = crate::import::cloudevents::event(std::str::from_utf8(&out).unwrap(), &mut 0);
        assert_eq!(event.unwrap(), wellspring_types::Event::json("T", &[], "1"));
    }

    #[test]
    fn the_time_of_a_cloudevent_is_a_moment_whatever_the_metadata_say() {
        let exported = |time: &str| {
            let line = LINE.replace(r#"{"k":"v"}"#, &format!(r#"{{"time":"{time}"}}"#));
            let mut out = Vec::new();
            push_cloudevent(&mut out, &RecordedEvent::parse(&line).unwrap());
            let event: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let metadata: String = event[METADATA_ATTRIBUTE].as_str().unwrap().to_owned();
            assert!(metadata.contains(time), "nothing is lost: {metadata}");
            event["time"].as_str().unwrap().to_owned()
        };
        assert_eq!(exported("2026-04-05T17:31:00+02:00"), "2026-04-05T17:31:00+02:00");
        for other in ["yesterday", "2026-04-05", "2026-04-05 17:31:00Z", "1775410260"] {
            assert_eq!(exported(other), "2026-01-01T00:00:00.000000Z", "{other}");
        }
    }

    #[test]
    fn a_csv_row_is_quoted() {
        let mut out = Vec::new();
        push_csv(&mut out, &RecordedEvent::parse(LINE).unwrap());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"7,2026-01-01T00:00:00.000000Z,T,"[""source:/s"",""subject:b""]","#,
                r#"018f5c3e-9b2a-7c11-8d3e-0123456789ab,"{""k"":""v""}","{""a"":""x, \""y\""""}","#,
                "\n"
            )
        );
    }

    #[test]
    fn a_stream_out_of_order_or_without_its_end_is_refused() {
        let event = |n: u64| format!("{{\"position\":{n},\"type\":\"T\",\"data\":1}}");
        let read = |text: String| {
            let mut lines = EventLines::new(io::Cursor::new(text));
            while lines.next()?.is_some() {}
            Ok::<_, Failure>(lines.last)
        };
        assert_eq!(read(format!("{}\n{}\n", event(2), event(5))), Ok(5));
        let cut = read(format!("{}\n{}", event(2), event(5))).unwrap_err();
        assert!(cut.message.contains("--after 2"), "{}", cut.message);
        assert!(read(format!("{}\n{}\n", event(2), event(2))).is_err());
        assert!(read("oops\n".to_owned()).is_err());
    }
}
