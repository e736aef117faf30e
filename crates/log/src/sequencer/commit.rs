//! Committing: the next batch to the journal, then the head moves, then the
//! answers. While one batch is being made durable the next one gathers, so
//! batches grow with load by themselves and no timer is needed.

use super::gather::{Gathering, Waiter};
use super::seal::RETRY_AFTER;
use super::{Counters, Sequencer};
use crate::batch::BATCH_HEADER_BYTES;
use crate::error::AppendError;
use crate::journal::{FileJournal, Journal, JournalError};
use crate::options::Sync;
use crate::threads::lock;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, TryLockError};
use std::time::Duration;
use wellspring_types::Position;

/// Buffers kept for the next batches; larger ones are given back to the allocator.
const SPARE_BUFFERS: usize = 2;
const SPARE_BYTES: usize = 4 << 20;

/// Time between questions to a full device.
const LOOK_FOR_ROOM_AFTER: Duration = Duration::from_secs(1);

/// The journal and what goes with it. Whoever holds its lock commits.
pub(crate) struct Committer {
    pub(crate) journal: FileJournal,
    /// Base of the segment of the last batch.
    pub(crate) segment_base: Position,
    /// Offset after the last batch in it.
    pub(crate) segment_end: u64,
    pub(crate) last_sync_us: u64,
    /// When indexes that could not be written are tried again.
    pub(crate) seal_again_us: u64,
    /// What the last batch that found no room needed, in bytes.
    pub(crate) refused_bytes: usize,
    /// When a full device is asked again.
    pub(crate) room_again_us: u64,
}

/// What [`Sequencer::commit_one`] did.
enum Progress {
    /// Dealt with a batch; these are to be told, once the committer's lock is free.
    Done(Vec<Answer>),
    /// Found nothing to do.
    Nothing,
}

/// Waiters with what befell their batch.
pub(super) struct Answer {
    pub(super) waiters: Vec<Waiter>,
    pub(super) verdict: Result<(), AppendError>,
}

impl Committer {
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        self.journal.has_room(bytes as u64)
    }
}

