//! The cursor of a sink: how far it has delivered, and whether that matches the log.

use crate::fault::{Fault, StopCode};
use wellspring_log::{Log, RecordView};
use wellspring_types::{HistoryId, Position};

/// How far a sink has delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Number of times a start position was set for the sink. Cursors of earlier generations are
    /// invalid.
    pub generation: u64,
    /// The history of the log that it was taken from. `None` in cursors of earlier
    /// versions, which fit every history that has their event.
    pub history: Option<HistoryId>,
    /// The last event that was delivered, skipped or passed over; 0 for none.
    pub position: Position,
    /// Checksum of that event's record (position, time and content), 0 for none. Histories that
    /// share the event share the checksum.
    pub anchor: u32,
}

/// Why a cursor does not match a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorMismatch {
    /// The log has another history, whatever it has in common with the cursor's.
    OtherHistory {
        /// The history that the cursor was taken from.
        delivered: HistoryId,
        /// The history that the log has.
        present: HistoryId,
    },
    /// The log ends before the cursor.
    Ahead {
        /// The last position of the log.
        head: Position,
    },
    /// The log holds another event at the cursor's position.
    OtherEvent,
}

impl Cursor {
    /// A cursor before the first event, of this generation and history.
    #[must_use]
    pub fn start(generation: u64, history: Option<HistoryId>) -> Cursor {
        Cursor { generation, history, position: 0, anchor: 0 }
    }

    /// The cursor at an event, of the same generation and history.
    #[must_use]
    pub fn on(self, event: &RecordView<'_>) -> Cursor {
        Cursor { position: event.position(), anchor: event.checksum(), ..self }
    }

    /// Why the cursor does not match a log, if it does not: the log must have its history, and at
    /// its position the event it was taken from. A history that is not known fits.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn mismatch(&self, log: &Log) -> Result<Option<CursorMismatch>, Fault> {
        if let (Some(delivered), Some(present)) = (self.history, log.history())
            && delivered != present
        {
            return Ok(Some(CursorMismatch::OtherHistory { delivered, present }));
        }
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
            Some(CursorMismatch::OtherHistory { delivered, present }) => format!(
                "the sink delivers from the history {delivered} of its log, and the log has the history {present} \
                 by now: it was restored, created again or replaced. See what the receiver has, and reset the \
                 sink to a start position"
            ),
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
        let fault = Fault::stop(StopCode::AnotherHistory, detail);
        Err(if self.position == 0 { fault } else { fault.at(self.position) })
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
