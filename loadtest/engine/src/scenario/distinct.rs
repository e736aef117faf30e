//! How many different requests were made, in memory that does not grow.

use crate::random::mix;

const REGISTER_BITS: u32 = 12;
const REGISTERS: usize = 1 << REGISTER_BITS;

/// HyperLogLog (Flajolet, Fusy, Gandouet and Meunier, 2007) with 4096 registers:
/// standard error 1.04 / √4096 = 1.6%; small numbers by linear counting, where
/// the first few dozen come out exact almost always.
pub(crate) struct Distinct {
    registers: Box<[u8; REGISTERS]>,
}

impl Distinct {
    pub(crate) fn new() -> Self {
        Distinct { registers: Box::new([0; REGISTERS]) }
    }

    /// Counts the thing that has this hash.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        let register = &mut self.registers[(hash >> (64 - REGISTER_BITS)) as usize];
        let rank = ((hash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1))).leading_zeros() + 1;
        *register = (*register).max(rank as u8);
    }

    /// How many different hashes were added, to about 1.6%.
    pub(crate) fn estimate(&self) -> u64 {
        let m = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|&rank| (-f64::from(rank)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.registers.iter().filter(|&&rank| rank == 0).count();
        if raw <= 2.5 * m && empty > 0 {
            return (m * (m / empty as f64).ln()).round() as u64;
        }
        raw.round() as u64
    }
}

/// A hash of texts one after another, eight bytes at a time. Not for secrets.
#[derive(Clone, Copy)]
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) fn new(seed: u64) -> Self {
        Hash(mix(seed ^ 0x2545_F491_4F6C_DD1D))
    }

    /// Adds a text; its length is part of it.
    #[inline]
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let mut state = self.0 ^ bytes.len() as u64;
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
            state = (state.rotate_left(29) ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25);
            state ^= state >> 32;
        }
        let mut last = [0; 8];
        last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        self.0 = mix(state.rotate_left(29) ^ u64::from_le_bytes(last));
    }

    pub(crate) fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(n: u64) -> u64 {
        let mut distinct = Distinct::new();
        for i in 0..n {
            let mut hash = Hash::new(1);
            hash.add(format!("/item/{i}").as_bytes());
            distinct.add(hash.finish());
            distinct.add(hash.finish()); // the second time changes nothing
        }
        distinct.estimate()
    }

    #[test]
    fn small_numbers_are_exact_and_large_ones_close() {
        for n in [0, 1, 2, 5, 10] {
            assert_eq!(counted(n), n);
        }
        for n in [500u64, 5_000, 20_000, 100_000] {
            let found = counted(n);
            assert!(found.abs_diff(n) * 20 <= n, "{n} counted as {found}"); // three standard errors
        }
    }

    #[test]
    fn where_a_text_ends_matters() {
        let hash = |parts: &[&str]| {
            let mut hash = Hash::new(0);
            parts.iter().for_each(|part| hash.add(part.as_bytes()));
            hash.finish()
        };
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["a\0"]), hash(&["a"]));
        assert_eq!(hash(&["12345678", "9"]), hash(&["12345678", "9"]));
    }
}
