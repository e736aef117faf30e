//! `wellspring import --preset`: items into the catalogue, each added or changed by its SKU, so
//! that the same file can be imported again.

mod fields;
mod items;
#[cfg(test)]
mod tests;

use crate::exit::{Code, Failure, InputKind};
use crate::import::retries::{Verdict, passing, retried};
use crate::import::source::Source;
use crate::import::{Format, ImportArgs};
use crate::interrupt::on_interrupt;
use crate::numbers::{counted, grouped};
use crate::problem::Problem;
use crate::progress::Progress;
use items::{Item, Items};
use serde::Deserialize;
use std::io::{Cursor, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_client::{Answer, Client, Request};

/// The URL to which items are sent.
const PATH: &str = "/v1/catalogue/items";
const PATH_SETTING_STOCK: &str = "/v1/catalogue/items?known_stock=set";
/// Most items of one request, and the size at which it is closed, in bytes.
const MOST_ITEMS: usize = 1_000;
const MOST_BYTES: usize = 1 << 20;

/// The four books of the original bookstore.
const BOOKS: &str = r#"{"sku":"bookstore-1","name":"How to get a good grade in 677 in 20 minutes a day","topic":"Distributed systems","price":19.9,"currency":"USD","stock":10}
{"sku":"bookstore-2","name":"RPCs for Dummies","topic":"Distributed systems","price":29.9,"currency":"USD","stock":20}
{"sku":"bookstore-3","name":"Xen and the Art of Surviving Graduate School","topic":"Graduate School","price":9.9,"currency":"USD","stock":25}
{"sku":"bookstore-4","name":"Cooking for the Impatient Graduate Student","topic":"Graduate School","price":30.9,"currency":"USD","stock":15}
"#;

/// The options of an import into the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Preset {
    /// The four books of the bookstore, without a file
    Bookstore,
    /// Items of a file: NDJSON as in POST /v1/catalogue/items, or CSV with a column for each field
    Items,
}

/// The server's answer to a request, whether completed or refused at a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Counts {
    added: u64,
    changed: u64,
    unchanged: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.added += other.added;
        self.changed += other.changed;
        self.unchanged += other.unchanged;
    }

    fn all(self) -> u64 {
        self.added + self.changed + self.unchanged
    }
}

/// Items on their way.
#[derive(Default)]
struct Batch {
    body: Vec<u8>,
    /// The line of the file of each line of the body.
    lines: Vec<u64>,
}

impl Batch {
    /// The body after this many lines.
    fn after(&self, lines: usize) -> &[u8] {
        let ends = self.body.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let from = lines.checked_sub(1).and_then(|last| ends.map(|(end, _)| end + 1).nth(last));
        &self.body[from.unwrap_or(0)..]
    }
}

/// Runs an import into the catalogue to its end; a dry run shows the first item on `out`.
pub(super) fn run(args: &ImportArgs, preset: Preset, out: &mut dyn Write) -> Result<(), Failure> {
    let (name, mut items, taken, total_bytes) = opened(args, preset)?;
    if args.dry_run {
        return dry_run(name, &mut items, out);
    }
    let mut sender =
        Sender { client: args.target.client()?, name, sets_stock: args.catalogue.set_stock };
    let mut progress = Progress::start("import", total_bytes).of("items");
    let sets_stock = args.catalogue.set_stock;
    on_interrupt(move || {
        let once_more = if sets_stock {
            "it sets stocks again: account for what was sold meanwhile"
        } else {
            "it adds nothing twice and leaves stocks unchanged"
        };
        eprintln!("\nInterrupted. Run the same command again to continue; {once_more}.");
    });
    let mut total = Counts::default();
    let result = loop {
        let (batch, then) = next_batch(name, &mut items);
        if let Err(failure) = sender.send(&batch, &mut total, &progress) {
            break Err(failure);
        }
        progress.update(taken.load(Ordering::Relaxed), total.all());
        match then {
            BatchEnd::GoOn => {}
            BatchEnd::End => break Ok(()),
            BatchEnd::Stop(failure) => break Err(failure),
        }
    };
    progress.end();
    let did = if result.is_ok() { "Imported" } else { "Stopped after" };
    eprintln!(
        "{did} {}: {} added, {} changed, {} unchanged; in {:.1} s",
        counted(total.all(), "item", "items"),
        grouped(total.added),
        grouped(total.changed),
        grouped(total.unchanged),
        progress.seconds()
    );
    result
}

