//! A delivery: events of one key, or one event of several, that a worker holds.

use wellspring_types::Position;

/// Names a delivery. Ids of earlier processes and generations name none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId {
    /// How many times an operator placed the consumer.
    pub generation: u64,
    /// Counts deliveries of a process.
    pub number: u64,
    /// Random, as another process counts from the beginning.
    pub nonce: u64,
    /// The first of its events when it was taken.
    pub first: Position,
}

/// What a worker gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its name.
    pub id: DeliveryId,
    /// The values of the order key; none for events without order.
    pub keys: Vec<Box<str>>,
    /// The events, ascending.
    pub positions: Vec<Position>,
    /// How many times the first event was delivered, this time included.
    pub tries: u8,
}

/// A delivery that a worker holds. Its events are the next ones of `key`.
#[derive(Debug)]
pub(crate) struct HeldDelivery {
    pub(crate) nonce: u64,
    pub(crate) first: Position,
    pub(crate) since_us: u64,
    pub(crate) worker: u64,
    /// The key, or one of the keys of its one event.
    pub(crate) key: u32,
    /// Events that are not settled.
    pub(crate) count: u8,
    /// How many of them a staged append settles; 0 without one.
    pub(crate) staged: u8,
}

/// Why a call about a delivery has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryRefusal {
    /// The delivery is not this worker's, or not any more.
    Lost,
    /// An append that settles it is staged.
    Staged,
    /// The position up to which to settle is not in the delivery.
    NotInDelivery,
}
