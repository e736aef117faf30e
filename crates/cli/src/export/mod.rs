//! `wellspring export`: writes the events of a log to a file, completely or not at all.

mod event_file;
mod event_lines;
mod formats;
mod output;
#[cfg(feature = "parquet")]
mod parquet_file;

use crate::exit::{Code, Failure};
use crate::import;
use crate::interrupt::on_interrupt;
use crate::numbers::{counted, grouped, megabytes, rate};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::query::{QueryArgs, add_parameter};
use crate::target::Target;
use event_file::EventFile;
pub(crate) use event_lines::{
    BEGINNING, EventLines, Refusal, events_after, refused, within_history,
};
use output::Output;
use std::fs;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use wellspring_client::{Request, Stream};
use wellspring_host::http::history::ResumePoint;

/// How an export writes events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One event per line, as the server sends it, with the log's history
    Ndjson,
    /// Comma-separated values with a header; one-way: `import` refuses it
    Csv,
    /// CloudEvents 1.0, one per line
    Cloudevents,
    /// Apache Parquet, for analysis; one-way; in packages and builds with the feature parquet
    Parquet,
}

impl Format {
    /// The format by the name of a file.
    fn of_name(name: &str) -> Option<Format> {
        if name.strip_suffix(".gz").unwrap_or(name).ends_with(".parquet") {
            return Some(Format::Parquet);
        }
        import::Format::of_name(name).map(|format| match format {
            import::Format::Ndjson => Format::Ndjson,
            import::Format::Csv => Format::Csv,
            import::Format::Cloudevents => Format::Cloudevents,
        })
    }
}

/// What `wellspring export` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Exports the events that the log held when the export began. FILE is written as FILE.part and renamed \
when it is complete; meanwhile a second export to FILE is refused. If the connection breaks, the \
export fails and says where to continue (--after); then, and after Ctrl-C, no file is left behind. The \
last line says up to which position of which history the export goes, for the next one (--after).

NDJSON and CloudEvents can be imported again as they are: types, tags, payloads, ids, metadata and \
times. Line breaks between the tokens of a JSON payload become spaces. CSV and Parquet are one-way.

Examples:
  wellspring export -o all.ndjson.gz
  wellspring export --tag customer:7 --format csv | head
  wellspring export -o orders.ndjson --type OrderPlaced
  wellspring export -o november.ndjson.gz --since 2026-11-01 --until 2026-12-01")]
pub struct ExportArgs {
    /// Write to this file instead of standard output (-); .gz compresses
    ///
    /// The file replaces one of the same name. A name that ends in .gz is compressed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the events [default: by the name of FILE, else ndjson]
    ///
    /// Names that end in .csv, .cloudevents or .parquet select that format (before .gz, except for
    /// Parquet). `import` reads NDJSON and CloudEvents back as they were; CSV and Parquet are for
    /// other programs.
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    query: QueryArgs,
    /// Only events after this position [default: 0]
    ///
    /// As the last line of an earlier export says it, with the log's history:
    /// 42@4f1c09d2a87b4e6f. If the log has another history by now, the export is refused.
    #[arg(long, value_name = "POSITION[@HISTORY]")]
    after: Option<ResumePoint>,
    #[command(flatten)]
    target: Target,
}

