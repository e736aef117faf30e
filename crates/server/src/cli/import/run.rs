//! The course of an import: one thread reads and gathers, others send, and
//! whatever stops one of them stops all. Bounded queues lie between them.

use crate::cli::client::Request;
use crate::cli::exit::{Code, Failure};
use crate::cli::import::ImportArgs;
use crate::cli::import::batch::{Batch, Batcher, ImportName};
use crate::cli::import::rows::Rows;
use crate::cli::import::send::{Acknowledged, Sender};
use crate::cli::import::source::Source;
use crate::cli::interrupt::on_interrupt;
use crate::cli::problem::Problem;
use crate::cli::progress::{Progress, grouped, megabytes};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Bad lines that are shown with --skip-invalid.
const SHOWN_FAULTS: u64 = 20;

/// What a sender tells.
enum News {
    Acknowledged { events: u64, taken_bytes: u64, answer: Acknowledged },
    Failed(Failure),
    Note(String),
}

/// What the reader tells at its end.
#[derive(Debug, Default)]
struct Read {
    events: u64,
    skipped: u64,
    faults: Vec<String>,
    failure: Option<Failure>,
}

/// Figures of the end.
#[derive(Debug, Default)]
struct Tally {
    events: u64,
    replayed: u64,
    taken_bytes: u64,
    head: Option<u64>,
}

/// Runs an import to its end.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let format = args.format()?;
    let mapping = args.mapping(format)?;
    let source = Source::open(&args.file)?;
    let shape = args.shape(format, &mapping);
    let name = match args.import_id.clone() {
        Some(name) => ImportName::Given { name, shape },
        None => ImportName::OfFile { name: source.name.clone(), shape },
    };
    let taken = Arc::clone(&source.taken);
    let total_bytes = source.total_bytes;
    let rows = Rows::new(format, source.reader, &mapping)?;
    let reader = Reader { rows, taken, batcher: Batcher::new(args.batch.into(), name), args };
    if args.dry_run {
        return dry_run(reader);
    }
    greet(args)?;
    let mut progress = Progress::start("import", total_bytes);
    let (read, tally, failure) = transfer(args, reader, &mut progress)?;
    progress.end();
    for fault in &read.faults {
        eprintln!("skipped {fault}");
    }
    let summary = summary(&tally, read.skipped, progress.seconds());
    match failure.or(read.failure) {
        None => {
            eprintln!("imported {summary}");
            Ok(())
        }
        Some(failure) => {
            eprintln!("stopped after {summary}");
            Err(failure)
        }
    }
}

/// Asks for the head first: a wrong address or log name should not look like bad data.
fn greet(args: &ImportArgs) -> Result<(), Failure> {
    let answer = args.target.client()?.call(&Request::get(&args.target.path("head"), &[]))?;
    match answer.head.status {
        200 => Ok(()),
        404 => Err(Failure::usage(format!(
            "there is no log {log}; make it with: curl -X PUT {url}/v1/logs/{log}",
            log = args.target.log,
            url = args.target.url
        ))),
        _ => Err(Failure::new(Code::Unavailable, Problem::of(&answer).sentence())),
    }
}

fn transfer(
    args: &ImportArgs,
    reader: Reader<'_>,
    progress: &mut Progress,
) -> Result<(Read, Tally, Option<Failure>), Failure> {
    let lanes = usize::from(args.connections);
    // One batch waits for each that is under way: reading overlaps sending.
    let (batches_in, batches_out) = sync_channel::<Batch>(lanes);
    let (news_in, news_out) = sync_channel::<News>(lanes * 2);
    let shared =
        Arc::new(Lanes { batches: Mutex::new(batches_out), stopped: AtomicBool::new(false) });
    let mut senders = Vec::new();
    for _ in 0..lanes {
        let news = news_in.clone();
        let note = Box::new(move |text| drop(news.send(News::Note(text))));
        senders.push((Sender::new(&args.target, note)?, news_in.clone()));
    }
    drop(news_in);
    let acknowledged = Arc::new(AtomicU64::new(0));
    let so_far = Arc::clone(&acknowledged);
    on_interrupt(move || {
        let events = grouped(so_far.load(Ordering::Relaxed));
        eprintln!(
            "\ninterrupted: {events} events are in the log; run the same command again to go on"
        );
    });
    std::thread::scope(|scope| {
        for (sender, news) in senders {
            let lanes = Arc::clone(&shared);
            scope.spawn(move || send_all(sender, &lanes, &news));
        }
        // Held by the senders alone, so that a reader finds nobody when all have stopped.
        drop(shared);
        let reading = scope.spawn(move || reader.read(&mut |batch| batches_in.send(batch).is_ok()));
        let (tally, failure) = follow(&news_out, &acknowledged, progress);
        let read = reading.join().unwrap_or_else(|_| Read {
            failure: Some(Failure::new(Code::Io, "the reading thread failed")),
            ..Read::default()
        });
        Ok((read, tally, failure))
    })
}

/// What the senders share.
struct Lanes {
    batches: Mutex<Receiver<Batch>>,
    /// Set by the first that fails.
    stopped: AtomicBool,
}

