//! The cursor of a sink: how far it has delivered, and whether that matches the log.

use crate::fault::{Fault, StopCode};
use wellspring_log::{Log, RecordView};
use wellspring_types::Position;

/// How far a sink has delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Number of times a start position was set for the sink. Cursors of earlier generations are
    /// invalid.
    pub generation: u64,
    /// The last event that was delivered or skipped; 0 for none.
    pub position: Position,
    /// Checksum of that event's record (position, time and content), 0 for none. It differs between
    /// logs with different histories.
    pub anchor: u32,
}

/// Why a cursor does not match a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorMismatch {
    /// The log ends before the cursor.
    Ahead {
        /// The last position of the log.
        head: Position,
    },
    /// The log holds another event at the cursor's position.
    OtherEvent,
}

impl Cursor {
    /// The first cursor of a generation, at a position whose event is unknown.
    #[must_use]
    pub fn start(generation: u64) -> Cursor {
        Cursor { generation, position: 0, anchor: 0 }
    }

    /// The cursor at an event.
    #[must_use]
    pub fn on(generation: u64, event: &RecordView<'_>) -> Cursor {
        Cursor { generation, position: event.position(), anchor: event.checksum() }
    }

    /// Why the cursor does not match a log, if it does not: the event at its position must be the
    /// one it was taken from.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn mismatch(&self, log: &Log) -> Result<Option<CursorMismatch>, Fault> {
        if self.position == 0 {
            return Ok(None);
        }
        let snapshot = log.snapshot();
        let found = snapshot.at(self.position, |event| event.checksum())?;
        Ok(match found {
            None => Some(CursorMismatch::Ahead { head: snapshot.head() }),
            Some(checksum) if checksum != self.anchor => Some(CursorMismatch::OtherEvent),
            Some(_) => None,
        })
    }

    /// Checks that the cursor matches the log.
    ///
    /// # Errors
    /// [`StopCode::AnotherHistory`], or the log cannot be read.
    pub fn require_fit(&self, log: &Log) -> Result<(), Fault> {
        let detail = match self.mismatch(log)? {
            None => return Ok(()),
            Some(CursorMismatch::Ahead { head }) => format!(
                "the sink had delivered up to position {}, and the log ends at {head}: it was emptied, \
                 created again or restored",
                self.position
            ),
            Some(CursorMismatch::OtherEvent) => format!(
                "the event at position {} is not the one that the sink delivered: the log has another history",
                self.position
            ),
        };
        Err(Fault::stop(StopCode::AnotherHistory, detail).at(self.position))
    }
}

/// Stores the cursor of a sink whose destination does not.
pub trait CursorStore: Send {
    /// The last saved cursor.
    fn load(&self) -> Option<Cursor>;

    /// Saves a cursor durably.
    ///
    /// # Errors
    /// A fault; the previously saved cursor is still valid.
    fn save(&mut self, cursor: Cursor) -> Result<(), Fault>;
}
