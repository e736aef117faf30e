//! How far a sink has delivered, and whether that fits the log.

use crate::fault::{Fault, StopCode};
use wellspring_log::{Log, RecordView};
use wellspring_types::Position;

/// How far a sink has delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Number of times the sink was told where to begin. A cursor of an earlier beginning means
    /// nothing.
    pub generation: u64,
    /// The last event that is delivered or passed over; 0 for none.
    pub position: Position,
    /// Checksum of that event's record (position, time and content), 0 for none. Two logs that have
    /// had different pasts differ in it.
    pub anchor: u32,
}

/// How a cursor does not fit a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The log ends before it.
    Ahead {
        /// Where the log ends.
        head: Position,
    },
    /// Another event stands there.
    OtherEvent,
}

impl Cursor {
    /// The beginning of a generation, after a position of which nothing is known.
    #[must_use]
    pub fn start(generation: u64) -> Cursor {
        Cursor { generation, position: 0, anchor: 0 }
    }

    /// The cursor that stands on an event.
    #[must_use]
    pub fn on(generation: u64, event: &RecordView<'_>) -> Cursor {
        Cursor { generation, position: event.position(), anchor: event.checksum() }
    }

    /// Whether it fits a log: the event it stands on is the one it stood on.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn misfit(&self, log: &Log) -> Result<Option<Misfit>, Fault> {
        if self.position == 0 {
            return Ok(None);
        }
        let snapshot = log.snapshot();
        let found = snapshot.at(self.position, |event| event.checksum())?;
        Ok(match found {
            None => Some(Misfit::Ahead { head: snapshot.head() }),
            Some(checksum) if checksum != self.anchor => Some(Misfit::OtherEvent),
            Some(_) => None,
        })
    }

    /// Makes sure that it fits.
    ///
    /// # Errors
    /// [`StopCode::AnotherHistory`], or the log cannot be read.
    pub fn require_fit(&self, log: &Log) -> Result<(), Fault> {
        let detail = match self.misfit(log)? {
            None => return Ok(()),
            Some(Misfit::Ahead { head }) => format!(
                "the sink had delivered up to position {}, and the log ends at {head}: it was emptied, made \
                 again or restored",
                self.position
            ),
            Some(Misfit::OtherEvent) => format!(
                "the event at position {} is not the one that the sink delivered: the log has another past",
                self.position
            ),
        };
        Err(Fault::stop(StopCode::AnotherHistory, detail).at(self.position))
    }
}

/// Keeps the cursor of a sink whose destination keeps none.
pub trait CursorStore: Send {
    /// The cursor that was saved last.
    fn load(&self) -> Option<Cursor>;

    /// Saves a cursor, durably before it returns.
    ///
    /// # Errors
    /// A fault; what was saved before still stands.
    fn save(&mut self, cursor: Cursor) -> Result<(), Fault>;
}
