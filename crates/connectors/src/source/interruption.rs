//! Why a source cannot go on as it was.

use crate::fault::{Fault, StopCode};
use wellspring_log::AppendError;

/// Why a source cannot go on as it was. In no case does the outcome of the append matter: the
/// source begins again from the cursors that the log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interruption {
    /// Something that goes away by itself, or that a person has to decide about.
    Fault(Fault),
    /// The cursor in the log is another than was known: another server runs the source, or an
    /// append of ours that was in doubt has come through.
    Conflict(String),
    /// An event's id is in the log. As a rule that is a [`Conflict`](Interruption::Conflict), met
    /// by its id first.
    IdReused {
        /// The partition of the append.
        partition: i32,
        /// Offset of its first record.
        first: i64,
        /// What the log said.
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
            // Every event was checked when it was encoded: this would be a fault of ours, and
            // trying again a loop.
            AppendError::Invalid(invalid) => {
                Fault::stop(StopCode::Rejected, format!("the log refuses an append: {invalid}"))
            }
            passing => Fault::transient(passing.to_string()),
        };
        Interruption::Fault(fault)
    }
}
