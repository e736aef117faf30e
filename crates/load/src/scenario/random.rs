//! Pseudo-random numbers that are the same for the same seed on every machine.

use crate::random::STEP;
pub(crate) use crate::random::mix;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014). Not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The numbered stream of a seed. Streams of one seed do not resemble each other.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Random { state: mix(seed.wrapping_add(STEP)) ^ mix(stream.wrapping_mul(STEP) ^ !STEP) }
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number from 0 to below `bound`; 0 if that is 0. Multiply and shift
    /// (Lemire, 2019) without rejection: uneven by at most `bound` in 2^64.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(bound);
        (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The reference sequence for state 0, as printed in the authors' C code's tests.
        let mut random = Random { state: 0 };
        assert_eq!(random.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(random.next(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(random.next(), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn streams_differ_repeat_and_are_even() {
        let first = |seed, stream| Random::new(seed, stream).next();
        assert_eq!(first(1, 2), first(1, 2));
        let mut seen: Vec<u64> = (0..64).flat_map(|s| [first(1, s), first(2, s)]).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 128);
        let mut random = Random::new(3, 4);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }
}
