//! The line of waiters for a lease.

use super::{Leases, State};
use crate::threads::lock;
use crate::waiters::{Ticket, TooManyWaiters};
use std::task::{Context, Poll, Waker};

/// A waiter's place in the line for a lease.
///
/// Only the first waiter in line is woken: when the lease is released, and when it becomes the
/// first. It must also check when the holder's lease expires. However many others wait, a release,
/// a renewal and an expiry each cost one wake-up.
#[derive(Debug)]
pub struct LeaseLine<'a> {
    leases: &'a Leases,
    name: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Outside,
    Behind(Ticket),
    /// It is the first and has been notified.
    First(Ticket),
}

impl LeaseLine<'_> {
    pub(super) fn of<'a>(leases: &'a Leases, name: &str) -> LeaseLine<'a> {
        LeaseLine { leases, name: name.to_owned(), place: Place::Outside }
    }

    /// Ready when [`Leases::acquire`] is worth trying: the lease is free, or this waiter has just
    /// become the first and so does not know when the holder's lease expires. Spurious wake-ups are
    /// possible.
    ///
    /// # Errors
    /// [`TooManyWaiters`] if [`Leases::MAX_WAITERS`] are waiting. A retry helps once others have
    /// stopped waiting.
    pub fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TooManyWaiters>> {
        let now_us = self.leases.clock.monotonic_us();
        let mut state = lock(&self.leases.state);
        if state.held.get(&self.name).is_none_or(|held| held.lease.expires_us <= now_us) {
            return Poll::Ready(Ok(()));
        }
        let State { slots, lines, .. } = &mut *state;
        match &self.place {
            Place::Outside => {
                let mut line = lines.get(&self.name).copied().unwrap_or_default();
                match slots.join(&mut line, context.waker()) {
                    Ok(ticket) => self.place = Place::Behind(ticket),
                    Err(refused) => return Poll::Ready(Err(refused)),
                }
                lines.insert(self.name.clone(), line);
            }
            Place::Behind(ticket) | Place::First(ticket) => {
                let line = lines.get_mut(&self.name).expect("it holds this waiter");
                slots.register(line, ticket, context.waker());
            }
        }
        let line = lines.get(&self.name).expect("it holds this waiter");
        self.place = match std::mem::replace(&mut self.place, Place::Outside) {
            Place::Behind(ticket) if line.begins_with(&ticket) => {
                self.place = Place::First(ticket);
                return Poll::Ready(Ok(()));
            }
            place => place,
        };
        Poll::Pending
    }

    /// Whether this waiter has been notified that it is the first, and so must check when the
    /// holder's lease expires.
    #[must_use]
    pub fn is_first(&self) -> bool {
        matches!(self.place, Place::First(_))
    }
}

impl Drop for LeaseLine<'_> {
    fn drop(&mut self) {
        let (Place::Behind(ticket) | Place::First(ticket)) =
            std::mem::replace(&mut self.place, Place::Outside)
        else {
            return;
        };
        let mut state = lock(&self.leases.state);
        let State { slots, lines, .. } = &mut *state;
        let line = lines.get_mut(&self.name).expect("it holds this waiter");
        // Includes a waiter that was woken and gave up before it checked: the next one checks in
        // its place.
        let was_first = line.begins_with(&ticket);
        slots.leave(line, ticket);
        if line.is_empty() {
            lines.remove(&self.name);
        }
        let next = if was_first { state.first_of(&self.name) } else { None };
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }
}
