//! What producers, the flusher and the batcher's owner share.

use super::close_terms::CloseTerms;
use super::figures::Figures;
use super::mark::Mark;
use super::producer::Wake;
use super::ring::{Gauge, Reader};
use super::stored_waiters::StoredWaiters;
use super::wanted::Wanted;
use super::{Options, PushError, StoreProgress};
use crate::amount::{Amount, Count};
use crate::threads::lock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

/// What a producer asks before it pushes, read often and written seldom: on a
/// cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Signals {
    /// The flusher sleeps until someone wakes it.
    asleep: AtomicBool,
    /// One of the constants below.
    refusing: AtomicU8,
}

const TAKING: u8 = 0;
const FULL: u8 = 1;
const CLOSED: u8 = 2;

/// What may be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frames {
    /// Whatever the sink understands.
    Any,
    /// Events, encoded by this crate.
    Events,
}

/// What a producer and the flusher share besides the ring.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) counts: Counts,
    /// The producer wants to be woken when something has been released.
    pub(super) wanted: Wanted,
    /// The producer is gone.
    pub(super) finished: AtomicBool,
    /// How far the partition is filled and stored.
    pub(super) gauge: Gauge,
    waiter: Mutex<Option<Thread>>,
    wake: WakeSlot,
}

/// Written by the producer at every push, away from what the flusher writes.
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
            wanted: Wanted::new(),
            finished: AtomicBool::new(false),
            gauge,
            waiter: Mutex::new(None),
            wake: WakeSlot(wake),
        }
    }

    /// Asks to be woken by a thread that is about to park. See [`Wanted::ask`].
    pub(super) fn want_unpark(&self) {
        *lock(&self.waiter) = Some(std::thread::current());
        self.wanted.ask();
    }

    /// Wakes the producer if it asked for it. Called after a release or a change of state.
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

/// See the module.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) frames: Frames,
    signals: Signals,
    /// Someone waits for a receipt: do not wait for more.
    urgent: AtomicBool,
    closing: AtomicBool,
    pub(super) terms: Arc<CloseTerms>,
    /// The owner says that nothing has been stored for too long: nobody is to wait for it.
    stalled: AtomicBool,
    /// The flusher has ended: nothing more will be stored.
    ended: AtomicBool,
    /// Tasks that wait for something to be stored, without being a producer.
    pub(super) waiters: StoredWaiters,
    reason: Mutex<String>,
    flusher: OnceLock<Thread>,
    /// Partitions made since the flusher last looked.
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
    /// Of producers that are gone.
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

    /// Ends a sleep of the flusher, if it sleeps.
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

    /// Asks for a flush now.
    pub(super) fn hurry(&self) {
        self.urgent.store(true, Ordering::SeqCst);
        self.unpark();
    }

    /// Asks for a flush as soon as the device may have room: a pause after it was full is not cut
    /// short.
    pub(super) fn hurry_unless_full(&self) {
        self.urgent.store(true, Ordering::SeqCst);
        // If this sees the device full, the flusher has yet to store something, and looks whether
        // it is urgent after that.
        if self.signals.refusing.load(Ordering::SeqCst) != FULL {
            self.unpark();
        }
    }

    /// Nobody waits any longer than the flusher pauses: it is about to pause because not
    /// everything could be stored, and tries again at once after that.
    pub(super) fn stay_urgent(&self) {
        self.urgent.store(true, Ordering::SeqCst);
    }

    /// Whether a flush was asked for since this was last taken.
    pub(super) fn take_urgent(&self) -> bool {
        self.urgent.swap(false, Ordering::SeqCst)
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::SeqCst)
    }

    /// The flusher is about to sleep: from now on producers wake it.
    pub(super) fn fall_asleep(&self) {
        self.signals.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether nobody has woken it since.
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

    /// Says whether storing goes on. Tells everyone who waits that it does not.
    pub(super) fn set_progress(&self, progress: StoreProgress) {
        let stalled = progress == StoreProgress::Stalled;
        if self.stalled.swap(stalled, Ordering::SeqCst) != stalled && stalled {
            self.answer_all();
        }
    }

    pub(super) fn progress(&self) -> StoreProgress {
        match self.stalled.load(Ordering::SeqCst) {
            true => StoreProgress::Stalled,
            false => StoreProgress::Flowing,
        }
    }

    /// The flusher will store nothing any more. Tells everyone who waits.
    pub(super) fn end(&self) {
        self.refuse("the flusher has stopped");
        self.ended.store(true, Ordering::SeqCst);
        self.answer_all();
        self.waiters.wake_all();
    }

    /// Whether nothing will be stored any more. What has been is visible to who is told so.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Where every producer stands now.
    ///
    /// A producer is among the live ones before it can push, and until all it pushed has been
    /// stored; so what this does not find there was stored before.
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

    /// Why nothing is taken now, if so.
    #[inline]
    pub(super) fn refusal(&self) -> Option<PushError> {
        match self.signals.refusing.load(Ordering::Relaxed) {
            TAKING => None,
            FULL => Some(PushError::StorageFull),
            _ => Some(self.closed()),
        }
    }

    /// What is refused when nothing is taken any more.
    pub(super) fn closed(&self) -> PushError {
        PushError::Closed { reason: lock(&self.reason).clone() }
    }

    /// Answers every producer that waits.
    pub(super) fn answer_all(&self) {
        let live = lock(&self.links).live.clone();
        live.iter().for_each(|link| link.answer());
    }

    pub(super) fn figures(&self) -> Figures {
        // Before `accepted`: so that what is stored meanwhile is not missed there.
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
