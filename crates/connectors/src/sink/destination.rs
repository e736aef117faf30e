//! The seam between the pump and where events go.

use crate::control::Control;
use crate::cursor::Cursor;
use crate::fault::Fault;
use std::time::Duration;
use wellspring_log::RecordView;
use wellspring_types::Position;

/// How much one batch may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Most events.
    pub events: usize,
    /// Most bytes of records as they lie in the log. The event that exceeds it is the last.
    pub bytes: usize,
    /// Longest that a batch waits for more events once it has one.
    pub linger: Duration,
}

/// How far a delivery came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryEnd {
    /// Everything up to here is delivered: the position of the cursor, or less if the destination
    /// was told to stop or met a fault.
    pub through: Position,
    /// What ended it early, if a fault did.
    pub fault: Option<Fault>,
}

impl DeliveryEnd {
    /// Everything is delivered.
    #[must_use]
    pub fn complete(cursor: Cursor) -> DeliveryEnd {
        DeliveryEnd { through: cursor.position, fault: None }
    }
}

/// Where a sink delivers to: Kafka or a webhook. Driven by one thread.
///
/// ```text
/// open ─► (push* ─► deliver)* ─► a fault ─► open …
/// ```
pub trait Destination: Send {
    /// Connects, forgets what was pushed and not delivered, and makes sure that no earlier
    /// incarnation of this sink can still deliver. Gives the cursor of what is delivered, if the
    /// destination keeps it (`None` if it keeps none, or nothing was delivered yet).
    ///
    /// # Errors
    /// A fault.
    fn open(&mut self) -> Result<Option<Cursor>, Fault>;

    /// How much one batch may hold.
    fn limits(&self) -> BatchLimits;

    /// Adds an event to the batch.
    ///
    /// # Errors
    /// A fault; the event is not in the batch then.
    fn push(&mut self, event: &RecordView<'_>) -> Result<(), Fault>;

    /// Delivers the batch, which may be empty, and keeps the cursor, if it keeps cursors. Ends
    /// early if `control` tells it to stop.
    ///
    /// # Errors
    /// A fault after which it is not known what was delivered: [`open`](Self::open) finds that out.
    fn deliver(&mut self, cursor: Cursor, control: &Control) -> Result<DeliveryEnd, Fault>;

    /// Called about once a second while there is nothing to deliver: looks whether the destination
    /// is still the one that was opened.
    ///
    /// # Errors
    /// A fault.
    fn look(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}
