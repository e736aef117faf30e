//! Staging: a request gets its positions, its bytes join the batch that
//! gathers, its index entries are made. From then on it is judged against,
//! durable or not; if the journal fails, all that was staged goes together.

use super::gather::{BATCH_BYTES, Gathering, Outcome, Waiter};
use super::{Counters, Sequencer, judge};
use crate::amount::Amount;
use crate::batch::BATCH_HEADER_BYTES;
use crate::condition::Stretch;
use crate::error::AppendError;
use crate::index::{ActiveWriter, SegmentIndex};
use crate::log::{Ack, Append, Appended, Completion};
use crate::read::Snapshot;
use crate::record;
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::segments::{Segment, lock};
use crate::work::Work;
use std::collections::VecDeque;
use std::sync::Arc;
use wellspring_types::{EventId, Invalid, Position, Reason, limits, valid};

/// Positions a request may have to be judged against under the lock. Over it,
/// what has become durable meanwhile is judged outside first.
const WINDOW_EVENTS: u64 = 4096;
/// After so many rounds outside the lock the rest is judged under it, however much it is.
const ROUNDS: usize = 8;

/// Everything that is decided but not yet durable.
pub(crate) struct Staging {
    /// The next position.
    pub(crate) next: Position,
    /// Recorded times never decrease along positions.
    pub(crate) recorded_at_us: u64,
    pub(crate) queue: VecDeque<Gathering>,
    /// Encoded bytes in `queue` and in the batch the journal has.
    pub(crate) staged_bytes: usize,
    pub(crate) segment_base: Position,
    pub(crate) writer: ActiveWriter,
    /// Offset in the segment after everything staged.
    pub(crate) tail: u64,
    /// Why no more appends are taken, if so.
    pub(crate) closed: Option<String>,
    /// The last batch found no room: look for room before staging another.
    pub(crate) full: bool,
    /// How often what was staged has been dropped.
    pub(crate) setbacks: u64,
    /// Buffers of committed batches, to be used again.
    pub(crate) spare: Vec<Vec<u8>>,
}

/// What submitting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// Answered already.
    Answered,
    /// To be answered when the batch it waits for is durable: someone must commit.
    Staged,
}

impl Sequencer {
    /// Judges and stages a request. Does not commit.
    pub(crate) fn submit(&self, mut append: Append, done: Completion) -> Submitted {
        let ids = match check(&append) {
            Ok(ids) => ids,
            Err(invalid) => {
                done(Err(AppendError::Invalid(invalid)));
                return Submitted::Answered;
            }
        };
        if let Some(key) = &append.key {
            append.events.attach_key(key);
        }
        self.decide(append, &ids, done)
    }

    /// [`submit`](Self::submit) for a request that has been checked and has its key attached.
    pub(super) fn resubmit(&self, append: Append, done: Completion) -> Submitted {
        let ids = judge::ids(&append);
        self.decide(append, &ids, done)
    }

    fn decide(&self, append: Append, ids: &[EventId], done: Completion) -> Submitted {
        match self.judge_and_stage(append, ids, done) {
            Ok(submitted) => submitted,
            Err((done, error)) => {
                if matches!(error, AppendError::Conflict(_)) {
                    Counters::add(&self.counters.conflicts, 1);
                }
                done(Err(error));
                Submitted::Answered
            }
        }
    }

