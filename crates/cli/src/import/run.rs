//! Runs an import: one thread reads, this one sends, and a failure of either stops both.

use crate::exit::{Code, Failure, InputKind};
use crate::import::catalogue;
use crate::import::event_ids::EventIds;
use crate::import::import_notes::EarlierImports;
use crate::import::import_progress::TransferStatus;
use crate::import::imported_event::PersonalData;
use crate::import::parts::{InvalidInput, Part, PartOutcome, Parts, Skip};
use crate::import::rows::Rows;
use crate::import::send::{PartReply, Refusal, Sender, Terms, bad_line};
use crate::import::{Format, ImportArgs};
use crate::interrupt::on_interrupt;
use crate::numbers::{counted, grouped, megabytes, rate};
use crate::problem::Problem;
use crate::progress::Progress;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use wellspring_client::Request;

/// Invalid lines that are shown with --skip-invalid.
const SHOWN_FAULTS: usize = 20;

/// The totals of an import.
#[derive(Debug, Default)]
struct Tally {
    added: u64,
    known: u64,
    skipped: u64,
    folded: u64,
    /// Events that already exist, under their id.
    repeated: u64,
    passed_over: u64,
    sealed: u64,
    taken_bytes: u64,
    /// The last line of the file that is settled.
    line: u64,
    /// The position of the last event of it.
    position: Option<u64>,
    faults: Vec<(u64, String)>,
}

/// Invalid lines that this side has skipped: how many, and the first ones.
type Skipped = Arc<Mutex<(u64, Vec<(u64, String)>)>>;

/// Runs an import to its end.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    run_to(args, &mut io::stdout())
}

/// Runs an import to its end; a dry run shows its sample on `out`.
pub(super) fn run_to(args: &ImportArgs, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(preset) = args.catalogue.preset {
        return catalogue::run(args, preset, out);
    }
    let format = args.format()?;
    let (mut source, mut mapping) = args.open(format)?;
    let file = args.file();
    if args.connections.is_some() {
        eprintln!("--connections has no effect: one connection keeps the order of the file");
    }
    let label = args.again.clone().unwrap_or_default();
    let ids = args.ids.map(|_| EventIds::new(&label));
    if !args.dry_run {
        greet(args)?;
    }
    if format == Format::Csv {
        (source, mapping) = args.csv.typed(file, source, mapping)?;
    }
    if args.dry_run {
        let rows = Rows::new(format, source.reader, &mapping)?;
        dry_run(args, rows, ids, out)?;
        mapping.columns.iter().flatten().for_each(|column| eprintln!("  {}", column.told()));
        return Ok(());
    }
    let options = args.shaping_options(format, &mapping);
    let columns = mapping.columns.clone().unwrap_or_default();
    let header: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let mut earlier = EarlierImports::of(&args.target, source.start, options.clone(), columns)?;
    let skipped = Skipped::default();
    let skip = args.skip_invalid.then(|| note_skipped(&skipped));
    let parts = Parts::new(format, source.reader, &mapping, ids, skip)?;
    if args.again.is_none() {
        earlier.refuse_other_options(&mut args.target.client()?, file)?;
    }
    let terms = Terms {
        batch: args.batch,
        skips: args.skip_invalid,
        label,
        subject_from: args.subject_from.clone(),
        recorded_at: args.recorded_at,
        file: file.to_owned(),
    };
    let sender = Sender::new(&args.target, terms)?;
    let mut progress = Progress::start("import", source.total_bytes);
    let (mut tally, failure) =
        transfer(sender, parts, &source.taken, file, &mut earlier, &mut progress);
    progress.end();
    let local = skipped.lock().unwrap_or_else(PoisonError::into_inner);
    tally.skipped += local.0;
    tally.faults.extend_from_slice(&local.1);
    tally.faults.sort_unstable();
    for (line, what) in tally.faults.iter().take(SHOWN_FAULTS) {
        eprintln!("Skipped line {line}: {what}");
    }
    let summary = summary(&tally, args.subject_from.as_deref(), progress.seconds());
    let Some(failure) = failure else {
        if tally.added + tally.known + tally.skipped + tally.repeated + tally.passed_over == 0 {
            let bytes = megabytes(source.taken.load(Ordering::Relaxed));
            let what = match header[..] {
                [] => "contains no events".to_owned(),
                _ => format!("contains only a header, {}", header.join(", ")),
            };
            eprintln!("Imported nothing: {file} {what} ({bytes} read).");
            return Ok(());
        }
        eprintln!("Imported {summary}");
        if tally.added > 0 && args.shapes_events() {
            eprintln!("The server recognizes this content only with the same options: {options}");
        }
        return Ok(());
    };
    eprintln!("Stopped after {summary}");
    if failure.code == Code::Unavailable && tally.line > 0 {
        let position = tally.position.map(|at| format!(" (position {at})")).unwrap_or_default();
        eprintln!(
            "Everything up to line {}{position} is in the log; the same command continues from there.",
            tally.line
        );
    }
    Err(failure)
}

