//! Bulk: one link to create per line, appended in batches.
//!
//! Batches are cut by the content of the lines, never by their arrival, so that a retry of the same
//! body cuts the same batches and its key finds them. An incomplete body leaves a batch that no
//! retry would cut: with a key that one is not executed. The client's remaining quota of links may
//! end a batch early; then the rest is executed under a key of its own, and a retry finds piece
//! after piece.
//!
//! With a key, lines with `deterministic` are in separate batches: they may need no event, and then
//! a batch's events would not tell which of its lines were executed. They need no key: a retry
//! finds their links.

use super::LinkFace;
use super::body::{self, LinkRequest};
use super::create::{CreateOutcome, another_request, judge, made, parse, push, seen};
use super::sealed::{LinkOpener, LinkSealer};
use super::{Allowance, host_of, refusal};
use crate::view::{Command, LinkOutcome, Links, Naming};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use wellspring_host::http::lines::{LineFault, Lines, of_line};
use wellspring_host::http::subjects::subject_of;
use wellspring_host::http::{Answer, Body, Request, Response};
use wellspring_host::limits::Payer;
use wellspring_host::view::Live;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{CommitOn, Log, RequestKey};
use wellspring_types::limits;

/// Most lines of a batch: each adds an item to the append's condition, the first link of a log one
/// more, and all must fit into one.
const BATCH_LINES: usize = 250;
const _: () = assert!(BATCH_LINES < limits::MAX_QUERY_ITEMS && BATCH_LINES < limits::MAX_EVENTS);
/// Most lines of a body: the answer lists their links.
const MAX_LINES: u64 = 100_000;

/// A bulk in progress.
struct Bulk<'a> {
    links: &'a LinkFace,
    log: Log,
    live: Arc<Live<Links>>,
    effects: Effects,
    /// The `Host` of the request.
    host: Option<String>,
    base: String,
    /// The data subject of all links.
    subject: Option<String>,
    opener: LinkOpener,
    allowance: Allowance<'a>,
    payer: Payer,
    key: Option<String>,
    /// Lines read and not executed yet, with their numbers.
    batch: Vec<LinkRequest>,
    numbers: Vec<u64>,
    digest: Sha256,
    /// Bytes of the batch's lines.
    batch_bytes: usize,
    batches: u64,
    /// Lines read so far, all in order.
    lines: u64,
    durable_lines: u64,
    made: u64,
    /// The links of the answer.
    out: Vec<u8>,
}