    fn judge_and_stage(
        &self,
        append: Append,
        ids: &[EventId],
        done: Completion,
    ) -> Result<Submitted, (Completion, AppendError)> {
        let unconditional = append.condition.is_none() && append.key.is_none() && ids.is_empty();
        let mut work = Work::unbounded();
        let mut judged = 0;
        for round in 0.. {
            // Outside the lock: everything durable that has not been judged yet.
            if !unconditional {
                let snapshot = self.snapshot();
                let stretch = Stretch { low: judged, high: snapshot.head() };
                match judge::over(snapshot.segments(), &append, ids, stretch, &mut work) {
                    Ok(judge::Verdict::Allowed) => judged = stretch.high,
                    Ok(judge::Verdict::SeenBefore(position)) => {
                        return self.answer_replay(&snapshot, &append, position, done);
                    }
                    Ok(judge::Verdict::Refused(error)) => return Err((done, error)),
                    Err(error) => return Err((done, error.into())),
                }
            }
            let mut staging = lock(&self.staging);
            if !unconditional
                && round < ROUNDS
                && self.feed.head().saturating_sub(judged) > WINDOW_EVENTS
            {
                continue;
            }
            if let Err(error) = self.admit(&mut staging, append.events.byte_len()) {
                return Err((done, error));
            }
            if !unconditional {
                // Under the lock: what is not durable yet, or became so just now.
                let segments = self.segments.all();
                let stretch = Stretch { low: judged, high: staging.next - 1 };
                match judge::over(&segments, &append, ids, stretch, &mut work) {
                    Ok(judge::Verdict::Allowed) => {}
                    Ok(judge::Verdict::SeenBefore(_)) => {
                        let bytes = append.events.byte_len();
                        let outcome = Outcome::JudgeAgain(Box::new(append));
                        return Ok(staging.ride(Waiter { done, outcome }, bytes));
                    }
                    Ok(judge::Verdict::Refused(error)) => {
                        Counters::add(&self.counters.conflicts, 1);
                        let outcome = Outcome::Refused(error);
                        return Ok(staging.ride(Waiter { done, outcome }, 0));
                    }
                    Err(error) => return Err((done, error.into())),
                }
            }
            if append.fence.as_ref().is_some_and(|fence| !self.leases.holds(fence)) {
                return Err((done, AppendError::LeaseLost));
            }
            return Ok(self.stage(staging, append, done));
        }
        unreachable!("the loop returns")
    }

    fn answer_replay(
        &self,
        snapshot: &Snapshot,
        append: &Append,
        position: Position,
        done: Completion,
    ) -> Result<Submitted, (Completion, AppendError)> {
        match judge::replay(snapshot, append, position) {
            Ok(appended) => {
                Counters::add(&self.counters.replays, 1);
                done(Ok(appended));
                Ok(Submitted::Answered)
            }
            Err(error) => Err((done, error)),
        }
    }

    /// Whether the log takes this request now.
    fn admit(&self, staging: &mut Staging, bytes: usize) -> Result<(), AppendError> {
        if let Some(reason) = &staging.closed {
            return Err(AppendError::Closed { reason: reason.clone() });
        }
        if staging.full {
            // Ask the journal before anything is staged on hope. If it is busy
            // right now, it is busy finding out.
            let committer = self.try_committer();
            let room = committer.is_some_and(|mut c| c.has_room(bytes));
            if !room {
                return Err(AppendError::StorageFull);
            }
            staging.full = false;
        }
        // One request alone is always taken, or the largest could never be.
        if staging.staged_bytes > 0 && staging.staged_bytes + bytes > self.options.staged_bytes {
            return Err(AppendError::Overloaded);
        }
        Ok(())
    }

    fn stage(
        &self,
        mut staging: std::sync::MutexGuard<'_, Staging>,
        append: Append,
        done: Completion,
    ) -> Submitted {
        let (records, count) = (append.events.bytes(), append.events.len() as u32);
        let (first, last) = self.place(&mut staging, records, count);
        let outcome = Outcome::Appended { first, last, replayed: false };
        Counters::add(&self.counters.appends, 1);
        match append.ack {
            Ack::Durable => staging.wait(Waiter { done, outcome }),
            Ack::Accepted => {
                let amount = Amount { events: u64::from(count), bytes: records.len() as u64 };
                staging.wait(Waiter { done: self.counters.accepted(amount), outcome });
                drop(staging);
                done(Ok(Appended { first, last, head: self.feed.head(), replayed: false }));
            }
        }
        Submitted::Staged
    }

    /// Stages `count` records that nothing has to be judged for: no condition, key, fence or ids.
    /// Does not commit. `done` is called when the journal has dealt with them. Returns the
    /// number of [`setbacks`](Staging::setbacks) so far: records that must not be stored unless
    /// those staged before them are give what they got with these as `setbacks`.
    ///
    /// # Errors
    /// [`AppendError::Overloaded`], [`StorageFull`](AppendError::StorageFull) (also if there was a
    /// setback since) or [`Closed`](AppendError::Closed); `done` is not called then.
    pub(crate) fn stage_records(
        &self,
        records: &[u8],
        count: u32,
        setbacks: Option<u64>,
        done: Completion,
    ) -> Result<u64, AppendError> {
        let mut staging = lock(&self.staging);
        if setbacks.is_some_and(|setbacks| setbacks != staging.setbacks) {
            return Err(AppendError::StorageFull);
        }
        self.admit(&mut staging, records.len())?;
        let (first, last) = self.place(&mut staging, records, count);
        let outcome = Outcome::Appended { first, last, replayed: false };
        staging.wait(Waiter { done, outcome });
        Ok(staging.setbacks)
    }

