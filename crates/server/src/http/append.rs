//! `POST /v1/append`.

use super::idempotency::{KeyUse, idempotency_key};
use super::json::push_u64;
use super::params::{Params, content_type, expect_identity, expect_json, negotiate};
use super::problem::{Problem, of_fault};
use super::wire::{Style, read_append};
use super::{Answer, JSON, NDJSON, Request, Response, Shell, bulk};
use bytes::Bytes;
use hyper::Version;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;
use wellspring_log::{Ack, Append, AppendError, Appended, CommitOn, Log, RequestKey, Staged};
use wellspring_types::limits;

/// Index entries a judgement may visit on a serving thread; dearer ones go to a thread of their own.
const CHEAP_JUDGING: u64 = 4_096;
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
    let appended = submit(&log, append, commit_on(&shell, &request)).await?;
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
    super::read::elsewhere(move || read(&body)).await?
}

/// Where the append of a request is best committed. A client that is alone is answered
/// quickest by its own thread, and nobody else is kept waiting for the device; with
/// others, a thread that waited would stop their batch from gathering.
pub(crate) fn commit_on(shell: &Shell, request: &Request) -> CommitOn {
    let alone = shell.stats.connections.load(Relaxed) <= 1 && request.version < Version::HTTP_2;
    if alone { CommitOn::ThisThread } else { CommitOn::JournalThread }
}

/// Submits an append and waits for its outcome without holding the thread for it.
pub(crate) async fn submit(
    log: &Log,
    append: Append,
    on: CommitOn,
) -> Result<Appended, AppendError> {
    let outcome = begin(log, append, on).await;
    outcome
        .await
        .unwrap_or_else(|_| Err(AppendError::Unknown { reason: "the log gave no answer".into() }))
}

/// Submits an append; the receiver gets its outcome. When this returns, its place in the order is decided.
pub(crate) async fn begin(
    log: &Log,
    append: Append,
    on: CommitOn,
) -> oneshot::Receiver<Result<Appended, AppendError>> {
    let (sender, receiver) = oneshot::channel();
    let done = Box::new(move |outcome| drop(sender.send(outcome)));
    let dear = |condition| log.judging_cost(condition) > CHEAP_JUDGING;
    if append.condition.as_ref().is_some_and(dear) {
        let log = log.clone();
        // If the thread dies, so does the sender, and the receiver says so.
        let _ = tokio::task::spawn_blocking(move || log.submit(append, done)).await;
    } else if log.stage(append, done) != Staged::Answered {
        log.commit(on);
    }
    receiver
}

/// What tells a retry from another request with the same key.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&Sha256::digest(bytes)[..16]);
    digest
}
