//! Bulk: a link to make on each line, appended in batches.
//!
//! Batches are cut by what the lines hold, never by when they arrive, so that a retry
//! of the same body cuts the same batches and its key finds them. Under a key, lines
//! with `deterministic` are in batches of their own: they may come to no event, and
//! then a batch's events would not tell which of its lines were executed. They need
//! no key: a retry finds their links there.

use super::create::{Made, another_request, made, parse, push};
use super::{admit, body, client_of, host_of, live, refusal};
use crate::http::problem::{self, Problem};
use crate::http::{Answer, Body, Request, Response, Shell};
use crate::view::Live;
use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_log::{CommitOn, RequestKey};
use wellspring_types::limits;
use wellspring_views::links::{Command, Links, Naming};

/// Most lines of a batch: each brings an item of the append's condition, the first link of a log
/// one more, and all must fit into one.
const BATCH_LINES: usize = 250;
const _: () = assert!(BATCH_LINES < limits::MAX_QUERY_ITEMS && BATCH_LINES < limits::MAX_EVENTS);
/// Most lines of a body: the answer lists their links.
const MAX_LINES: u64 = 100_000;

/// The lines of a body as they arrive.
#[derive(Default)]
struct Lines {
    buffer: BytesMut,
    /// So many bytes of the buffer hold no end of a line.
    searched: usize,
}

impl Lines {
    /// The next line, without its end; `None` after the last.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, Box<Problem>> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|&b| b == b'\n') {
                let line = self.buffer.split_to(self.searched + end).freeze();
                let _ = self.buffer.split_to(1);
                self.searched = 0;
                return within(line).map(Some);
            }
            self.searched = self.buffer.len();
            if self.searched > body::MAX_BODY_BYTES {
                return Err(too_long());
            }
            let Some(chunk) = body.chunk().await? else {
                let line = std::mem::take(&mut self.buffer).freeze();
                self.searched = 0;
                return if line.is_empty() { Ok(None) } else { within(line).map(Some) };
            };
            self.buffer.extend_from_slice(&chunk);
        }
    }
}

fn within(line: Bytes) -> Result<Bytes, Box<Problem>> {
    if line.len() > body::MAX_BODY_BYTES { Err(too_long()) } else { Ok(line) }
}

fn too_long() -> Box<Problem> {
    let limit = body::MAX_BODY_BYTES;
    problem::TOO_LARGE.because(format!("the line is longer than {limit} bytes")).limit(limit as u64)
}

/// A bulk under way.
struct Bulk<'a> {
    shell: &'a Shell,
    live: Arc<Live<Links>>,
    /// The `Host` of the request.
    host: Option<String>,
    base: String,
    client: Option<IpAddr>,
    key: Option<String>,
    /// What is read and not executed yet, with its lines' numbers.
    batch: Vec<Command>,
    numbers: Vec<u64>,
    digest: Sha256,
    batches: u64,
    /// Lines read so far, all in order.
    lines: u64,
    durable_lines: u64,
    made: u64,
    /// The links of the answer.
    out: Vec<u8>,
}

