//! Waiting until a view is fresh enough.

use super::{Live, Progress, State, lock};
use crate::view::contract::View;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use wellspring_log::TooManyWaiters;
use wellspring_log::batcher::{Batcher, MarkError};
use wellspring_types::Position;

/// When a waiter for a durable event checks whether it could fold that itself, at first, and later
/// on.
const LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(64);

/// Why a view is not fresh enough.
#[derive(Debug)]
pub enum NotFresh {
    /// It is being rebuilt. A retry helps once it is ready.
    Rebuilding(Progress),
    /// It did not get there in time. A retry may help.
    NotYet(Progress),
    /// The log cannot be read. A retry does not help before that is repaired.
    Failed(String),
    /// Accepted events were not stored in time: the device is full, or slow. A retry may help.
    NotStored,
    /// The limit of waiters is reached. A retry helps when others have stopped waiting.
    TooManyWaiters(TooManyWaiters),
    /// The log was closed or dropped before the view got there. A retry may find another log.
    Closed,
}

impl fmt::Display for NotFresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotFresh::Rebuilding(Progress { position, head, .. }) => {
                write!(f, "the view is being rebuilt: {position} of {head} events")
            }
            NotFresh::NotYet(Progress { position, head, .. }) => {
                write!(f, "the view has not reached that position yet: {position} of {head} events")
            }
            NotFresh::Failed(reason) => write!(f, "the view has stopped: {reason}"),
            NotFresh::Closed => write!(f, "the log of the view is closed"),
            NotFresh::TooManyWaiters(refused) => refused.fmt(f),
            NotFresh::NotStored => write!(f, "accepted events are not stored yet"),
        }
    }
}

impl<V: View> Live<V> {
    /// Waits until everything up to `position` is folded and the view is ready.
    ///
    /// # Errors
    /// [`NotFresh`] after `timeout`, or at once if waiting is pointless.
    pub async fn caught_up(
        &self,
        position: Position,
        timeout: Duration,
    ) -> Result<&V::Folded, NotFresh> {
        let waited = tokio::time::timeout(timeout, self.get_there(position)).await;
        waited.unwrap_or_else(|_| {
            let progress = self.progress();
            Err(match progress.state {
                State::Rebuilding => NotFresh::Rebuilding(progress),
                State::Live | State::Failed => NotFresh::NotYet(progress),
            })
        })
    }

    /// Blocks until it is ready. For the start, before any client is served.
    ///
    /// # Errors
    /// [`NotFresh`]: it never will.
    pub(crate) fn wait_live(&self) -> Result<Arc<V::Folded>, NotFresh> {
        loop {
            let hopeless = self.hopeless();
            self.fold_here();
            if let Some(folded) = self.shared() {
                return Ok(folded);
            }
            if let Some(reason) = hopeless {
                return Err(reason);
            }
            self.position.wait_past(self.position(), LOOK);
        }
    }

    /// Why it has stopped, if so. Check this before its position: a fold is stopped after its last
    /// event.
    pub(super) fn hopeless(&self) -> Option<NotFresh> {
        if let Some(reason) = &*lock(&self.fault) {
            return Some(NotFresh::Failed(reason.clone()));
        }
        self.is_closed().then_some(NotFresh::Closed)
    }

    async fn get_there(&self, position: Position) -> Result<&V::Folded, NotFresh> {
        let is_shown = || self.folded().filter(|_| self.position() >= position);
        let mut look = LOOK;
        loop {
            // Most positions are folded already or can be folded here, without waiting.
            if self.folded().is_some() && self.position() < position {
                self.fold_here();
            }
            if let Some(folded) = is_shown() {
                return Ok(folded);
            }
            // If the position is folded, only the end of the start is awaited, which wakes every
            // waiter.
            let is_there = self.position() >= position;
            let awaited = if is_there { Position::MAX } else { position - 1 };
            let mut moved = pin!(self.position.past(awaited));
            // Registered first, then checked: no change is missed.
            if let Poll::Ready(Err(refused)) =
                poll_fn(|context| Poll::Ready(moved.as_mut().poll(context))).await
            {
                return Err(NotFresh::TooManyWaiters(refused));
            }
            let hopeless = self.hopeless();
            if let Some(folded) = is_shown() {
                return Ok(folded);
            }
            // A closed feed is always ready: without this, nothing below would wait.
            if let Some(reason) = hopeless {
                return Err(reason);
            }
            if self.folded().is_none() {
                self.nudge();
                let _ = moved.await;
            } else {
                // Another thread folds, perhaps not far enough; or the view's own is writing a
                // snapshot.
                let _ = tokio::time::timeout(look, moved).await;
                look = (look * 2).min(LONGEST_LOOK);
            }
        }
    }
}

/// Waits until everything that a batcher has accepted so far is stored, and the head has moved past
/// it.
///
/// # Errors
/// [`NotFresh::NotStored`] after `timeout`, [`NotFresh::TooManyWaiters`].
pub async fn all_stored(batcher: &Batcher, timeout: Duration) -> Result<(), NotFresh> {
    match tokio::time::timeout(timeout, batcher.stored(batcher.mark())).await {
        Ok(Ok(())) => Ok(()),
        // What a closed batcher could not store is lost, and counts as never accepted.
        Ok(Err(MarkError::Closed { .. })) => Ok(()),
        Ok(Err(MarkError::TooManyWaiters(refused))) => Err(NotFresh::TooManyWaiters(refused)),
        Err(_) => Err(NotFresh::NotStored),
    }
}
