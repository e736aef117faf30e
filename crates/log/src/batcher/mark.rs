//! A point in time across all producers, for waiting until everything before it is stored.
//!
//! It consists of a place in each partition that held something unstored at that time. It waits for
//! the same condition as a [`Receipt`](super::Receipt), in each of these partitions: that the
//! flusher has released the room, which happens only once the sink has stored the content. Neither
//! producers nor flusher keep any state for it.

use super::PushError;
use super::shared::{Link, Shared};
use crate::waiters::{Ticket, TooManyWaiters};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Why it is unknown whether everything before a mark is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkError {
    /// The batcher has ended without storing everything before the mark. A retry does not help.
    Closed {
        /// The reason.
        reason: String,
    },
    /// The maximum number of waiters is reached. A retry helps once others have stopped waiting.
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

/// A point in time; [`stored`](super::Batcher::stored) waits for everything pushed to a
/// [`Batcher`](super::Batcher) before it.
#[derive(Debug, Clone)]
pub struct Mark {
    /// Partitions with unstored content, each with the place after it.
    unstored: Vec<(Arc<Link>, u64)>,
}

impl Mark {
    /// The current time, given every producer that may have unstored content.
    pub(super) fn of(live: &[Arc<Link>]) -> Mark {
        let places = live.iter().map(|link| (link, link.gauge.tail()));
        let unstored = places.filter(|&(link, tail)| link.gauge.released() < tail);
        Mark { unstored: unstored.map(|(link, tail)| (Arc::clone(link), tail)).collect() }
    }

    fn is_stored(&self) -> bool {
        self.unstored.iter().all(|(link, tail)| link.gauge.released() >= *tail)
    }

    /// Whether everything before it is stored, or never will be; `None` while that is undecided.
    pub(super) fn outcome(&self, shared: &Shared) -> Option<Result<(), MarkError>> {
        // Checked first: content that is not stored when the flusher has ended never will be.
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

/// A future that waits until everything before a mark is stored: see
/// [`Batcher::stored`](super::Batcher::stored). While the batcher is closing, it waits for the
/// outcome.
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
        // Checked again after registering, so no wake-up is missed.
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
