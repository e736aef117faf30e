//! Pseudo-random numbers from a seed that is passed in.

use crate::random::{STEP, mix};

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014, "Fast splittable
/// pseudorandom number generators"): 64 bits of state, period 2^64. Good enough
/// to shuffle runs; not for secrets.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The sequence of this seed. Equal seeds give equal sequences; 0 is as good as any other.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A whole number from 0 to `bound − 1`, by multiplication and shift; the
    /// bias is below `bound / 2^64`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        let product = u128::from(self.next_u64()) * (bound as u128);
        usize::try_from(product >> 64).expect("smaller than bound, which is a usize")
    }

    /// A number from 0 (included) to 1 (excluded), in steps of 2^-53.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A normally distributed number of mean 0 and standard deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Brings `items` into random order, all orders equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        // First outputs for seed 1234567, as published with the reference code in C.
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn numbers_stay_in_their_range_and_fill_it() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0_u32; 5];
        for _ in 0..5_000 {
            seen[random.below(5)] += 1;
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert!(seen.iter().all(|&count| (880..1_120).contains(&count)), "{seen:?}");
        let normal: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = normal.iter().sum::<f64>() / 20_000.0;
        let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
