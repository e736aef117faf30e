//! Waiting for the end of a lease: work that is allowed only while it is held stops then.

use super::{LeaseProof, Leases, State};
use crate::threads::lock;
use crate::waiters::{Rest, Ticket, TooManyWaiters};
use std::task::{Context, Poll};

/// The end of a lease.
#[derive(Debug)]
pub struct LeaseEnd<'a> {
    leases: &'a Leases,
    proof: LeaseProof,
    ticket: Option<Ticket>,
}

impl LeaseEnd<'_> {
    pub(super) fn of(leases: &Leases, proof: LeaseProof) -> LeaseEnd<'_> {
        LeaseEnd { leases, proof, ticket: None }
    }

    /// Ready when [`remaining_us`](Leases::remaining_us) is worth asking again: the lease is no
    /// longer held with the proof's token, or its end has come nearer. Expiry
    /// wakes no waiter, because most leases are renewed before: ask after that time, too.
    ///
    /// # Errors
    /// [`TooManyWaiters`] if [`Leases::MAX_WAITERS`] are waiting. A retry helps once others have
    /// stopped waiting.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Result<(), TooManyWaiters>> {
        let now_us = self.leases.clock.monotonic_us();
        let mut state = lock(&self.leases.state);
        if state.remaining_us(&self.proof, now_us).is_none() {
            return Poll::Ready(Ok(()));
        }
        let State { slots, ends, .. } = &mut *state;
        let mut line = ends.get(&self.proof.lease).copied().unwrap_or_default();
        let mut is_roused = false;
        match &self.ticket {
            Some(ticket) => {
                is_roused = slots.rest(ticket) != Rest::Waiting;
                slots.register(&mut line, ticket, context.waker());
            }
            None => match slots.join(&mut line, context.waker()) {
                Ok(ticket) => self.ticket = Some(ticket),
                Err(refused) => return Poll::Ready(Err(refused)),
            },
        }
        ends.insert(self.proof.lease.clone(), line);
        if is_roused { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Drop for LeaseEnd<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut state = lock(&self.leases.state);
        let State { slots, ends, .. } = &mut *state;
        let mut line = ends.get(&self.proof.lease).copied().unwrap_or_default();
        slots.leave(&mut line, ticket);
        if line.is_empty() {
            ends.remove(&self.proof.lease);
        } else {
            ends.insert(self.proof.lease.clone(), line);
        }
    }
}
