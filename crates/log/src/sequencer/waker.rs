//! Wakes the journal's thread, unless another thread holds the journal and will check anyway: if an
//! arrival settles a batch while its own client polls for it, no other thread is needed. If the
//! engine lends its threads, the waking one takes the arrival itself.

use super::Sequencer;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Wake, Waker};
use std::thread::Thread;

/// No thread polls: the journal's thread is unparked.
const IDLE: u8 = 0;
/// A thread polls, and has missed nothing.
const POLLED: u8 = 1;
/// A thread polls, and must check again or leave that to the journal's thread.
const MISSED: u8 = 2;

/// The waker; see the module's documentation.
pub(crate) struct JournalWaker {
    inner: Arc<Inner>,
    /// The same as a `Waker` for the journal.
    waker: Waker,
}

struct Inner {
    state: AtomicU8,
    thread: OnceLock<Thread>,
    /// Set if the engine lends its threads.
    sequencer: OnceLock<Weak<Sequencer>>,
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let missed =
            self.state.fetch_update(SeqCst, SeqCst, |state| (state != IDLE).then_some(MISSED));
        if missed.is_ok() {
            return;
        }
        match self.sequencer.get().and_then(Weak::upgrade) {
            Some(sequencer) => sequencer.commit_inline(),
            None => self.unpark(),
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
        let inner = Arc::new(Inner {
            state: AtomicU8::new(IDLE),
            thread: OnceLock::new(),
            sequencer: OnceLock::new(),
        });
        let waker = Waker::from(Arc::clone(&inner));
        JournalWaker { inner, waker }
    }

    /// Sets the thread; called once.
    pub(crate) fn unparks(&self, thread: Thread) {
        let _ = self.inner.thread.set(thread);
    }

    /// Has the waking thread commit; called once, before the journal is polled.
    pub(crate) fn commits_on_wake(&self, sequencer: Weak<Sequencer>) {
        let _ = self.inner.sequencer.set(sequencer);
    }

    /// The waker for a journal.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the thread even if another one polls: there is work that no arrival announces.
    pub(crate) fn wake(&self) {
        self.inner.unpark();
    }

    /// Called with the committer's lock held: this thread is about to poll.
    pub(super) fn begin_polling(&self) {
        self.inner.state.store(POLLED, SeqCst);
    }

    /// Handles what was missed while polling: the journal's thread is woken if this one does not
    /// check again.
    pub(super) fn end_polling(&self) {
        if self.inner.state.swap(IDLE, SeqCst) == MISSED {
            self.inner.unpark();
        }
    }
}