/// Creates the links of a body's lines.
pub(super) async fn create(
    links: Arc<LinkFace>,
    mut request: Box<Request>,
    key: Option<String>,
) -> Answer {
    let host = host_of(&request)?.map(str::to_owned);
    let mut bulk = Bulk {
        log: request.log()?.clone(),
        live: links.live()?,
        effects: request.effects.clone(),
        base: links.settings.base(host.as_deref()),
        subject: subject_of(&request)?.map(str::to_owned),
        opener: LinkOpener::of(&links, &request)?,
        host,
        allowance: Allowance { links: &links, client: request.client },
        links: &links,
        payer: request.payer.clone(),
        key,
        batch: Vec::new(),
        numbers: Vec::new(),
        digest: Sha256::new(),
        batch_bytes: 0,
        batches: 0,
        lines: 0,
        durable_lines: 0,
        made: 0,
        out: Vec::new(),
    };
    let problem = match bulk.run(&mut request.body).await {
        Ok(()) => return Ok(bulk.answer()),
        Err(problem) => problem,
    };
    // Otherwise the client could not learn their codes.
    let links = format!("[{}]", String::from_utf8_lossy(&bulk.out));
    let problem = problem.with("durable_lines", bulk.durable_lines.to_string());
    let mut problem = problem.with("links", links);
    problem.position = Some(bulk.live.position());
    Err(problem)
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
            match self.read(line) {
                Ok(None) => self.lines += 1,
                Ok(Some(asked)) => self.add(asked, line).await?,
                Err(problem) => return self.stop_at_line(problem).await,
            }
            // The answer, the batch and a long line occupy memory like a body.
            let held = self.out.len() + self.batch_bytes + lines.held_bytes();
            if let Err(problem) = body.charge(held) {
                return self.break_off(problem).await;
            }
        }
    }

    /// Reads a line; an empty one is skipped.
    fn read(&self, line: &[u8]) -> Result<Option<LinkRequest>, Box<Problem>> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        if self.lines == MAX_LINES {
            let detail =
                format!("there are more than {MAX_LINES} lines; split them into several requests");
            return Err(problem::TOO_LARGE.because(detail).limit(MAX_LINES));
        }
        parse(line).map(Some).map_err(|mut problem| {
            // JSON or not, the line is at fault.
            if problem.kind == &problem::MALFORMED_JSON {
                problem.more.clear();
                problem.kind = &problem::INVALID;
            }
            problem
        })
    }

    async fn add(&mut self, asked: LinkRequest, line: &[u8]) -> Result<(), Box<Problem>> {
        let full = self.batch.len() == BATCH_LINES;
        let apart = self.key.is_some()
            && self.batch.last().is_some_and(|last| repeats(last) != repeats(&asked));
        if full || apart {
            self.submit().await?;
        }
        self.lines += 1;
        self.batch.push(asked);
        self.numbers.push(self.lines);
        self.batch_bytes += line.len();
        self.digest.update(line);
        self.digest.update(b"\n");
        Ok(())
    }

    /// Executes the lines before the one just read, then stops with its problem.
    async fn stop_at_line(&mut self, problem: Box<Problem>) -> Result<(), Box<Problem>> {
        let line = self.lines + 1;
        self.submit().await?;
        Err(of_line(line, problem))
    }

    /// Stops at the premature end of the body.
    async fn break_off(&mut self, mut problem: Box<Problem>) -> Result<(), Box<Problem>> {
        if self.key.is_none() {
            return self.stop_at_line(problem).await;
        }
        problem.detail.push_str(&format!(
            "; the links of the first {} lines are created, and the same body with the same \
             Idempotency-Key creates the others",
            self.durable_lines
        ));
        Err(problem)
    }

    /// Executes the batch, in one piece unless something stops it.
    async fn submit(&mut self) -> Result<(), Box<Problem>> {
        let batch = std::mem::take(&mut self.batch);
        let numbers = std::mem::take(&mut self.numbers);
        let digest = std::mem::take(&mut self.digest).finalize();
        let number = self.batches;
        self.batches += 1;
        self.batch_bytes = 0;
        let keyed = batch.first().is_some_and(|asked| !repeats(asked));
        let mut done = 0;
        while done < batch.len() {
            // The name of each piece follows from the lengths of those before it.
            let piece = if done == 0 { String::new() } else { format!("+{done}") };
            let key = self.key.as_ref().filter(|_| keyed).map(|key| RequestKey {
                key: format!("{key}#{number}{piece}"),
                digest: digest[..16].try_into().unwrap_or_default(),
            });
            done += self.piece(&batch[done..], &numbers[done..], key).await?;
        }
        self.durable_lines = self.lines;
        Ok(())
    }

    /// Executes as many lines of a batch as possible now, or finds those that an earlier attempt
    /// has executed, and adds their links to the answer; returns how many, at least one.
    async fn piece(
        &mut self,
        batch: &[LinkRequest],
        numbers: &[u64],
        key: Option<RequestKey>,
    ) -> Result<usize, Box<Problem>> {
        // A sealer for each append: an erasure waits for no slow body.
        let sealer = LinkSealer::new(&self.links.host, self.subject.as_deref());
        let mut sealer = sealer.map_err(|problem| of_line(numbers[0], problem))?;
        let key = key.map(|key| RequestKey { digest: sealer.digest(key.digest), ..key });
        let mut commands = Vec::new();
        let mut taken = 0;
        if !seen(&self.effects, &self.log, key.as_ref())? {
            let (fit, wrong) = self.judged(batch, &mut sealer);
            commands = fit;
            match wrong {
                Some(problem) if commands.is_empty() => return Err(of_line(numbers[0], problem)),
                _ => {}
            }
            let wanted = commands.len() as u64;
            taken = self.allowance.take(wanted).map_err(|problem| of_line(numbers[0], problem))?;
            commands.truncate(taken as usize);
            sealer.persist(&self.links.host).await?;
        }
        // Lines whose links exist need no append and count as no link: only their time is charged.
        self.payer.solvent().await;
        let executed =
            self.live.execute(&self.effects, &commands, key, CommitOn::JournalThread).await?;
        self.payer.work(executed.decided_us);
        let replayed = executed.appended.is_some_and(|appended| appended.replayed);
        let is_new =
            |outcome: &&LinkOutcome| !replayed && matches!(outcome, LinkOutcome::Created(_));
        let new = executed.outcomes.iter().filter(is_new).count() as u64;
        // A refused line counts.
        let used = new + u64::from(executed.refused.is_some());
        self.allowance.put_back(taken.saturating_sub(used));
        for outcome in &executed.outcomes {
            self.note(made(*outcome).ok_or_else(another_request)?)?;
            if sealer.has_subject() {
                // Each was read and opened.
                tokio::task::yield_now().await;
            }
        }
        let done = executed.outcomes.len();
        self.durable_lines = numbers.get(done).map_or(self.lines, |line| line - 1);
        match (executed.refused, executed.stopped) {
            (Some(refused), _) => Err(of_line(numbers[done], refusal::of_refusal(refused))),
            (None, Some(stopped)) => Err(stopped.into()),
            (None, None) if done == 0 => Err(another_request()),
            (None, None) => Ok(done),
        }
    }

    /// The lines up to the first that is invalid at this time and with these settings, and its
    /// problem.
    fn judged(
        &self,
        batch: &[LinkRequest],
        sealer: &mut LinkSealer,
    ) -> (Vec<Command>, Option<Box<Problem>>) {
        let mut commands = Vec::with_capacity(batch.len());
        for asked in batch {
            match judge(self.links, self.host.as_deref(), asked, sealer) {
                Ok(create) => commands.push(Command::Create(create)),
                Err(problem) => return (commands, Some(problem)),
            }
        }
        (commands, None)
    }

    fn note(&mut self, made: CreateOutcome) -> Result<(), Box<Problem>> {
        let code = match made {
            CreateOutcome::Now(code) => {
                self.made += 1;
                code
            }
            CreateOutcome::Before(code) => code,
        };
        if !self.out.is_empty() {
            self.out.push(b',');
        }
        push(&mut self.out, self.live.folded(), code, &self.base, &self.opener)
    }

    fn answer(&mut self) -> Response {
        let head = format!(r#"{{"lines":{},"created":{},"links":["#, self.lines, self.made);
        let mut out = head.into_bytes();
        out.append(&mut self.out);
        out.extend_from_slice(b"]}");
        let status = if self.made > 0 { 201 } else { 200 };
        Response::json(status, out).at(self.live.position())
    }
}

/// Whether a line can be executed twice without harm.
fn repeats(asked: &LinkRequest) -> bool {
    asked.naming() == Naming::Deterministic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deterministic_links_alone_may_be_repeated() {
        let asked = |body: &[u8]| body::read_create(body).expect("a body");
        assert!(repeats(&asked(br#"{"url":"u","deterministic":true}"#)));
        assert!(!repeats(&asked(br#"{"url":"u"}"#)));
        assert!(!repeats(&asked(br#"{"url":"u","alias":"a"}"#)));
    }
}