fn note_skipped(skipped: &Skipped) -> Skip {
    let skipped = Arc::clone(skipped);
    Box::new(move |line, what| {
        let mut skipped = skipped.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.0 += 1;
        if skipped.1.len() < SHOWN_FAULTS {
            skipped.1.push((line, what));
        }
    })
}

/// Asks for the head first: a wrong address or log name should not look like bad data.
fn greet(args: &ImportArgs) -> Result<(), Failure> {
    let answer = args.target.client()?.call(&Request::get(&args.target.path("head"), &[]))?;
    match answer.head.status {
        200 => Ok(()),
        404 => Err(args.target.no_log()),
        _ => {
            let problem = Problem::of(&answer);
            Err(Failure::new(problem.code(InputKind::Arguments), problem.sentence()))
        }
    }
}

/// The result of the reading thread.
enum SourceItem {
    Part(Part),
    /// Reading has ended, with the tags that were given twice.
    End(u64, Option<Failure>),
}

fn transfer(
    sender: Sender,
    parts: Parts,
    taken: &AtomicU64,
    file: &str,
    earlier: &mut EarlierImports,
    progress: &mut Progress,
) -> (Tally, Option<Failure>) {
    // One part waits while another is sent: reading overlaps sending.
    let (parts_in, parts_out) = sync_channel::<SourceItem>(1);
    let status = TransferStatus::default();
    let interrupted = status.clone();
    on_interrupt(move || eprintln!("\n{}", interrupted.last_words()));
    std::thread::scope(|scope| {
        scope.spawn(move || read_all(parts, taken, file, &parts_in));
        send_all(sender, parts_out, &status, earlier, progress)
    })
}

fn read_all(mut parts: Parts, taken: &AtomicU64, file: &str, out: &SyncSender<SourceItem>) {
    let taken = || taken.load(Ordering::Relaxed);
    let failure = loop {
        match parts.next(&taken) {
            PartOutcome::Part(part) => {
                let is_last = part.is_last;
                if out.send(SourceItem::Part(part)).is_err() {
                    return;
                }
                if is_last {
                    break None;
                }
            }
            PartOutcome::Invalid(part, bad) => {
                if out.send(SourceItem::Part(part)).is_err() {
                    return;
                }
                break Some(match bad {
                    InvalidInput::Row(line, what) => bad_line(file, line, &what),
                    InvalidInput::Rest(broken) => {
                        Failure::data(format!("{file}, line {}: {}", broken.line, broken.what))
                    }
                });
            }
        }
    };
    let _ = out.send(SourceItem::End(parts.folded(), failure));
}

fn send_all(
    mut sender: Sender,
    parts: Receiver<SourceItem>,
    status: &TransferStatus,
    earlier: &mut EarlierImports,
    progress: &mut Progress,
) -> (Tally, Option<Failure>) {
    let mut tally = Tally::default();
    let mut continues = String::new();
    let mut rest: Option<Part> = None;
    for read in parts {
        let next = match read {
            SourceItem::Part(part) => part,
            SourceItem::End(folded, failure) => {
                tally.folded += folded;
                return (tally, failure);
            }
        };
        let part = match rest.take() {
            Some(rest) => rest.followed_by(next),
            None => next,
        };
        if part.body.is_empty() {
            continue;
        }
        status.sends(part.lines);
        match sender.send(&part, &continues, &mut |text| progress.note(&text)) {
            Ok(settled) => {
                tally.count(&part, &settled);
                status.settles(tally.added + tally.known);
                tally.note(earlier, &mut sender);
                progress.update(tally.taken_bytes, tally.added + tally.known);
                continues.clone_from(&settled.next);
                rest = Some(part.without_first(settled.lines)).filter(|rest| rest.lines > 0);
            }
            Err(refusal) => {
                let Refusal { settled, failure, .. } = *refusal;
                tally.count(&part, &settled);
                tally.note(earlier, &mut sender);
                return (tally, Some(failure));
            }
        }
    }
    (tally, Some(Failure::new(Code::Io, "the thread that reads the file failed")))
}

impl Tally {
    /// Remembers the import as soon as one of its events is in the log.
    fn note(&self, earlier: &mut EarlierImports, sender: &mut Sender) {
        if let Some(position) = self.position {
            earlier.note(sender.client(), position);
        }
    }

