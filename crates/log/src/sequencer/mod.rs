//! The sequencer: the only place that judges append conditions and assigns positions. Judging,
//! staging, committing and answering have separate files.
//!
//! - [`judge`]: is this request allowed, or a retry of one that was?
//! - [`condition`]: does an event in a range of the log violate the append condition?
//! - [`stage`]: its positions, its bytes in the gathering batch, its index entries.
//! - [`fenced`]: is the right held that the request is fenced by?
//! - [`staged`]: staged positions, batches and waiters.
//! - [`commit`]: the next batch to the journal, then the head, then the answers.
//! - [`apply`]: a batch of another node.
//! - [`mend`]: rewriting a damaged segment of a copy.
//! - [`role`]: taking and losing the lead.
//! - [`confirm`]: the head, if positions are still assigned here.
//! - [`setback`]: discarding everything staged after the journal refused a batch.
//! - [`gather`]: the batch and its waiters.
//! - [`wakes`]: wake-ups deferred until no lock is held.
//! - [`waker`]: wakes the committing thread, unless another thread is committing.
//! - [`seal`]: writing the indexes of full segments, with retries.
//! - [`trim`]: cutting off the beginning.
//! - [`replays`]: retries that overtook their first attempt, answered separately from commits.
//!
//! Group commit has no timer: while one batch is at the device the next one gathers, so batches
//! grow with load. With one client, the thread that staged a batch commits it, without a wake-up.
//!
//! A request waits for a position: its own last one, that of the event that refuses it, or that of
//! its first attempt. It is answered when that position is durable. So no client is told of a
//! conflict with something that never happened, and a retry shares the doubt of its first attempt
//! (decision 0014).

mod apply;
mod commit;
mod condition;
mod confirm;
mod fenced;
mod gather;
mod inline;
pub(crate) mod judge;
mod mend;
mod merge;
mod replays;
mod role;
mod seal;
mod setback;
mod stage;
mod staged;
mod trim;
mod waker;
mod wakes;

pub(crate) use commit::Committer;
pub use commit::{Turn, TurnProgress};
pub(crate) use merge::Merger;
pub(crate) use replays::Replays;
pub(crate) use seal::{FullSegment, Sealer};
pub(crate) use staged::{SegmentTail, StagedMark, Staging};
pub(crate) use waker::JournalWaker;
pub(crate) use wakes::OwedWakes;

use crate::amount::{Amount, Count};
use crate::append::Completion;
use crate::error::AppendError;
use crate::feed::Feed;
use crate::head_gate::DurableEnd;
use crate::histogram::{self, Recorder};
use crate::journal::{Confirmations, JournalLimits, SharedCounters};
use crate::lease::Leases;
use crate::options::{Clock, Options};
use crate::read::Snapshot;
use crate::segments::Segments;
use crate::storage::Storage;
use crate::subscription::Interests;
use crate::threads::lock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use wellspring_format::segment::{is_index_name, parse_segment_name};
use wellspring_types::HistoryId;

/// The state shared by a log's threads and callers.
pub(crate) struct Sequencer {
    pub(crate) options: Options,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) feed: Feed,
    /// Where the last durable batch ends; moved with the head, inside its gate.
    pub(crate) durable_end: DurableEnd,
    /// The log's history; unset in a copy that does not know its shared log yet.
    pub(crate) history: Arc<OnceLock<HistoryId>>,
    pub(crate) interests: Interests,
    pub(crate) leases: Arc<Leases>,
    /// The epoch in which this node leads, or led last.
    pub(crate) epoch: AtomicU64,
    pub(crate) limits: JournalLimits,
    /// The number of role changes.
    pub(crate) role_changes: Feed,
    /// How far the segments contain the shared log; moved after the head.
    pub(crate) places: Feed,
    /// Wake-ups that the committer owes.
    pub(crate) owed_wakes: Mutex<OwedWakes>,
    /// Questions for the end of the shared log; `None` in a log of files.
    pub(crate) confirmations: Option<Arc<Confirmations>>,
    /// Figures about the shared log; `None` in a log of files.
    pub(crate) shared_counters: Option<Arc<SharedCounters>>,
    /// This node's process; `None` in a log of files.
    pub(crate) process: Option<NodeProcess>,
    /// Failed attempts to repair damaged segments of a copy.
    pub(crate) mend_failures: AtomicU64,
    pub(crate) counters: Arc<Counters>,
    /// Positions and batches; locked for microseconds.
    pub(crate) staging: Mutex<Staging>,
    /// The part of it that is read without its lock.
    pub(crate) mark: StagedMark,
    pub(crate) replays: Arc<Replays>,
    pub(crate) sealer: Arc<Sealer>,
    /// The journal; locked while a batch is made durable.
    pub(crate) committer: Mutex<Committer>,
    /// The thread that commits when no caller does.
    pub(crate) journal_thread: OnceLock<Thread>,
    pub(crate) journal_waker: JournalWaker,
    pub(crate) closing: AtomicBool,
}

/// A process of a node of a shared log.
#[derive(Debug, Clone)]
pub(crate) struct NodeProcess {
    /// The node's name.
    pub(crate) node: String,
    /// Distinguishes this process from the node's others.
    pub(crate) start: u64,
}

/// Bytes of a log's files.
#[derive(Debug, Default)]
pub(crate) struct DiskUsage {
    pub(crate) all_bytes: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) index_bytes: u64,
}

/// Counters since the log was opened. Relaxed: they are figures, not used for decisions.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) appends: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) replays: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) batch_events: Recorder,
    pub(crate) batch_bytes: Recorder,
    /// Counted by the journal.
    pub(crate) barriers_us: Arc<Recorder>,
    /// Of the last durable event.
    pub(crate) last_recorded_at_us: AtomicU64,
    /// Answered when staged ([`Ack::Accepted`](crate::Ack::Accepted)), and the outcomes.
    pub(crate) accepted: Count,
    pub(crate) accepted_stored: Count,
    pub(crate) accepted_dropped: Count,
}

impl Counters {
    /// Counters at zero, for a log whose last event was recorded at this time; `barriers_us`
    /// belongs to the journal.
    pub(crate) fn new(barriers_us: Arc<Recorder>, last_recorded_at_us: u64) -> Counters {
        Counters {
            appends: AtomicU64::new(0),
            events: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            replays: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            batch_events: Recorder::new(&histogram::BATCH_EVENTS),
            batch_bytes: Recorder::new(&histogram::BATCH_BYTES),
            barriers_us,
            last_recorded_at_us: AtomicU64::new(last_recorded_at_us),
            accepted: Count::default(),
            accepted_stored: Count::default(),
            accepted_dropped: Count::default(),
        }
    }

    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts an append as accepted; the completion counts its outcome. An unknown outcome leaves
    /// it in flight.
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

    /// Notifies the journal's thread that there is something to commit.
    pub(crate) fn wake(&self) {
        self.journal_waker.wake();
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.feed, &self.segments)
    }

    /// Size of all files of the log. Asks the file system, so not for hot paths.
    pub(crate) fn disk_usage(&self) -> DiskUsage {
        let mut usage = DiskUsage::default();
        for name in self.storage.list().unwrap_or_default() {
            let Ok(bytes) = self.storage.file_bytes(&name) else { continue };
            usage.all_bytes += bytes;
            if parse_segment_name(&name).is_some() {
                usage.segment_bytes += bytes;
            } else if is_index_name(&name) {
                usage.index_bytes += bytes;
            }
        }
        usage
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
