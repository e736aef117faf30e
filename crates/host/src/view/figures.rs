//! Cost and progress of a view.

use super::{Live, Progress};
use crate::view::contract::View;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts since the view was opened; times in µs. Updated once per run, not per event.
#[derive(Debug, Default)]
pub(super) struct Counters {
    folds: AtomicU64,
    fold_us: AtomicU64,
    applied: AtomicU64,
    snapshots: AtomicU64,
    snapshot_us: AtomicU64,
    snapshot_bytes: AtomicU64,
    /// The value of `fold_us` when the last snapshot was started.
    snapshot_fold_us: AtomicU64,
}

impl Counters {
    /// A run of the fold has ended.
    pub(super) fn folded(&self, applied: u64, took_us: u64) {
        self.folds.fetch_add(1, Relaxed);
        self.applied.fetch_add(applied, Relaxed);
        self.fold_us.fetch_add(took_us, Relaxed);
    }

    /// Time spent folding, in µs.
    pub(super) fn fold_us(&self) -> u64 {
        self.fold_us.load(Relaxed)
    }

    /// Time spent on folding that is in no snapshot written since the view was opened, in µs.
    pub(super) fn unsaved_fold_us(&self) -> u64 {
        self.fold_us().saturating_sub(self.snapshot_fold_us.load(Relaxed))
    }

    /// A snapshot was written; at its start this much time had been spent folding.
    pub(super) fn snapshot(&self, bytes: u64, took_us: u64, begun_at_fold_us: u64) {
        self.snapshot_fold_us.store(begun_at_fold_us, Relaxed);
        self.snapshots.fetch_add(1, Relaxed);
        self.snapshot_us.fetch_add(took_us, Relaxed);
        self.snapshot_bytes.store(bytes, Relaxed);
    }
}

/// Cost and progress of a view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// Its progress.
    pub progress: Progress,
    /// Runs of the fold.
    pub folds: u64,
    /// Their time, including reading the log, in µs.
    pub fold_us: u64,
    /// Events folded.
    pub applied: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Time spent writing them, in µs.
    pub snapshot_us: u64,
    /// Size of the last one, in bytes; 0 if none was written.
    pub snapshot_bytes: u64,
}

impl<V: View> Live<V> {
    /// Its cost and progress.
    pub(crate) fn figures(&self) -> Figures {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let counters = &self.counters;
        Figures {
            progress: self.progress(),
            folds: read(&counters.folds),
            fold_us: read(&counters.fold_us),
            applied: read(&counters.applied),
            snapshots: read(&counters.snapshots),
            snapshot_us: read(&counters.snapshot_us),
            snapshot_bytes: read(&counters.snapshot_bytes),
        }
    }
}