    fn count(&mut self, part: &Part, settled: &PartReply) {
        self.added += settled.added;
        self.known += settled.known;
        self.skipped += settled.skipped;
        self.folded += settled.folded;
        self.repeated += settled.repeated;
        self.passed_over += settled.passed_over;
        self.sealed += settled.sealed;
        self.taken_bytes = self.taken_bytes.max(part.taken_bytes);
        if settled.lines > 0 {
            self.line = part.number(settled.lines);
        }
        self.position = settled.last.or(self.position);
        let room = SHOWN_FAULTS.saturating_sub(self.faults.len());
        let faults = settled.faults.iter().take(room);
        self.faults.extend(faults.map(|fault| (part.number(fault.line), fault.detail.clone())));
    }
}

/// The result in words: what was added, and everything else that is not zero.
fn summary(tally: &Tally, subject_from: Option<&str>, seconds: f64) -> String {
    let events = tally.added + tally.known;
    let mut text =
        format!("{}: {} added", counted(events, "event", "events"), grouped(tally.added));
    if tally.known > 0 {
        text.push_str(&format!(", {} known (already in the log)", grouped(tally.known)));
    }
    if tally.repeated > 0 {
        let events = counted(tally.repeated, "repeated event", "repeated events");
        text.push_str(&format!(", {events} dropped (stored once, by id)"));
    }
    if tally.passed_over > 0 {
        let events = counted(tally.passed_over, "event", "events");
        text.push_str(&format!(
            ", {events} of consumers or erasures left out (they belong to another log)"
        ));
    }
    if tally.folded > 0 {
        text.push_str(&format!(
            ", {} dropped",
            counted(tally.folded, "repeated tag", "repeated tags")
        ));
    }
    if tally.skipped > 0 {
        text.push_str(&format!(
            ", {} skipped",
            counted(tally.skipped, "invalid line", "invalid lines")
        ));
    }
    let bytes = megabytes(tally.taken_bytes);
    let rate = rate(events, seconds).map(|rate| format!(": {} events/s", grouped(rate)));
    text.push_str(&format!("; {bytes} read in {seconds:.1} s{}", rate.unwrap_or_default()));
    if let Some(position) = tally.position {
        text.push_str(&format!("; last position {position}"));
    }
    text.push_str(&sealed_in_words(tally.sealed, events, subject_from));
    if tally.skipped > 0 {
        text.push_str("; import skipped lines, once corrected, from a file of their own");
    }
    text
}

/// The number of sealed events in words; empty if none is sealed and none was asked for.
fn sealed_in_words(sealed: u64, events: u64, subject_from: Option<&str>) -> String {
    match (sealed, subject_from) {
        (0, None) => String::new(),
        (0, _) if events == 0 => String::new(),
        (0, Some(key)) => format!(
            "; NOTHING is sealed, so all of it is stored clear: no event has exactly one tag {key}:…"
        ),
        (sealed, _) => format!("; {} sealed for a data subject", grouped(sealed)),
    }
}

fn dry_run(
    args: &ImportArgs,
    mut rows: Rows,
    mut ids: Option<EventIds>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (mut events, mut skipped) = (0u64, 0u64);
    let (mut sealed, mut missing) = (0u64, 0u64);
    let tag_key = args.subject_from.as_deref();
    loop {
        match rows.next() {
            Ok(None) => break,
            Ok(Some((_, Ok(mut event)))) => {
                if let Some(ids) = &mut ids {
                    ids.name(&mut event);
                }
                if events == 0 {
                    let mut first = Vec::new();
                    event.push(&mut first);
                    // A dry run continues without its sample if its reader has ended.
                    first.push(b'\n');
                    let _ = out.write_all(&first).and_then(|()| out.flush());
                }
                events += 1;
                sealed += u64::from(event.is_sealed(tag_key));
                missing += u64::from(event.personal == PersonalData::Missing);
            }
            Ok(Some((line, Err(fault)))) if args.skip_invalid => {
                skipped += 1;
                if skipped <= SHOWN_FAULTS as u64 {
                    eprintln!("Would skip line {line}: {fault}");
                }
            }
            Ok(Some((line, Err(fault)))) => {
                return Err(bad_line(args.file(), line, &fault.to_string()));
            }
            Err(broken) => {
                let message = format!("{}, line {}: {}", args.file(), broken.line, broken.what);
                return Err(Failure::data(message));
            }
        }
    }
    eprintln!(
        "Dry run: {}, {}, {}{}{}",
        counted(events, "event", "events"),
        counted(rows.folded(), "repeated tag", "repeated tags"),
        counted(skipped, "invalid line", "invalid lines"),
        sealed_in_words(sealed, events, tag_key),
        if events > 0 { "; the first event is above" } else { "" }
    );
    if missing > 0 {
        let lack = counted(missing, "event is", "events are");
        eprintln!(
            "An import refuses what an export lacks: {lack} marked withheld or unavailable. Export \
             again, with a role that sees personal data, from a server that has its keys"
        );
    }
    Ok(())
}
