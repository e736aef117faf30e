//! Bulk append: one event per line, a body of any length, atomic per batch.
//!
//! Batches are cut by the content of the lines, never by their arrival, so that a retry of the same
//! body cuts the same batches and its ids or key find them.

use super::append::begin;
use super::event_json::{EventReader, Style};
use super::sealing::{EventSealer, Repetition};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use wellspring_host::http::lines::{LineFault, Lines, of_line};
use wellspring_host::http::subjects::{persist_keys, subject_of};
use wellspring_host::http::{Answer, Body, Host, Request, Response};
use wellspring_host::kept_types::KeptInLog;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::json::Cursor;
use wellspring_host::wire::problem::{Problem, of_line_fault};
use wellspring_log::{Append, AppendError, Appended, CommitOn, EncodedEvents, Log, RequestKey};
use wellspring_subject_keys::SealedWith;
use wellspring_types::{Position, limits};

/// Most lines of a batch.
const BATCH_LINES: usize = limits::MAX_EVENTS;
/// A batch is closed when its events reach this size, in bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Longest line: the largest payload as base64, and room for the rest of the event.
const MAX_LINE_BYTES: usize = limits::MAX_DATA_BYTES / 3 * 4 + (512 << 10);
/// A log with this many staged bytes that are not durable yet is given time.
const ROOM_BYTES: usize = 32 << 20;
/// Retries on an overloaded log, and the time between them.
const RETRIES: u32 = 100;
const RETRY_PAUSE: Duration = Duration::from_millis(20);

type PendingAppend = oneshot::Receiver<Result<Appended, AppendError>>;

/// A bulk append in progress.
struct Bulk {
    host: Arc<Host>,
    log: Log,
    effects: Effects,
    /// Types that clients may not append there.
    kept: KeptInLog,
    key: Option<String>,
    /// Of the batch.
    sealer: EventSealer<'static>,
    batch: EncodedEvents,
    /// Lines of the batch being read, including empty ones.
    batch_lines: u64,
    batch_digest: Sha256,
    batches: u64,
    /// Lines read so far.
    lines: u64,
    /// The batch in progress, and its lines. Never two: a batch refused late must not leave a later
    /// one durable behind a gap. The next is read meanwhile.
    under_way: Option<(PendingAppend, u64, SealedWith)>,
    durable_lines: u64,
    events: u64,
    first: Option<Position>,
    last: Option<Position>,
    head: Position,
    /// Batches that an earlier attempt with the same key has appended.
    replayed: u64,
}

/// Appends the lines of a body.
pub(crate) async fn append(
    host: &Arc<Host>,
    mut request: Box<Request>,
    log: Log,
    key: Option<String>,
) -> Answer {
    let sealer = EventSealer::streaming(host, subject_of(&request)?, Repetition::Differs);
    let mut bulk = Bulk {
        host: Arc::clone(host),
        sealer,
        kept: host.kept.in_log(&request.log_name),
        head: log.head(),
        log,
        effects: request.effects.clone(),
        key,
        batch: EncodedEvents::new(),
        batch_lines: 0,
        batch_digest: Sha256::new(),
        batches: 0,
        lines: 0,
        under_way: None,
        durable_lines: 0,
        events: 0,
        first: None,
        last: None,
        replayed: 0,
    };
    let read = bulk.read_lines(&mut request.body).await;
    // Whatever stopped the reading, the complete lines before it count.
    let settled = match &read {
        Ok(()) | Err(Stop::Input(_)) => bulk.finish().await,
        Err(Stop::Log(_)) => bulk.settle().await,
    };
    let problem = match (read, settled) {
        (Ok(()), Ok(())) => return Ok(bulk.answer()),
        (Err(Stop::Input(problem) | Stop::Log(problem)), Ok(())) => problem,
        (_, Err(problem)) => problem,
    };
    let mut problem = problem
        .with("durable_lines", bulk.durable_lines.to_string())
        .with("durable_events", bulk.events.to_string());
    problem.position = Some(bulk.log.head());
    Err(problem)
}

/// Why reading stopped.
enum Stop {
    /// The client's fault: complete lines before it are still appended.
    Input(Box<Problem>),
    /// The log's fault: nothing further is appended.
    Log(Box<Problem>),
}

