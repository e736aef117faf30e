//! `wellspring inspect` and `wellspring verify`: examine a data folder
//! without a server, and without writing to it.

use crate::exit::{Code, Failure};
use crate::numbers::{counted, megabytes};
use crate::progress::Progress;
use crate::wire::push_event;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use wellspring_format::segment::parse_segment_name;
use wellspring_host::names::is_name;
use wellspring_host::view::{SnapshotAhead, snapshot_ahead};
use wellspring_log::inspect::{self, IndexFile, Report, SegmentFile};
use wellspring_log::storage::{DiskStorage, HeldFolder, Storage};
use wellspring_log::{Corruption, LostEnd, OpenError, RecordView, recover};
use wellspring_types::{DataKind, Event, Position};

/// Most times that `verify` reads a log in which it finds damage, each time at another place.
const MAX_LOOKS: usize = 8;

/// Which log, in which folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The server's data folder
    #[arg(long, env = "WELLSPRING_DATA", default_value = "./data", value_name = "DIR")]
    data: PathBuf,
    /// Name of the log
    #[arg(long, default_value = "main")]
    log: String,
}

/// What `wellspring inspect` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Reads files and never writes; the server may keep running. What the server is writing at that moment \
can look truncated or damaged: run the command again, or use `wellspring verify`.

Exits with 1 if there is no event at one of the positions.

Examples:
  wellspring inspect               the segment files of the log main
  wellspring inspect 17 18         the events at positions 17 and 18")]
pub struct InspectArgs {
    /// Show the events at these positions
    #[arg(value_name = "POSITION")]
    positions: Vec<Position>,
    /// List segment files; the default without positions and --batches
    #[arg(long)]
    segments: bool,
    /// List batches: groups of events that became durable together
    #[arg(long)]
    batches: bool,
    #[command(flatten)]
    place: Place,
}

impl Place {
    /// This log in this data folder.
    pub(crate) fn new(data: &Path, log: &str) -> Place {
        Place { data: data.to_owned(), log: log.to_owned() }
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The name of the log.
    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    /// The folder of the log.
    ///
    /// # Errors
    /// Usage, or no such folder.
    pub(crate) fn dir(&self) -> Result<PathBuf, Failure> {
        let dir = self.data.join("logs").join(&self.log);
        if self.log.is_empty() || self.log.contains(['/', '\\']) || self.log.starts_with('.') {
            return Err(Failure::usage(format!(
                "--log {:?} is not a valid name of a log",
                self.log
            )));
        }
        if dir.is_dir() { Ok(dir) } else { Err(no_such_log(&self.data, &self.log)) }
    }
}

/// The names of the logs in a data folder, in order.
///
/// # Errors
/// It is not a data folder.
pub(crate) fn logs_in(data: &Path) -> Result<Vec<String>, Failure> {
    let not_one = |_| {
        let message = format!("{} is not a data folder; name it with --data", data.display());
        Failure::new(Code::NoInput, message)
    };
    let entries = std::fs::read_dir(data.join("logs")).map_err(not_one)?;
    let named = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok().filter(|name| is_name(name))?;
        entry.path().is_dir().then_some(name)
    };
    let mut names: Vec<String> = entries.filter_map(named).collect();
    names.sort_unstable();
    Ok(names)
}

/// A data folder has no such log (the command names something that does not exist), or the folder
/// is not a data folder (its input cannot be opened).
pub(crate) fn no_such_log(data: &Path, log: &str) -> Failure {
    let logs = data.join("logs");
    if logs.is_dir() {
        let (data, dir) = (data.display(), logs.join(log));
        return Failure::usage(format!("no log {log} in {data} (no folder {})", dir.display()));
    }
    let message = format!("{} is not a data folder; name it with --data", data.display());
    Failure::new(Code::NoInput, message)
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let code = match error {
            OpenError::Corrupt(_) | OpenError::EndLost(_) => Code::Refused,
            _ => Code::Io,
        };
        Failure::new(code, error.to_string())
    }
}

/// Standard output, buffered.
type OutputWriter = BufWriter<io::Stdout>;

