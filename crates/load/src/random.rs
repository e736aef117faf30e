//! The one source of pseudo-random numbers: seeded, so that a run can be repeated.

/// What SplitMix64 adds to its state for each number.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of SplitMix64: every bit of the input reaches every bit of the output.
#[inline]
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, and good enough for arrivals and choices.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator; equal seeds and streams give equal numbers.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Random(seed ^ stream.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        mixed.next_u64();
        mixed
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number from `low` to `high`, both included. `high` must not be below `low`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high);
        let span = u128::from(high - low) + 1;
        // Multiply-shift: the bias is below span / 2^64.
        low + u64::try_from((u128::from(self.next_u64()) * span) >> 64).expect("below the span")
    }

    /// A number from 0 (included) to 1 (excluded).
    #[allow(clippy::cast_precision_loss)] // 53 bits fit
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An exponentially distributed number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_repeatable_within_bounds_and_have_the_right_mean() {
        let mut random = Random::new(7, 1);
        let mut again = Random::new(7, 1);
        let mut other = Random::new(7, 2);
        assert_eq!(random.next_u64(), again.next_u64());
        assert_ne!(random.next_u64(), other.next_u64());
        let mut sum = 0.0;
        let mut seen = [0u32; 6];
        for _ in 0..60_000 {
            sum += random.exponential();
            seen[usize::try_from(random.between(0, 5)).unwrap()] += 1;
        }
        assert!((sum / 60_000.0 - 1.0).abs() < 0.02, "{sum}");
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
        assert_eq!(random.between(3, 3), 3);
        assert_eq!(Random::new(0, 0).between(0, 0), 0);
    }
}
