//! The filter of a sealed segment: whether a term may occur in it at all.
//!
//! A blocked Bloom filter: one 64-byte block per key, so one cache line per
//! question, [`PROBES`] bits in it. At [`BITS_PER_KEY`] about one absent key
//! in 150 is let through; no present key is ever kept out.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | seed of the hash |
//! | 8 | 64·n | blocks of eight 64-bit words |
//!
//! A key is hashed to 64 bits `h`. Its block is `((h >> 32) * n) >> 32`. Its bits
//! are the lowest seven 9-bit groups of `h * 0x9e3779b97f4a7c15 ^ h >> 29`:
//! the upper three bits of a group choose the word, the lower six the bit.

use super::hash::Keyed;

const BITS_PER_KEY: usize = 12;
const PROBES: u32 = 7;
const SEED_BYTES: usize = 8;
const BLOCK_WORDS: usize = 8;

/// A loaded filter.
#[derive(Debug)]
pub(super) struct Filter {
    keyed: Keyed,
    words: Vec<u64>,
}

fn block_of(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

fn bits_of(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let bits = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash >> 29;
    (0..PROBES).map(move |i| {
        let group = bits >> (9 * i) & 0x1ff;
        ((group >> 6) as usize, 1 << (group & 63))
    })
}

/// The section for keys of these hashes, which must come from `Keyed::new(seed)`.
pub(super) fn build(seed: u64, hashes: &[u64]) -> Vec<u8> {
    let blocks = (hashes.len() * BITS_PER_KEY).div_ceil(64 * BLOCK_WORDS).max(1);
    let mut words = vec![0u64; blocks * BLOCK_WORDS];
    for &hash in hashes {
        let block = block_of(hash, blocks) * BLOCK_WORDS;
        bits_of(hash).for_each(|(word, bit)| words[block + word] |= bit);
    }
    let mut out = Vec::with_capacity(SEED_BYTES + words.len() * 8);
    out.extend_from_slice(&seed.to_le_bytes());
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out
}

impl Filter {
    /// Reads a section; `None` if it cannot be one.
    pub(super) fn parse(section: &[u8]) -> Option<Filter> {
        let (seed, blocks) = section.split_first_chunk::<SEED_BYTES>()?;
        if blocks.is_empty() || blocks.len() % (8 * BLOCK_WORDS) != 0 {
            return None;
        }
        let (words, _) = blocks.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Some(Filter { keyed: Keyed::new(u64::from_le_bytes(*seed)), words })
    }

    /// The hash its keys are to be hashed with.
    pub(super) fn keyed(&self) -> &Keyed {
        &self.keyed
    }

    /// Whether a key with this hash may be present; `false` is certain.
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let block = block_of(hash, self.words.len() / BLOCK_WORDS) * BLOCK_WORDS;
        bits_of(hash).all(|(word, bit)| self.words[block + word] & bit != 0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::Domain;
    use super::*;

    #[test]
    fn present_keys_pass_and_few_others_do() {
        for keys in [0u32, 1, 50, 20_000] {
            let keyed = Keyed::new(99);
            let hash = |i: u32| keyed.bytes(Domain::Tag, &i.to_le_bytes());
            let hashes: Vec<u64> = (0..keys).map(hash).collect();
            let filter = Filter::parse(&build(99, &hashes)).unwrap();
            assert!(hashes.iter().all(|&hash| filter.may_hold(hash)));
            let passed = (100_000..200_000).filter(|&i| filter.may_hold(hash(i))).count();
            assert!(passed < 1_200, "{passed} of 100,000 with {keys} keys");
        }
    }

    #[test]
    fn sections_of_impossible_length_are_refused() {
        for len in [0, 7, 8, 71, 73] {
            assert!(Filter::parse(&vec![0; len]).is_none());
        }
    }
}