fn say(out: &mut OutputWriter, line: &str) -> Result<(), Failure> {
    writeln!(out, "{line}").map_err(|error| Failure::output("standard output", &error))
}

/// Runs `inspect`.
pub(crate) fn run(args: &InspectArgs) -> Result<(), Failure> {
    let dir = args.place.dir()?;
    let segments = inspect::segments(&dir)?;
    let mut out = BufWriter::new(io::stdout());
    for &position in &args.positions {
        let line = event_at(&dir, &segments, position)?;
        say(&mut out, &line)?;
    }
    if args.segments || (args.positions.is_empty() && !args.batches) {
        show_segments(&segments, &mut out)?;
    }
    if args.batches {
        show_batches(&dir, &segments, &mut out)?;
    }
    out.flush().map_err(|error| Failure::output("standard output", &error))
}

fn show_segments(segments: &[SegmentFile], out: &mut OutputWriter) -> Result<(), Failure> {
    say(out, "segment\tfirst\tepoch\tbytes\tindex")?;
    for segment in segments {
        let index = match segment.index {
            IndexFile::Present { events } => counted(events.into(), "event", "events"),
            IndexFile::Shared => "shared".to_owned(),
            IndexFile::Missing => "none".to_owned(),
        };
        let SegmentFile { name, base, epoch, file_bytes, .. } = segment;
        say(out, &format!("{name}\t{base}\t{epoch}\t{file_bytes}\t{index}"))?;
    }
    Ok(())
}

fn show_batches(
    dir: &Path,
    segments: &[SegmentFile],
    out: &mut OutputWriter,
) -> Result<(), Failure> {
    say(out, "segment\toffset\tbytes\tfirst\tlast\tepoch\trecorded_at_us")?;
    for segment in segments {
        let mut written = Ok(());
        let scanned = inspect::batches(dir, segment.base, &mut |batch| {
            if written.is_ok() {
                written = say(
                    out,
                    &format!(
                        "{}\t{}\t{}\t{}\t{}\t{}\t{}",
                        segment.name,
                        batch.offset,
                        batch.bytes,
                        batch.first,
                        batch.last,
                        batch.epoch,
                        batch.recorded_at_us
                    ),
                );
            }
        })?;
        written?;
        if scanned.tail == recover::Tail::Torn {
            let what = "ends with an incomplete write (never acknowledged)";
            say(out, &format!("{} {what}", segment.name))?;
        }
    }
    Ok(())
}

/// One event as JSON; its segment is scanned from its beginning, indexes are not trusted here.
fn event_at(dir: &Path, segments: &[SegmentFile], position: Position) -> Result<String, Failure> {
    let missing = || Failure::new(Code::Refused, format!("no event at position {position}"));
    let segment = segments.iter().rfind(|segment| segment.base <= position).ok_or_else(missing)?;
    let failed =
        |error| Failure::from(OpenError::Io { doing: format!("opening {}", segment.name), error });
    let storage = DiskStorage::existing(dir).map_err(failed)?;
    let file = storage.open(&segment.name).map_err(failed)?;
    let mut found = None;
    recover::scan(&*file, &segment.name, &mut |batch| {
        if (batch.header.first..=batch.header.last()).contains(&position) {
            for record in batch.records_of(&segment.name) {
                let (offset, record) = record.map_err(OpenError::Corrupt)?;
                if record.position() == position {
                    found = Some(describe(&record, &segment.name, offset));
                }
            }
        }
        Ok(())
    })?;
    found.ok_or_else(missing)
}

fn describe(record: &RecordView<'_>, file: &str, offset: u64) -> String {
    let event = Event {
        event_type: record.event_type().to_owned(),
        tags: record.tags().map(str::to_owned).collect(),
        data: record.data().to_vec(),
        kind: record.kind(),
        id: record.id(),
        metadata: record.metadata().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    };
    let mut json = format!(
        "{{\"position\":{},\"recorded_at_us\":{},\"file\":\"{file}\",\"offset\":{offset},\"record_bytes\":{},",
        record.position(),
        record.recorded_at_us(),
        record.byte_len()
    );
    let mut rest = Vec::new();
    push_event(&mut rest, &event);
    debug_assert!(matches!(event.kind, DataKind::Json | DataKind::Binary));
    json.push_str(&String::from_utf8_lossy(&rest[1..]));
    json
}

