//! Bulk: an item on each line, added or updated to match the line. Every line names a SKU, so that
//! the same body can be sent again.

use super::body;
use crate::CatalogueFace;
use crate::refusal::of_refusal;
use crate::view::{Catalogue, CatalogueOutcome, Command, KnownStock};
use std::sync::Arc;
use wellspring_host::http::lines::{LineFault, Lines, of_line};
use wellspring_host::http::{Answer, Body, Request, Response};
use wellspring_host::limits::Payer;
use wellspring_host::view::Live;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::param::{Param, Words};
use wellspring_host::wire::problem::{self, Problem, of_line_fault};
use wellspring_log::CommitOn;

/// Handling of the stock of existing items.
pub(crate) static KNOWN_STOCK: Param<Words<KnownStock>> = Param::words(
    "known_stock",
    "Stock of existing items in a bulk: kept, or set to the value in the line.",
    &[("keep", KnownStock::Keep), ("set", KnownStock::Set)],
    "keep",
);

/// Most lines decided in one go.
const BATCH_LINES: usize = 250;

/// A bulk in progress.
struct Bulk<'a> {
    face: &'a CatalogueFace,
    known_stock: KnownStock,
    live: Arc<Live<Catalogue>>,
    effects: Effects,
    payer: Payer,
    batch: Vec<Command>,
    /// The numbers of the batch's lines.
    numbers: Vec<u64>,
    batch_bytes: usize,
    /// Lines read so far, including empty ones.
    lines: u64,
    done: LineCounts,
}

/// The results of lines.
#[derive(Debug, Default)]
struct LineCounts {
    lines: u64,
    added: u64,
    changed: u64,
    unchanged: u64,
}

/// Adds or changes the items of a body's lines.
pub(super) async fn put(face: Arc<CatalogueFace>, mut request: Box<Request>) -> Answer {
    let mut bulk = Bulk {
        face: &face,
        known_stock: request.query(&KNOWN_STOCK)?,
        live: face.live()?,
        effects: request.effects.clone(),
        payer: request.payer.clone(),
        batch: Vec::new(),
        numbers: Vec::new(),
        batch_bytes: 0,
        lines: 0,
        done: LineCounts::default(),
    };
    match bulk.run(&mut request.body).await {
        Ok(()) => Ok(bulk.answer()),
        Err(problem) => {
            let LineCounts { lines, added, changed, unchanged } = bulk.done;
            let done = [
                ("durable_lines", lines),
                ("added", added),
                ("changed", changed),
                ("unchanged", unchanged),
            ];
            let told = |problem: Box<Problem>, (name, count): (_, u64)| {
                problem.with(name, count.to_string())
            };
            let mut problem = done.into_iter().fold(problem, told);
            problem.position = Some(bulk.live.position());
            Err(problem)
        }
    }
}

impl Bulk<'_> {
    async fn run(&mut self, body: &mut Body) -> Result<(), Box<Problem>> {
        let mut lines = Lines::up_to(body::MAX_BODY_BYTES);
        loop {
            let line = match lines.next(body).await {
                Ok(Some(line)) => line,
                Ok(None) => return self.submit().await,
                Err(LineFault::Line(problem)) => return self.stop_at_line(problem).await,
                Err(LineFault::Body(problem)) => return self.break_off(problem).await,
            };
            if !line.iter().all(u8::is_ascii_whitespace) {
                match self.read(line) {
                    Ok(command) => self.batch.push(command),
                    Err(problem) => return self.stop_at_line(problem).await,
                }
                self.numbers.push(self.lines + 1);
                self.batch_bytes += line.len();
            }
            self.lines += 1;
            if self.batch.len() == BATCH_LINES {
                self.submit().await?;
            }
            // The batch and a long line occupy memory like a body.
            if let Err(problem) = body.charge(self.batch_bytes + lines.held_bytes()) {
                return self.break_off(problem).await;
            }
        }
    }

    fn read(&self, line: &[u8]) -> Result<Command, Box<Problem>> {
        let item = body::read_item(line, self.face.currency)
            .map_err(|fault| of_line_fault(&fault, line))?;
        if item.sku.is_none() {
            let detail =
                "sku is missing: in a bulk each item needs one, so that the body can be sent again";
            return Err(problem::INVALID.because(detail).field("sku"));
        }
        Ok(Command::Put(item, self.known_stock))
    }

    /// Executes the lines before the faulty one, which is the next, then stops with its problem.
    async fn stop_at_line(&mut self, problem: Box<Problem>) -> Result<(), Box<Problem>> {
        let line = self.lines + 1;
        self.submit().await?;
        Err(of_line(line, problem))
    }

    /// Executes the complete lines, then stops with the problem of the body.
    async fn break_off(&mut self, problem: Box<Problem>) -> Result<(), Box<Problem>> {
        self.submit().await?;
        Err(problem)
    }

    async fn submit(&mut self) -> Result<(), Box<Problem>> {
        let batch = std::mem::take(&mut self.batch);
        let numbers = std::mem::take(&mut self.numbers);
        self.batch_bytes = 0;
        self.payer.solvent().await;
        let executed =
            self.live.execute(&self.effects, &batch, None, CommitOn::JournalThread).await?;
        self.payer.work(executed.decided_us);
        for outcome in &executed.outcomes {
            match outcome {
                CatalogueOutcome::Added(_) => self.done.added += 1,
                CatalogueOutcome::Unchanged(_) => self.done.unchanged += 1,
                _ => self.done.changed += 1,
            }
        }
        let done = executed.outcomes.len();
        self.done.lines = numbers.get(done).map_or(self.lines, |line| line - 1);
        match (executed.refused, executed.stopped) {
            (Some(refusal), _) => Err(of_line(numbers[done], of_refusal(&refusal))),
            (None, Some(stopped)) => Err(stopped.into()),
            (None, None) => Ok(()),
        }
    }

    fn answer(&self) -> Response {
        let LineCounts { lines, added, changed, unchanged } = self.done;
        let out = format!(
            r#"{{"lines":{lines},"added":{added},"changed":{changed},"unchanged":{unchanged}}}"#
        );
        Response::json(200, out).at(self.live.position())
    }
}
