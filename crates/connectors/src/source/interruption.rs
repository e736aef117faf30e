//! Why a source cannot continue as it was.

use crate::fault::{Fault, StopCode};
use wellspring_log::AppendError;

/// Why a source cannot continue as it was. The append's outcome never matters, because the source
/// starts over from the cursors in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interruption {
    Fault(Fault),
    /// The cursor in the log has changed: another server runs the source, or an append of this
    /// source with an unknown outcome has taken effect.
    Conflict(String),
    /// The log already contains an event's id. Usually this is a
    /// [`Conflict`](Interruption::Conflict), detected by its id first.
    IdReused {
        /// The append's partition.
        partition: i32,
        /// Offset of the append's first record.
        first: i64,
        /// The log's message.
        detail: String,
    },
}

impl From<Fault> for Interruption {
    fn from(fault: Fault) -> Interruption {
        Interruption::Fault(fault)
    }
}

impl From<wellspring_kafka::Fault> for Interruption {
    fn from(fault: wellspring_kafka::Fault) -> Interruption {
        Interruption::Fault(fault.into())
    }
}

impl From<AppendError> for Interruption {
    fn from(error: AppendError) -> Interruption {
        let fault = match error {
            AppendError::Conflict(_) | AppendError::IdReused { .. } => {
                return Interruption::Conflict(error.to_string());
            }
            AppendError::Read(error) => error.into(),
            // Encoding checked every event, so this is a bug, and retrying would loop.
            AppendError::Invalid(invalid) => {
                Fault::stop(StopCode::Rejected, format!("the log refused an append: {invalid}"))
            }
            passing => Fault::transient(passing.to_string()),
        };
        Interruption::Fault(fault)
    }
}
