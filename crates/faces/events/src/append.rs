//! `POST /v1/append`.

use super::bulk;
use super::consumers::{Settlement, SettlingAppend};
use super::event_json::{AppendBody, Style, read_append};
use super::sealing::EventSealer;
use crate::EventFace;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::oneshot;
use wellspring_host::http::content::{content_type, expect_identity, expect_json};
use wellspring_host::http::contract::IDEMPOTENCY_KEY;
use wellspring_host::http::idempotency::{KeyUse, digest, idempotency_key};
use wellspring_host::http::subjects::{persist_keys, subject_of};
use wellspring_host::http::work::{Cost, Job, short_work};
use wellspring_host::http::{Answer, Host, NDJSON, Request, Response};
use wellspring_host::kept_types::KeptInLog;
use wellspring_host::limits::{Payer, Reads};
use wellspring_host::wire::effects::StepRefusal;
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_log::{
    Ack, Append, AppendError, Appended, CommitOn, Completion, Log, RequestKey, Staged, Unjudged,
    Work,
};
use wellspring_subject_keys::SealedWith;
use wellspring_types::{AppendCondition, Clause, Position, limits};

/// Appends a JSON body, or hands over to the bulk append.
pub(crate) async fn append(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let host = &face.host;
    let log = request.log()?.clone();
    if content_type(&request) == NDJSON {
        expect_identity(&request)?;
        // Each batch gets a key of its own: this one with a numeric suffix.
        let key = idempotency_key(&request, KeyUse::Batches)?;
        return bulk::append(host, request, log, key).await;
    }
    let key = idempotency_key(&request, KeyUse::Request)?;
    expect_json(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    let subject = subject_of(&request)?.map(str::to_owned);
    let sent = SentAppend { body, style: Style::Native, key, subject };
    let Submission { gist, settling, mut outcome } = submit(&face, &request, sent).await?;
    if let (Some(settling), &Err(AppendError::KeyReused { first })) = (settling, &outcome) {
        outcome = Ok(settling.earlier(&log, first)?);
    }
    let appended = request.effects.settle(outcome).map_err(|refused| gist.refusal(refused))?;
    let commit_us = gist.begun_us.zip(moment_us(host));
    let mut out = Vec::with_capacity(96);
    if gist.ack == Ack::Accepted {
        out.extend_from_slice(b"{\"accepted\":");
        push_u64(&mut out, gist.events as u64);
        out.push(b'}');
        return Ok(Response::json(202, out).at(appended.head));
    }
    push_appended(&mut out, &appended);
    Ok(Response::json(200, out).after_commit(commit_us).at(appended.head))
}

/// The time, read only for the trace.
fn moment_us(host: &Host) -> Option<u64> {
    host.otlp.is_on().then(|| host.clock.monotonic_us())
}

pub(crate) fn push_appended(out: &mut Vec<u8>, appended: &Appended) {
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

/// An append as its client sent it.
pub(crate) struct SentAppend {
    pub(crate) body: Bytes,
    pub(crate) style: Style,
    /// The name of its idempotency key.
    pub(crate) key: Option<String>,
    /// The data subject of all its events.
    pub(crate) subject: Option<String>,
}

impl SentAppend {
    fn read(
        self,
        host: &Host,
        log: &Log,
        kept: KeptInLog,
        done: Completion,
    ) -> Result<ReadAppend, Box<Problem>> {
        let body = &self.body;
        let mut sealer = EventSealer::new(host, self.subject.as_deref(), body);
        let read = read_append(body, self.style, kept, &mut sealer);
        let AppendBody { mut append, fence, settles } =
            read.map_err(|fault| sealer.problem(&fault, of_fault(&fault, body)))?;
        let sealed = sealer.into_used();
        append.fence = fence.map(|proof| log.leases().fence(proof));
        if settles.is_some() && self.key.is_some() {
            let detail = "an append with settles has a key already, that of its delivery: send it \
                          again without Idempotency-Key";
            return Err(problem::INVALID.because(detail).field(IDEMPOTENCY_KEY.name));
        }
        let digest_of_body = |key| RequestKey { key, digest: sealed.digest(digest(body)) };
        append.key = self.key.map(digest_of_body);
        // The body names the delivery, which is another one each time.
        let settles = settles.map(|settlement| (settlement, digest(append.events.bytes())));
        Ok(ReadAppend { append, settles, done, sealed })
    }
}

/// The facts about an append for its answer.
#[derive(Clone, Copy)]
pub(crate) struct AppendFacts {
    ack: Ack,
    events: usize,
    /// When it was submitted, for the trace.
    begun_us: Option<u64>,
    /// `after` of a condition that fails on every later event, as `{}` does.
    no_event_after: Option<Position>,
}

impl AppendFacts {
    pub(crate) fn of(append: &Append, begun_us: Option<u64>) -> AppendFacts {
        let condition = append.condition.as_ref();
        let is_all = |c: &&AppendCondition| {
            c.fail_if_events_match.as_ref().is_some_and(wellspring_types::Query::is_all)
        };
        AppendFacts {
            ack: append.ack,
            events: append.events.len(),
            begun_us,
            no_event_after: condition.filter(is_all).map(|c| c.after.unwrap_or(0)),
        }
    }

    /// The problem of an append that was refused. A conflict names no item of a clause that the
    /// client did not send.
    pub(crate) fn refusal(&self, refused: StepRefusal<AppendError>) -> Box<Problem> {
        let conflict = match &refused.error {
            AppendError::Conflict(conflict) => Some(*conflict),
            _ => None,
        };
        let mut problem: Box<Problem> = refused.into();
        if let (Some(conflict), Some(after)) = (conflict, self.no_event_after)
            && conflict.clause == Clause::FailIfEventsMatch
        {
            problem.detail = format!(
                "append condition failed: it allows no event after position {after}, and the log \
                 has one at position {}",
                conflict.position
            );
        }
        problem
    }
}

/// The result of a well-formed append.
pub(crate) struct Submission {
    gist: AppendFacts,
    settling: Option<SettlingAppend>,
    pub(crate) outcome: Result<Appended, AppendError>,
}

/// Submits an append and waits for its outcome without occupying a serving thread: expensive parts
/// run elsewhere. Judging a condition is charged to the payer like reading, and ends when the
/// client leaves.
///
/// # Errors
/// The fault of the body; 429 if the payer's reads and conditions took too much time; 503 if this
/// condition is expensive and the limit of long reads is reached.
pub(crate) async fn submit(
    face: &EventFace,
    request: &Request,
    sent: SentAppend,
) -> Result<Submission, Box<Problem>> {
    let host = &face.host;
    let (log, on) = (request.log()?.clone(), host.commit_on(request));
    let kept = host.kept.in_log(&request.log_name);
    let stager = Stager { host: Arc::clone(host), log, on, kept };
    let (done, receiver) = completion();
    let unstaged = match Cost::of_bytes(sent.body.len()) {
        Cost::Cheap => sent.read(&stager.host, &stager.log, stager.kept, done)?,
        Cost::Expensive => {
            let (here, job) = (stager.clone(), Job::uncharged(host));
            let read = job.brief_within(move |work| here.read_and_stage(sent, done, work));
            // On the heap, like everything rare: otherwise short requests would carry its size
            // along.
            match Box::pin(read).await?? {
                LongBody::Staged(gist, _sealed) => {
                    let outcome = outcome(receiver).await;
                    return Ok(Submission { gist, settling: None, outcome });
                }
                LongBody::Unstaged(read) => *read,
            }
        }
    };
    // Held until its outcome is known.
    let ReadAppend { mut append, settles, mut done, sealed } = unstaged;
    if !sealed.are_durable() {
        Box::pin(persist_keys(host, &sealed)).await?;
    }
    let mut settling = None;
    if let Some((settlement, content)) = settles {
        let consumers = &face.consumers;
        let append = (&mut append, done);
        let settle = consumers.prepare_settling(host, request, settlement, content, append);
        let (by, told) = Box::pin(settle).await?;
        (settling, done) = (Some(by), told);
    }
    let gist = stager.stage(&request.payer, append, done).await?;
    Ok(Submission { gist, settling, outcome: outcome(receiver).await })
}

/// Stages appends for one log.
#[derive(Clone)]
struct Stager {
    host: Arc<Host>,
    log: Log,
    on: CommitOn,
    /// Types that clients may not append there.
    kept: KeptInLog,
}

/// A parsed append.
struct ReadAppend {
    append: Append,
    /// The delivery that it settles, with a hash of its events.
    settles: Option<(Settlement, [u8; 16])>,
    done: Completion,
    /// The keys of its subjects.
    sealed: SealedWith,
}

/// The result of a long body, elsewhere.
enum LongBody {
    Staged(AppendFacts, SealedWith),
    /// It has a condition, which may be expensive, settles a delivery, or needs a new key.
    Unstaged(Box<ReadAppend>),
}

impl Stager {
    fn gist(&self, append: &Append) -> AppendFacts {
        AppendFacts::of(append, moment_us(&self.host))
    }

    /// Parses a long body, and stages it if nothing else is to be done before. Not for a serving
    /// thread.
    fn read_and_stage(
        &self,
        sent: SentAppend,
        done: Completion,
        work: Work,
    ) -> Result<LongBody, Box<Problem>> {
        let read = sent.read(&self.host, &self.log, self.kept, done)?;
        let is_ready = read.settles.is_none() && read.sealed.are_durable();
        if read.append.condition.is_some() || !is_ready {
            return Ok(LongBody::Unstaged(Box::new(read)));
        }
        let gist = self.gist(&read.append);
        self.stage_or_refuse(read.append, read.done, work);
        Ok(LongBody::Staged(gist, read.sealed))
    }

    /// Judges and stages an append: here if that is short, otherwise elsewhere. Ends when its
    /// client leaves.
    async fn stage(
        self,
        payer: &Payer,
        mut append: Append,
        mut done: Completion,
    ) -> Result<AppendFacts, Box<Problem>> {
        let gist = self.gist(&append);
        let terms = append.condition.as_ref().map(AppendCondition::term_count);
        // Parsing and staging are charged by bytes: a client in debt may still append, unless a
        // condition must be judged.
        let reads = if terms.is_some() { payer.reads()? } else { Reads::default() };
        if Cost::of_terms(terms.unwrap_or(0)) == Cost::Cheap {
            let work = short_work(&self.host.clock);
            let Some(unjudged) = reads.timed(|| self.stage_within(append, done, work)) else {
                return Ok(gist);
            };
            Unjudged { append, done, .. } = *unjudged;
        }
        Box::pin(self.stage_elsewhere(reads, append, done)).await?;
        Ok(gist)
    }

    async fn stage_elsewhere(
        self,
        reads: Reads,
        append: Append,
        done: Completion,
    ) -> Result<(), Box<Problem>> {
        let mut job = Job::of(&self.host, reads);
        let conditional = append.condition.is_some();
        let stage = move |work| self.stage_or_refuse(append, done, work);
        if conditional {
            job.long(stage).await
        } else {
            // Bounded by its size: its ids and its key are looked up.
            job.brief_within(stage).await
        }
    }

    fn stage_or_refuse(&self, append: Append, done: Completion, work: Work) {
        if let Some(unjudged) = self.stage_within(append, done, work) {
            unjudged.refuse();
        }
    }

    /// Stages an append and starts its commit; returns it if the work ended first.
    fn stage_within(
        &self,
        append: Append,
        done: Completion,
        mut work: Work,
    ) -> Option<Box<Unjudged>> {
        match self.log.stage_within(append, &mut work, done) {
            Ok(staged) => {
                self.commit(staged);
                None
            }
            Err(unjudged) => Some(unjudged),
        }
    }

    fn commit(&self, staged: Staged) {
        if staged != Staged::Answered {
            self.log.commit(self.on);
        }
    }
}

/// Submits an append without a condition; the receiver gets its outcome. When this returns, its
/// place in the order is fixed.
pub(crate) fn begin(log: &Log, append: Append, on: CommitOn) -> Receiver {
    debug_assert!(append.condition.is_none(), "a condition may be expensive to judge");
    let (done, receiver) = completion();
    if log.stage(append, done) != Staged::Answered {
        log.commit(on);
    }
    receiver
}

/// Receives the outcome of an append.
pub(crate) type Receiver = oneshot::Receiver<Result<Appended, AppendError>>;

/// A callback for the outcome of an append, and its receiver.
pub(crate) fn completion() -> (Completion, Receiver) {
    let (sender, receiver) = oneshot::channel();
    (Box::new(move |outcome| drop(sender.send(outcome))), receiver)
}

/// The outcome once it is available. If the thread panics, the sender is dropped and the receiver
/// reports that.
pub(crate) async fn outcome(receiver: Receiver) -> Result<Appended, AppendError> {
    let no_answer = |_| Err(AppendError::Unknown { reason: "the log gave no answer".into() });
    receiver.await.unwrap_or_else(no_answer)
}