/// A name for messages, the items, and how many bytes have been taken of how many.
type ItemSource<'a> = (&'a str, Items, Arc<AtomicU64>, Option<u64>);

fn opened(args: &ImportArgs, preset: Preset) -> Result<ItemSource<'_>, Failure> {
    if args.target.log != wellspring_host::names::MAIN {
        return Err(Failure::usage("the catalogue belongs to the log main: leave --log out"));
    }
    match preset {
        Preset::Bookstore if args.file.is_some() || !args.catalogue.fields.is_empty() => Err(
            Failure::usage("--preset bookstore contains its books: give no file and no --field"),
        ),
        Preset::Bookstore => {
            let name = "the bookstore";
            let books = Box::new(Cursor::new(BOOKS));
            let source = Source::over(books, name, Some(BOOKS.len() as u64))?;
            Ok((name, Items::ndjson(source.reader), source.taken, source.total_bytes))
        }
        Preset::Items if args.file.is_none() => Err(Failure::usage("--preset items needs a file")),
        Preset::Items => {
            let format = args.format()?;
            if format != Format::Csv && !args.catalogue.fields.is_empty() {
                return Err(Failure::usage(
                    "--field is for CSV; items in the other formats have these fields themselves",
                ));
            }
            let (source, mapping) = args.open(format)?;
            let items = Items::of(args, format, source.reader, mapping.dialect)?;
            Ok((args.file(), items, source.taken, source.total_bytes))
        }
    }
}

/// What comes behind a batch.
enum BatchEnd {
    GoOn,
    End,
    /// Something is wrong with the next item.
    Stop(Failure),
}

fn next_batch(name: &str, items: &mut Items) -> (Batch, BatchEnd) {
    let mut batch = Batch::default();
    while batch.lines.len() < MOST_ITEMS && batch.body.len() < MOST_BYTES {
        match items.next() {
            Ok(None) => return (batch, BatchEnd::End),
            Ok(Some(Item { line, json: Ok(json) })) => {
                batch.body.extend_from_slice(&json);
                batch.body.push(b'\n');
                batch.lines.push(line);
            }
            Ok(Some(Item { line, json: Err(what) })) => {
                return (batch, BatchEnd::Stop(bad(name, line, &what)));
            }
            Err(broken) => return (batch, BatchEnd::Stop(bad(name, broken.line, &broken.what))),
        }
    }
    (batch, BatchEnd::GoOn)
}

fn bad(name: &str, line: u64, what: &str) -> Failure {
    let line = grouped(line);
    Failure::data(format!("{name}, line {line}: {what}. Everything before it is in the catalogue"))
}

/// Sends batches over one connection.
struct Sender<'a> {
    client: Client,
    name: &'a str,
    sets_stock: bool,
}

