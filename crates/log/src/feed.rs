//! Waiting for the head, or another position that only grows: blocking, or from any async runtime.
//!
//! Waiters are sorted by position: when the head moves, only the waiters whose position it passed
//! are visited.

use crate::threads::{Signal, lock};
use crate::waiters::{Line, Rest, Slots, Ticket, TooManyWaiters, Wakers};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wellspring_types::Position;

/// Announces moves of the head. Clones share one feed.
///
/// [`Log::feed`](crate::Log::feed) returns a log's feed. [`Feed::at`] creates one for another
/// growing position (how far a view has folded, say); "head" is then that position.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    head: AtomicU64,
    closed: AtomicBool,
    /// Number of waiters; the publisher takes the lock only if it is not zero.
    waiting: AtomicUsize,
    waiters: Mutex<Waiters>,
}

#[derive(Debug)]
struct Waiters {
    slots: Slots,
    /// Waiters by the position that must be passed. No line is empty.
    lines: BTreeMap<Position, Line>,
}

impl Default for Waiters {
    fn default() -> Waiters {
        Waiters { slots: Slots::bounded(Feed::MAX_WAITERS), lines: BTreeMap::new() }
    }
}

/// The waiters to wake.
#[derive(Debug, Clone, Copy)]
enum WakeTarget {
    /// Those for positions before this one.
    Before(Position),
    /// All waiters.
    Any,
}

impl WakeTarget {
    fn includes(self, position: Position) -> bool {
        match self {
            WakeTarget::Before(head) => position < head,
            WakeTarget::Any => true,
        }
    }
}

impl Feed {
    /// Maximum number of waiting tasks; threads are not counted.
    pub const MAX_WAITERS: usize = 1 << 16;

    /// A feed at `position` that moves when [`publish`](Self::publish) is called.
    #[must_use]
    pub fn at(position: Position) -> Feed {
        let feed = Feed::default();
        feed.shared.head.store(position, Ordering::SeqCst);
        feed
    }

    /// The head: the last published position, 0 if the log is empty.
    #[must_use]
    pub fn head(&self) -> Position {
        self.shared.head.load(Ordering::Acquire)
    }

    /// Moves the head and wakes the waiters whose position it passed; a lower head has no effect.
    /// Everything that readers may access up to the head must be in place: writes before this call
    /// are visible to every thread that sees the head.
    ///
    /// Only the log moves its own feed.
    pub fn publish(&self, head: Position) {
        self.advance(head);
        self.wake_passed();
    }

    /// The first half of [`publish`](Self::publish). It wakes no waiter, so it may be called with a
    /// lock held.
    pub(crate) fn advance(&self, head: Position) {
        // Sequentially consistent with `waiting`: either the publisher sees the waiter, or the
        // waiter (which registers, then checks again) sees the head.
        self.shared.head.fetch_max(head, Ordering::SeqCst);
    }

    /// The second half of [`publish`](Self::publish).
    pub(crate) fn wake_passed(&self) {
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            self.wake(WakeTarget::Before(self.shared.head.load(Ordering::SeqCst)));
        }
    }

    /// Declares that the head will not move again, and wakes all waiters. To be called after the
    /// last [`publish`](Self::publish).
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.rouse();
    }

    /// Ends every wait without moving the head, so that all waiters check their other conditions.
    pub fn rouse(&self) {
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            self.wake(WakeTarget::Any);
        }
    }

    /// Wakes outside the lock.
    #[cold]
    fn wake(&self, awaited: WakeTarget) {
        let mut wakers = match awaited {
            // In batches, so that a waiter registering meanwhile does not wait long for the lock.
            // This terminates: a waiter that registers for one of these positions now sees that the
            // head has passed it.
            WakeTarget::Before(_) => Wakers::default(),
            // All at once: woken waiters may register again for the same position.
            WakeTarget::Any => Wakers::unbounded(),
        };
        loop {
            let mut waiters = lock(&self.shared.waiters);
            let Waiters { slots, lines } = &mut *waiters;
            while wakers.has_room()
                && let Some(mut line) = lines.first_entry().filter(|l| awaited.includes(*l.key()))
            {
                slots.rouse(line.get_mut(), 0, &mut wakers);
                if line.get().is_empty() {
                    line.remove();
                }
            }
            self.shared.waiting.fetch_sub(wakers.len(), Ordering::SeqCst);
            drop(waiters);
            let more = !wakers.has_room();
            wakers.wake();
            if !more {
                return;
            }
        }
    }

    fn is_past(&self, position: Position) -> bool {
        self.shared.head.load(Ordering::SeqCst) > position
            || self.shared.closed.load(Ordering::SeqCst)
    }

    /// Waits until the head passes `position`, the log closes, all waiters are
    /// [roused](Self::rouse), or `timeout` passes; returns the head.
    pub fn wait_past(&self, position: Position, timeout: Duration) -> Position {
        if self.is_past(position) || timeout.is_zero() {
            return self.head();
        }
        let mut place = self.past(position);
        Signal::wait(timeout, |waker| {
            let looked_again = place.look(waker, Wait::Thread);
            !matches!(looked_again, Ok(Poll::Pending))
        });
        self.head()
    }

    /// A future that returns the head once it has passed `position`, the log is closed, or all
    /// waiters are [roused](Self::rouse). It waits from its first poll until it is dropped.
    #[must_use]
    pub fn past(&self, position: Position) -> Past {
        Past { feed: self.clone(), position, ticket: None }
    }

    /// Whether the log has been closed, so that the head will not move again.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst)
    }
}

