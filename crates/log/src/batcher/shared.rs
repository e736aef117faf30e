//! The state shared by producers, the flusher and the batcher's owner.

use super::close_terms::CloseTerms;
use super::figures::Figures;
use super::mark::Mark;
use super::producer::Wake;
use super::ring::{Gauge, Reader};
use super::stored_waiters::StoredWaiters;
use super::wanted::WakeRequest;
use super::{Options, PushError, StoreProgress};
use crate::amount::{Amount, Count};
use crate::threads::lock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

/// State that producers check at each push: read often and rarely written, so on a separate cache
/// line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Signals {
    /// Whether the flusher sleeps and must be woken.
    asleep: AtomicBool,
    /// One of the constants below.
    refusing: AtomicU8,
}

const TAKING: u8 = 0;
const FULL: u8 = 1;
const CLOSED: u8 = 2;

/// The frames that may be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frames {
    /// Anything that the sink understands.
    Any,
    /// Events encoded by this crate.
    Events,
}

/// The state that a producer and the flusher share in addition to the ring.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) counts: Counts,
    /// Whether the producer wants to be woken when something has been released.
    pub(super) wanted: WakeRequest,
    /// Whether the producer is gone.
    pub(super) finished: AtomicBool,
    /// How far the partition is filled and stored.
    pub(super) gauge: Gauge,
    waiter: Mutex<Option<Thread>>,
    wake: WakeSlot,
}

/// Written by the producer at every push; separate from what the flusher writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counts {
    pub(super) accepted: Count,
    pub(super) shed: Count,
}

struct WakeSlot(Option<Wake>);

impl std::fmt::Debug for WakeSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "a function" } else { "none" })
    }
}

impl Link {
    pub(super) fn new(gauge: Gauge, wake: Option<Wake>) -> Link {
        Link {
            counts: Counts::default(),
            wanted: WakeRequest::new(),
            finished: AtomicBool::new(false),
            gauge,
            waiter: Mutex::new(None),
            wake: WakeSlot(wake),
        }
    }

    /// Requests a wake-up for a thread that is about to park. See [`WakeRequest::ask`].
    pub(super) fn want_unpark(&self) {
        *lock(&self.waiter) = Some(std::thread::current());
        self.wanted.ask();
    }

    /// Wakes the producer if it asked for that. Called after a release or a change of state.
    pub(super) fn answer(&self) {
        if !self.wanted.take() {
            return;
        }
        if let Some(thread) = lock(&self.waiter).take() {
            thread.unpark();
        }
        if let Some(wake) = &self.wake.0 {
            wake();
        }
    }
}

/// The flusher's end of a partition.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) reader: Reader,
    pub(super) link: Arc<Link>,
    pub(super) order: u8,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) frames: Frames,
    signals: Signals,
    /// Whether a receipt is awaited, so that the flusher must not keep gathering.
    urgent: AtomicBool,
    closing: AtomicBool,
    pub(super) terms: Arc<CloseTerms>,
    /// Whether the owner reports that storing makes no progress, so that callers should not wait.
    stalled: AtomicBool,
    /// Whether the flusher has ended: nothing more will be stored.
    ended: AtomicBool,
    /// Tasks other than producers that wait for something to be stored.
    pub(super) waiters: StoredWaiters,
    reason: Mutex<String>,
    flusher: OnceLock<Thread>,
    /// Partitions created since the flusher last checked.
    arrivals: Mutex<Vec<Partition>>,
    links: Mutex<Links>,
    pub(super) stored: Count,
    pub(super) window_last_us: AtomicU64,
    pub(super) window_longest_us: AtomicU64,
}

/// Every producer's counts.
#[derive(Debug, Default)]
struct Links {
    live: Vec<Arc<Link>>,
    /// The counts of producers that are gone.
    accepted: Amount,
    shed: Amount,
}

impl Shared {
    pub(super) fn new(options: Options, frames: Frames, terms: Arc<CloseTerms>) -> Shared {
        Shared {
            options,
            frames,
            signals: Signals::default(),
            urgent: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            terms,
            stalled: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            waiters: StoredWaiters::new(),
            reason: Mutex::default(),
            flusher: OnceLock::new(),
            arrivals: Mutex::default(),
            links: Mutex::default(),
            stored: Count::default(),
            window_last_us: AtomicU64::new(0),
            window_longest_us: AtomicU64::new(0),
        }
    }

    pub(super) fn set_flusher(&self, thread: Thread) {
        let _ = self.flusher.set(thread);
        self.unpark();
    }

    pub(super) fn admit(&self, partition: Partition) {
        lock(&self.links).live.push(Arc::clone(&partition.link));
        lock(&self.arrivals).push(partition);
        self.unpark();
    }

    pub(super) fn arrivals(&self) -> Vec<Partition> {
        std::mem::take(&mut *lock(&self.arrivals))
    }

    pub(super) fn retire(&self, link: &Arc<Link>) {
        let mut links = lock(&self.links);
        links.accepted = links.accepted.plus(link.counts.accepted.get());
        links.shed = links.shed.plus(link.counts.shed.get());
        links.live.retain(|live| !Arc::ptr_eq(live, link));
    }

    /// Wakes the flusher if it sleeps.
    #[inline]
    pub(super) fn wake_if_asleep(&self) {
        if self.signals.asleep.load(Ordering::Relaxed) {
            self.wake_sleeper();
        }
    }

