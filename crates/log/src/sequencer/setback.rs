//! Setbacks: the journal did not take a batch, and all that was staged behind it goes with it.
//!
//! | the journal says | the batch | what was staged behind it | the log |
//! |---|---|---|---|
//! | full | `StorageFull` | `StorageFull` | goes on; the next append finds out whether there is room |
//! | retry | `Unavailable` | `Unavailable` | goes on |
//! | refused | `Closed` | `Closed` | takes no appends until it is opened again |
//! | unknown | `Unknown` | `Closed` | takes no appends until it is opened again |
//!
//! A request that waits for a position of the batch is told the same as the batch.

use super::Sequencer;
use super::commit::{Answer, Committer};
use super::gather::Gathering;
use crate::error::AppendError;
use crate::journal::{Journal, JournalError};
use crate::threads::lock;

impl Sequencer {
    /// Drops everything staged; whom to tell what.
    pub(super) fn set_back(
        &self,
        committer: &mut Committer,
        batch: Gathering,
        error: JournalError,
    ) -> Vec<Answer> {
        let full = matches!(error, JournalError::Full);
        let (first, behind, closed) = match error {
            JournalError::Full => (AppendError::StorageFull, AppendError::StorageFull, None),
            JournalError::Retry(error) => {
                let unavailable = AppendError::Unavailable { reason: error.to_string() };
                (unavailable.clone(), unavailable, None)
            }
            JournalError::Refused(error) => {
                let reason = format!("the journal failed: {error}");
                let refused = AppendError::Closed { reason: reason.clone() };
                (refused.clone(), refused, Some(reason))
            }
            JournalError::Unknown(error) => {
                let reason = format!("the journal failed: {error}");
                let unknown = AppendError::Unknown { reason: reason.clone() };
                (unknown, AppendError::Closed { reason: reason.clone() }, Some(reason))
            }
        };
        let mut staging = lock(&self.staging);
        let in_flight = staging.in_flight.take().expect("the batch that was taken");
        let mut dropped = vec![batch];
        dropped.extend(staging.queue.drain(..));
        match closed {
            // What is in doubt stays in the index, above the head, where no reader looks any more.
            Some(reason) => {
                staging.closed.get_or_insert(reason);
                staging.staged_bytes = 0;
                staging.ingest_bytes = 0;
            }
            None => {
                if full {
                    committer.refused_bytes = dropped[0].bytes.len();
                    self.mark.set_full(true);
                    // It asks the device again.
                    self.wake();
                }
                let head = self.feed.head();
                staging.take_back(&self.segments, committer.journal.end(), head, &dropped);
            }
        }
        self.mark.set_back(staging.next);
        drop(staging);
        let mut answers = vec![Answer { waiters: in_flight.waiters, verdict: Err(first.clone()) }];
        let mut verdict = Err(first);
        for batch in dropped {
            answers.push(Answer { waiters: batch.waiters, verdict });
            verdict = Err(behind.clone());
        }
        answers
    }

    /// Drops everything staged after the thread that commits has gone: what the journal had then is
    /// in doubt.
    pub(super) fn drop_staged(&self, reason: &str) -> Vec<Answer> {
        let mut staging = lock(&self.staging);
        let in_flight = staging.in_flight.take().map(|batch| batch.waiters);
        let queue: Vec<Gathering> = staging.queue.drain(..).collect();
        staging.staged_bytes = 0;
        staging.ingest_bytes = 0;
        self.mark.set_back(staging.next);
        drop(staging);
        let reason = reason.to_owned();
        let unknown = in_flight.map(|waiters| Answer {
            waiters,
            verdict: Err(AppendError::Unknown { reason: reason.clone() }),
        });
        let closed = queue.into_iter().map(|batch| Answer {
            waiters: batch.waiters,
            verdict: Err(AppendError::Closed { reason: reason.clone() }),
        });
        unknown.into_iter().chain(closed).collect()
    }
}