/// Sends until there is nothing more, or a batch of any sender is refused.
fn send_all(mut sender: Sender, lanes: &Lanes, news: &SyncSender<News>) {
    while !lanes.stopped.load(Ordering::Relaxed) {
        let next = lanes.batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = next else { return };
        let told = match sender.send(&batch) {
            Ok(answer) => News::Acknowledged {
                events: batch.lines.len() as u64,
                taken_bytes: batch.taken_bytes,
                answer,
            },
            Err(failure) => News::Failed(failure),
        };
        if matches!(told, News::Failed(_)) {
            lanes.stopped.store(true, Ordering::Relaxed);
        }
        if news.send(told).is_err() {
            return;
        }
    }
}

/// Counts what is acknowledged until the senders have gone.
fn follow(
    news: &Receiver<News>,
    acknowledged: &AtomicU64,
    progress: &mut Progress,
) -> (Tally, Option<Failure>) {
    let mut tally = Tally::default();
    let mut failure = None;
    for told in news {
        match told {
            News::Acknowledged { events, taken_bytes, answer } => {
                tally.events += events;
                tally.replayed += if answer.replayed { events } else { 0 };
                tally.taken_bytes = tally.taken_bytes.max(taken_bytes);
                tally.head = tally.head.max(Some(answer.head));
                acknowledged.store(tally.events, Ordering::Relaxed);
                progress.update(tally.taken_bytes, tally.events);
            }
            News::Note(text) => progress.note(&text),
            News::Failed(first) => failure = failure.or(Some(first)),
        }
    }
    (tally, failure)
}

fn summary(tally: &Tally, skipped: u64, seconds: f64) -> String {
    let mut text = format!("{} events", grouped(tally.events));
    if tally.replayed == tally.events && tally.events > 0 {
        text.push_str(" (all of them were in the log already; nothing was added)");
    } else if tally.replayed > 0 {
        text.push_str(&format!(" ({} of them were in the log already)", grouped(tally.replayed)));
    }
    if skipped > 0 {
        text.push_str(&format!(", skipped {} bad lines", grouped(skipped)));
    }
    let rate = grouped((tally.events as f64 / seconds) as u64);
    let bytes = megabytes(tally.taken_bytes);
    text.push_str(&format!(", {bytes} read, in {seconds:.1} s: {rate} events/s"));
    if let Some(head) = tally.head {
        text.push_str(&format!("; head {head}"));
    }
    text
}

struct Reader<'a> {
    rows: Rows,
    taken: Arc<AtomicU64>,
    batcher: Batcher,
    args: &'a ImportArgs,
}

impl Reader<'_> {
    /// Reads all, handing over each batch; `take` says whether it wants more.
    ///
    /// A batch that a bad line cuts short is not handed over: once the line is
    /// mended the batch is another one, under the same key.
    fn read(mut self, take: &mut dyn FnMut(Batch) -> bool) -> Read {
        let mut read = Read::default();
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            let (line, event) = match self.rows.next() {
                Ok(Some(next)) => next,
                Ok(None) => {
                    if let Some(last) = self.batcher.close(taken) {
                        take(last);
                    }
                    return read;
                }
                Err(broken) => {
                    let message =
                        format!("{}, line {}: {}", self.args.file, broken.line, broken.what);
                    read.failure = Some(Failure::data(message));
                    return read;
                }
            };
            match event {
                Ok(event) => {
                    read.events += 1;
                    if let Some(full) = self.batcher.push(line, &event, taken)
                        && !take(full)
                    {
                        return read;
                    }
                }
                Err(fault) if self.args.skip_invalid => {
                    read.skipped += 1;
                    if read.skipped <= SHOWN_FAULTS {
                        read.faults.push(format!("line {line}: {fault}"));
                    }
                }
                Err(fault) => {
                    read.failure = Some(Failure::data(format!(
                        "{}, line {line}: {fault}. Mend the line and run the same command again, \
                         or pass over bad lines with --skip-invalid",
                        self.args.file
                    )));
                    return read;
                }
            }
        }
    }
}

fn dry_run(reader: Reader<'_>) -> Result<(), Failure> {
    let (mut batches, mut bytes) = (0, 0);
    let read = reader.read(&mut |batch| {
        if batches == 0 {
            let list = &batch.body[b"{\"events\":[".len()..];
            let mut values = serde_json::Deserializer::from_slice(list)
                .into_iter::<Box<serde_json::value::RawValue>>();
            if let Some(Ok(first)) = values.next() {
                // A dry run goes on without its sample if nobody reads it.
                let _ = crate::cli::say(first.get());
            }
        }
        batches += 1;
        bytes += batch.body.len() as u64;
        true
    });
    for fault in &read.faults {
        eprintln!("would skip {fault}");
    }
    if let Some(failure) = read.failure {
        return Err(failure);
    }
    eprintln!(
        "dry run: {} events in {batches} requests ({}), {} bad lines; the first event is above",
        grouped(read.events),
        megabytes(bytes),
        read.skipped
    );
    Ok(())
}