/// The state of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Task,
    Thread,
}

/// A registration that waits for the head to pass a position: see [`Feed::past`].
///
/// As a future it returns the head, or [`TooManyWaiters`] if [`Feed::MAX_WAITERS`] are waiting; a
/// retry helps once others have stopped waiting.
#[derive(Debug)]
pub struct Past {
    feed: Feed,
    position: Position,
    ticket: Option<Ticket>,
}

impl Past {
    fn look(&mut self, waker: &Waker, wait: Wait) -> Result<Poll<Position>, TooManyWaiters> {
        let shared = &self.feed.shared;
        if !self.feed.is_past(self.position) {
            let mut waiters = lock(&shared.waiters);
            let Waiters { slots, lines } = &mut *waiters;
            match &self.ticket {
                // Roused for another reason than the head: the caller checks.
                Some(ticket) if slots.rest(ticket) != Rest::Waiting => {
                    return Ok(Poll::Ready(self.feed.head()));
                }
                Some(ticket) => {
                    let line = lines.get_mut(&self.position).expect("it holds this waiter");
                    slots.register(line, ticket, waker);
                }
                None => {
                    let line = lines.entry(self.position).or_default();
                    let joined = match wait {
                        Wait::Task => slots.join(line, waker),
                        Wait::Thread => Ok(slots.join_regardless(line, waker)),
                    };
                    if line.is_empty() {
                        lines.remove(&self.position);
                    }
                    self.ticket = Some(joined?);
                    shared.waiting.fetch_add(1, Ordering::SeqCst);
                }
            }
            drop(waiters);
            // Checked again after registering, so no move of the head is missed.
            if !self.feed.is_past(self.position) {
                return Ok(Poll::Pending);
            }
        }
        Ok(Poll::Ready(self.feed.head()))
    }
}

impl Future for Past {
    type Output = Result<Position, TooManyWaiters>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.look(context.waker(), Wait::Task) {
            Ok(looked) => looked.map(Ok),
            Err(refused) => Poll::Ready(Err(refused)),
        }
    }
}

