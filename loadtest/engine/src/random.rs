//! The pseudo-random numbers of a run: seeded, so that it can be repeated, and the same on every
//! machine.

/// What SplitMix64 adds to its state for each number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of SplitMix64: every bit of the input reaches every bit of the output.
#[inline]
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014, "Fast splittable
/// pseudorandom number generators"): 64 bits of state, period 2^64. Good enough
/// for arrivals, choices and shuffles; not for secrets.
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

    /// The numbered stream of a seed. Streams of one seed do not resemble each other.
    #[must_use]
    pub fn stream(seed: u64, stream: u64) -> Self {
        let state = mix(seed.wrapping_add(STEP)) ^ mix(stream.wrapping_mul(STEP) ^ !STEP);
        SplitMix64 { state }
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number from 0 to below `bound`; 0 if that is 0. Multiply and shift
    /// (Lemire, 2019) without rejection: uneven by at most `bound` in 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A place in a list of `length` items; 0 if it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from `low` to `high`, both included. `high` must not be below `low`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high);
        match (high - low).checked_add(1) {
            Some(span) => low + self.below(span),
            None => self.next_u64(),
        }
    }

    /// A number from 0 (included) to 1 (excluded), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A normally distributed number of mean 0 and standard deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Brings `items` into random order, all orders equally likely (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.index(at + 1);
            items.swap(at, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        // First outputs for two seeds, as published with the reference code in C.
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let mut random = SplitMix64::new(0);
        assert_eq!(random.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(random.next_u64(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(random.next_u64(), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, stream| SplitMix64::stream(seed, stream).next_u64();
        assert_eq!(first(1, 2), first(1, 2));
        let mut seen: Vec<u64> = (0..64).flat_map(|s| [first(1, s), first(2, s)]).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 128);
    }

    #[test]
    fn numbers_stay_in_their_range_fill_it_and_have_the_right_mean() {
        let mut random = SplitMix64::stream(7, 1);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[usize::try_from(random.between(10, 15)).unwrap() - 10] += 1;
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
        assert_eq!((random.below(0), random.below(1), random.index(0)), (0, 0, 0));
        assert_eq!(random.between(3, 3), 3);
        let _ = random.between(0, u64::MAX);
        let mean = |draw: &mut dyn FnMut() -> f64| (0..60_000).map(|_| draw()).sum::<f64>() / 6e4;
        assert!((mean(&mut || random.exponential()) - 1.0).abs() < 0.02);
        assert!(mean(&mut || random.normal()).abs() < 0.03);
        assert!((mean(&mut || random.normal().powi(2)) - 1.0).abs() < 0.05);
    }
}