impl ExportArgs {
    /// The format, as given or by the name of the file.
    ///
    /// # Errors
    /// Usage: Parquet in a file that is compressed as a whole.
    fn format(&self) -> Result<Format, Failure> {
        let name = self.output.as_ref().map(|path| path.to_string_lossy().to_ascii_lowercase());
        let name = name.as_deref().unwrap_or_default();
        let is_compressed = name.ends_with(".gz");
        let format = self.format.or_else(|| Format::of_name(name)).unwrap_or(Format::Ndjson);
        if format == Format::Parquet && is_compressed {
            return Err(Failure::usage(
                "Parquet compresses its columns itself; remove .gz from the name",
            ));
        }
        Ok(format)
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
    let format = args.format()?;
    EventFile::check(format)?;
    // A stream can break off before its head has been read.
    let lines = open(args).map_err(|failure| named_damage(&args.target, failure))?;
    let mut output = Output::open(args.output.as_deref())?;
    if let Some((unfinished, _)) = &output.rename {
        // Set once, here.
        let _ = part.set(unfinished.clone());
    }
    let mut progress = Progress::start("export", None);
    // A progress bar would overwrite events on the same terminal.
    let quiet = args.output.is_none();
    let copied = copy(lines, format, &mut output, &mut |bytes, events| {
        if !quiet {
            progress.update(bytes, events);
        }
    });
    progress.end();
    if format == Format::Csv {
        eprintln!("CSV is one-way; to import events again, export NDJSON or CloudEvents");
    }
    let Copied { events, bytes, through } =
        copied.map_err(|failure| named_damage(&args.target, failure))?;
    output.finish()?;
    let seconds = progress.seconds();
    let rate = rate(events, seconds).map(|rate| format!(": {} events/s", grouped(rate)));
    eprintln!(
        "Exported {}, {}, in {seconds:.1} s{}; up to {through}, continue from there with \
         --after {through}",
        counted(events, "event", "events"),
        megabytes(bytes),
        rate.unwrap_or_default()
    );
    Ok(())
}

fn open(args: &ExportArgs) -> Result<EventLines<Stream>, Failure> {
    let mut path = args.target.path("events");
    args.query.add_to(&mut path);
    let after = args.after.unwrap_or(BEGINNING);
    if args.after.is_some() {
        add_parameter(&mut path, "after", &after.position.to_string());
    }
    let mut client = args.target.client()?;
    let mut opened = events_after(&args.target, &mut client, &path, after)?;
    if let (Err(Refusal { first: Some(first), .. }), None) = (&opened, args.after) {
        eprintln!("Events before position {first} were removed; the export begins there.");
        let after = ResumePoint { position: first.saturating_sub(1), ..BEGINNING };
        add_parameter(&mut path, "after", &after.position.to_string());
        opened = events_after(&args.target, &mut client, &path, after)?;
    }
    let mut lines = opened.map_err(|refusal| refusal.failure)?;
    if args.query.until.is_some() {
        // What comes between the last event and the head was not asked for.
        lines.head = None;
    }
    Ok(lines)
}

/// The failure of a stream that broke off, with its cause if the server reports that the log is
/// damaged: it can send no more than the end of its answer then, and trying again does not help.
fn named_damage(target: &Target, failure: Failure) -> Failure {
    if failure.code != Code::Unavailable {
        return failure;
    }
    let request = Request::get("/health/ready", &[("Accept", "application/json")]);
    let answer = target.client().ok().and_then(|mut client| client.call(&request).ok());
    let ready = answer.map(|answer| Problem::of(&answer)).unwrap_or_default();
    match ready.damage_of(&target.log) {
        Some(damage) => {
            let broken = failure.message.split("; continue from there").next().unwrap_or_default();
            Failure::new(Code::Refused, format!("{broken}. The server has damaged data: {damage}"))
        }
        None => failure,
    }
}

/// The amount that an export has written.
struct Copied {
    events: u64,
    bytes: u64,
    /// It holds what was asked for up to here.
    through: ResumePoint,
}

/// Copies events.
fn copy(
    mut lines: EventLines<impl BufRead>,
    format: Format,
    output: &mut Output,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Copied, Failure> {
    let history = lines.last.history;
    let mut file = EventFile::begin(format, output, history)?;
    let mut events = 0u64;
    while let Some((line, event)) = lines.next()? {
        file.push(line, &event)?;
        events += 1;
        if events.is_multiple_of(1024) {
            progress(file.bytes(), events);
        }
    }
    let bytes = file.end()?;
    let position = lines.head.map_or(lines.last.position, |head| head.max(lines.last.position));
    Ok(Copied { events, bytes, through: ResumePoint { position, history } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_tells_the_format_unless_it_is_given() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            args: ExportArgs,
        }
        let format = |words: &[&str]| {
            Line::try_parse_from([&["x"], words].concat()).unwrap().args.format().unwrap()
        };
        for (name, expected) in [
            ("a.csv", Format::Csv),
            ("a.b/A.CSV.GZ", Format::Csv),
            ("a.cloudevents.json", Format::Cloudevents),
            ("a.ndjson", Format::Ndjson),
            ("a.jsonl.gz", Format::Ndjson),
            // Import takes it for cells between tabs, which export does not write.
            ("a.tsv", Format::Ndjson),
            ("a.PARQUET", Format::Parquet),
            ("csv", Format::Ndjson),
            ("-", Format::Ndjson),
        ] {
            assert_eq!(format(&["-o", name]), expected, "{name}");
            assert_eq!(format(&["-o", name, "--format", "csv"]), Format::Csv, "{name}");
        }
        assert_eq!(format(&[]), Format::Ndjson);
        let twice = Line::try_parse_from(["x", "-o", "a.parquet.gz"]).unwrap().args.format();
        assert!(twice.unwrap_err().message.contains("remove .gz"));
    }
}
