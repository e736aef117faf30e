//! What an append of consumers needs besides its condition: that the state it was made from still
//! counts, or that a worker still holds the delivery which it settles.

use super::open::OpenConsumer;
use std::fmt;
use std::sync::Arc;
use wellspring_consumers::{DeliveryId, DeliveryRefusal};
use wellspring_log::{AppendError, Appended, Fence, FenceRefusal};
use wellspring_types::Position;

/// For what the server appends: that this node has led the log ever since, and that the consumer
/// which it is about is open.
pub(super) struct StateFence {
    pub(super) epoch: u64,
    /// None: of a consumer that is not open, because it is being changed.
    pub(super) consumer: Option<Arc<OpenConsumer>>,
}

impl Fence for StateFence {
    fn holds(&self, epoch: u64) -> Result<(), FenceRefusal> {
        let is_open = !self.consumer.as_ref().is_some_and(|consumer| consumer.is_closed());
        if epoch == self.epoch && is_open { Ok(()) } else { Err(FenceRefusal::Outdated) }
    }
}

impl fmt::Debug for StateFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateFence").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// For an append that settles a delivery, into the consumer's log or another one. Once it is
/// staged the delivery does not expire, until [`tell`](DeliveryFence::tell).
pub(crate) struct DeliveryFence {
    pub(super) consumer: Arc<OpenConsumer>,
    /// With its account.
    pub(super) worker: String,
    pub(super) delivery: DeliveryId,
    /// Its events when the append was made: by then part of it may have been settled.
    pub(super) events: Vec<Position>,
    /// Whether the append goes to the log that is consumed.
    pub(super) is_same_log: bool,
}

impl DeliveryFence {
    /// Tells the consumer what became of an append with this fence.
    pub(crate) fn tell(&self, outcome: &Result<Appended, AppendError>) {
        match outcome {
            Ok(appended) if appended.replayed => self.consumer.settle_repeated(self),
            Ok(_) => self.consumer.end_staged(self.delivery, true),
            // Nothing else is staged under this node's lead: the consumer is not used any more.
            Err(AppendError::Unknown { .. }) => {}
            Err(_) => self.consumer.end_staged(self.delivery, false),
        }
    }
}

impl Fence for DeliveryFence {
    fn holds(&self, epoch: u64) -> Result<(), FenceRefusal> {
        if self.is_same_log && epoch != self.consumer.epoch {
            return Err(FenceRefusal::DeliveryLost);
        }
        self.consumer.check_held(self).map_err(refusal)
    }

    fn stage(&self, epoch: u64, first: Position) -> Result<(), FenceRefusal> {
        self.holds(epoch)?;
        // What is appended to another log is not looked for after a restart.
        let before = if self.is_same_log { first - 1 } else { Position::MAX };
        self.consumer.begin_staged(self, before).map_err(refusal)
    }
}

fn refusal(refusal: DeliveryRefusal) -> FenceRefusal {
    match refusal {
        DeliveryRefusal::Lost | DeliveryRefusal::NotInDelivery => FenceRefusal::DeliveryLost,
        DeliveryRefusal::Staged => FenceRefusal::DeliveryStaged,
    }
}

impl fmt::Debug for DeliveryFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliveryFence").field("delivery", &self.delivery).finish_non_exhaustive()
    }
}
