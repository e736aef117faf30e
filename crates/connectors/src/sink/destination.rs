//! The interface between the pump and a destination.

use crate::control::Control;
use crate::cursor::Cursor;
use crate::fault::Fault;
use std::time::Duration;
use wellspring_log::RecordView;
use wellspring_types::Position;

/// The limits of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Maximum number of events.
    pub events: usize,
    /// Maximum total size of the records in the log. The event that exceeds it is the batch's last.
    pub bytes: usize,
    /// Maximum wait for more events once the batch has one.
    pub linger: Duration,
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryEnd {
    /// Everything up to this position is delivered: the cursor's position, or less after a stop or
    /// a fault.
    pub through: Position,
    /// The fault that ended it early, if any.
    pub fault: Option<Fault>,
}

impl DeliveryEnd {
    /// A complete delivery.
    #[must_use]
    pub fn complete(cursor: Cursor) -> DeliveryEnd {
        DeliveryEnd { through: cursor.position, fault: None }
    }
}

/// The destination of a sink: Kafka or a webhook. Driven by one thread.
///
/// ```text
/// open ─► (push* ─► deliver)* ─► a fault ─► open …
/// ```
pub trait Destination: Send {
    /// Connects, discards what was pushed but not delivered, and ensures that no earlier
    /// incarnation of this sink can still deliver. Returns the cursor of what is delivered, if the
    /// destination stores one (`None` if it does not, or nothing was delivered yet).
    ///
    /// # Errors
    /// A fault.
    fn open(&mut self) -> Result<Option<Cursor>, Fault>;

    /// The limits of one batch.
    fn limits(&self) -> BatchLimits;

    /// Adds an event to the batch.
    ///
    /// # Errors
    /// A fault; the batch is then unchanged.
    fn push(&mut self, event: &RecordView<'_>) -> Result<(), Fault>;

    /// Delivers the batch, which may be empty, and stores the cursor if the destination does that.
    /// Ends early if `control` asks it to stop.
    ///
    /// # Errors
    /// A fault after which it is unknown what was delivered; [`open`](Self::open) determines that.
    fn deliver(&mut self, cursor: Cursor, control: &Control) -> Result<DeliveryEnd, Fault>;

    /// Called about once a second while there is nothing to deliver: checks that the destination is
    /// still the one that was opened.
    ///
    /// # Errors
    /// A fault.
    fn look(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}
