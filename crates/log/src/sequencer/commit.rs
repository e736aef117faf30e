//! Committing: the next batch goes to the journal, then the head moves, then requests are answered.
//! While one batch is made durable the next one gathers, so batches grow with load and no timer is
//! needed.

use super::gather::Waiter;
use super::seal::RETRY_AFTER;
use super::{Counters, Sequencer};
use crate::error::{AppendError, NotConfirmed};
use crate::journal::{Journal, JournalBatch, JournalError, Settlement};
use crate::options::Sync;
use crate::plants::{Plant, planted};
use crate::threads::lock;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, TryLockError};
use std::time::Duration;
use wellspring_types::Position;

/// Time between checks of a full device.
const LOOK_FOR_ROOM_AFTER: Duration = Duration::from_secs(1);

/// Time between attempts to write batches that are durable elsewhere into the local segments.
const KEEP_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Maximum sleep of a closing log that waits for its offers.
const WHILE_CLOSING: Duration = Duration::from_millis(1);
/// The journal and its state. The thread that holds its lock commits.
pub(crate) struct Committer {
    pub(crate) journal: Box<dyn Journal>,
    /// Base of the last batch's segment.
    pub(crate) segment_base: Position,
    /// Offset after the last batch in it.
    pub(crate) segment_end: u64,
    pub(crate) last_sync_us: u64,
    /// When to retry writing indexes.
    pub(crate) seal_again_us: u64,
    /// Size of the last batch that found no room, in bytes.
    pub(crate) refused_bytes: usize,
    /// When to check a full device again.
    pub(crate) room_again_us: u64,
    /// When to check for damage of a copy again.
    pub(crate) look_for_damage_us: u64,
    /// When the journal's thread will look at the journal again, whatever arrives.
    pub(crate) thread_due_us: u64,
}

/// The result of [`Sequencer::commit_one`].
pub(super) enum Progress {
    /// Something was done; these answers are to be sent once the committer's lock is released.
    Done(Vec<Answer>),
    /// There was nothing to do.
    Nothing,
    /// A batch that is durable elsewhere could not be written here. It is retried.
    Stalled,
}

/// Waiters and the outcome of their batch.
pub(super) struct Answer {
    pub(super) waiters: Vec<Waiter>,
    pub(super) verdict: Result<(), AppendError>,
}

impl Committer {
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        self.journal.has_room(bytes as u64)
    }

    /// When the journal's next task is due.
    pub(super) fn due_us(&mut self, now_us: u64) -> u64 {
        let due_in = self.journal.due_in();
        due_in.map_or(u64::MAX, |due_in| now_us.saturating_add(due_in.as_micros() as u64))
    }
}