impl Bulk {
    async fn read_lines(&mut self, body: &mut Body) -> Result<(), Stop> {
        let mut lines = Lines::up_to(MAX_LINE_BYTES);
        loop {
            match lines.next(body).await {
                Ok(Some(line)) => self.line(line).await?,
                Ok(None) => return Ok(()),
                Err(LineFault::Line(problem)) => return Err(self.stop_at_next_line(problem)),
                Err(LineFault::Body(problem)) => return Err(Stop::Input(problem)),
            }
        }
    }

    async fn line(&mut self, line: &[u8]) -> Result<(), Stop> {
        if !line.iter().all(u8::is_ascii_whitespace) {
            self.parse(line).map_err(|problem| self.stop_at_next_line(problem))?;
            if self.key.is_some() {
                self.batch_digest.update(line);
                self.batch_digest.update(b"\n");
            }
        }
        self.sealer.let_go();
        self.lines += 1;
        self.batch_lines += 1;
        if self.batch.len() == BATCH_LINES || self.batch.byte_len() >= BATCH_BYTES {
            self.submit().await.map_err(Stop::Log)?;
        }
        Ok(())
    }

    /// Stops before the line that follows those read so far.
    fn stop_at_next_line(&self, problem: Box<Problem>) -> Stop {
        Stop::Input(of_line(self.lines + 1, problem))
    }

    fn parse(&mut self, line: &[u8]) -> Result<(), Box<Problem>> {
        let before = self.batch.savepoint();
        let read = Cursor::new(line).and_then(|mut cursor| {
            let (sealer, batch) = (&mut self.sealer, &mut self.batch);
            EventReader::keeping(self.kept).read(&mut cursor, Style::Native, sealer, batch)?;
            cursor.end()
        });
        read.map_err(|fault| {
            // A line must contain exactly one event.
            self.batch.rewind(before);
            self.sealer.problem(&fault, of_line_fault(&fault, line))
        })
    }

    /// Submits the batch.
    async fn submit(&mut self) -> Result<(), Box<Problem>> {
        self.settle().await?;
        if self.batch.is_empty() {
            return Ok(());
        }
        let sealed = self.sealer.take_held()?;
        persist_keys(&self.host, &sealed).await?;
        let digest = std::mem::take(&mut self.batch_digest).finalize();
        let key = self.key.as_ref().map(|key| RequestKey {
            key: format!("{key}#{}", self.batches),
            digest: sealed.digest(digest[..16].try_into().unwrap_or_default()),
        });
        let events = std::mem::take(&mut self.batch);
        let lines = std::mem::take(&mut self.batch_lines);
        self.batches += 1;
        self.wait_for_room(events.byte_len()).await;
        let append = Append { events, key, ..Append::default() };
        let appending = begin(&self.log, append, CommitOn::JournalThread);
        self.under_way = Some((appending, lines, sealed));
        Ok(())
    }

    /// A log with much to make durable is given time before it has to refuse: a refusal in the
    /// middle of a bulk costs the client a retry.
    async fn wait_for_room(&self, bytes: usize) {
        for _ in 0..RETRIES {
            let staged_bytes = self.log.staged_bytes();
            if staged_bytes == 0 || staged_bytes + bytes < ROOM_BYTES {
                return;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Waits for the batch in progress.
    async fn settle(&mut self) -> Result<(), Box<Problem>> {
        let Some((outcome, lines, _sealed)) = self.under_way.take() else { return Ok(()) };
        let no_answer = |_| Err(AppendError::Unknown { reason: "the log gave no answer".into() });
        let appended = self.effects.settle(outcome.await.unwrap_or_else(no_answer))?;
        self.durable_lines += lines;
        self.events += appended.last - appended.first + 1;
        self.first = self.first.or(Some(appended.first));
        self.last = Some(appended.last);
        self.head = appended.head;
        self.replayed += u64::from(appended.replayed);
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Box<Problem>> {
        self.submit().await?;
        self.settle().await?;
        // Empty lines at the end belong to no batch.
        self.durable_lines = self.lines;
        Ok(())
    }

    fn answer(&self) -> Response {
        let number = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
        let body = format!(
            r#"{{"lines":{},"events":{},"first":{},"last":{},"head":{},"replayed":{}}}"#,
            self.lines,
            self.events,
            number(self.first),
            number(self.last),
            self.head,
            self.batches > 0 && self.replayed == self.batches
        );
        Response::json(200, body).at(self.head)
    }
}
