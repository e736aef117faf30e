//! Staging: a request gets its positions, its bytes join the gathering batch, its index entries are
//! added. From then on later requests are judged against it, durable or not; if the journal fails,
//! everything staged is discarded together.
//!
//! Judging proceeds in rounds. Each round judges, without a lock, everything that became durable or
//! was staged since the previous round. Then the lock is taken, and whatever was staged meanwhile
//! is judged under it, provided it is at most [`WINDOW_EVENTS`] in active indexes (no file is
//! read). Judgements beyond the head are void if the setback count has changed.
//!
//! Lock order: the committer's, the staging lock, those of the segment list and of an index.
//! Completions and wake-ups run without locks.

use super::gather::{PendingAnswer, Replay, Waiter};
use super::judge::{self, Judge};
use super::staged::{Staging, StagingContext};
use super::{Counters, Sequencer};
use crate::amount::Amount;
use crate::append::{Ack, Append, Appended, Basis, Completion, Staged, Unjudged};
use crate::error::{AppendError, ReadError};
use crate::plants::{Plant, planted};
use crate::read::PositionRange;
use crate::role::Role;
use crate::threads::lock;
use crate::work::Work;
use std::sync::MutexGuard;
use wellspring_format::record::EncodedEvents;
use wellspring_types::{EventId, Invalid, Position, Reason, limits, valid};

/// Maximum number of positions judged under the lock.
const WINDOW_EVENTS: u64 = 4096;
/// Maximum number of staged bytes from batchers, unless that is more than half of the limit on
/// staged bytes: the amount that an append may have to wait behind.
const INGEST_BYTES: usize = 16 << 20;
/// Rounds of judging outside the lock before a request is refused as overloaded, because appends
/// arrive faster than its condition can be judged.
const ROUNDS: usize = 8;

/// A request that was not staged: its completion and the error.
type Refusal = (Completion, AppendError);

/// Why a request was not staged.
enum NotStaged {
    Refused(Refusal),
    /// The work stopped before it was judged.
    Unjudged(Box<Unjudged>),
}

impl From<Refusal> for NotStaged {
    fn from(refusal: Refusal) -> NotStaged {
        NotStaged::Refused(refusal)
    }
}

/// How far a request has been judged.
struct JudgedRange {
    /// Everything up to this position, durable at that time or staged under `setbacks`.
    through: Position,
    /// Everything up to this position was durable.
    durable: Position,
    setbacks: u64,
}

/// What forbids a request.
enum Obstacle {
    /// The event at this position refuses it, or the index has a fault.
    Refused(AppendError),
    /// Its key, or one of its ids, belongs to the event at this position.
    SeenBefore(Position),
}

/// The result of a round of judging without a lock.
enum Round {
    /// Nothing forbids the request so far.
    Allowed,
    /// Something durable forbids it.
    Durable(Obstacle),
    /// Something staged forbids it, unless a setback has occurred.
    Staged(Obstacle),
}

fn obstacle_of(verdict: Result<judge::Judgement, ReadError>) -> Option<Obstacle> {
    match verdict {
        Ok(judge::Judgement::Allowed) => None,
        Ok(judge::Judgement::SeenBefore(position)) => Some(Obstacle::SeenBefore(position)),
        Ok(judge::Judgement::Refused(error)) => Some(Obstacle::Refused(error)),
        Err(error) => Some(Obstacle::Refused(error.into())),
    }
}

impl Sequencer {
    /// Judges and stages a request. Does not commit.
    pub(crate) fn submit(&self, append: Append, basis: Basis, done: Completion) -> Staged {
        match self.submit_within(append, basis, &mut Work::unbounded(), done) {
            Ok(submitted) => submitted,
            Err(unjudged) => {
                unjudged.refuse();
                Staged::Answered
            }
        }
    }

    /// As [`submit`](Self::submit), judging within `work`.
    ///
    /// # Errors
    /// The request, if the work stopped before it was judged. It had no effect.
    pub(crate) fn submit_within(
        &self,
        mut append: Append,
        basis: Basis,
        work: &mut Work,
        done: Completion,
    ) -> Result<Staged, Box<Unjudged>> {
        let ids = match check(&append) {
            Ok(ids) => ids,
            Err(invalid) => {
                done(Err(AppendError::Invalid(invalid)));
                return Ok(Staged::Answered);
            }
        };
        if let Some(key) = &append.key {
            append.events.attach_key(key);
        }
        match self.judge_and_stage(append, &ids, basis, work, done) {
            Ok(submitted) => Ok(submitted),
            Err(NotStaged::Refused((done, error))) => {
                if matches!(error, AppendError::Conflict(_)) {
                    Counters::add(&self.counters.conflicts, 1);
                }
                done(Err(error));
                Ok(Staged::Answered)
            }
            Err(NotStaged::Unjudged(unjudged)) => Err(unjudged),
        }
    }

