//! `POST /v1/append`.

use super::idempotency::{KeyUse, idempotency_key};
use super::json::push_u64;
use super::params::{Params, content_type, expect_identity, expect_json, negotiate};
use super::problem::{Problem, of_fault};
use super::read::{elsewhere, long_read};
use super::wire::{Style, read_append};
use super::{Answer, JSON, NDJSON, Request, Response, Shell, bulk};
use crate::limits::{Payer, Reads};
use bytes::Bytes;
use hyper::Version;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;
use wellspring_log::{
    Ack, Append, AppendError, Appended, CommitOn, Completion, Log, RequestKey, Staged, Unjudged,
    Work,
};
use wellspring_types::limits;

/// Steps of the index that judging an append may take on a serving thread; one that takes more is
/// judged again on a thread of its own.
const CHEAP_STEPS: u64 = 4_096;
/// Bodies over this size are parsed on a thread of their own, in bytes.
const CHEAP_PARSING: usize = 256 << 10;

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
    let mut append = parse(&body, Style::Native).await?;
    append.key = key.map(|key| RequestKey { key, digest: digest(&body) });
    let (ack, count) = (append.ack, append.events.len());
    // Looked at twice only for the trace.
    let now_us = || shell.otlp.is_on().then(|| shell.clock.monotonic_us());
    let begun_us = now_us();
    let on = commit_on(&shell, &request);
    let appended = submit(&shell, &request.payer, &log, append, on).await??;
    let commit_us = begun_us.zip(now_us());
    let mut out = Vec::with_capacity(96);
    if ack == Ack::Accepted {
        out.extend_from_slice(b"{\"accepted\":");
        push_u64(&mut out, count as u64);
        out.push(b'}');
        return Ok(Response::json(202, out).at(appended.head));
    }
    push_appended(&mut out, &appended);
    Ok(Response { commit_us, ..Response::json(200, out) }.at(appended.head))
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

/// Parses a body, elsewhere if it is long.
pub(crate) async fn parse(body: &Bytes, style: Style) -> Result<Append, Box<Problem>> {
    let read = move |body: &[u8]| read_append(body, style).map_err(|fault| of_fault(&fault, body));
    if body.len() <= CHEAP_PARSING {
        return read(body);
    }
    let body = body.clone();
    elsewhere(move || read(&body)).await?
}

/// Where the append of a request is best committed. A client that is alone is answered
/// quickest by its own thread, and nobody else is kept waiting for the device; with
/// others, a thread that waited would stop their batch from gathering.
pub(crate) fn commit_on(shell: &Shell, request: &Request) -> CommitOn {
    let alone = shell.stats.connections.load(Relaxed) <= 1 && request.version < Version::HTTP_2;
    if alone { CommitOn::ThisThread } else { CommitOn::JournalThread }
}

/// Submits an append and waits for its outcome without holding the thread for it. Judging its
/// condition is charged to the payer like reading, and ends when the client leaves.
///
/// # Errors
/// 429, if the payer's reads and conditions took too much time; 503, if this one is dear and as
/// many long reads are under way as may be.
pub(crate) async fn submit(
    shell: &Shell,
    payer: &Payer,
    log: &Log,
    append: Append,
    on: CommitOn,
) -> Result<Result<Appended, AppendError>, Box<Problem>> {
    if append.condition.is_none() {
        return Ok(outcome(begin(log, append, on)).await);
    }
    let reads = payer.reads()?;
    let (done, receiver) = completion();
    let mut work = Work::unbounded().with_step_limit(CHEAP_STEPS);
    match reads.timed(|| log.stage_within(append, &mut work, done)) {
        Ok(Staged::Answered) => {}
        Ok(_) => log.commit(on),
        Err(unjudged) => judge_elsewhere(shell, reads, log.clone(), unjudged).await?,
    }
    Ok(outcome(receiver).await)
}

/// Judges an append whose condition is dear on a thread of its own, and stages it there.
async fn judge_elsewhere(
    shell: &Shell,
    reads: Reads,
    log: Log,
    unjudged: Box<Unjudged>,
) -> Result<(), Box<Problem>> {
    let permit = long_read(shell)?;
    let limit_us = shell.config.max_fold_ms.saturating_mul(1_000);
    let deadline_us = shell.clock.monotonic_us().saturating_add(limit_us);
    let stop = Arc::new(AtomicBool::new(false));
    // Set when this future is dropped: the client has gone.
    let _stop = StopOnDrop(Arc::clone(&stop));
    let mut work =
        Work::unbounded().with_deadline(Arc::clone(&shell.clock), deadline_us).with_stop(stop);
    elsewhere(move || {
        // The permit is the work's, not the future's: it is held for as long as the thread works.
        let _permit = permit;
        let Unjudged { append, done, .. } = *unjudged;
        match reads.timed(|| log.stage_within(append, &mut work, done)) {
            Ok(Staged::Answered) => {}
            Ok(_) => log.commit(CommitOn::JournalThread),
            Err(unjudged) => unjudged.refuse(),
        }
    })
    .await
}

/// Sets a flag when it is dropped.
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

fn completion() -> (Completion, Receiver) {
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
