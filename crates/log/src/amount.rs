//! Numbers of events and bytes, counted together.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number of events and their encoded size in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Events.
    pub events: u64,
    /// Encoded size in bytes.
    pub bytes: u64,
}

impl Amount {
    /// The sum of both numbers.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount { events: self.events + other.events, bytes: self.bytes + other.bytes }
    }

    /// The difference of both numbers, at least 0.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        Amount {
            events: self.events.saturating_sub(other.events),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// An [`Amount`] that one thread adds to and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Count {
    events: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// Adds without a bus lock, by a plain load and store; for the only thread that adds.
    #[inline]
    pub(crate) fn add_alone(&self, events: u64, bytes: u64) {
        self.events.store(self.events.load(Ordering::Relaxed) + events, Ordering::Release);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Release);
    }

    /// Adds, from any thread.
    pub(crate) fn add(&self, amount: Amount) {
        self.events.fetch_add(amount.events, Ordering::AcqRel);
        self.bytes.fetch_add(amount.bytes, Ordering::AcqRel);
    }

    pub(crate) fn get(&self) -> Amount {
        Amount {
            events: self.events.load(Ordering::Acquire),
            bytes: self.bytes.load(Ordering::Acquire),
        }
    }
}
