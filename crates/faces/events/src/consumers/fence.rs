//! What an append of consumers needs besides its condition: that the state it was made from still
//! counts, or that a worker still holds the delivery which it settles.

use super::open::OpenConsumer;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    /// Whether this append is staged, and not another one that settles the delivery.
    pub(super) is_staged: AtomicBool,
}

impl DeliveryFence {
    /// The last event that the append settles.
    pub(super) fn up_to(&self) -> Position {
        *self.events.last().expect("a delivery has events")
    }

    fn check_epoch(&self, epoch: u64) -> Result<(), FenceRefusal> {
        // Another log has epochs of its own; the consumer checks that of its log.
        if self.is_same_log && epoch != self.consumer.epoch {
            return Err(FenceRefusal::DeliveryLost);
        }
        Ok(())
    }

    /// Tells the consumer what became of the append with this fence.
    pub(super) fn tell(&self, outcome: &Result<Appended, AppendError>) {
        let is_durable = match outcome {
            // Nothing else is staged under this node's lead: the consumer is not used any more.
            // That of another log is, and its worker will find the append or make it.
            Err(AppendError::Unknown { .. }) if self.is_same_log => return,
            Err(_) => false,
            Ok(appended) if appended.replayed => {
                return self.consumer.settle_found(self, self.up_to());
            }
            Ok(_) => true,
        };
        if self.is_staged.load(Relaxed) {
            self.consumer.end_staged(self.delivery, is_durable);
        }
    }
}

impl Fence for DeliveryFence {
    fn holds(&self, epoch: u64) -> Result<(), FenceRefusal> {
        self.check_epoch(epoch)?;
        self.consumer.check_held(self).map_err(refusal)
    }

    fn stage(&self, epoch: u64, first: Position) -> Result<(), FenceRefusal> {
        self.check_epoch(epoch)?;
        // What is appended to another log is not looked for after a restart.
        let before = if self.is_same_log { first - 1 } else { Position::MAX };
        self.consumer.begin_staged(self, before).map_err(refusal)?;
        self.is_staged.store(true, Relaxed);
        Ok(())
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

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;
