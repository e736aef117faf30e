//! One keyed hash for the tables in memory and the filter on disk.
//!
//! Multiply-and-fold over 8-byte words. The key is random per process (or per file), so that a
//! client cannot choose tags that collide. It is a hash for tables, not for signatures.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The domain of the hashed value; separates a type and a tag with the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    Type = 1,
    Tag = 2,
    Id = 3,
    Key = 4,
}

/// A hash function: equal seeds permanently give equal functions (format version 1 depends on it).
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyed {
    start: u64,
    multiplier: u64,
    finish: u64,
}

/// A seed that cannot be known outside this process.
pub(super) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Up to eight bytes as a little-endian number, without copying to a buffer.
#[inline]
pub(super) fn load(bytes: &[u8]) -> u64 {
    let word = |at: usize| {
        u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    };
    match bytes.len() {
        0 => 0,
        // The first, the middle and the last byte cover all.
        len @ 1..=3 => {
            let middle = len / 2;
            u64::from(bytes[0])
                | u64::from(bytes[middle]) << (8 * middle)
                | u64::from(bytes[len - 1]) << (8 * (len - 1))
        }
        // Two overlapping halves.
        len @ 4..=8 => word(0) | word(len - 4) << (8 * (len - 4)),
        len => unreachable!("{len} bytes in a word"),
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Keyed {
    pub(super) fn new(seed: u64) -> Keyed {
        let start = fold(seed ^ 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93);
        let second = fold(start ^ seed.rotate_left(32), 0xa076_1d64_78bd_642f);
        let finish = fold(second ^ 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3) | 1;
        // Odd, with bits in both halves, so that no bit of a word is lost in the multiplication.
        let multiplier = second | 0x8000_0001_0000_0001;
        Keyed { start, multiplier, finish }
    }

    /// Hash of whole words.
    pub(super) fn words(&self, domain: Domain, words: &[u64]) -> u64 {
        let mut hash = self.start ^ (domain as u64) << 56 ^ words.len() as u64;
        for &word in words {
            hash = fold(hash ^ word, self.multiplier).wrapping_add(word.rotate_left(29));
        }
        fold(hash ^ self.start, self.finish)
    }

    /// Hash of bytes, which need not fill whole words.
    pub(super) fn bytes(&self, domain: Domain, bytes: &[u8]) -> u64 {
        let mut hash = self.start ^ (domain as u64) << 56 ^ (bytes.len() as u64) << 8;
        let mix =
            |hash, word: u64| fold(hash ^ word, self.multiplier).wrapping_add(word.rotate_left(29));
        let (whole, tail) = bytes.as_chunks::<8>();
        for chunk in whole {
            hash = mix(hash, u64::from_le_bytes(*chunk));
        }
        if !tail.is_empty() {
            hash = mix(hash, load(tail));
        }
        fold(hash ^ self.start, self.finish)
    }

    /// Hash of an ordered pair of hashes.
    pub(super) fn pair(&self, first: u64, second: u64) -> u64 {
        let mixed = fold(first ^ self.start, self.multiplier).wrapping_add(first);
        fold(mixed ^ second.rotate_left(17), self.finish).wrapping_add(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn bytes_load_as_they_stand() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        for len in 0..=8 {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(load(&bytes[..len]), u64::from_le_bytes(word));
        }
    }

    #[test]
    fn near_texts_and_domains_hash_apart() {
        let keyed = Keyed::new(random_seed());
        let mut seen = HashSet::new();
        for i in 0..20_000u32 {
            let text = format!("course:{i}");
            assert!(seen.insert(keyed.bytes(Domain::Tag, text.as_bytes())));
            assert!(seen.insert(keyed.bytes(Domain::Type, text.as_bytes())));
        }
        assert_ne!(keyed.bytes(Domain::Tag, b"a"), keyed.bytes(Domain::Tag, b"a\0"));
        assert_ne!(keyed.pair(1, 2), keyed.pair(2, 1));
    }

    #[test]
    fn every_bit_of_the_hash_is_used_evenly() {
        let keyed = Keyed::new(7);
        let mut ones = [0u32; 64];
        for i in 0..10_000u64 {
            let hash = keyed.words(Domain::Id, &[i, 0]);
            (0..64).for_each(|bit| ones[bit] += (hash >> bit & 1) as u32);
        }
        assert!(ones.iter().all(|n| (4_700..5_300).contains(n)), "{ones:?}");
    }
}
