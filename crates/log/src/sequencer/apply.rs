//! Applying: a batch of another node gets its index entries and its place in the segments, then the
//! head moves. Its leader has judged it; nothing is judged here.

use super::Sequencer;
use super::commit::{Committer, Progress};
use super::staged::StagedEnd;
use crate::shared::rule::AcceptedBatch;
use crate::threads::lock;
use std::sync::atomic::Ordering::Relaxed;

impl Sequencer {
    pub(super) fn apply(&self, committer: &mut Committer, foreign: &AcceptedBatch) -> Progress {
        let mut batch = {
            let mut staging = lock(&self.staging);
            let batch = staging.adopt(&self.staging_context(), foreign);
            self.mark.staged(staging.next);
            batch
        };
        if let Err(error) = committer.journal.keep(&mut batch) {
            let bytes = batch.bytes.len();
            let mut staging = lock(&self.staging);
            let (segment_base, end) = committer.journal.end();
            let recorded_at_us = self.counters.last_recorded_at_us.load(Relaxed);
            let durable = StagedEnd { segment_base, end, next: batch.first, recorded_at_us };
            staging.take_back(&self.segments, durable, &[batch]);
            self.mark.set_back(staging.next);
            drop(staging);
            return self.stalled(committer, &error, bytes);
        }
        self.published(committer, &batch);
        let mut staging = lock(&self.staging);
        staging.forget_before(batch.segment_base);
        staging.keep_buffer(batch.bytes);
        self.mark.set_full(false);
        Progress::Done(Vec::new())
    }
}