    fn judge_and_stage(
        &self,
        mut append: Append,
        ids: &[EventId],
        basis: Basis,
        work: &mut Work,
        done: Completion,
    ) -> Result<Staged, NotStaged> {
        // Before any look-up: a node that does not lead may be behind, and only the leader can tell
        // that a retry's first attempt was discarded.
        if !self.mark.leads() {
            // It may lead by now; then it knows everything.
            let admitted = self.admit_bytes(&lock(&self.staging), 0, None);
            if let Err(error) = admitted {
                return Err((done, error).into());
            }
        }
        if planted(Plant::EarlyFence)
            && let Err(error) = self.pass_fence(&lock(&self.staging), &append)
        {
            return Err((done, error).into());
        }
        // Taken out of the append: the largest condition takes long to free, so no waiter should
        // keep it and no lock should cover it.
        let condition = append.condition.take();
        work.pause();
        let mut judge = Judge::new(&append, condition.as_ref(), basis, ids);
        work.pause();
        let bytes = append.events.byte_len();
        if append.ack == Ack::Accepted && self.mark.is_full() && !self.find_room(bytes) {
            return Err((done, AppendError::StorageFull).into());
        }
        let mut judged = JudgedRange { through: 0, durable: 0, setbacks: self.mark.setbacks() };
        for _ in 0..ROUNDS {
            let found = if judge.is_idle() {
                None
            } else {
                match self.judge_outside(&mut judge, &mut judged, work) {
                    Round::Allowed => None,
                    Round::Durable(Obstacle::Refused(AppendError::Stopped(stopped)))
                    | Round::Staged(Obstacle::Refused(AppendError::Stopped(stopped))) => {
                        let append = Append { condition, ..append };
                        let unjudged = Unjudged { append, done, stopped };
                        return Err(NotStaged::Unjudged(Box::new(unjudged)));
                    }
                    Round::Staged(found) => Some(found),
                    Round::Durable(found) => {
                        let found = self.obstacle_told(&append, found);
                        return Ok(self.tell_obstacle(append, found, done)?);
                    }
                }
            };
            let staging = lock(&self.staging);
            if let Err(error) = self.admit(&staging, &append, basis) {
                return Err((done, error).into());
            }
            if !judge.is_idle() {
                if judged.setbacks != self.mark.setbacks() {
                    continue;
                }
                if let Some(found) = found {
                    let found = self.obstacle_told(&append, found);
                    return Ok(self.wait_for_obstacle(staging, append, found, done)?);
                }
                let window = PositionRange { low: judged.through, high: staging.next - 1 };
                if window.low < window.high {
                    let runs = self.segments.runs();
                    if window.high - window.low > WINDOW_EVENTS {
                        continue;
                    }
                    let Ok(verdict) = judge.window(&runs, window) else { continue };
                    if let Some(found) = obstacle_of(Ok(verdict)) {
                        let found = self.obstacle_told(&append, found);
                        return Ok(self.wait_for_obstacle(staging, append, found, done)?);
                    }
                }
            }
            if let Err(invalid) = self.check_times(&staging, &append.events) {
                return Err((done, self.fence_first(&append, invalid.into())).into());
            }
            if !planted(Plant::EarlyFence)
                && let Err(error) = self.pass_fence(&staging, &append)
            {
                return Err((done, error).into());
            }
            return Ok(self.stage(staging, &append, done));
        }
        Err((done, AppendError::Overloaded).into())
    }

    /// What forbids a request, as far as it may be told.
    fn obstacle_told(&self, append: &Append, found: Obstacle) -> Obstacle {
        match found {
            Obstacle::Refused(error) => Obstacle::Refused(self.fence_first(append, error)),
            seen_before => seen_before,
        }
    }

    /// Judges a request against what is durable and then what is staged, as far as it has not been
    /// judged yet. Holds no lock.
    fn judge_outside(
        &self,
        judge: &mut Judge<'_>,
        judged: &mut JudgedRange,
        work: &mut Work,
    ) -> Round {
        // The setback count is read first and the runs last, so the index contains everything
        // queried, unless another setback occurs, which the caller detects.
        let setbacks = self.mark.setbacks();
        if setbacks != judged.setbacks {
            judged.through = judged.durable;
            judged.setbacks = setbacks;
        }
        let head = self.feed.head();
        let next = self.mark.next();
        let runs = self.segments.runs();
        let mut over = |high| {
            let positions = PositionRange { low: judged.through, high };
            judged.through = judged.through.max(high);
            obstacle_of(judge.over(&runs, positions, work))
        };
        if let Some(found) = over(head) {
            return Round::Durable(found);
        }
        let found = over(next - 1);
        judged.durable = head;
        found.map_or(Round::Allowed, Round::Staged)
    }

