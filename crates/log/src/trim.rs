//! The beginning of a log as its users see it: cutting it off, and where it is.

use crate::error::TrimError;
use crate::floor::Floor;
use crate::log::Log;
use wellspring_types::Position;

impl Log {
    /// Cuts off the beginning of a log of files, in whole segments: everything before the last
    /// segment that begins at or before `wanted` and holds a durable event. Where the index of the
    /// rest cannot be written, as on a full disk, segments stay that share their index with it.
    /// Returns the position of the first event that is left.
    ///
    /// What is removed is removed for good: reads of it, and conditions that ask about it, are
    /// refused with [`ReadError::Trimmed`](crate::ReadError::Trimmed); its request keys and event
    /// ids are unknown, so they can be used again. Readers that have begun go on. Waits for the
    /// device.
    ///
    /// # Errors
    /// [`TrimError`].
    pub fn trim(&self, wanted: Position) -> Result<Position, TrimError> {
        self.sequencer().trim(wanted)
    }

    /// Where the log begins, if its beginning was cut off.
    #[must_use]
    pub fn floor(&self) -> Option<Floor> {
        self.sequencer().segments.floor(self.history()?)
    }
}
