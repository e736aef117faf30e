//! The end of the log, confirmed: what a linearizable read begins with.

use super::Sequencer;
use crate::error::NotConfirmed;
use crate::threads::lock;
use wellspring_types::Position;

impl Sequencer {
    /// The head, if this is still where positions are assigned. What anybody was told is durable before
    /// this is called is not behind it.
    ///
    /// # Errors
    /// [`NotConfirmed`].
    pub(crate) fn confirmed_head(&self) -> Result<Position, NotConfirmed> {
        // Before the head: whoever has taken the folder since can only add what came after.
        let folder = self.storage.still_locked();
        // Under the lock, so that no failure falls between the two.
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
