//! Batches of a shared log: where they are in it, and what makes them the same on every node.

use wellspring_types::Position;

/// A place in a shared log. Places ascend along its order but need not be dense; `Place(0)` is
/// before the first entry. An engine whose places start at zero adds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place(pub u64);

/// The fields that all parts of a batch share. They identify the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchId {
    /// Epoch of the leader that produced it, at least 1.
    pub epoch: u64,
    /// Position of its first event, at least 1.
    pub first: Position,
    /// Number of events, at least 1.
    pub count: u32,
    /// When its last event was recorded, µs since 1970 UTC.
    pub recorded_at_us: u64,
    /// Whether every node begins a new segment with it, so that all have the same segments.
    pub begins_segment: bool,
    /// Length of the records in bytes, at least 1.
    pub body_bytes: u32,
    /// CRC32C of the records.
    pub body_crc: u32,
    /// [`chain`](Self::chain) of the batch accepted before it, 0 for the first.
    pub previous: u32,
}

impl BatchId {
    /// The chain up to this batch: a checksum over all of its fields, including the previous chain.
    /// Two logs with the same chain at a position have the same history.
    #[must_use]
    pub fn chain(&self) -> u32 {
        let mut bytes = [0u8; 41];
        bytes[0..8].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.recorded_at_us.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.count.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.body_crc.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.previous.to_le_bytes());
        bytes[40] = u8::from(self.begins_segment);
        crc32c::crc32c(&bytes)
    }

    /// Position of its last event.
    #[must_use]
    pub fn last(&self) -> Position {
        self.first + u64::from(self.count) - 1
    }
}
