//! Reading no faster than a given rate, so that a backup leaves the device to others.

use std::io::{self, Read};
use std::thread::sleep;
use std::time::Duration;
use wellspring_log::Clock;
use wellspring_log::SystemClock;

/// Bytes read between two looks at the clock.
const LOOK_BYTES: u64 = 256 << 10;

/// A rate of bytes for everything that is read through it.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    bytes_per_s: Option<u64>,
    begun_us: u64,
    /// Bytes since the beginning.
    read: u64,
    looked: u64,
}

impl Pace {
    /// At most this many bytes a second, or as many as there are.
    #[must_use]
    pub fn new(bytes_per_s: Option<u64>) -> Pace {
        Pace { bytes_per_s, begun_us: SystemClock.monotonic_us(), read: 0, looked: 0 }
    }

    /// Counts bytes, and sleeps if they came too early.
    pub fn pass(&mut self, bytes: u64) {
        self.read += bytes;
        let Some(rate) = self.bytes_per_s.map(|rate| rate.max(1)) else { return };
        if self.read - self.looked < LOOK_BYTES.min(rate / 4) {
            return;
        }
        self.looked = self.read;
        let due_us = (u128::from(self.read) * 1_000_000 / u128::from(rate)) as u64;
        let spent_us = SystemClock.monotonic_us() - self.begun_us;
        if spent_us < due_us {
            sleep(Duration::from_micros(due_us - spent_us));
        } else if spent_us > due_us + 1_000_000 {
            // What a slow device left unused is not made up for at full speed.
            (self.begun_us, self.read, self.looked) = (SystemClock.monotonic_us(), 0, 0);
        }
    }
}

/// A reader at a pace.
pub(crate) struct Paced<'a, R> {
    pub(crate) source: R,
    pub(crate) pace: &'a mut Pace,
}

impl<R: Read> Read for Paced<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buf)?;
        self.pace.pass(got as u64);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_at_the_rate_and_no_faster() {
        let begun = SystemClock.monotonic_us();
        let mut pace = Pace::new(Some(1 << 20));
        for _ in 0..64 {
            pace.pass(4 << 10);
        }
        let spent = SystemClock.monotonic_us() - begun;
        assert!(spent >= 200_000, "256 KiB at 1 MiB/s took {spent} µs");
        Pace::new(None).pass(u64::MAX / 2);
    }
}
