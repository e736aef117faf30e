//! Committing: the next batch to the journal, then the head moves, then the
//! answers. While one batch is being made durable the next one gathers, so
//! batches grow with load by themselves and no timer is needed.

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

/// Time between questions to a full device.
const LOOK_FOR_ROOM_AFTER: Duration = Duration::from_secs(1);

/// Time between attempts at writing what is durable elsewhere into the segments here.
const KEEP_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Longest sleep of a log that closes and waits for what it has offered.
const WHILE_CLOSING: Duration = Duration::from_millis(1);
/// Most steps of a client's own thread with a shared log before it leaves them to the journal's.
const INLINE_STEPS: usize = 64;

/// The journal and what goes with it. Whoever holds its lock commits.
pub(crate) struct Committer {
    pub(crate) journal: Box<dyn Journal>,
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
    /// When damage of a copy is looked for again.
    pub(crate) look_for_damage_us: u64,
}

/// What [`Sequencer::commit_one`] did.
pub(super) enum Progress {
    /// Dealt with something; these are to be told, once the committer's lock is free.
    Done(Vec<Answer>),
    /// Found nothing to do.
    Nothing,
    /// What is durable elsewhere could not be written here. It is tried again.
    Stalled,
}

/// What a client's own thread leaves to the journal's.
enum Rest {
    /// Nothing before something arrives, which wakes it.
    ToArrive,
    /// More, at once or after a while.
    ToDo,
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
        let answers = match self.limits.settles_at_once {
            true => match self.commit_one(&mut committer) {
                Progress::Done(answers) => answers,
                Progress::Nothing | Progress::Stalled => Vec::new(),
            },
            false => self.poll_inline(&mut committer),
        };
        // A delayed barrier that nobody waits for yet is the journal's thread's.
        let begins_interval = !barrier_was_due && committer.journal.unsynced();
        drop(committer);
        self.tell(answers);
        if begins_interval || !lock(&self.staging).queue.is_empty() {
            self.wake();
        }
    }

    /// Sends off what is staged and takes what has arrived, as long as there is anything; what
    /// comes later is the journal's thread's. A panic ends the log: what waits is told.
    fn poll_inline(&self, committer: &mut Committer) -> Vec<Answer> {
        let mut answers = Vec::new();
        let polled = catch_unwind(AssertUnwindSafe(|| self.poll_steps(committer, &mut answers)));
        if polled.is_err() {
            self.break_down("the journal panicked");
            answers.extend(self.drop_staged("the journal panicked"));
        }
        if !matches!(polled, Ok(Rest::ToArrive)) {
            self.wake();
        }
        self.journal_waker.end_polling();
        answers
    }

    fn poll_steps(&self, committer: &mut Committer, answers: &mut Vec<Answer>) -> Rest {
        for _ in 0..INLINE_STEPS {
            // What woke before this look, such as the offer's own arrival, is seen by it.
            self.journal_waker.begin_polling();
            match self.commit_one(committer) {
                Progress::Done(more) => answers.extend(more),
                Progress::Nothing => return Rest::ToArrive,
                Progress::Stalled => return Rest::ToDo,
            }
        }
        Rest::ToDo
    }

    /// The life of the journal's thread. A panic in it ends the log: what waits is told.
    pub(crate) fn run(&self) {
        // Before the journal is asked for the first time: what wakes then is not lost.
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
            let journal_in = committer.journal.due_in();
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
            // Asked also while there is more to do: what others write may never end.
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

    /// Whether the log closes, or is a copy that takes nothing any more: it must not go on to lead.
    fn is_ending(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
            || !self.limits.settles_at_once && self.closed_reason().is_some()
    }

    /// While the log closes: what was offered is waited for a little, but not for ever.
    fn is_worth_waiting(&self, give_up_at_us: &mut Option<u64>) -> bool {
        let now_us = self.clock().monotonic_us();
        let patience_us = self.limits.close_patience.as_micros() as u64;
        now_us < *give_up_at_us.get_or_insert(now_us + patience_us)
    }

    fn is_idle(&self) -> bool {
        let staging = lock(&self.staging);
        staging.queue.is_empty() && staging.in_flight.is_empty()
    }

    /// The last barrier; what the journal has not settled by now is told so.
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

    /// Does what is due beside commits, and tells how long until more is.
    fn due_in(&self, committer: &mut Committer) -> Option<Duration> {
        let sync_in = self.sync_if_due(committer);
        let seal_in = self.seal_again_if_due(committer);
        let room_in = self.look_for_room_if_due(committer);
        let mend_in = self.mend_if_due(committer);
        [sync_in, seal_in, room_in, mend_in].into_iter().flatten().min()
    }

    /// One turn of a log that its caller drives: one arrival, one batch, or one thing that is due.
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
                Turn { did: Did::Something, due_in }
            }
            Progress::Nothing | Progress::Stalled => {
                self.wake_owed();
                Turn { did: Did::Nothing, due_in }
            }
        }
    }

    /// The end of a log that its caller drives.
    pub(crate) fn end_by_turns(&self) {
        while let Did::Something = self.turn().did {
            // What others write may never end.
            if self.is_idle() {
                break;
            }
        }
        self.finish_journal();
        self.end();
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
            // After the head: who waits for a place reads the head then.
            let place = committer.journal.place().0;
            self.places.advance(place);
        }
        progress
    }

    /// Offers the journal as many of the batches that are staged as it takes.
    ///
    /// # Errors
    /// What to tell whom, if it refuses one.
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
            // The delay of a barrier counts from the first batch that it will cover.
            if let Sync::Interval(_) = self.options.sync
                && !committer.journal.unsynced()
            {
                committer.last_sync_us = self.clock().monotonic_us();
            }
            // A panic in there leaves it open what was written.
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

    /// What is durable elsewhere found no room in the segments, or the system refused.
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

    /// The batch is durable: everyone may see it.
    pub(super) fn published(&self, committer: &mut Committer, batch: &JournalBatch) {
        // Woken in `tell`, when the committer's lock is free.
        let is_cut = planted(Plant::HalfRequest) && !self.role().leads() && batch.count > 1;
        self.feed.advance(batch.last() - u64::from(is_cut));
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
        committer.segment_end = batch.end();
    }

    /// Tells everyone what became of their requests. Holds no lock: what they do then is theirs.
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

    /// Why the log takes no appends any more, if so.
    pub(crate) fn closed_reason(&self) -> Option<String> {
        lock(&self.staging).closed.clone()
    }

    pub(super) fn break_down(&self, reason: &str) {
        lock(&self.staging).closed.get_or_insert_with(|| reason.to_owned());
    }

    /// The oldest batch that was offered is not staged any more: its buffer is used again. Those
    /// who waited for one of its positions.
    fn settle(&self, batch: JournalBatch) -> Vec<Waiter> {
        let mut staging = lock(&self.staging);
        let in_flight = staging.in_flight.pop_front().expect("the batch that was taken");
        assert_eq!(in_flight.last, batch.last(), "batches are settled in order");
        staging.staged_bytes -= in_flight.body_bytes;
        staging.ingest_bytes -= in_flight.ingest_bytes;
        staging.forget_before(batch.segment_base);
        self.mark.set_full(false);
        staging.keep_buffer(batch.bytes);
        in_flight.waiters
    }
}

/// What a [turn](crate::Log::turn) came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Whether there may be more to do at once.
    pub did: Did,
    /// How long until something is due by itself, if anything is.
    pub due_in: Option<Duration>,
}

/// Whether a turn did anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// Something: the next turn may find more.
    Something,
    /// Nothing: no turn will before something arrives, is staged or is due.
    Nothing,
}
