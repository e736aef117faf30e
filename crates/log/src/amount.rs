//! Events and their bytes, counted together.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number of events and their bytes as encoded for the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Events.
    pub events: u64,
    /// Bytes, encoded.
    pub bytes: u64,
}

impl Amount {
    /// Both numbers added.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        Amount { events: self.events + other.events, bytes: self.bytes + other.bytes }
    }

    /// Both numbers subtracted, 0 at least.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        Amount {
            events: self.events.saturating_sub(other.events),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// An [`Amount`] that one thread adds to and any may read.
#[derive(Debug, Default)]
pub(crate) struct Count {
    events: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// Adds. Only one thread may: a plain load and store cost no bus lock.
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