    #[cold]
    fn wake_sleeper(&self) {
        if self.signals.asleep.swap(false, Ordering::AcqRel) {
            self.unpark();
        }
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.flusher.get() {
            thread.unpark();
        }
    }

    /// Requests a flush.
    pub(super) fn hurry(&self) {
        self.urgent.store(true, Ordering::SeqCst);
        self.unpark();
    }

    /// Requests a flush as soon as the device may have room, without shortening the pause after it
    /// was full.
    pub(super) fn hurry_unless_full(&self) {
        self.urgent.store(true, Ordering::SeqCst);
        // If this sees the device full, the flusher has yet to store something and checks the
        // urgent flag after that.
        if self.signals.refusing.load(Ordering::SeqCst) != FULL {
            self.unpark();
        }
    }

    /// Keeps the urgent flag set, because the flusher is about to pause without having stored
    /// everything and tries again right after.
    pub(super) fn stay_urgent(&self) {
        self.urgent.store(true, Ordering::SeqCst);
    }

    /// Whether a flush was requested since the last call.
    pub(super) fn take_urgent(&self) -> bool {
        self.urgent.swap(false, Ordering::SeqCst)
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::SeqCst)
    }

    /// Marks that the flusher is about to sleep: from now on producers wake it.
    pub(super) fn fall_asleep(&self) {
        self.signals.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether it has not been woken since.
    pub(super) fn is_asleep(&self) -> bool {
        self.signals.asleep.load(Ordering::SeqCst)
    }

    pub(super) fn awake(&self) {
        self.signals.asleep.store(false, Ordering::SeqCst);
    }

    /// Whether this is the flusher's thread.
    pub(super) fn is_flusher(&self) -> bool {
        self.flusher.get().is_some_and(|thread| thread.id() == std::thread::current().id())
    }

    pub(super) fn close(&self, patience: Option<Duration>) {
        self.terms.begin(patience);
        self.closing.store(true, Ordering::SeqCst);
        self.refuse("it has been closed");
        self.unpark();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Sets whether storing makes progress. If it does not, wakes all waiters.
    pub(super) fn set_progress(&self, progress: StoreProgress) {
        let stalled = progress == StoreProgress::Stalled;
        if self.stalled.swap(stalled, Ordering::SeqCst) != stalled && stalled {
            self.answer_all();
        }
    }

    pub(super) fn progress(&self) -> StoreProgress {
        if self.stalled.load(Ordering::SeqCst) {
            StoreProgress::Stalled
        } else {
            StoreProgress::Flowing
        }
    }

    /// Marks that the flusher will store nothing more, and wakes all waiters.
    pub(super) fn end(&self) {
        self.refuse("the flusher has stopped");
        self.ended.store(true, Ordering::SeqCst);
        self.answer_all();
        self.waiters.wake_all();
    }

    /// Whether nothing more will be stored. Everything stored before is visible to the caller.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// The current place of every producer.
    ///
    /// A producer is listed as live before it can push and until all it pushed has been stored, so
    /// content that this does not find has been stored before.
    pub(super) fn mark(&self) -> Mark {
        Mark::of(&lock(&self.links).live)
    }

    /// Refuses all pushes from now on.
    pub(super) fn refuse(&self, reason: &str) {
        let mut known = lock(&self.reason);
        if known.is_empty() {
            reason.clone_into(&mut known);
        }
        self.signals.refusing.store(CLOSED, Ordering::SeqCst);
    }

    /// Refuses pushes until [`take_again`](Self::take_again).
    pub(super) fn refuse_as_full(&self) {
        let _ = self.signals.refusing.compare_exchange(
            TAKING,
            FULL,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
    }

    pub(super) fn take_again(&self) {
        if self.signals.refusing.load(Ordering::Relaxed) == FULL {
            let _ = self.signals.refusing.compare_exchange(
                FULL,
                TAKING,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
        }
    }

    /// The reason why pushes are refused, if so.
    #[inline]
    pub(super) fn refusal(&self) -> Option<PushError> {
        match self.signals.refusing.load(Ordering::Relaxed) {
            TAKING => None,
            FULL => Some(PushError::StorageFull),
            _ => Some(self.closed()),
        }
    }

    /// The error of pushes that are no longer accepted.
    pub(super) fn closed(&self) -> PushError {
        PushError::Closed { reason: lock(&self.reason).clone() }
    }

    /// Wakes every waiting producer.
    pub(super) fn answer_all(&self) {
        let live = lock(&self.links).live.clone();
        live.iter().for_each(|link| link.answer());
    }

    pub(super) fn figures(&self) -> Figures {
        // Read before `accepted`, so that nothing stored meanwhile is missing there.
        let stored = self.stored.get();
        let links = lock(&self.links);
        let mut figures = Figures {
            accepted: links.accepted,
            stored,
            shed: links.shed,
            window_last_us: self.window_last_us.load(Ordering::Relaxed),
            window_longest_us: self.window_longest_us.load(Ordering::Relaxed),
            partitions: links.live.len(),
            partition_bytes: self.options.capacity(),
        };
        for link in &links.live {
            figures.accepted = figures.accepted.plus(link.counts.accepted.get());
            figures.shed = figures.shed.plus(link.counts.shed.get());
        }
        figures
    }
}
