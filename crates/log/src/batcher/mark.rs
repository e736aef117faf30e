//! A moment in the life of all producers, to wait until everything before it is stored.
//!
//! It is kept as a place in each partition that held something unstored then. So
//! what it waits for is what a [`Receipt`](super::Receipt) waits for, in each of
//! them: that the flusher has given back the room, which it does only when the
//! sink has stored what was there. Neither the producers nor the flusher keep
//! anything for it.

use super::PushError;
use super::shared::{Link, Shared};
use crate::waiters::{Ticket, TooManyWaiters};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Why it is not known that everything before a mark is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkError {
    /// The batcher has ended without having stored everything before the mark. A retry does not
    /// help.
    Closed {
        /// Why.
        reason: String,
    },
    /// As many wait as may. A retry helps when others have stopped waiting.
    TooManyWaiters(TooManyWaiters),
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MarkError::Closed { reason } => write!(f, "not everything was stored: {reason}"),
            MarkError::TooManyWaiters(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for MarkError {}

/// A moment: everything pushed to a [`Batcher`](super::Batcher) before it can be waited for with
/// [`stored`](super::Batcher::stored).
#[derive(Debug, Clone)]
pub struct Mark {
    /// Partitions with something unstored, each with the place behind the last of it.
    unstored: Vec<(Arc<Link>, u64)>,
}

impl Mark {
    /// The moment of this call, given every producer that may have something unstored.
    pub(super) fn of(live: &[Arc<Link>]) -> Mark {
        let places = live.iter().map(|link| (link, link.gauge.tail()));
        let unstored = places.filter(|&(link, tail)| link.gauge.released() < tail);
        Mark { unstored: unstored.map(|(link, tail)| (Arc::clone(link), tail)).collect() }
    }

    fn is_stored(&self) -> bool {
        self.unstored.iter().all(|(link, tail)| link.gauge.released() >= *tail)
    }

    /// Whether everything before it is stored, or never will be; `None` while that is open.
    pub(super) fn outcome(&self, shared: &Shared) -> Option<Result<(), MarkError>> {
        // Asked first: what is not stored when the flusher has ended never will be.
        let ended = shared.has_ended();
        if self.is_stored() {
            return Some(Ok(()));
        }
        ended.then(|| {
            let reason = match shared.closed() {
                PushError::Closed { reason } => reason,
                other => other.to_string(),
            };
            Err(MarkError::Closed { reason })
        })
    }
}

/// Waits until everything before a mark is stored: see [`Batcher::stored`](super::Batcher::stored).
/// While the batcher is closing it waits for what becomes of it.
#[derive(Debug)]
pub struct StoredMark {
    shared: Arc<Shared>,
    mark: Mark,
    ticket: Option<Ticket>,
}

impl StoredMark {
    pub(super) fn new(shared: Arc<Shared>, mark: Mark) -> StoredMark {
        StoredMark { shared, mark, ticket: None }
    }
}

impl Future for StoredMark {
    type Output = Result<(), MarkError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let StoredMark { shared, mark, ticket } = self.get_mut();
        if let Some(known) = mark.outcome(shared) {
            return Poll::Ready(known);
        }
        if let Err(refused) = shared.waiters.register(ticket, context.waker()) {
            return Poll::Ready(Err(MarkError::TooManyWaiters(refused)));
        }
        // Registered, then looked at again: no wake-up falls between.
        shared.hurry_unless_full();
        mark.outcome(shared).map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for StoredMark {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.shared.waiters.leave(ticket);
        }
    }
}