    /// Puts records into the batch that gathers; their first and last position.
    fn place(&self, staging: &mut Staging, records: &[u8], count: u32) -> (Position, Position) {
        let first = staging.next;
        let last = first + u64::from(count) - 1;
        let now_us = self.clock().wall_us();
        staging.make_room(self, records.len());
        staging.push(records, count, now_us);
        Counters::add(&self.counters.events, u64::from(count));
        (first, last)
    }
}

impl Staging {
    /// Waits with whatever is staged last. `bytes` of it are kept in memory meanwhile.
    fn ride(&mut self, waiter: Waiter, bytes: usize) -> Submitted {
        if self.queue.is_empty() {
            let empty = Gathering::new(self.segment_base, self.tail as u32, self.next, Vec::new());
            self.queue.push_back(empty);
        }
        let last = self.queue.back_mut().expect("just made");
        last.waiters.push(waiter);
        last.riding_bytes += bytes;
        self.staged_bytes += bytes;
        Submitted::Staged
    }

    /// Leaves, at the back of the queue, a batch that the next request of `bytes` may join.
    fn make_room(&mut self, sequencer: &Sequencer, bytes: usize) {
        let header = if self.queue.is_empty() { BATCH_HEADER_BYTES } else { 0 };
        let end = self.tail + (header + bytes) as u64;
        let fresh = self.next == self.segment_base;
        let options = &sequencer.options;
        let full = end > u64::from(options.segment_bytes)
            || self.writer.is_full(options.active_index_bytes);
        if full && !fresh {
            self.begin_segment(sequencer);
        }
        let joins = self.queue.back().is_some_and(|gathering| {
            gathering.segment_base == self.segment_base
                && (gathering.count == 0 || gathering.bytes.len() + bytes <= BATCH_BYTES)
        });
        let Some(last) = self.queue.back_mut().filter(|_| joins) else {
            let spare = self.spare.pop().unwrap_or_default();
            let offset = self.tail as u32;
            self.queue.push_back(Gathering::new(self.segment_base, offset, self.next, spare));
            self.tail += BATCH_HEADER_BYTES as u64;
            return;
        };
        if last.count == 0 {
            // It held only waiters so far and has no place in the segment yet.
            last.offset = self.tail as u32;
            last.first = self.next;
            self.tail += BATCH_HEADER_BYTES as u64;
        }
    }

    fn begin_segment(&mut self, sequencer: &Sequencer) {
        let writer = ActiveWriter::new(self.next);
        let index = SegmentIndex::Active(Arc::clone(writer.index()));
        let storage = Arc::clone(&sequencer.storage);
        sequencer.segments.push(Arc::new(Segment::new(storage, self.next, None, index)));
        self.writer = writer;
        self.segment_base = self.next;
        self.tail = SEGMENT_HEADER_BYTES as u64;
    }

    /// Waits with the batch that gathers.
    fn wait(&mut self, waiter: Waiter) {
        self.queue.back_mut().expect("something was just staged").waiters.push(waiter);
    }

    /// Stamps records into the last batch and indexes them.
    fn push(&mut self, records: &[u8], count: u32, now_us: u64) {
        self.recorded_at_us = self.recorded_at_us.max(now_us);
        let gathering = self.queue.back_mut().expect("make_room left one");
        let mut at = gathering.bytes.len();
        gathering.bytes.extend_from_slice(records);
        for record in record::records(records) {
            let len = record.byte_len();
            record::stamp(&mut gathering.bytes[at..at + len], self.next, self.recorded_at_us);
            self.writer.push(self.tail as u32, &record);
            at += len;
            self.tail += len as u64;
            self.next += 1;
        }
        gathering.count += count;
        gathering.recorded_at_us = self.recorded_at_us;
        self.staged_bytes += records.len();
    }
}

/// Checks what the types of a request do not already ensure; returns the ids of its events.
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
        return Err(at(&format!("events[{second}].id"), Reason::Duplicate));
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
