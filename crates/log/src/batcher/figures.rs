//! Counts that add up: what was accepted is stored or can be lost, nothing else.

use crate::amount::Amount;

/// What has become of everything since the batcher was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pushed.
    pub accepted: Amount,
    /// Stored by the sink. Never more than accepted, and counted by the sink from what it was
    /// given, not derived from `accepted`.
    pub stored: Amount,
    /// Refused because a partition was full. Not part of `accepted`.
    pub shed: Amount,
    /// Time the oldest event of the last flush can have waited from being accepted to being stored,
    /// µs. The wake-up of a flusher that slept is not in it.
    pub window_last_us: u64,
    /// The longest such time.
    pub window_longest_us: u64,
    /// Producers at work.
    pub partitions: usize,
    /// Size of each partition, bytes.
    pub partition_bytes: usize,
}

impl Figures {
    /// What a crash right now would lose at most.
    #[must_use]
    pub fn lost_possible(&self) -> Amount {
        self.accepted.minus(self.stored)
    }
}
