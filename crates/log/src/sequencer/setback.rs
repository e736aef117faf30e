//! Setbacks: the journal refused a batch, and everything staged after it is discarded too.
//!
//! | the journal reports | the batch | what was staged after it | the log |
//! |---|---|---|---|
//! | full | `StorageFull` | `StorageFull` | continues; the next append checks whether there is room |
//! | retry | `Unavailable` | `Unavailable` | continues |
//! | refused | `Closed` | `Closed` | refuses appends until it is opened again |
//! | unknown | `Unknown` | `Closed` | refuses appends until it is opened again |
//!
//! A request that waits for a position of the batch gets the batch's outcome. Unsettled batches
//! that were offered before it stay.

use super::Sequencer;
use super::commit::{Answer, Committer};
use super::gather::{Gathering, InFlight};
use super::staged::{StagedEnd, Staging};
use crate::error::AppendError;
use crate::journal::{JournalBatch, JournalError};
use crate::threads::lock;
use std::sync::atomic::Ordering::Relaxed;

impl Sequencer {
    /// Discards everything staged from the last offered batch on, which is passed back if any of it
    /// is left; returns the answers to send.
    pub(super) fn set_back(
        &self,
        committer: &mut Committer,
        batch: Option<JournalBatch>,
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
        let in_flight = staging.in_flight.pop_back().expect("the batch that was taken");
        let mut answers = vec![Answer { waiters: in_flight.waiters, verdict: Err(first) }];
        match (closed, batch) {
            (None, Some(batch)) => {
                if full {
                    committer.refused_bytes = batch.bytes.len();
                    self.mark.set_full(true);
                    // It checks the device again.
                    self.wake();
                }
                answers.extend(self.take_back(committer, &mut staging, vec![batch], &behind));
            }
            // Events in doubt stay in the index above the head, where no reader looks.
            (reason, _) => {
                staging.closed = staging.closed.take().or(reason);
                let queue = std::mem::take(&mut staging.queue);
                staging.staged_bytes = 0;
                staging.ingest_bytes = 0;
                self.mark.set_back(staging.next);
                answers.extend(queue.into_iter().map(|gathering| told(gathering, &behind)));
            }
        }
        answers
    }

    /// Discards what was never offered, and `lost`, which will never be durable; returns the
    /// answers for the former, with `behind` as outcome. Batches in flight stay.
    pub(super) fn take_back(
        &self,
        committer: &Committer,
        staging: &mut Staging,
        lost: Vec<JournalBatch>,
        behind: &AppendError,
    ) -> Vec<Answer> {
        let mut dropped = lost;
        let mut answers = Vec::new();
        for Gathering { batch, waiters, .. } in std::mem::take(&mut staging.queue) {
            dropped.push(batch);
            answers.push(Answer { waiters, verdict: Err(behind.clone()) });
        }
        let (segment_base, end) = committer.journal.end();
        let recorded_at_us = self.counters.last_recorded_at_us.load(Relaxed);
        let durable = StagedEnd { segment_base, end, next: self.feed.head() + 1, recorded_at_us };
        staging.take_back(&self.segments, durable, &dropped);
        assert!(staging.next > self.feed.head(), "durable positions are not taken back");
        self.mark.set_back(staging.next);
        answers
    }

    /// Discards everything staged after the committer is gone: what the journal had then is in
    /// doubt.
    pub(super) fn drop_staged(&self, reason: &str) -> Vec<Answer> {
        let mut staging = lock(&self.staging);
        let in_flight: Vec<InFlight> = staging.in_flight.drain(..).collect();
        let queue: Vec<Gathering> = staging.queue.drain(..).collect();
        staging.staged_bytes = 0;
        staging.ingest_bytes = 0;
        self.mark.set_back(staging.next);
        drop(staging);
        let unknown = AppendError::Unknown { reason: reason.to_owned() };
        let closed = AppendError::Closed { reason: reason.to_owned() };
        let in_flight = in_flight
            .into_iter()
            .map(|batch| Answer { waiters: batch.waiters, verdict: Err(unknown.clone()) });
        in_flight.chain(queue.into_iter().map(|gathering| told(gathering, &closed))).collect()
    }
}

fn told(gathering: Gathering, error: &AppendError) -> Answer {
    Answer { waiters: gathering.waiters, verdict: Err(error.clone()) }
}