impl Sequencer {
    /// The committer, if nobody has it.
    pub(crate) fn try_committer(&self) -> Option<MutexGuard<'_, Committer>> {
        match self.committer.try_lock() {
            Ok(committer) => Some(committer),
            // What it guards is consistent between statements that can panic.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Commits on this thread what is staged now, if nobody else is committing.
    /// What gathers meanwhile is left to the journal's thread.
    pub(crate) fn commit_inline(&self) {
        let Some(mut committer) = self.try_committer() else {
            // The holder may already have looked at the queue for the last time.
            self.wake();
            return;
        };
        let barrier_was_due = committer.journal.unsynced();
        let progress = self.commit_one(&mut committer);
        // A delayed barrier that nobody waits for yet is the journal's thread's.
        let begins_interval = !barrier_was_due && committer.journal.unsynced();
        drop(committer);
        if let Progress::Done(answers) = progress {
            self.tell(answers);
        }
        if begins_interval || !lock(&self.staging).queue.is_empty() {
            self.wake();
        }
    }

    /// The life of the journal's thread. A panic in it ends the log: what waits is told.
    pub(crate) fn run(&self) {
        if catch_unwind(AssertUnwindSafe(|| self.commit_until_closed())).is_err() {
            self.break_down("the journal's thread panicked");
            let answers = self.drop_staged("the journal's thread panicked");
            self.tell(answers);
        }
        self.sealer.finish();
        self.storage.unlock();
        self.feed.close();
        self.interests.close();
    }

    fn commit_until_closed(&self) {
        loop {
            let mut committer = lock(&self.committer);
            let progress = self.commit_one(&mut committer);
            let sync_in = self.sync_if_due(&mut committer);
            let seal_in = self.seal_again_if_due(&mut committer);
            let room_in = self.look_for_room_if_due(&mut committer);
            drop(committer);
            if let Progress::Done(answers) = progress {
                self.tell(answers);
                continue;
            }
            let finished = self.closing.load(Ordering::SeqCst);
            if finished && lock(&self.staging).queue.is_empty() {
                break;
            }
            match sync_in.into_iter().chain(seal_in).chain(room_in).min() {
                _ if finished => {}
                Some(wait) => std::thread::park_timeout(wait),
                None => std::thread::park(),
            }
        }
        let mut committer = lock(&self.committer);
        if let Err(error) = committer.journal.sync() {
            self.break_down(&format!("the last barrier failed: {error}"));
        }
    }

    /// Tries indexes again that could not be written, or tells how long until then.
    fn seal_again_if_due(&self, committer: &mut Committer) -> Option<Duration> {
        if self.sealer.failed() == 0 {
            return None;
        }
        let now_us = self.clock().monotonic_us();
        let retry_after_us = RETRY_AFTER.as_micros() as u64;
        if committer.seal_again_us == 0 {
            committer.seal_again_us = now_us + retry_after_us;
        }
        if now_us < committer.seal_again_us {
            return Some(Duration::from_micros(committer.seal_again_us - now_us));
        }
        committer.seal_again_us = now_us + retry_after_us;
        self.sealer.retry();
        Some(RETRY_AFTER)
    }

    /// While the device is full: asks it whether what it refused last fits now, or tells how long
    /// until then. Without that a log without appends would be full for ever, and no client
    /// appends to a server that says it is not ready.
    fn look_for_room_if_due(&self, committer: &mut Committer) -> Option<Duration> {
        if !self.mark.is_full() {
            committer.room_again_us = 0;
            return None;
        }
        let now_us = self.clock().monotonic_us();
        let again_us = LOOK_FOR_ROOM_AFTER.as_micros() as u64;
        if committer.room_again_us == 0 {
            committer.room_again_us = now_us + again_us;
        }
        if now_us < committer.room_again_us {
            return Some(Duration::from_micros(committer.room_again_us - now_us));
        }
        if lock(&self.staging).closed.is_some() {
            return None;
        }
        committer.room_again_us = now_us + again_us;
        if committer.has_room(committer.refused_bytes) {
            self.mark.set_full(false);
            return None;
        }
        Some(LOOK_FOR_ROOM_AFTER)
    }

    /// Under a delayed barrier: makes it when it is due, or tells how long until then.
    fn sync_if_due(&self, committer: &mut Committer) -> Option<Duration> {
        let Sync::Interval(interval) = self.options.sync else { return None };
        if !committer.journal.unsynced() {
            return None;
        }
        let since_us = self.clock().monotonic_us().saturating_sub(committer.last_sync_us);
        let interval_us = interval.as_micros() as u64;
        if since_us < interval_us {
            return Some(Duration::from_micros(interval_us - since_us));
        }
        if let Err(error) = committer.journal.sync() {
            self.break_down(&format!("a barrier failed: {error}"));
        }
        committer.last_sync_us = self.clock().monotonic_us();
        None
    }

    fn commit_one(&self, committer: &mut Committer) -> Progress {
        let mut batch = {
            let mut staging = lock(&self.staging);
            let Some(batch) = staging.queue.pop_front() else { return Progress::Nothing };
            assert!(staging.in_flight.is_none(), "one batch at a time");
            staging.in_flight = Some(batch.in_flight());
            batch
        };
        assert_eq!(batch.first, self.feed.head() + 1, "batches are dense");
        // The delay of a barrier counts from the first batch that it will cover.
        if let Sync::Interval(_) = self.options.sync
            && !committer.journal.unsynced()
        {
            committer.last_sync_us = self.clock().monotonic_us();
        }
        // A panic in there leaves it open what was written.
        let append = AssertUnwindSafe(|| committer.journal.append(&mut batch.journal_batch()));
        let appended = catch_unwind(append).unwrap_or_else(|_| {
            Err(JournalError::Unknown(io::Error::other("the journal panicked")))
        });
        if let Err(error) = appended {
            return Progress::Done(self.set_back(committer, batch, error));
        }
        self.published(committer, &batch);
        self.settle(&mut batch);
        Progress::Done(vec![Answer { waiters: batch.waiters, verdict: Ok(()) }])
    }

    /// The batch is durable: everyone may see it.
    fn published(&self, committer: &mut Committer, batch: &Gathering) {
        // Woken in `tell`, when the committer's lock is free.
        self.feed.advance(batch.last());
        Counters::add(&self.counters.batches, 1);
        self.counters.batch_events.record(batch.count.into());
        self.counters.batch_bytes.record(batch.bytes.len() as u64);
        self.counters.last_recorded_at_us.store(batch.recorded_at_us, Ordering::Relaxed);
        if batch.segment_base != committer.segment_base {
            if let Some(segment) = self.segments.find(committer.segment_base) {
                self.sealer.seal((segment, committer.segment_end));
            }
            committer.segment_base = batch.segment_base;
        }
        committer.segment_end = u64::from(batch.offset) + batch.bytes.len() as u64;
    }

    /// Tells everyone what became of their requests. Holds no lock: what they do then is theirs.
    fn tell(&self, answers: Vec<Answer>) {
        self.feed.wake_passed();
        self.interests.head_moved();
        let head = self.feed.head();
        let mut replays = Vec::new();
        for Answer { waiters, verdict } in answers {
            let verdict = verdict.as_ref().map(|&()| ());
            replays.extend(waiters.into_iter().filter_map(|waiter| waiter.tell(head, verdict)));
        }
        if !replays.is_empty() {
            self.replays.submit(replays);
        }
    }

    pub(super) fn break_down(&self, reason: &str) {
        lock(&self.staging).closed.get_or_insert_with(|| reason.to_owned());
    }

    /// The batch is not staged any more: its buffer is used again, and those who came to wait for
    /// it while it was at the journal are told with the others.
    fn settle(&self, batch: &mut Gathering) {
        let mut bytes = std::mem::take(&mut batch.bytes);
        let body = bytes.len() - BATCH_HEADER_BYTES;
        let mut staging = lock(&self.staging);
        let in_flight = staging.in_flight.take().expect("the batch that was taken");
        assert_eq!(in_flight.last, batch.last(), "batches are settled in order");
        batch.waiters.extend(in_flight.waiters);
        staging.staged_bytes -= body;
        staging.ingest_bytes -= batch.ingest_bytes;
        staging.forget_before(batch.segment_base);
        self.mark.set_full(false);
        if bytes.capacity() <= SPARE_BYTES && staging.spare.len() < SPARE_BUFFERS {
            bytes.clear();
            staging.spare.push(bytes);
        }
    }
}