/// Whether the folder of a log has nothing in it but its lock.
pub(crate) fn is_empty(dir: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(dir) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "LOCK"))
}

/// Whether the folder of a log has a segment.
pub(crate) fn has_segments(dir: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(dir) else { return false };
    let is_segment = |entry: fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| parse_segment_name(name).is_some())
    };
    entries.any(|entry| entry.is_ok_and(is_segment))
}

/// Whether the log of a folder was deleted since: the folder is another one, or none, or empty.
pub(crate) fn is_gone(folder: &HeldFolder) -> bool {
    folder.require_named().is_err() || is_empty(folder.path())
}

/// Reads and checks everything in the folder of a log.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn checked(dir: &Path) -> Result<Report, Failure> {
    let mut progress = Progress::start("verify", None);
    let report = confirmed(|| {
        // Before the log: a running server may write another one meanwhile.
        let furthest = snapshot_ahead(dir, 0);
        let mut report = inspect::verify(dir, &mut |read, _| progress.update(read, 0))?;
        if report.is_sound() {
            report.lost_end = furthest.and_then(|snapshot| lost_end(&report, snapshot));
        }
        Ok(report)
    });
    progress.end();
    Ok(report?)
}

/// The evidence of lost events that a snapshot of a view gives. A copy of a shared log is fetched
/// again.
fn lost_end(report: &Report, snapshot: SnapshotAhead) -> Option<LostEnd> {
    let (&Report { head, last_base, .. }, SnapshotAhead { file, end }) = (report, snapshot);
    let lost = LostEnd { head, last_base, known_from: file, known_end: Some(end) };
    (!report.is_copy && end > head).then_some(lost)
}

/// The report, with the damage that two passes find at the same place. A server may be writing
/// meanwhile: then one pass can see the end of a write and not its beginning. Real damage is found
/// by the next pass, too.
fn confirmed(mut look: impl FnMut() -> Result<Report, OpenError>) -> Result<Report, OpenError> {
    let mut report = look()?;
    for _ in 1..MAX_LOOKS {
        if report.is_sound() {
            break;
        }
        let mut again = look()?;
        let is_confirmed = |damage: &Corruption| {
            let mut before = report.damage.iter();
            before.any(|other| (&other.file, other.offset) == (&damage.file, damage.offset))
        };
        let ends = [&report, &again].map(|report| report.lost_end.as_ref().map(|lost| lost.head));
        let is_end_lost = ends[0].is_some() && ends[0] == ends[1];
        if is_end_lost || again.damage.iter().any(is_confirmed) {
            again.damage.retain(is_confirmed);
            again.lost_end = again.lost_end.filter(|_| is_end_lost);
            return Ok(again);
        }
        report = again;
    }
    if report.is_sound() {
        return Ok(report);
    }
    let what = "a server changes the files faster than they can be read, so nothing that looks \
                damaged could be confirmed; stop it, or leave the check to its scrub";
    Err(OpenError::Io { doing: "checking twice".into(), error: io::Error::other(what) })
}

/// A report in words, with the verdict.
pub(crate) fn lines(report: &Report) -> Vec<String> {
    let mut lines = findings(report);
    let verdict =
        if report.is_sound() { "sound: every event is present and unchanged" } else { "NOT SOUND" };
    lines.push(verdict.to_owned());
    lines
}