impl Sender<'_> {
    fn send(
        &mut self,
        batch: &Batch,
        total: &mut Counts,
        progress: &Progress,
    ) -> Result<(), Failure> {
        if batch.lines.is_empty() {
            return Ok(());
        }
        let path = if self.sets_stock { PATH_SETTING_STOCK } else { PATH };
        let headers = [("Content-Type", "application/x-ndjson")];
        let mut note = |text: String| progress.note(&text);
        let gave_up = |failure| (Counts::default(), failure);
        // The lines that requests which were interrupted have put.
        let mut before = 0;
        let sent = retried(&mut note, gave_up, || {
            match self.client.call(&Request {
                method: "POST",
                path,
                headers: &headers,
                body: Some(batch.after(before)),
            }) {
                Ok(answer) => match judge(&answer, self.name, &batch.lines[before..]) {
                    BatchVerdict::Interrupted { lines, counts, why } => {
                        before = batch.lines.len().min(before + lines);
                        total.add(counts);
                        Verdict::Later(None, why)
                    }
                    BatchVerdict::Of(verdict) => verdict,
                },
                // The outcome is unknown, and setting a stock again would undo what was sold since.
                Err(error) if self.sets_stock => {
                    let (first, last) = (batch.lines[0], batch.lines[batch.lines.len() - 1]);
                    let what = format!(
                        "{error}; it is unknown whether the stocks of lines {first} to {last} were set. They are not set \
                     again automatically: look at some of these items first"
                    );
                    Verdict::Refused((Counts::default(), Failure::new(Code::Unavailable, what)))
                }
                Err(error) => Verdict::Later(None, error.to_string()),
            }
        });
        let (counts, failure) = match sent {
            Ok(counts) => (counts, None),
            Err((counts, failure)) => (counts, Some(failure)),
        };
        total.add(counts);
        failure.map_or(Ok(()), Err)
    }
}

/// The meaning of an answer for a batch.
enum BatchVerdict {
    /// This many lines were put, and the others are to be sent again.
    Interrupted {
        lines: usize,
        counts: Counts,
        why: String,
    },
    Of(Verdict<Counts, (Counts, Failure)>),
}

impl From<Verdict<Counts, (Counts, Failure)>> for BatchVerdict {
    fn from(verdict: Verdict<Counts, (Counts, Failure)>) -> BatchVerdict {
        BatchVerdict::Of(verdict)
    }
}

/// `lines`: those of the file that were sent.
fn judge(answer: &Answer, name: &str, lines: &[u64]) -> BatchVerdict {
    // A refusal says, too, what of it was done.
    let counts = serde_json::from_slice::<Counts>(&answer.body);
    if answer.head.status == 200 {
        let what = "cannot understand the server's answer; does it have the same version?";
        let failure = || (Counts::default(), Failure::new(Code::Unavailable, what));
        return counts.map_or_else(|_| Verdict::Refused(failure()), Verdict::Done).into();
    }
    let problem = Problem::of(answer);
    if problem.slug() == "interrupted" {
        let lines = usize::try_from(problem.durable_lines).unwrap_or(usize::MAX);
        let counts = counts.unwrap_or_default();
        return BatchVerdict::Interrupted { lines, counts, why: problem.sentence() };
    }
    if let Some((wait, why)) = passing(answer, &problem) {
        return Verdict::Later(wait, why).into();
    }
    let place = problem.line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
    let failure = match place.and_then(|place| lines.get(place)) {
        Some(line) => bad(name, *line, problem.detail_of_line()),
        None => Failure::new(problem.code(InputKind::Data), problem.sentence()),
    };
    Verdict::Refused((counts.unwrap_or_default(), failure)).into()
}

fn dry_run(name: &str, items: &mut Items, out: &mut dyn Write) -> Result<(), Failure> {
    let mut count = 0u64;
    loop {
        match items.next() {
            Ok(None) => break,
            Ok(Some(Item { json: Ok(mut json), .. })) => {
                if count == 0 {
                    // A dry run continues without its sample if its reader has ended.
                    json.push(b'\n');
                    let _ = out.write_all(&json).and_then(|()| out.flush());
                }
                count += 1;
            }
            Ok(Some(Item { line, json: Err(what) })) => return Err(bad(name, line, &what)),
            Err(broken) => return Err(bad(name, broken.line, &broken.what)),
        }
    }
    let items = counted(count, "item", "items");
    eprintln!("Dry run: {items}; the server will check their content.");
    Ok(())
}