/// Makes the links of a body's lines.
pub(super) async fn create(shell: Arc<Shell>, mut request: Request, key: Option<String>) -> Answer {
    let host = host_of(&request).map(str::to_owned);
    let mut bulk = Bulk {
        live: live(&shell)?,
        base: shell.link_settings.base(host.as_deref()),
        host,
        client: client_of(&shell, &request),
        shell: &shell,
        key,
        batch: Vec::new(),
        numbers: Vec::new(),
        digest: Sha256::new(),
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
    let mut problem = problem.with("durable_lines", bulk.durable_lines.to_string());
    problem.position = Some(bulk.live.position());
    Err(problem)
}

impl Bulk<'_> {
    async fn run(&mut self, body: &mut Body) -> Result<(), Box<Problem>> {
        let mut lines = Lines::default();
        loop {
            let line = match lines.next(body).await {
                Ok(Some(line)) => line,
                Ok(None) => return self.submit().await,
                Err(problem) => return self.stop_at(self.lines + 1, problem).await,
            };
            match self.read(&line) {
                Ok(None) => self.lines += 1,
                Ok(Some(command)) => self.add(command, &line).await?,
                Err(problem) => return self.stop_at(self.lines + 1, problem).await,
            }
            // The answer and a long line hold memory like a body does.
            let held = self.out.len() + lines.buffer.len();
            if let Err(problem) = body.charge(held) {
                return self.stop_at(self.lines + 1, problem).await;
            }
        }
    }

    /// Reads a line; an empty one holds nothing.
    fn read(&self, line: &[u8]) -> Result<Option<Command>, Box<Problem>> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        if self.lines == MAX_LINES {
            let detail = format!("there are more than {MAX_LINES} lines; send several requests");
            return Err(problem::TOO_LARGE.because(detail).limit(MAX_LINES));
        }
        let create = parse(self.shell, self.host.as_deref(), line).map_err(|mut problem| {
            // Whether it is JSON or not, it is the line that is at fault.
            if problem.kind == &problem::MALFORMED_JSON {
                problem.more.clear();
                problem.kind = &problem::INVALID;
            }
            problem
        })?;
        admit(self.shell, self.client)?;
        Ok(Some(Command::Create(create)))
    }

    async fn add(&mut self, command: Command, line: &[u8]) -> Result<(), Box<Problem>> {
        let full = self.batch.len() == BATCH_LINES;
        let apart = self.key.is_some()
            && self.batch.last().is_some_and(|last| repeats(last) != repeats(&command));
        if full || apart {
            self.submit().await?;
        }
        self.lines += 1;
        self.batch.push(command);
        self.numbers.push(self.lines);
        self.digest.update(line);
        self.digest.update(b"\n");
        Ok(())
    }

    /// Executes what is complete, then stops with the problem of a line.
    async fn stop_at(&mut self, line: u64, problem: Box<Problem>) -> Result<(), Box<Problem>> {
        self.submit().await?;
        Err(of_line(line, problem))
    }

    /// Executes the batch.
    async fn submit(&mut self) -> Result<(), Box<Problem>> {
        let batch = std::mem::take(&mut self.batch);
        let numbers = std::mem::take(&mut self.numbers);
        let digest = std::mem::take(&mut self.digest).finalize();
        let keyed = batch.first().is_some_and(|command| !repeats(command));
        let key = self.key.as_ref().filter(|_| keyed).map(|key| RequestKey {
            key: format!("{key}#{}", self.batches),
            digest: digest[..16].try_into().unwrap_or_default(),
        });
        self.batches += 1;
        let executed = self.execute(&batch, key).await;
        let (done, problem) = match executed {
            Ok((done, refused)) => (done, refused.map(refusal::of_refusal)),
            Err(problem) => return Err(problem),
        };
        match (problem, numbers.get(done)) {
            (Some(problem), Some(&line)) => {
                self.durable_lines = line - 1;
                Err(of_line(line, problem))
            }
            (Some(problem), None) => Err(problem),
            (None, _) => {
                self.durable_lines = self.lines;
                Ok(())
            }
        }
    }

    /// Executes commands and adds their links to the answer; tells how many were executed, and
    /// why not the next.
    async fn execute(
        &mut self,
        batch: &[Command],
        key: Option<RequestKey>,
    ) -> Result<(usize, Option<wellspring_views::links::Refusal>), Box<Problem>> {
        let mut done = 0;
        let mut key = key;
        while done < batch.len() {
            let replayable = key.is_some();
            let on = CommitOn::JournalThread;
            let executed = self.live.execute(&batch[done..], key.take(), on).await?;
            for outcome in &executed.outcomes {
                self.note(made(*outcome).ok_or_else(another_request)?)?;
            }
            done += executed.outcomes.len();
            let replayed = executed.appended.is_some_and(|appended| appended.replayed);
            if executed.refused.is_some() || !(replayable && replayed) {
                return Ok((done, executed.refused));
            }
            // The first attempt stopped at a line that was refused. It is refused again, and
            // this tells why: no alias becomes free.
        }
        Ok((done, None))
    }

    fn note(&mut self, made: Made) -> Result<(), Box<Problem>> {
        let code = match made {
            Made::Now(code) => {
                self.made += 1;
                code
            }
            Made::Before(code) => code,
        };
        if !self.out.is_empty() {
            self.out.push(b',');
        }
        push(&mut self.out, self.live.folded(), code, &self.base)
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

/// Whether a command may be repeated without harm.
fn repeats(command: &Command) -> bool {
    matches!(command, Command::Create(create) if create.naming == Naming::Deterministic)
}

fn of_line(line: u64, problem: Box<Problem>) -> Box<Problem> {
    let mut problem = problem.with("line", line.to_string());
    problem.detail = format!("line {line}: {}", problem.detail);
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deterministic_links_alone_may_be_repeated() {
        let command = |body: &[u8]| Command::Create(body::read_create(body, 0).expect("a body"));
        assert!(repeats(&command(br#"{"url":"u","deterministic":true}"#)));
        assert!(!repeats(&command(br#"{"url":"u"}"#)));
        assert!(!repeats(&command(br#"{"url":"u","alias":"a"}"#)));
    }

    #[test]
    fn a_problem_says_its_line_and_stays_itself() {
        let problem = of_line(7, problem::ALIAS_TAKEN.because("taken"));
        let json: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!((json["line"].as_u64(), json["status"].as_u64()), (Some(7), Some(409)));
        assert_eq!(json["detail"], "line 7: taken");
    }
}
