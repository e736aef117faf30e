//! `wellspring export`: the events of a log as a file, whole or not at all.

mod event_lines;
mod formats;
mod output;

use crate::exit::Failure;
use crate::import::Format;
use crate::import::csv_rows::EXPORT_COLUMNS;
use crate::interrupt::on_interrupt;
use crate::numbers::{counted, grouped, megabytes};
use crate::progress::Progress;
use crate::query::{QueryArgs, add_parameter};
use crate::target::Target;
pub(crate) use event_lines::{BEGINNING, EventLines, events_after, refused, within_history};
use formats::{push_cloudevent, push_csv, push_line};
use output::Output;
use std::fs;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use wellspring_host::client::Stream;
use wellspring_host::http::history::ResumePoint;

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
    ///
    /// As the last line of an earlier export says it, with the log's history: 42@4f1c09d2a87b4e6f. If
    /// the log has another history by now, the export is refused.
    #[arg(long, value_name = "POSITION[@HISTORY]")]
    after: Option<ResumePoint>,
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
    let lines = open(args)?;
    let mut output = Output::open(args.output.as_deref())?;
    if let Some((unfinished, _)) = &output.rename {
        // Set once, here.
        let _ = part.set(unfinished.clone());
    }
    let mut progress = Progress::start("export", None);
    // A progress bar would overwrite events on the same terminal.
    let quiet = args.output.is_none();
    let copied = copy(lines, args.format(), &mut output, &mut |bytes, events| {
        if !quiet {
            progress.update(bytes, events);
        }
    });
    progress.end();
    let Copied { events, bytes, through } = copied?;
    output.finish()?;
    let seconds = progress.seconds();
    eprintln!(
        "Exported {}, {}, in {seconds:.1} s: {} events/s; up to {through}, continue from there with \
         --after {through}",
        counted(events, "event", "events"),
        megabytes(bytes),
        grouped((events as f64 / seconds) as u64)
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
    events_after(&args.target, &mut client, &path, after)
}
/// What an export has written.
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
    let (mut events, mut bytes) = (0u64, 0u64);
    let history = lines.last.history;
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
            Format::Ndjson => push_line(&mut row, line, history),
            Format::Cloudevents => push_cloudevent(&mut row, &event, history),
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
}