impl Drop for Past {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let shared = &self.feed.shared;
        let mut waiters = lock(&shared.waiters);
        let Waiters { slots, lines } = &mut *waiters;
        if slots.rest(&ticket) == Rest::Waiting {
            shared.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        // A roused slot has left its line, and gets no new one.
        let mut none = Line::EMPTY;
        let line = lines.get_mut(&self.position).unwrap_or(&mut none);
        slots.leave(line, ticket);
        if line.is_empty() {
            lines.remove(&self.position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads;
    use std::task::Wake;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl WakeCounter {
        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn poll(past: &mut Past, waker: &Waker) -> Poll<Result<Position, TooManyWaiters>> {
        Pin::new(past).poll(&mut Context::from_waker(waker))
    }

    fn lines(feed: &Feed) -> usize {
        lock(&feed.shared.waiters).lines.len()
    }

    fn slots(feed: &Feed) -> usize {
        lock(&feed.shared.waiters).slots.taken()
    }

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
        assert_eq!((lines(&feed), slots(&feed)), (0, 0));
    }

    #[test]
    fn a_lower_head_changes_nothing() {
        let feed = Feed::at(0);
        feed.publish(9);
        feed.publish(4);
        assert_eq!(feed.head(), 9);
    }

    #[test]
    fn a_task_registers_once_is_woken_once_and_leaves_nothing() {
        let feed = Feed::at(0);
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut past = feed.past(0);
        for _ in 0..10 {
            assert_eq!(poll(&mut past, &waker), Poll::Pending);
        }
        assert_eq!((slots(&feed), feed.shared.waiting.load(Ordering::SeqCst)), (1, 1));
        feed.publish(1);
        feed.publish(2);
        assert_eq!(count.count(), 1);
        assert_eq!(poll(&mut past, &waker), Poll::Ready(Ok(2)));
        drop(past);
        let mut given_up = feed.past(2);
        assert_eq!(poll(&mut given_up, &waker), Poll::Pending);
        drop(given_up);
        feed.publish(3);
        assert_eq!(count.count(), 1);
        assert_eq!((slots(&feed), feed.shared.waiting.load(Ordering::SeqCst)), (0, 0));
        assert_eq!(lines(&feed), 0);
    }

    #[test]
    fn more_waiters_than_a_fixed_number_do_not_wake_each_other() {
        let feed = Feed::at(0);
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut all: Vec<_> = (0..20_000).map(|_| feed.past(0)).collect();
        for _ in 0..3 {
            assert!(all.iter_mut().all(|past| poll(past, &waker).is_pending()));
        }
        assert_eq!((count.count(), slots(&feed)), (0, 20_000));
        feed.publish(1);
        assert_eq!(count.count(), 20_000);
        drop(all);
        assert_eq!(slots(&feed), 0);
    }

    #[test]
    fn a_move_of_the_head_wakes_those_alone_whose_position_it_passes() {
        let feed = Feed::at(0);
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut far: Vec<_> = (0..20_000u64).map(|n| feed.past(1_000 + n % 7)).collect();
        assert!(far.iter_mut().all(|past| poll(past, &waker).is_pending()));
        for head in 1..=1_000 {
            feed.publish(head);
        }
        assert_eq!(count.count(), 0);
        feed.publish(1_003);
        assert_eq!(count.count(), (0..20_000u64).filter(|n| n % 7 < 3).count());
        feed.close();
        assert_eq!(count.count(), 20_000);
    }

    #[test]
    fn over_the_bound_a_waiter_is_refused_and_a_thread_is_not() {
        let feed = Feed::at(0);
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut all: Vec<_> = (0..Feed::MAX_WAITERS).map(|_| feed.past(0)).collect();
        assert!(all.iter_mut().all(|past| poll(past, &waker).is_pending()));
        let refused = TooManyWaiters { limit: Feed::MAX_WAITERS };
        for _ in 0..3 {
            assert_eq!(poll(&mut feed.past(0), &waker), Poll::Ready(Err(refused)));
            assert_eq!(poll(&mut feed.past(5), &waker), Poll::Ready(Err(refused)));
        }
        assert_eq!(feed.wait_past(0, Duration::from_millis(1)), 0);
        assert_eq!((count.count(), lines(&feed)), (0, 1));
        drop(all.pop());
        assert!(poll(&mut feed.past(0), &waker).is_pending());
    }

    #[test]
    fn rousing_wakes_everyone_and_moves_nothing() {
        let feed = Feed::at(4);
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut past = feed.past(9);
        assert!(poll(&mut past, &waker).is_pending());
        feed.rouse();
        assert_eq!((count.count(), feed.head()), (1, 4));
        assert_eq!(poll(&mut past, &waker), Poll::Ready(Ok(4)));
        let mut again = feed.past(9);
        assert!(poll(&mut again, &waker).is_pending());
        feed.publish(10);
        assert_eq!((count.count(), poll(&mut again, &waker)), (2, Poll::Ready(Ok(10))));
    }

    /// Two threads wait for each other's moves: one lost wake-up stops both.
    #[test]
    fn no_wake_up_is_lost_between_a_publisher_and_a_waiter() {
        const ROUNDS: u64 = 20_000;
        let (here, there) = (Feed::at(0), Feed::at(0));
        let (its_own, its_others) = (there.clone(), here.clone());
        let thread = threads::spawn("waiter", move || {
            for round in 1..=ROUNDS {
                assert!(its_others.wait_past(round - 1, Duration::from_secs(20)) >= round);
                its_own.publish(round);
            }
        });
        for round in 1..=ROUNDS {
            here.publish(round);
            assert!(there.wait_past(round - 1, Duration::from_secs(20)) >= round, "{round}");
        }
        thread.unwrap().join().unwrap();
    }
}
