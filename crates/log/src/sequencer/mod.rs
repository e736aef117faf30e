//! The sequencer: the only place that judges an append condition and assigns a
//! position. Judging, staging, committing and answering are a file each.
//!
//! - [`judge`]: is this request allowed, or a retry of one that was?
//! - [`stage`]: its positions, its bytes in the batch that gathers, its index entries.
//! - [`commit`]: the next batch to the journal, then the head moves, then the answers.
//! - [`gather`]: the batch itself and who waits for it.

mod commit;
mod gather;
pub(crate) mod judge;
mod stage;

pub(crate) use commit::Committer;
pub(crate) use stage::{Staging, Submitted};

use crate::amount::{Amount, Count};
use crate::error::AppendError;
use crate::feed::Feed;
use crate::lease::Leases;
use crate::log::Completion;
use crate::options::{Clock, Options};
use crate::read::Snapshot;
use crate::segments::{Segments, lock};
use crate::storage::Storage;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;

/// What a log's threads and callers share.
pub(crate) struct Sequencer {
    pub(crate) options: Options,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) feed: Feed,
    pub(crate) leases: Leases,
    pub(crate) epoch: u64,
    pub(crate) counters: Arc<Counters>,
    /// Positions and batches; held for microseconds.
    pub(crate) staging: Mutex<Staging>,
    /// The journal; held while a batch is made durable.
    pub(crate) committer: Mutex<Committer>,
    /// The thread that commits when no caller does.
    pub(crate) journal_thread: OnceLock<Thread>,
    pub(crate) closing: AtomicBool,
}

/// Counts since the log was opened. Relaxed: they are figures, not decisions.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) appends: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) replays: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) barrier_us: AtomicU64,
    /// Answered when staged ([`Ack::Accepted`](crate::Ack::Accepted)); what became of that.
    pub(crate) accepted: Count,
    pub(crate) accepted_stored: Count,
    pub(crate) accepted_dropped: Count,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts an append as accepted; the completion counts what becomes of it. An outcome that
    /// stays unknown leaves it in flight.
    fn accepted(self: &Arc<Self>, amount: Amount) -> Completion {
        self.accepted.add(amount);
        let counters = Arc::clone(self);
        Box::new(move |outcome| match outcome {
            Ok(_) => counters.accepted_stored.add(amount),
            Err(AppendError::Unknown { .. }) => {}
            Err(_) => counters.accepted_dropped.add(amount),
        })
    }
}

impl Sequencer {
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.options.clock
    }

    /// Tells the journal's thread that there is something to commit.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.journal_thread.get() {
            thread.unpark();
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.feed, &self.segments)
    }

    /// Bytes of all files of the log. Asks the file system, so not for hot paths.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let names = self.storage.list().unwrap_or_default();
        let lengths = names.iter().filter_map(|name| self.storage.open(name).ok()?.len().ok());
        lengths.sum()
    }

    pub(crate) fn staged_bytes(&self) -> usize {
        lock(&self.staging).staged_bytes
    }
}

impl std::fmt::Debug for Sequencer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequencer").field("head", &self.feed.head()).finish_non_exhaustive()
    }
}