    /// Answers a request that something durable forbids.
    fn tell_obstacle(
        &self,
        append: Append,
        found: Obstacle,
        done: Completion,
    ) -> Result<Staged, Refusal> {
        match found {
            Obstacle::Refused(error) => Err((done, error)),
            Obstacle::SeenBefore(position) => match self.replays.compare(&append, position) {
                Ok(appended) => {
                    done(Ok(appended));
                    Ok(Staged::Answered)
                }
                Err(error) => Err((done, error)),
            },
        }
    }

    /// Makes a request wait for the staged event that forbids it. If that has become durable
    /// meanwhile, answers at once.
    fn wait_for_obstacle(
        &self,
        mut staging: MutexGuard<'_, Staging>,
        append: Append,
        found: Obstacle,
        done: Completion,
    ) -> Result<Staged, Refusal> {
        let (position, outcome) = match found {
            Obstacle::Refused(AppendError::Conflict(conflict)) => {
                Counters::add(&self.counters.conflicts, 1);
                if planted(Plant::EarlyConflict) {
                    return Err((done, AppendError::Conflict(conflict)));
                }
                (conflict.position, PendingAnswer::Refused(AppendError::Conflict(conflict)))
            }
            Obstacle::Refused(error) => return Err((done, error)),
            Obstacle::SeenBefore(position) => {
                let Some(reserved) = self.replays.reserve(&append) else {
                    return Err((done, AppendError::Overloaded));
                };
                (
                    position,
                    PendingAnswer::Replay(Box::new(Replay {
                        append,
                        position,
                        _reserved: reserved,
                    })),
                )
            }
        };
        let waiter = match staging.attach(position, Waiter { done, outcome }) {
            Ok(()) => return Ok(Staged::WaitsFor { position }),
            Err(waiter) => waiter,
        };
        drop(staging);
        let head = self.feed.head();
        assert!(position <= head, "position {position} is neither staged nor durable");
        if let Some(request) = waiter.tell(head, Ok(())) {
            self.replays.submit(vec![request]);
        }
        Ok(Staged::Answered)
    }

    /// Whether the log accepts this request now.
    fn admit(&self, staging: &Staging, append: &Append, basis: Basis) -> Result<(), AppendError> {
        if append.ack == Ack::Accepted && self.mark.is_full() {
            return Err(AppendError::StorageFull);
        }
        let setbacks = basis.setbacks.filter(|_| !planted(Plant::ForgetsBasis));
        self.admit_bytes(staging, append.events.byte_len(), setbacks)
    }

    fn admit_bytes(
        &self,
        staging: &Staging,
        bytes: usize,
        setbacks: Option<u64>,
    ) -> Result<(), AppendError> {
        if let Some(reason) = &staging.closed {
            return Err(AppendError::Closed { reason: reason.clone() });
        }
        if !staging.role.leads() {
            return Err(not_leading(&staging.role));
        }
        if setbacks.is_some_and(|setbacks| setbacks != self.mark.setbacks()) {
            return Err(AppendError::SetBack);
        }
        // A single request is always accepted, or the largest one never could be.
        if staging.staged_bytes > 0 && staging.staged_bytes + bytes > self.options.staged_bytes {
            return Err(AppendError::Overloaded);
        }
        Ok(())
    }

    /// Whether the journal, which was full, has room for `bytes` after what is staged; if so,
    /// clears the full flag. For appends that are answered before the journal has them; others find
    /// out by being staged. If the journal is busy, it is already checking.
    fn find_room(&self, bytes: usize) -> bool {
        let Some(mut committer) = self.try_committer() else { return false };
        let staged = lock(&self.staging).staged_bytes;
        let found = committer.has_room(staged + bytes);
        if found {
            self.mark.set_full(false);
        }
        found
    }

    /// Checks that the times which events want keep the order of times. Only the staging lock makes
    /// the order final.
    fn check_times(&self, staging: &Staging, events: &EncodedEvents) -> Result<(), Invalid> {
        if !events.has_times() {
            return Ok(());
        }
        let now_us = self.clock().wall_us();
        let mut last_us = staging.recorded_at_us;
        for (event, wanted_us) in events.wanted_times_us().enumerate() {
            let reason = match wanted_us {
                0 => {
                    last_us = last_us.max(now_us);
                    continue;
                }
                _ if wanted_us < last_us => Reason::BeforeLast { last_us },
                _ if wanted_us > now_us => Reason::InFuture { now_us },
                _ => {
                    last_us = wanted_us;
                    continue;
                }
            };
            return Err(Invalid { field: format!("events[{event}].recorded_at"), reason });
        }
        Ok(())
    }

