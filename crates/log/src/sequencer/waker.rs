//! Wakes the journal's thread, unless somebody else holds the journal and will look anyhow: an
//! arrival that answers a batch while its own client polls for it needs no other thread.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::Thread;

/// Nobody polls: the thread is unparked.
const IDLE: u8 = 0;
/// Somebody polls, and has missed nothing.
const POLLED: u8 = 1;
/// Somebody polls, and is to look again or have the thread look.
const MISSED: u8 = 2;

/// See the module.
pub(crate) struct JournalWaker {
    inner: Arc<Inner>,
    /// The same, as what a journal is given.
    waker: Waker,
}

struct Inner {
    state: AtomicU8,
    thread: OnceLock<Thread>,
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let missed =
            self.state.fetch_update(SeqCst, SeqCst, |state| (state != IDLE).then_some(MISSED));
        if missed.is_err() {
            self.unpark();
        }
    }
}

impl Inner {
    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl JournalWaker {
    pub(crate) fn new() -> JournalWaker {
        let inner = Arc::new(Inner { state: AtomicU8::new(IDLE), thread: OnceLock::new() });
        let waker = Waker::from(Arc::clone(&inner));
        JournalWaker { inner, waker }
    }

    /// Names the thread; once.
    pub(crate) fn unparks(&self, thread: Thread) {
        let _ = self.inner.thread.set(thread);
    }

    /// What a journal wakes.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the thread, whoever polls: there is something that no arrival tells of.
    pub(crate) fn wake(&self) {
        self.inner.unpark();
    }

    /// With the committer's lock held: this thread is about to poll.
    pub(super) fn begin_polling(&self) {
        self.inner.state.store(POLLED, SeqCst);
    }

    /// What came while it polled is seen to, by the thread if this one does not look again.
    pub(super) fn end_polling(&self) {
        if self.inner.state.swap(IDLE, SeqCst) == MISSED {
            self.inner.unpark();
        }
    }
}
