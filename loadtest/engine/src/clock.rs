//! The door through which time enters the load tester.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock counting nanoseconds from the moment it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

#[allow(clippy::disallowed_methods)] // the door
impl Clock {
    /// A clock that now shows 1 s: moments before it was made have room too.
    #[must_use]
    pub fn start() -> Self {
        let now = Instant::now();
        Clock(now.checked_sub(std::time::Duration::from_secs(1)).unwrap_or(now))
    }

    /// Nanoseconds since its beginning.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        let passed = self.0.elapsed();
        passed.as_secs() * 1_000_000_000 + u64::from(passed.subsec_nanos())
    }

    /// The wall clock, in nanoseconds since 1970 UTC.
    #[must_use]
    pub fn unix_ns() -> u64 {
        let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The wall clock, in microseconds since 1970 UTC.
    #[must_use]
    pub fn unix_us() -> u64 {
        Self::unix_ns() / 1000
    }
}