    fn stage(
        &self,
        mut staging: MutexGuard<'_, Staging>,
        append: &Append,
        done: Completion,
    ) -> Staged {
        let (records, count) = (append.events.bytes(), append.events.len() as u32);
        let (first, last) = self.place(&mut staging, records, count);
        let outcome = PendingAnswer::Appended { first, last };
        Counters::add(&self.counters.appends, 1);
        let setbacks = self.mark.setbacks();
        match append.ack {
            Ack::Durable => staging.wait(Waiter { done, outcome }),
            Ack::Accepted => {
                let amount = Amount { events: u64::from(count), bytes: records.len() as u64 };
                staging.wait(Waiter { done: self.counters.accepted(amount), outcome });
                drop(staging);
                done(Ok(Appended { first, last, head: self.feed.head(), replayed: false }));
            }
        }
        Staged::Placed { first, last, setbacks }
    }

    /// Stages `count` records that need no judging: no condition, key, fence or ids. Does not
    /// commit. `done` is called when the journal has processed them. Returns the setback count, to
    /// be passed as `setbacks` with records that must be stored only if these are.
    ///
    /// # Errors
    /// [`AppendError::Overloaded`], [`SetBack`](AppendError::SetBack) or
    /// [`Closed`](AppendError::Closed); `done` is not called then.
    pub(crate) fn stage_records(
        &self,
        records: &[u8],
        count: u32,
        setbacks: Option<u64>,
        done: Completion,
    ) -> Result<u64, AppendError> {
        let mut staging = lock(&self.staging);
        self.admit_bytes(&staging, records.len(), setbacks)?;
        let most = INGEST_BYTES.min(self.options.staged_bytes / 2);
        if staging.ingest_bytes > 0 && staging.ingest_bytes + records.len() > most {
            return Err(AppendError::Overloaded);
        }
        let (first, last) = self.place(&mut staging, records, count);
        staging.wait_ingested(
            Waiter { done, outcome: PendingAnswer::Appended { first, last } },
            records,
        );
        Ok(self.mark.setbacks())
    }

    pub(super) fn staging_context(&self) -> StagingContext<'_> {
        StagingContext {
            storage: &self.storage,
            segments: &self.segments,
            segment_bytes: self.options.segment_bytes,
            active_index_bytes: self.options.active_index_bytes,
            batch_bytes: self.limits.batch_bytes,
            small_batches: self.mark.is_full(),
        }
    }

    /// Adds records to the gathering batch; returns their first and last position.
    fn place(&self, staging: &mut Staging, records: &[u8], count: u32) -> (Position, Position) {
        let first = staging.next;
        let last = first + u64::from(count) - 1;
        let now_us = self.clock().wall_us();
        staging.make_room(&self.staging_context(), records.len());
        staging.push(records, count, now_us);
        assert_eq!(staging.next, last + 1, "as many records as were counted");
        self.mark.staged(staging.next);
        Counters::add(&self.counters.events, u64::from(count));
        (first, last)
    }
}

/// The error of an append on a node with this role.
pub(super) fn not_leading(role: &Role) -> AppendError {
    let leader = match role {
        Role::Following { leader } => leader.clone(),
        _ => None,
    };
    AppendError::NotLeading { leader }
}

/// Checks what the types of a request do not guarantee; returns the ids of its events.
fn check(append: &Append) -> Result<Vec<EventId>, Invalid> {
    let at = |field: &str, reason| Invalid { field: field.to_owned(), reason };
    if append.events.is_empty() {
        return Err(at("events", Reason::Empty));
    }
    let ids = judge::ids(append);
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let named = append.events.iter().enumerate();
        let second = named.filter(|(_, record)| record.id() == Some(pair[0])).last();
        let second = second.map_or(0, |(event, _)| event);
        return Err(at(&format!("events[{second}].id"), Reason::Duplicate { element: "id" }));
    }
    if let Some(key) = &append.key {
        valid::check_text(&key.key, limits::MAX_REQUEST_KEY_BYTES)
            .map_err(|reason| at("Idempotency-Key", reason))?;
    }
    if let Some(condition) = &append.condition {
        condition.check().map_err(|fault| fault.within("condition"))?;
    }
    Ok(ids)
}
