//! How long to wait before the next attempt.

use std::time::Duration;
use wellspring_types::random::SplitMix64;

/// Waits that double from attempt to attempt up to a bound, each shortened at random by up to a
/// half so that many connectors do not come back at the same moment.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
    random: SplitMix64,
}

impl Backoff {
    /// Waits of about `first` at the beginning and of `longest` at most.
    #[must_use]
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Backoff {
        Backoff { first, longest, attempts: 0, random: SplitMix64::new(seed) }
    }

    /// How long to wait now.
    pub fn next_wait(&mut self) -> Duration {
        let factor = 1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX);
        self.attempts = self.attempts.saturating_add(1);
        let whole = self.first.saturating_mul(factor).min(self.longest);
        whole.mul_f64(1.0 - self.random.unit() / 2.0)
    }

    /// Something succeeded: the next wait is a first one.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_begin_again_after_success() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(first, longest, 7);
        for whole_ms in [100_u64, 200, 400, 800, 1000, 1000] {
            let whole = Duration::from_millis(whole_ms);
            let wait = backoff.next_wait();
            assert!(wait >= whole / 2 && wait <= whole, "{wait:?} of {whole:?}");
        }
        backoff.reset();
        assert!(backoff.next_wait() <= first);
    }

    #[test]
    fn hundreds_of_attempts_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30), 0);
        for _ in 0..500 {
            assert!(backoff.next_wait() <= Duration::from_secs(30));
        }
    }
}
