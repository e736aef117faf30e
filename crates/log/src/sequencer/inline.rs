//! Commits on threads other than the journal's: a client's own, or one of the engine's.

use super::Sequencer;
use super::commit::{Answer, Committer, Progress};
use crate::threads::lock;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum number of steps of a client's own thread with a shared log before it leaves them to the
/// journal's thread.
const INLINE_STEPS: usize = 64;

/// What a client's own thread leaves to the journal's thread.
enum RemainingWork {
    /// Nothing until an arrival, which wakes it.
    ToArrive,
    /// More work, immediately or later.
    ToDo,
}

impl Sequencer {
    /// Commits what is staged on this thread, unless another thread is committing. What gathers
    /// meanwhile is left to the journal's thread, or to the next arrival.
    pub(crate) fn commit_inline(&self) {
        let Some(mut committer) = self.try_committer() else {
            // The holder may have checked the queue for the last time already.
            self.wake();
            return;
        };
        if !self.limits.settles_at_once {
            let answers = self.poll_inline(&mut committer);
            drop(committer);
            self.tell(answers);
            return;
        }
        let barrier_was_due = committer.journal.unsynced();
        let answers = match self.commit_one(&mut committer) {
            Progress::Done(answers) => answers,
            Progress::Nothing | Progress::Stalled => Vec::new(),
        };
        // A delayed barrier that no request waits for is left to the journal's thread.
        let begins_interval = !barrier_was_due && committer.journal.unsynced();
        drop(committer);
        self.tell(answers);
        if begins_interval || !lock(&self.staging).queue.is_empty() {
            self.wake();
        }
    }

    /// Commits what is staged without waiting for the device. An engine that lends its threads
    /// needs no other one: this thread sends the batch, and one of the engine's takes its arrival.
    pub(crate) fn commit_elsewhere(&self) {
        if self.limits.lends_threads {
            self.commit_inline();
        } else {
            self.wake();
        }
    }

    /// Sends what is staged and processes arrivals as long as there are any; later ones are left to
    /// the journal's thread. A panic closes the log: waiters are notified.
    fn poll_inline(&self, committer: &mut Committer) -> Vec<Answer> {
        let mut answers = Vec::new();
        // The folder may be another process's once the journal's thread has ended. That takes the
        // committer's lock after one of these is set.
        if self.is_ending() {
            self.wake();
            return answers;
        }
        let polled = catch_unwind(AssertUnwindSafe(|| self.poll_steps(committer, &mut answers)));
        if polled.is_err() {
            self.break_down("the journal panicked");
            answers.extend(self.drop_staged("the journal panicked"));
        }
        let is_sooner = committer.due_us(self.clock().monotonic_us()) < committer.thread_due_us;
        if is_sooner || !matches!(polled, Ok(RemainingWork::ToArrive)) {
            self.wake();
        }
        self.journal_waker.end_polling();
        answers
    }

    fn poll_steps(&self, committer: &mut Committer, answers: &mut Vec<Answer>) -> RemainingWork {
        for _ in 0..INLINE_STEPS {
            // This poll sees everything that caused an earlier wake, such as the offer's own
            // arrival.
            self.journal_waker.begin_polling();
            match self.commit_one(committer) {
                Progress::Done(more) => answers.extend(more),
                Progress::Nothing => return RemainingWork::ToArrive,
                Progress::Stalled => return RemainingWork::ToDo,
            }
        }
        RemainingWork::ToDo
    }
}
