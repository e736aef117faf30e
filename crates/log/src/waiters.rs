//! The common registry of waiters: tasks and threads that sleep until an event occurs.
//!
//! A **slot** belongs to one waiter from [`join`](Slots::join) to [`leave`](Slots::leave), and only
//! its owner frees it, so a slot's number alone names it. Slots wait in **lines**: doubly linked
//! lists, one for each awaited event. The structure that holds the lines knows what they wait for
//! (a position, the name of a lease, a tag), this one does not: the feed, the leases, the batcher
//! and the interests of subscriptions each organize their lines in their own way.
//!
//! Joining, leaving and registering a new waker take constant time. The registry is bounded: a
//! waiter beyond the bound is refused, and none is woken to make room for another.
//!
//! The registry itself wakes no waiter. [`rouse`](Slots::rouse) returns the wakers; the caller
//! releases its locks and then calls [`Wakers::wake`].

use std::fmt;
use std::task::Waker;

/// The maximum number of waiters is reached. A retry helps once others have stopped waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyWaiters {
    /// The maximum number of waiters.
    pub limit: usize,
}

impl fmt::Display for TooManyWaiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the limit of {} waiting requests is reached", self.limit)
    }
}

impl std::error::Error for TooManyWaiters {}

/// No slot.
const NONE: u32 = u32::MAX;

/// Maximum number of wakers collected under one lock acquisition.
pub(crate) const ROUSED_AT_ONCE: usize = 512;

/// A waiter's slot; returned by [`Slots::leave`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

/// Waiters for one event, in joining order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    first: u32,
    last: u32,
}

impl Line {
    pub(crate) const EMPTY: Line = Line { first: NONE, last: NONE };

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Whether the waiter is the first.
    pub(crate) fn begins_with(&self, ticket: &Ticket) -> bool {
        self.first == ticket.0
    }
}

impl Default for Line {
    fn default() -> Line {
        Line::EMPTY
    }
}

/// Whether a waiter has been roused since it last registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Waiting,
    /// It was roused, with this note.
    Roused(u64),
}

/// The state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    InLine,
    /// It left its line, with the note it was roused with.
    Roused(u64),
}

#[derive(Debug)]
struct Slot {
    state: State,
    waker: Option<Waker>,
    previous: u32,
    next: u32,
}

/// The slots of one registry.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    bound: usize,
}

impl Slots {
    /// An empty registry with at most `bound` waiters that [`join`](Self::join).
    pub(crate) fn bounded(bound: usize) -> Slots {
        assert!(bound < NONE as usize / 2, "slots are numbered in 32 bits");
        Slots { slots: Vec::new(), free: Vec::new(), bound }
    }

    /// Number of slots in use.
    pub(crate) fn taken(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many more may join.
    pub(crate) fn room(&self) -> usize {
        self.bound.saturating_sub(self.taken())
    }

    /// Joins the end of a line.
    ///
    /// # Errors
    /// [`TooManyWaiters`] at the bound.
    pub(crate) fn join(
        &mut self,
        line: &mut Line,
        waker: &Waker,
    ) -> Result<Ticket, TooManyWaiters> {
        if self.room() == 0 {
            return Err(TooManyWaiters { limit: self.bound });
        }
        Ok(self.join_regardless(line, waker))
    }

    /// As [`join`](Self::join), for a thread: threads cost far more than a slot and are bounded
    /// elsewhere.
    pub(crate) fn join_regardless(&mut self, line: &mut Line, waker: &Waker) -> Ticket {
        let number = self.free.pop().unwrap_or_else(|| {
            let slot = Slot { state: State::Free, waker: None, previous: NONE, next: NONE };
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        });
        assert!(number != NONE, "slots are numbered in 32 bits");
        let slot = &mut self.slots[number as usize];
        assert!(slot.state == State::Free, "a slot has one owner");
        slot.waker = Some(waker.clone());
        self.append(line, number);
        Ticket(number)
    }

    fn append(&mut self, line: &mut Line, number: u32) {
        let slot = &mut self.slots[number as usize];
        (slot.state, slot.previous, slot.next) = (State::InLine, line.last, NONE);
        match line.last {
            NONE => line.first = number,
            last => self.slots[last as usize].next = number,
        }
        line.last = number;
    }

    /// Registers a waiter's new waker; a roused waiter joins the end of the line again.
    pub(crate) fn register(&mut self, line: &mut Line, ticket: &Ticket, waker: &Waker) {
        let slot = &mut self.slots[ticket.0 as usize];
        if !slot.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            slot.waker = Some(waker.clone());
        }
        match slot.state {
            State::InLine => {}
            State::Roused(_) => self.append(line, ticket.0),
            State::Free => panic!("a ticket outlived its slot"),
        }
    }

    /// Whether a waiter has been roused since it registered.
    pub(crate) fn rest(&self, ticket: &Ticket) -> Rest {
        match self.slots[ticket.0 as usize].state {
            State::InLine => Rest::Waiting,
            State::Roused(note) => Rest::Roused(note),
            State::Free => panic!("a ticket outlived its slot"),
        }
    }

    /// Frees a slot. `line` is the line that it joined, even if it has left that since.
    pub(crate) fn leave(&mut self, line: &mut Line, ticket: Ticket) {
        let number = ticket.0;
        let slot = &self.slots[number as usize];
        assert!(slot.state != State::Free, "a slot is given back once");
        if slot.state == State::InLine {
            self.unlink(line, number);
        }
        let slot = &mut self.slots[number as usize];
        (slot.state, slot.waker) = (State::Free, None);
        self.free.push(number);
        // Memory used by a crowd of waiters is released after it has gone.
        if self.taken() == 0 && self.slots.len() > ROUSED_AT_ONCE {
            *self = Slots::bounded(self.bound);
        }
    }

