//! What a view costs, and how far it is.

use super::{Live, Progress};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wellspring_views::view::View;

/// Counts since the view was opened; times in µs. Added to once a turn, not once an event.
#[derive(Debug, Default)]
pub(super) struct Counters {
    folds: AtomicU64,
    fold_us: AtomicU64,
    applied: AtomicU64,
    snapshots: AtomicU64,
    snapshot_us: AtomicU64,
    snapshot_bytes: AtomicU64,
    /// What `fold_us` was when the last snapshot was begun.
    snapshot_fold_us: AtomicU64,
}

impl Counters {
    /// A turn of folding ended.
    pub(super) fn folded(&self, applied: u64, took_us: u64) {
        self.folds.fetch_add(1, Relaxed);
        self.applied.fetch_add(applied, Relaxed);
        self.fold_us.fetch_add(took_us, Relaxed);
    }

    /// Time spent folding, in µs.
    pub(super) fn fold_us(&self) -> u64 {
        self.fold_us.load(Relaxed)
    }

    /// Time spent folding what is in no snapshot that was written since the view was opened, in µs.
    pub(super) fn unsaved_fold_us(&self) -> u64 {
        self.fold_us().saturating_sub(self.snapshot_fold_us.load(Relaxed))
    }

    /// A snapshot was written that was begun when so much time had been spent folding.
    pub(super) fn snapshot(&self, bytes: u64, took_us: u64, begun_at_fold_us: u64) {
        self.snapshot_fold_us.store(begun_at_fold_us, Relaxed);
        self.snapshots.fetch_add(1, Relaxed);
        self.snapshot_us.fetch_add(took_us, Relaxed);
        self.snapshot_bytes.store(bytes, Relaxed);
    }
}

/// What a view costs, and how far it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// How far it is.
    pub progress: Progress,
    /// Turns of folding.
    pub folds: u64,
    /// Time in them, reading the log included, µs.
    pub fold_us: u64,
    /// Events folded.
    pub applied: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Time in writing them, µs.
    pub snapshot_us: u64,
    /// Size of the last one written, in bytes; 0 if none was.
    pub snapshot_bytes: u64,
}

impl<V: View> Live<V> {
    /// What it costs, and how far it is.
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