impl Sequencer {
    /// The committer, unless another thread has it.
    pub(crate) fn try_committer(&self) -> Option<MutexGuard<'_, Committer>> {
        match self.committer.try_lock() {
            Ok(committer) => Some(committer),
            // The state is consistent between statements that can panic.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The main loop of the journal's thread. A panic in it closes the log: waiters are notified.
    pub(crate) fn run(&self) {
        // Before the journal is polled for the first time, so that no wake is lost.
        self.journal_waker.unparks(std::thread::current());
        if catch_unwind(AssertUnwindSafe(|| self.commit_until_closed())).is_err() {
            self.break_down("the journal's thread panicked");
            let answers = self.drop_staged("the journal's thread panicked");
            self.tell(answers);
        }
        self.end();
    }

    fn end(&self) {
        if let Some(confirmations) = &self.confirmations {
            let reason = self.closed_reason().unwrap_or_else(|| "it has been closed".into());
            confirmations.end(&NotConfirmed::Closed { reason });
            confirmations.wake();
        }
        self.sealer.finish();
        self.storage.unlock();
        self.feed.close();
        self.role_changes.close();
        self.places.close();
        self.interests.close();
    }

    fn commit_until_closed(&self) {
        let mut give_up_at_us = None;
        loop {
            let mut committer = lock(&self.committer);
            let due_in = self.due_in(&mut committer);
            let progress = self.commit_one(&mut committer);
            let now_us = self.clock().monotonic_us();
            committer.thread_due_us = committer.due_us(now_us);
            let journal_in = (committer.thread_due_us != u64::MAX)
                .then(|| Duration::from_micros(committer.thread_due_us - now_us));
            drop(committer);
            if !matches!(progress, Progress::Done(_)) {
                self.wake_owed();
            }
            let wait = match progress {
                Progress::Done(answers) => {
                    self.tell(answers);
                    Some(Duration::ZERO)
                }
                Progress::Stalled => {
                    [due_in, journal_in, Some(KEEP_AGAIN_AFTER)].into_iter().flatten().min()
                }
                Progress::Nothing => [due_in, journal_in].into_iter().flatten().min(),
            };
            // Checked even while there is more to do: entries of other nodes may never end.
            if self.is_ending() {
                if self.is_idle() || !self.is_worth_waiting(&mut give_up_at_us) {
                    break;
                }
                std::thread::park_timeout(wait.unwrap_or(WHILE_CLOSING).min(WHILE_CLOSING));
                continue;
            }
            match wait {
                Some(Duration::ZERO) => {}
                Some(wait) => std::thread::park_timeout(wait),
                None => std::thread::park(),
            }
        }
        self.finish_journal();
    }

    /// Whether the log is closing, or is a detached copy, which must not go on to lead.
    pub(super) fn is_ending(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
            || !self.limits.settles_at_once && self.closed_reason().is_some()
    }

    /// While the log is closing: whether to wait a little longer for offers.
    fn is_worth_waiting(&self, give_up_at_us: &mut Option<u64>) -> bool {
        let now_us = self.clock().monotonic_us();
        let patience_us = self.limits.close_patience.as_micros() as u64;
        now_us < *give_up_at_us.get_or_insert(now_us + patience_us)
    }

    fn is_idle(&self) -> bool {
        let staging = lock(&self.staging);
        staging.queue.is_empty() && staging.in_flight.is_empty()
    }

    /// Makes the last barrier; reports everything unsettled as such.
    fn finish_journal(&self) {
        let mut committer = lock(&self.committer);
        if let Err(error) = committer.journal.sync() {
            self.break_down(&format!("the last barrier failed: {error}"));
        }
        drop(committer);
        let answers = self.drop_staged("the log was closed before the shared log had it");
        if planted(Plant::LeavesUnanswered) {
            return;
        }
        self.tell(answers);
    }

    /// Performs due tasks other than commits; returns the time until the next one.
    fn due_in(&self, committer: &mut Committer) -> Option<Duration> {
        let sync_in = self.sync_if_due(committer);
        let seal_in = self.seal_again_if_due(committer);
        let room_in = self.look_for_room_if_due(committer);
        let mend_in = self.mend_if_due(committer);
        [sync_in, seal_in, room_in, mend_in].into_iter().flatten().min()
    }

    /// One turn of a log driven by its caller: one arrival, one batch, or one due task.
    pub(crate) fn turn(&self) -> Turn {
        let mut committer = lock(&self.committer);
        let due = self.due_in(&mut committer);
        let progress = self.commit_one(&mut committer);
        let journal_due = committer.journal.due_in();
        drop(committer);
        let due_in = due.into_iter().chain(journal_due).min();
        match progress {
            Progress::Done(answers) => {
                self.tell(answers);
                Turn { did: TurnProgress::Something, due_in }
            }
            Progress::Nothing | Progress::Stalled => {
                self.wake_owed();
                Turn { did: TurnProgress::Nothing, due_in }
            }
        }
    }

    /// Ends a log driven by its caller.
    pub(crate) fn end_by_turns(&self) {
        while let TurnProgress::Something = self.turn().did {
            // Entries of other nodes may never end.
            if self.is_idle() {
                break;
            }
        }
        self.finish_journal();
        self.end();
    }

    /// Retries writing indexes if due, or returns the time until then.
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

    /// While the device is full: checks whether what it refused last fits now, or returns the time
    /// until then. Otherwise a log without appends would stay full for ever, because no client
    /// appends to a server that is not ready.
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

    /// Under delayed barriers: makes one if due, or returns the time until then.
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

    pub(super) fn commit_one(&self, committer: &mut Committer) -> Progress {
        if let Err(answers) = self.offer_staged(committer) {
            return Progress::Done(answers);
        }
        let progress = match committer.journal.next(self.journal_waker.waker()) {
            Ok(Settlement::Durable(batch)) => {
                self.published(committer, &batch);
                let waiters = self.settle(batch);
                Progress::Done(vec![Answer { waiters, verdict: Ok(()) }])
            }
            Ok(Settlement::Foreign(batch)) => self.apply(committer, &batch),
            Ok(Settlement::Role { role, lost }) => {
                Progress::Done(self.change_role(committer, role, lost))
            }
            Ok(Settlement::Passed) => Progress::Done(Vec::new()),
            Ok(Settlement::Nothing) => Progress::Nothing,
            Err(error) => self.stalled(committer, &error, 0),
        };
        if !self.limits.settles_at_once {
            // After the head: waiters for a place then read the head.
            let place = committer.journal.place().0;
            self.places.advance(place);
        }
        progress
    }

    /// Offers the journal as many staged batches as it accepts.
    ///
    /// # Errors
    /// The answers to send if it refuses one.
    fn offer_staged(&self, committer: &mut Committer) -> Result<(), Vec<Answer>> {
        while committer.journal.takes_another() {
            let batch = {
                let mut staging = lock(&self.staging);
                let Some(gathering) = staging.queue.pop_front() else { return Ok(()) };
                let (batch, in_flight) = gathering.taken();
                let before = staging.in_flight.back().map_or(self.feed.head(), |b| b.last);
                assert_eq!(batch.first, before + 1, "batches are dense");
                staging.in_flight.push_back(in_flight);
                batch
            };
            // The delay of a barrier starts with the first batch that it will cover.
            if let Sync::Interval(_) = self.options.sync
                && !committer.journal.unsynced()
            {
                committer.last_sync_us = self.clock().monotonic_us();
            }
            // After a panic in there it is unknown what was written.
            let journal = &mut committer.journal;
            let offered = catch_unwind(AssertUnwindSafe(|| journal.offer(batch)));
            match offered {
                Ok(Ok(())) if planted(Plant::AckBeforeDelivery) => {
                    let mut staging = lock(&self.staging);
                    let offered = staging.in_flight.back_mut().expect("it was offered");
                    let waiters = std::mem::take(&mut offered.waiters);
                    return Err(vec![Answer { waiters, verdict: Ok(()) }]);
                }
                Ok(Ok(())) => {}
                Ok(Err((batch, error))) => {
                    return Err(self.set_back(committer, Some(batch), error));
                }
                Err(_) => {
                    let error = JournalError::Unknown(io::Error::other("the journal panicked"));
                    return Err(self.set_back(committer, None, error));
                }
            }
        }
        Ok(())
    }

    /// A batch that is durable elsewhere did not fit into the segments, or the system refused.
    pub(super) fn stalled(
        &self,
        committer: &mut Committer,
        error: &JournalError,
        bytes: usize,
    ) -> Progress {
        if matches!(error, JournalError::Full) {
            committer.refused_bytes = bytes;
            self.mark.set_full(true);
        }
        Progress::Stalled
    }

    /// Publishes a durable batch.
    pub(super) fn published(&self, committer: &mut Committer, batch: &JournalBatch) {
        // Waiters are woken in `tell`, once the committer's lock is released.
        let is_cut = planted(Plant::HalfRequest) && !self.role().leads() && batch.count > 1;
        {
            let _moving = self.options.head_gate.moving();
            assert!(batch.last() > self.feed.head(), "the head only rises");
            self.durable_end.set(batch.segment_base, batch.end());
            self.feed.advance(batch.last() - u64::from(is_cut));
        }
        Counters::add(&self.counters.batches, 1);
        self.counters.batch_events.record(batch.count.into());
        self.counters.batch_bytes.record(batch.bytes.len() as u64);
        self.counters.last_recorded_at_us.store(batch.recorded_at_us, Ordering::Relaxed);
        debug_assert!(batch.segment_base >= committer.segment_base, "segments come in order");
        if batch.segment_base != committer.segment_base {
            if let Some(segment) = self.segments.find(committer.segment_base) {
                self.sealer.seal((segment, committer.segment_end));
            }
            committer.segment_base = batch.segment_base;
        }
        committer.segment_end = batch.end();
    }

    /// Wakes readers, then sends answers: a completion may take long, and what is durable is seen
    /// all the same. Called without locks, because completions run arbitrary code.
    pub(super) fn tell(&self, answers: Vec<Answer>) {
        self.feed.wake_passed();
        self.wake_owed();
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

    /// Why the log no longer accepts appends; `None` while it does.
    pub(crate) fn closed_reason(&self) -> Option<String> {
        lock(&self.staging).closed.clone()
    }

    pub(super) fn break_down(&self, reason: &str) {
        lock(&self.staging).closed.get_or_insert_with(|| reason.to_owned());
    }

    /// Removes the oldest offered batch, whose buffer is reused, from the staged ones. Returns the
    /// waiters for its positions.
    fn settle(&self, batch: JournalBatch) -> Vec<Waiter> {
        let mut staging = lock(&self.staging);
        let in_flight = staging.in_flight.pop_front().expect("the batch that was taken");
        assert_eq!(in_flight.last, batch.last(), "batches are settled in order");
        staging.staged_bytes -= in_flight.body_bytes;
        staging.ingest_bytes -= in_flight.ingest_bytes;
        debug_assert!(staging.ingest_bytes <= staging.staged_bytes, "ingested bytes are staged");
        let is_empty = staging.queue.is_empty() && staging.in_flight.is_empty();
        assert!(!is_empty || staging.staged_bytes == 0, "bytes are staged in batches");
        staging.forget_before(batch.segment_base);
        self.mark.set_full(false);
        staging.keep_buffer(batch.bytes);
        in_flight.waiters
    }
}

/// The result of a [turn](crate::Log::turn).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Whether there may be more to do immediately.
    pub did: TurnProgress,
    /// Time until the next task is due, if any.
    pub due_in: Option<Duration>,
}

/// Whether a turn did anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnProgress {
    /// It did; the next turn may find more.
    Something,
    /// It did not; no turn will until something arrives, is staged or becomes due.
    Nothing,
}
