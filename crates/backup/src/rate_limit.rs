//! A limit on the rate of reads, so that a backup leaves bandwidth of the device to appends.

use std::io::{self, Read};
use std::thread::sleep;
use std::time::Duration;
use wellspring_log::Clock;
use wellspring_log::SystemClock;

/// Bytes read between two readings of the clock.
const CHECK_BYTES: u64 = 256 << 10;

/// Maximum rate of everything that is read through it.
#[derive(Debug, Clone, Copy)]
pub struct RateLimit {
    bytes_per_s: Option<u64>,
    begun_us: u64,
    /// Bytes since `begun_us`.
    read: u64,
    checked: u64,
}

impl RateLimit {
    /// A limit of this many bytes a second; `None`: no limit.
    #[must_use]
    pub fn new(bytes_per_s: Option<u64>) -> RateLimit {
        RateLimit { bytes_per_s, begun_us: SystemClock.monotonic_us(), read: 0, checked: 0 }
    }

    /// Counts bytes, and sleeps if they exceed the rate.
    pub fn throttle(&mut self, bytes: u64) {
        self.read += bytes;
        let Some(rate) = self.bytes_per_s.map(|rate| rate.max(1)) else { return };
        if self.read - self.checked < CHECK_BYTES.min(rate / 4) {
            return;
        }
        self.checked = self.read;
        let due_us = (u128::from(self.read) * 1_000_000 / u128::from(rate)) as u64;
        let spent_us = SystemClock.monotonic_us() - self.begun_us;
        if spent_us < due_us {
            sleep(Duration::from_micros(due_us - spent_us));
        } else if spent_us > due_us + 1_000_000 {
            // Unused bandwidth does not accumulate: a slow phase is not followed by a burst.
            (self.begun_us, self.read, self.checked) = (SystemClock.monotonic_us(), 0, 0);
        }
    }
}

/// A reader whose bytes count against a [`RateLimit`].
pub(crate) struct RateLimitedReader<'a, R> {
    pub(crate) source: R,
    pub(crate) limit: &'a mut RateLimit,
}

impl<R: Read> Read for RateLimitedReader<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buf)?;
        self.limit.throttle(got as u64);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_at_the_rate_and_no_faster() {
        let begun = SystemClock.monotonic_us();
        let mut limit = RateLimit::new(Some(1 << 20));
        for _ in 0..64 {
            limit.throttle(4 << 10);
        }
        let spent = SystemClock.monotonic_us() - begun;
        assert!(spent >= 200_000, "256 KiB at 1 MiB/s took {spent} µs");
        RateLimit::new(None).throttle(u64::MAX / 2);
    }
}