/// Formats the findings of a report.
pub(crate) fn findings(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "{} in {} and {}, {}; {} compared",
        counted(report.events, "event", "events"),
        counted(report.batches, "batch", "batches"),
        counted(report.segments, "segment", "segments"),
        megabytes(report.bytes),
        counted(report.indexes, "index", "indexes")
    )];
    for index in &report.stale_indexes {
        lines.push(format!("index {index} is missing or stale: harmless, it will be rebuilt"));
    }
    if report.torn_end {
        lines.push(
            "the last write is incomplete, after a crash or because a server is writing: harmless, it was \
             never acknowledged"
                .to_owned(),
        );
    }
    for damage in &report.damage {
        lines.push(format!("DAMAGED: {damage}"));
    }
    if let Some(lost) = &report.lost_end {
        lines.push(format!("MISSING: the log {lost}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_log::{Append, EncodedEvents, Log, Options};

    fn log_with_events(data: &Path) {
        let dir = data.join("logs").join("main");
        std::fs::create_dir_all(&dir).unwrap();
        let log = Log::open(&dir, Options::default()).unwrap();
        for i in 0..3 {
            let mut events = EncodedEvents::new();
            events.push(&Event::json("T", &["a:1"], &i.to_string()).as_ref()).unwrap();
            log.append(Append { events, ..Append::default() }).unwrap();
        }
    }

    fn place(data: &Path) -> Place {
        Place::new(data, "main")
    }

    #[test]
    fn an_unfinished_write_is_no_damage_and_lasting_damage_is() {
        let at = |offset: u64, looks_so_far: usize| Corruption {
            file: "1.seg".to_owned(),
            offset,
            // Omitted, because it differs in every run: it names what was written behind it.
            what: looks_so_far.to_string(),
        };
        let found = |looks: &[&[u64]]| {
            let mut looks = looks.iter().enumerate();
            let report = confirmed(|| {
                let (look, offsets) = looks.next().unwrap();
                let damage = offsets.iter().map(|&offset| at(offset, look)).collect();
                Ok(Report { damage, ..Report::default() })
            });
            report.unwrap().damage.iter().map(|damage| damage.offset).collect::<Vec<_>>()
        };
        assert_eq!(found(&[&[]]), [0; 0]);
        assert_eq!(found(&[&[10], &[20], &[]]), [0; 0]);
        assert_eq!(found(&[&[5], &[5]]), [5]);
        assert_eq!(found(&[&[5, 10], &[5, 20]]), [5]);
        assert_eq!(found(&[&[1], &[2], &[3], &[3]]), [3]);
        let end_lost = |heads: &[Option<Position>]| {
            let mut looks = heads.iter();
            let report = confirmed(|| {
                let lost_at = |&head: &Position| LostEnd {
                    head,
                    last_base: 1,
                    known_from: "an index".to_owned(),
                    known_end: None,
                };
                let lost_end = looks.next().unwrap().as_ref().map(lost_at);
                Ok(Report { lost_end, ..Report::default() })
            });
            report.unwrap().lost_end.map(|lost| lost.head)
        };
        assert_eq!(end_lost(&[Some(7), Some(7)]), Some(7));
        assert_eq!(end_lost(&[Some(7), Some(9), None]), None, "a server goes on");
    }

    #[test]
    fn an_event_is_found_by_its_position() {
        let data = tempfile::tempdir().unwrap();
        log_with_events(data.path());
        let dir = place(data.path()).dir().unwrap();
        let segments = inspect::segments(&dir).unwrap();
        let json = event_at(&dir, &segments, 2).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((json["position"].as_u64(), json["data"].as_u64()), (Some(2), Some(1)));
        for absent in [0, 4] {
            assert_eq!(event_at(&dir, &segments, absent).unwrap_err().code, Code::Refused);
        }
    }

    #[test]
    fn damage_is_exit_code_1_and_a_wrong_folder_66() {
        let data = tempfile::tempdir().unwrap();
        log_with_events(data.path());
        let dir = place(data.path()).dir().unwrap();
        assert!(checked(&dir).unwrap().is_sound());
        let segment = dir.join(&inspect::segments(&dir).unwrap()[0].name);
        let mut bytes = std::fs::read(&segment).unwrap();
        let mut offset = 0;
        inspect::batches(&dir, 1, &mut |batch| {
            if batch.first == 2 {
                offset = batch.offset;
            }
        })
        .unwrap();
        bytes[offset as usize + 70] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
        assert!(!checked(&dir).unwrap().is_sound());
        let wrong = place(Path::new("/does/not/exist")).dir();
        assert_eq!(wrong.unwrap_err().code, Code::NoInput);
    }
}
