//! The head, or another position that only grows, as something to wait for:
//! blocking, or from any async runtime.

use crate::segments::lock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wellspring_types::Position;

/// Tasks kept waiting; over it all are woken, so that those given up are forgotten
/// and those that still wait register again.
const WAKERS: usize = 16 << 10;

/// Tells when the head moves. Clones are the same feed.
///
/// [`Log::feed`](crate::Log::feed) gives a log's. Who keeps another position for others to wait for
/// (how far a view has folded, say) makes one with [`Feed::at`]; "head" is then that position.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    head: AtomicU64,
    closed: AtomicBool,
    /// Waiters of both kinds; the publisher takes the lock only if there are any.
    waiting: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
    moved: Condvar,
}

impl Feed {
    /// A feed that stands at `position` and moves when [`publish`](Self::publish) is called.
    #[must_use]
    pub fn at(position: Position) -> Feed {
        let feed = Feed::default();
        feed.shared.head.store(position, Ordering::SeqCst);
        feed
    }

    /// The head: last published position, 0 if the log is empty.
    #[must_use]
    pub fn head(&self) -> Position {
        self.shared.head.load(Ordering::Acquire)
    }

    /// Moves the head and wakes who waits for it. Everything a reader may look at up to it must be in
    /// place: who sees the head sees what was done before this call.
    ///
    /// For whoever keeps the position, one thread at a time and never with a lower one than before: the
    /// feed of a log is moved by the log alone.
    pub fn publish(&self, head: Position) {
        // Sequentially consistent with `waiting`: either the publisher sees the
        // waiter, or the waiter (who registers, then looks again) sees the head.
        self.shared.head.store(head, Ordering::SeqCst);
        self.wake_if_any();
    }

    /// Says that the head will not move again, and wakes everyone who waits. For who calls
    /// [`publish`](Self::publish), after the last time.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.wake_if_any();
    }

    fn wake_if_any(&self) {
        if self.shared.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let wakers = {
            let mut wakers = lock(&self.shared.wakers);
            self.shared.waiting.fetch_sub(wakers.len(), Ordering::SeqCst);
            self.shared.moved.notify_all();
            std::mem::take(&mut *wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn is_past(&self, position: Position) -> bool {
        self.shared.head.load(Ordering::SeqCst) > position
            || self.shared.closed.load(Ordering::SeqCst)
    }

    /// Waits until the head is past `position`, the log closes, or `timeout` passes; returns the head.
    pub fn wait_past(&self, position: Position, timeout: Duration) -> Position {
        if self.is_past(position) {
            return self.head();
        }
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        let guard = lock(&self.shared.wakers);
        let waited =
            self.shared.moved.wait_timeout_while(guard, timeout, |_| !self.is_past(position));
        drop(waited);
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
        self.head()
    }

    /// Ready with the head once it is past `position` (or the log is closed); otherwise the task is woken then.
    /// Spurious wake-ups are possible; call again.
    pub fn poll_past(&self, position: Position, context: &mut Context<'_>) -> Poll<Position> {
        if self.is_past(position) {
            return Poll::Ready(self.head());
        }
        let mut wakers = lock(&self.shared.wakers);
        // A task that is polled often without the head moving must not pile up.
        if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            if wakers.len() >= WAKERS {
                self.shared.waiting.fetch_sub(wakers.len(), Ordering::SeqCst);
                wakers.drain(..).for_each(Waker::wake);
            }
            wakers.push(context.waker().clone());
            self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        }
        drop(wakers);
        if self.is_past(position) { Poll::Ready(self.head()) } else { Poll::Pending }
    }

    /// Whether the log has been closed: the head will not move again.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;

    /// A waker that is equal to its clones, which the standard no-op one need not be.
    struct Idle;

    impl Wake for Idle {
        fn wake(self: Arc<Self>) {}
    }
    use crate::threads;

    #[test]
    fn a_waiter_sees_the_head_move_and_the_log_close() {
        let feed = Feed::at(3);
        assert_eq!(feed.wait_past(2, Duration::from_secs(9)), 3);
        assert_eq!(feed.wait_past(3, Duration::from_millis(1)), 3);
        let other = feed.clone();
        let thread = threads::spawn("waiter", move || {
            assert_eq!(other.wait_past(3, Duration::from_secs(9)), 4);
            other.wait_past(4, Duration::from_secs(9));
            assert!(other.is_closed());
        });
        feed.publish(4);
        feed.close();
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn a_task_registers_once_and_is_woken_once() {
        let feed = Feed::at(0);
        let waker = Waker::from(Arc::new(Idle));
        let mut context = Context::from_waker(&waker);
        for _ in 0..10 {
            assert_eq!(feed.poll_past(0, &mut context), Poll::Pending);
        }
        assert_eq!(lock(&feed.shared.wakers).len(), 1);
        feed.publish(1);
        assert_eq!(feed.poll_past(0, &mut context), Poll::Ready(1));
        assert_eq!(feed.shared.waiting.load(Ordering::SeqCst), 0);
    }
}
