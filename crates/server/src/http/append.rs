//! `POST /v1/append`.

use super::elsewhere::{Price, elsewhere, long_read};
use super::idempotency::{KeyUse, idempotency_key};
use super::json::push_u64;
use super::params::{Params, content_type, expect_identity, expect_json, negotiate};
use super::problem::{Problem, of_fault};
use super::wire::{Style, read_append};
use super::{Answer, JSON, NDJSON, Request, Response, Shell, bulk};
use crate::limits::Payer;
use bytes::Bytes;
use hyper::Version;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use wellspring_log::{
    Ack, Append, AppendError, Appended, CommitOn, Completion, Log, RequestKey, Staged, Unjudged,
    Work,
};
use wellspring_types::limits;

/// Steps of the index, and time in µs, that judging an append may take on a serving thread; one that
/// takes more is judged again elsewhere. A step in memory takes 20 to 50 ns; the time, which is
/// looked at every 256 steps, is for those that read files.
const SHORT_STEPS: u64 = 1_024;
const SHORT_US: u64 = 100;

/// Appends a JSON body, or hands over to the bulk append.
pub(crate) async fn append(shell: Arc<Shell>, mut request: Request) -> Answer {
    let log = request.log()?.clone();
    Params::of(&request, &[])?;
    negotiate(&request, &[JSON])?;
    if content_type(&request) == NDJSON {
        expect_identity(&request)?;
        // Each batch gets a key of its own: this one and a number behind it.
        let key = idempotency_key(&request, KeyUse::Batches)?;
        return bulk::append(request, log, key).await;
    }
    let key = idempotency_key(&request, KeyUse::Request)?;
    expect_json(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let sent = SentAppend { body, style: Style::Native, key };
    let Submission { gist, outcome } = submit(&shell, &request, sent).await?;
    let appended = outcome?;
    let commit_us = gist.begun_us.zip(moment_us(&shell));
    let mut out = Vec::with_capacity(96);
    if gist.ack == Ack::Accepted {
        out.extend_from_slice(b"{\"accepted\":");
        push_u64(&mut out, gist.events as u64);
        out.push(b'}');
        return Ok(Response::json(202, out).at(appended.head));
    }
    push_appended(&mut out, &appended);
    Ok(Response { commit_us, ..Response::json(200, out) }.at(appended.head))
}

/// The moment, looked at only for the trace.
fn moment_us(shell: &Shell) -> Option<u64> {
    shell.otlp.is_on().then(|| shell.clock.monotonic_us())
}

fn push_appended(out: &mut Vec<u8>, appended: &Appended) {
    let fields: [(&[u8], u64); 3] = [
        (b"{\"first\":", appended.first),
        (b",\"last\":", appended.last),
        (b",\"head\":", appended.head),
    ];
    for (name, number) in fields {
        out.extend_from_slice(name);
        push_u64(out, number);
    }
    let replayed: &[u8] = if appended.replayed { b"true" } else { b"false" };
    out.extend_from_slice(b",\"replayed\":");
    out.extend_from_slice(replayed);
    out.push(b'}');
}

/// Where the append of a request is best committed. A client that is alone is answered
/// quickest by its own thread, and nobody else is kept waiting for the device; with
/// others, a thread that waited would stop their batch from gathering.
pub(crate) fn commit_on(shell: &Shell, request: &Request) -> CommitOn {
    let alone = shell.stats.connections.load(Relaxed) <= 1 && request.version < Version::HTTP_2;
    if alone { CommitOn::ThisThread } else { CommitOn::JournalThread }
}

/// An append as its client sent it.
pub(crate) struct SentAppend {
    pub(crate) body: Bytes,
    pub(crate) style: Style,
    /// The name of its idempotency key.
    pub(crate) key: Option<String>,
}

impl SentAppend {
    fn read(self) -> Result<Append, Box<Problem>> {
        let body = &self.body;
        let mut append = read_append(body, self.style).map_err(|fault| of_fault(&fault, body))?;
        append.key = self.key.map(|key| RequestKey { key, digest: digest(body) });
        Ok(append)
    }
}

/// What an answer tells of the append itself.
#[derive(Clone, Copy)]
pub(crate) struct Gist {
    ack: Ack,
    events: usize,
    /// When it was submitted, for the trace.
    begun_us: Option<u64>,
}

/// What became of an append that could be read.
pub(crate) struct Submission {
    gist: Gist,
    pub(crate) outcome: Result<Appended, AppendError>,
}

/// Submits an append and waits for its outcome without holding a serving thread for it: what is dear
/// of it is done elsewhere. Judging a condition is charged to the payer like reading, and ends when
/// the client leaves.
///
/// # Errors
/// What is wrong with the body; 429, if the payer's reads and conditions took too much time; 503, if
/// this condition is dear and as many long reads are under way as may be.
pub(crate) async fn submit(
    shell: &Arc<Shell>,
    request: &Request,
    sent: SentAppend,
) -> Result<Submission, Box<Problem>> {
    let (shell, payer) = (Arc::clone(shell), request.payer.clone());
    let (log, on) = (request.log()?.clone(), commit_on(&shell, request));
    let stager = Stager { shell, payer, log, on };
    let (done, receiver) = completion();
    // Set when this future is dropped: the client has gone.
    let stop = StopOnDrop::default();
    let flag = Arc::clone(&stop.0);
    let gist = match Price::of_bytes(sent.body.len()) {
        Price::Short => {
            let append = sent.read()?;
            let gist = stager.gist(&append);
            if let Some(dear) = stager.stage_short(append, done)? {
                let permit = long_read(&stager.shell)?;
                elsewhere(move || stager.stage_dear(dear, &flag, permit)).await??;
            }
            gist
        }
        Price::Dear => elsewhere(move || stager.read_and_stage(sent, &flag, done)).await??,
    };
    Ok(Submission { gist, outcome: outcome(receiver).await })
}

/// Where an append goes, and who pays for it.
struct Stager {
    shell: Arc<Shell>,
    payer: Payer,
    log: Log,
    on: CommitOn,
}

/// An append that is judged elsewhere.
struct DearAppend {
    append: Append,
    done: Completion,
}

impl Stager {
    fn gist(&self, append: &Append) -> Gist {
        Gist { ack: append.ack, events: append.events.len(), begun_us: moment_us(&self.shell) }
    }

    /// Stages an append on a serving thread, or gives it back: its condition is dear.
    fn stage_short(
        &self,
        append: Append,
        done: Completion,
    ) -> Result<Option<DearAppend>, Box<Problem>> {
        let Some(condition) = &append.condition else {
            self.commit(self.log.stage(append, done));
            return Ok(None);
        };
        let reads = self.payer.reads()?;
        if Price::of_terms(condition.term_count()) == Price::Dear {
            return Ok(Some(DearAppend { append, done }));
        }
        let clock = &self.shell.clock;
        let deadline_us = clock.monotonic_us().saturating_add(SHORT_US);
        let mut work = Work::unbounded()
            .with_step_limit(SHORT_STEPS)
            .with_deadline(Arc::clone(clock), deadline_us);
        match reads.timed(|| self.log.stage_within(append, &mut work, done)) {
            Ok(staged) => {
                self.commit(staged);
                Ok(None)
            }
            Err(unjudged) => {
                let Unjudged { append, done, .. } = *unjudged;
                Ok(Some(DearAppend { append, done }))
            }
        }
    }

    /// Parses a long body and stages what it holds. Not for a serving thread.
    fn read_and_stage(
        &self,
        sent: SentAppend,
        stop: &Arc<AtomicBool>,
        done: Completion,
    ) -> Result<Gist, Box<Problem>> {
        let append = sent.read()?;
        let gist = self.gist(&append);
        if append.condition.is_none() {
            self.commit(self.log.stage(append, done));
        } else {
            self.stage_dear(DearAppend { append, done }, stop, long_read(&self.shell)?)?;
        }
        Ok(gist)
    }

    /// Judges and stages an append whose condition is dear. Not for a serving thread. The permit is
    /// the work's and not the future's: it is held for as long as the thread works.
    fn stage_dear(
        &self,
        dear: DearAppend,
        stop: &Arc<AtomicBool>,
        _permit: OwnedSemaphorePermit,
    ) -> Result<(), Box<Problem>> {
        let reads = self.payer.reads()?;
        let limit_us = self.shell.config.max_fold_ms.saturating_mul(1_000);
        let clock = &self.shell.clock;
        let deadline_us = clock.monotonic_us().saturating_add(limit_us);
        let mut work = Work::unbounded()
            .giving_way()
            .with_deadline(Arc::clone(clock), deadline_us)
            .with_stop(Arc::clone(stop));
        let DearAppend { append, done } = dear;
        match reads.timed(|| self.log.stage_within(append, &mut work, done)) {
            Ok(staged) => self.commit(staged),
            Err(unjudged) => unjudged.refuse(),
        }
        Ok(())
    }

    fn commit(&self, staged: Staged) {
        if staged != Staged::Answered {
            self.log.commit(self.on);
        }
    }
}

/// Sets a flag when it is dropped.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Submits an append without a condition; the receiver gets its outcome. When this returns, its
/// place in the order is decided.
pub(crate) fn begin(log: &Log, append: Append, on: CommitOn) -> Receiver {
    debug_assert!(append.condition.is_none(), "a condition may be dear to judge");
    let (done, receiver) = completion();
    if log.stage(append, done) != Staged::Answered {
        log.commit(on);
    }
    receiver
}

/// Gets the outcome of an append.
pub(crate) type Receiver = oneshot::Receiver<Result<Appended, AppendError>>;

/// What is to be called with the outcome of an append, and what then gets it.
pub(crate) fn completion() -> (Completion, Receiver) {
    let (sender, receiver) = oneshot::channel();
    (Box::new(move |outcome| drop(sender.send(outcome))), receiver)
}

/// The outcome once it is there. If the thread dies, so does the sender, and the receiver says so.
pub(crate) async fn outcome(receiver: Receiver) -> Result<Appended, AppendError> {
    let no_answer = |_| Err(AppendError::Unknown { reason: "the log gave no answer".into() });
    receiver.await.unwrap_or_else(no_answer)
}

/// What tells a retry from another request with the same key.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&Sha256::digest(bytes)[..16]);
    digest
}