    fn unlink(&mut self, line: &mut Line, number: u32) {
        let Slot { previous, next, .. } = self.slots[number as usize];
        match previous {
            NONE => line.first = next,
            previous => self.slots[previous as usize].next = next,
        }
        match next {
            NONE => line.last = previous,
            next => self.slots[next as usize].previous = previous,
        }
    }

    /// Removes waiters from the front of a line until it is empty or `wakers` is full. Each gets
    /// `note`.
    pub(crate) fn rouse(&mut self, line: &mut Line, note: u64, wakers: &mut Wakers) {
        while !line.is_empty() && wakers.has_room() {
            let number = line.first;
            self.unlink(line, number);
            let slot = &mut self.slots[number as usize];
            slot.state = State::Roused(note);
            wakers.wakers.extend(slot.waker.take());
        }
    }

    /// A waker of the first waiter in a line, which keeps its place.
    pub(crate) fn first(&self, line: &Line) -> Option<Waker> {
        match line.first {
            NONE => None,
            first => self.slots[first as usize].waker.clone(),
        }
    }
}

/// Wakers to be called after the lock is released.
#[derive(Debug)]
pub(crate) struct Wakers {
    wakers: Vec<Waker>,
    room: usize,
}

impl Default for Wakers {
    /// With room for the maximum under one lock acquisition.
    fn default() -> Wakers {
        Wakers { wakers: Vec::new(), room: ROUSED_AT_ONCE }
    }
}

impl Wakers {
    /// With unlimited room.
    pub(crate) fn unbounded() -> Wakers {
        Wakers { wakers: Vec::new(), room: usize::MAX }
    }

    pub(crate) fn len(&self) -> usize {
        self.wakers.len()
    }

    /// Whether more fit under one lock acquisition.
    pub(crate) fn has_room(&self) -> bool {
        self.wakers.len() < self.room
    }

    /// To be called later, with others.
    pub(crate) fn into_vec(self) -> Vec<Waker> {
        self.wakers
    }

    /// Calls them all; must be called without a lock held.
    pub(crate) fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl std::task::Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn waker() -> (Arc<WakeCounter>, Waker) {
        let counting = Arc::new(WakeCounter::default());
        (Arc::clone(&counting), counting.into())
    }

    #[test]
    fn a_waiter_that_leaves_is_not_woken_and_the_others_keep_their_order() {
        let (mut slots, mut line) = (Slots::bounded(9), Line::EMPTY);
        let woken: Vec<_> = (0..5).map(|_| waker()).collect();
        let mut tickets: Vec<_> =
            woken.iter().map(|(_, waker)| Some(slots.join(&mut line, waker).unwrap())).collect();
        for gone in [4, 0, 2] {
            slots.leave(&mut line, tickets[gone].take().unwrap());
        }
        assert!(line.begins_with(tickets[1].as_ref().unwrap()));
        let mut wakers = Wakers::default();
        slots.rouse(&mut line, 7, &mut wakers);
        assert!(line.is_empty());
        wakers.wake();
        let counts: Vec<_> =
            woken.iter().map(|(count, _)| count.0.load(Ordering::SeqCst)).collect();
        assert_eq!(counts, [0, 1, 0, 1, 0]);
        assert_eq!(slots.rest(tickets[3].as_ref().unwrap()), Rest::Roused(7));
        slots.register(&mut line, tickets[3].as_ref().unwrap(), &woken[3].1);
        assert_eq!(slots.rest(tickets[3].as_ref().unwrap()), Rest::Waiting);
        for ticket in tickets.into_iter().flatten() {
            slots.leave(&mut line, ticket);
        }
        assert!(line.is_empty() && slots.taken() == 0);
    }

    #[test]
    fn over_the_bound_a_waiter_is_refused_and_nobody_is_woken() {
        let (mut slots, mut line) = (Slots::bounded(2), Line::EMPTY);
        let (count, waker) = waker();
        let first = slots.join(&mut line, &waker).unwrap();
        slots.join(&mut line, &waker).unwrap();
        for _ in 0..10 {
            assert_eq!(slots.join(&mut line, &waker), Err(TooManyWaiters { limit: 2 }));
        }
        slots.register(&mut line, &first, &waker);
        assert_eq!((slots.taken(), count.0.load(Ordering::SeqCst)), (2, 0));
        slots.leave(&mut line, first);
        assert!(slots.join(&mut line, &waker).is_ok());
    }

    #[test]
    fn a_crowd_is_roused_in_pieces_and_leaves_no_memory_behind() {
        let (mut slots, mut line) = (Slots::bounded(20_000), Line::EMPTY);
        let (count, waker) = waker();
        let tickets: Vec<_> =
            (0..2 * ROUSED_AT_ONCE).map(|_| slots.join(&mut line, &waker).unwrap()).collect();
        let mut wakers = Wakers::default();
        for piece in 1..=2 {
            slots.rouse(&mut line, 0, &mut wakers);
            wakers.wake();
            assert_eq!(count.0.load(Ordering::SeqCst), piece * ROUSED_AT_ONCE);
        }
        for ticket in tickets {
            slots.leave(&mut line, ticket);
        }
        assert_eq!(slots.slots.len(), 0);
    }
}
