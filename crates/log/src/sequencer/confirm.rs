//! Confirms the end of the log, which is the first step of a linearizable read.

use super::Sequencer;
use crate::error::NotConfirmed;
use crate::plants::{Plant, planted};
use crate::role::Role;
use crate::threads::lock;
use crate::waiters::TooManyWaiters;
use wellspring_types::Position;

impl Sequencer {
    /// The head, once it covers everything reported durable to any client before this was first
    /// polled.
    ///
    /// # Errors
    /// [`NotConfirmed`].
    pub(crate) async fn confirmed(&self) -> Result<Position, NotConfirmed> {
        let Some(confirmations) = &self.confirmations else { return self.confirmed_head() };
        if planted(Plant::StaleEnd) {
            return Ok(self.feed.head());
        }
        let round = confirmations.join();
        self.commit_elsewhere();
        let end = round.answer().await?;
        let unreachable =
            |refused: TooManyWaiters| NotConfirmed::Unreachable { reason: refused.to_string() };
        while self.places.head() < end.0 {
            if let Role::Detached { reason } = self.role() {
                return Err(NotConfirmed::Detached { reason });
            }
            if let Some(reason) = self.closed_reason() {
                return Err(NotConfirmed::Closed { reason });
            }
            self.places.past(end.0 - 1).await.map_err(unreachable)?;
        }
        Ok(self.feed.head())
    }

    /// The head, if positions are still assigned here. It covers everything reported durable to any
    /// client before this call.
    ///
    /// # Errors
    /// [`NotConfirmed`].
    fn confirmed_head(&self) -> Result<Position, NotConfirmed> {
        // Checked before reading the head: a process that has taken the folder since can only add
        // later events.
        let folder = self.storage.still_locked();
        // Under the lock, so that no failure occurs between the two.
        let staging = lock(&self.staging);
        match &staging.closed {
            Some(reason) => Err(NotConfirmed::Closed { reason: reason.clone() }),
            None => match folder {
                Ok(()) => Ok(self.feed.head()),
                Err(error) => Err(NotConfirmed::FolderLost { reason: error.to_string() }),
            },
        }
    }
}
