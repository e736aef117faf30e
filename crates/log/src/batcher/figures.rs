//! Consistent counts: everything accepted is either stored or could be lost.

use crate::amount::Amount;

/// Counts since the batcher was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pushed.
    pub accepted: Amount,
    /// Stored by the sink. Never more than accepted; counted by the sink from its input, not
    /// derived from `accepted`.
    pub stored: Amount,
    /// Refused because a partition was full. Not included in `accepted`.
    pub shed: Amount,
    /// Maximum time between acceptance and storage of an event in the last flush, µs. Excludes the
    /// wake-up of a sleeping flusher.
    pub window_last_us: u64,
    /// The longest such time.
    pub window_longest_us: u64,
    /// Number of live producers.
    pub partitions: usize,
    /// Size of each partition in bytes.
    pub partition_bytes: usize,
}

impl Figures {
    /// The most that a crash now could lose.
    #[must_use]
    pub fn lost_possible(&self) -> Amount {
        self.accepted.minus(self.stored)
    }
}
