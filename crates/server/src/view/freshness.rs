//! Waiting until a view shows what it must.

use super::{Live, Progress, State, lock};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::batcher::{Batcher, PushError};
use wellspring_types::Position;
use wellspring_views::view::View;

/// How often who waits looks whether he could fold himself.
const LOOK: Duration = Duration::from_millis(2);

/// Why a view does not show what it should.
#[derive(Debug)]
pub(crate) enum NotFresh {
    /// It is being rebuilt. A retry helps once it is there.
    Rebuilding(Progress),
    /// It did not get there in time. A retry may help.
    NotYet(Progress),
    /// The log cannot be read. A retry does not help before that is mended.
    Failed(String),
    /// What was accepted is not stored in time: the device is full, or slow. A retry may help.
    NotStored,
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
                write!(f, "the view has not got there yet: {position} of {head} events")
            }
            NotFresh::Failed(reason) => write!(f, "the view cannot go on: {reason}"),
            NotFresh::Closed => write!(f, "the log of the view is closed"),
            NotFresh::NotStored => write!(f, "what was accepted is not stored yet"),
        }
    }
}

impl<V: View> Live<V> {
    /// Waits until everything up to `position` is folded and the view answers.
    ///
    /// # Errors
    /// [`NotFresh`] after `timeout`, or at once if waiting does not help.
    pub(crate) async fn caught_up(
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

    /// Blocks until it answers. For the start, before anybody is served.
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

    /// Why it goes no further, if so. To be asked before its position: who ends it has folded what there
    /// was.
    pub(super) fn hopeless(&self) -> Option<NotFresh> {
        if let Some(reason) = &*lock(&self.fault) {
            return Some(NotFresh::Failed(reason.clone()));
        }
        self.is_closed().then_some(NotFresh::Closed)
    }

    async fn get_there(&self, position: Position) -> Result<&V::Folded, NotFresh> {
        loop {
            let hopeless = self.hopeless();
            let seen = self.position();
            if seen >= position
                && let Some(folded) = self.folded()
            {
                return Ok(folded);
            }
            // A closed feed is always ready: without this nothing below would wait.
            if let Some(reason) = hopeless {
                return Err(reason);
            }
            self.fold_here();
            if self.position() < position || self.folded().is_none() {
                let moved = poll_fn(|context| self.position.poll_past(seen, context));
                let _ = tokio::time::timeout(LOOK, moved).await;
            }
        }
    }
}

/// Waits until everything a batcher has accepted so far is stored, and the head has moved past it.
///
/// # Errors
/// [`NotFresh::NotStored`] after `timeout`, or if it never will be.
pub(crate) async fn all_stored(batcher: &Batcher, timeout: Duration) -> Result<(), NotFresh> {
    let mark = batcher.mark();
    let stored = poll_fn(|context| batcher.poll_stored(&mark, context));
    match tokio::time::timeout(timeout, stored).await {
        Ok(Ok(())) => Ok(()),
        // What a closed batcher could not store is lost, and counts as never accepted.
        Ok(Err(PushError::Closed { .. })) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(NotFresh::NotStored),
    }
}
