//! The filter of a sealed segment: tells whether a term can occur in it.
//!
//! A blocked Bloom filter: one 64-byte block per key, so one cache line per query, with [`PROBES`]
//! bits in it. About one absent key in 150 passes; every present key passes. Each block has its own
//! checksum, so that a query can be answered by reading one block.
//!
//! Format version 2 of the index:
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | seed of the hash |
//! | 8 | 4 | CRC32C of the seed |
//! | 12 | 4 | zero |
//! | 16 | 64·n | blocks: fifteen 32-bit words, then their CRC32C |
//!
//! A key is hashed to 64 bits `h`. Its block is `((h >> 32) * n) >> 32`. Its bits are the lowest
//! seven 9-bit groups of `h * 0x9e3779b97f4a7c15 ^ h >> 29`: a group `g` is bit `g * 480 >> 9` of
//! the block, counted from the lowest bit of the first word.
//!
//! Version 1 has blocks of eight 64-bit words without a checksum from byte 8 on; the upper three
//! bits of a group choose the word, the lower six the bit. It is read as a whole.

use super::hash::Keyed;
use wellspring_format::record::{read_u32, read_u64};

const BITS_PER_KEY: usize = 13;
const PROBES: u32 = 7;
/// Size of a block, in both versions.
pub(super) const BLOCK_BYTES: usize = 64;
const WORDS: usize = 15;
const BITS: u64 = WORDS as u64 * 32;
/// Bytes before the first block, by version.
pub(super) const HEAD_BYTES: usize = 16;
const HEAD_BYTES_V1: usize = 8;

/// The layout of a filter's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterLayout {
    /// Blocks without checksums.
    V1,
    /// Blocks with checksums.
    V2,
}

/// A filter in memory.
#[derive(Debug)]
pub(super) struct Filter {
    keyed: Keyed,
    layout: FilterLayout,
    /// The blocks as in the file.
    blocks: Vec<u8>,
}

/// The block of a hash, given the number of blocks.
pub(super) fn block_of(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

fn groups_of(hash: u64) -> impl Iterator<Item = u64> {
    let bits = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash >> 29;
    (0..PROBES).map(move |i| bits >> (9 * i) & 0x1ff)
}

impl FilterLayout {
    /// Byte and bit of a group of hash bits in its block. Words are little endian, so the block's
    /// bits are in order regardless of the word size.
    fn place(self, group: u64) -> (usize, u8) {
        let bit = match self {
            FilterLayout::V1 => group,
            FilterLayout::V2 => (group * BITS) >> 9,
        };
        ((bit >> 3) as usize, 1 << (bit & 7))
    }

    /// Whether a hash passes its block.
    pub(super) fn passes(self, block: &[u8], hash: u64) -> bool {
        groups_of(hash).all(|group| {
            let (byte, bit) = self.place(group);
            block[byte] & bit != 0
        })
    }
}

/// Whether the checksum of a block of version 2 is right.
pub(super) fn is_whole(block: &[u8; BLOCK_BYTES]) -> bool {
    crc32c::crc32c(&block[..WORDS * 4]) == read_u32(block, WORDS * 4)
}

/// The hash function of a filter of version 2, from its first bytes; `None` if they are damaged.
pub(super) fn keyed_of(head: &[u8; HEAD_BYTES]) -> Option<Keyed> {
    (crc32c::crc32c(&head[..8]) == read_u32(head, 8)).then(|| Keyed::new(read_u64(head, 0)))
}

/// Number of blocks for this many keys.
fn blocks_for(keys: usize) -> usize {
    (keys * BITS_PER_KEY).div_ceil(8 * BLOCK_BYTES).max(1)
}

/// An upper bound of the number of keys in a filter of this size, in either version.
pub(super) fn keys_bound(section_bytes: usize) -> usize {
    const FEWEST_BITS_PER_KEY: usize = 12;
    section_bytes * 8 / FEWEST_BITS_PER_KEY
}

/// The keys of a filter being built, as hashes by `Keyed::new(seed)` with the seed that it is
/// finished with.
pub(super) enum FilterKeys {
    /// The hashes of all keys: the filter is built once their number is known.
    Gathered(Vec<u64>, fn(u64, &[u64]) -> Vec<u8>),
    /// The section of a filter that may be too large, and the number of keys so far. Takes a fifth
    /// of the memory. Some of the hashes are `pending`, see [`place_all`].
    Placed { section: Vec<u8>, keys: usize, pending: Vec<u64> },
}

/// Keys placed at once.
const PLACED_AT_ONCE: usize = 128;

/// How often a filter can be halved if it turns out too large.
const HALVINGS: usize = 6;

impl FilterKeys {
    /// No keys yet, when their number is not known, but about `hint`.
    pub(super) fn gathered(hint: usize) -> FilterKeys {
        FilterKeys::Gathered(Vec::with_capacity(hint), build)
    }

    /// No keys yet, for a filter of this version of the index.
    #[cfg(test)]
    pub(super) fn gathered_for(version: u32) -> FilterKeys {
        FilterKeys::Gathered(Vec::new(), if version == 1 { build_version_1 } else { build })
    }

    /// No keys yet, when their number is hardly above this bound; otherwise the bound should be
    /// lower.
    pub(super) fn placed(keys_bound: usize) -> FilterKeys {
        let blocks = blocks_for(keys_bound).next_multiple_of(1 << HALVINGS);
        let section = vec![0; HEAD_BYTES + blocks * BLOCK_BYTES];
        FilterKeys::Placed { section, keys: 0, pending: Vec::with_capacity(PLACED_AT_ONCE) }
    }

    /// Adds a key. A repeated key may count twice.
    pub(super) fn add(&mut self, hash: u64) {
        match self {
            FilterKeys::Gathered(hashes, _) => hashes.push(hash),
            FilterKeys::Placed { section, keys, pending } => {
                *keys += 1;
                pending.push(hash);
                if pending.len() == PLACED_AT_ONCE {
                    place_all(&mut section[HEAD_BYTES..], pending);
                    pending.clear();
                }
            }
        }
    }

    /// The finished section.
    pub(super) fn finish(&mut self, seed: u64) -> Vec<u8> {
        match self {
            FilterKeys::Gathered(hashes, build) => build(seed, &std::mem::take(hashes)),
            FilterKeys::Placed { section, keys, pending } => {
                let mut section = std::mem::take(section);
                place_all(&mut section[HEAD_BYTES..], &std::mem::take(pending));
                let wanted = HEAD_BYTES + blocks_for(*keys) * BLOCK_BYTES;
                for _ in 0..HALVINGS {
                    let half = HEAD_BYTES + (section.len() - HEAD_BYTES) / 2;
                    if half >= wanted {
                        halve(&mut section[HEAD_BYTES..]);
                        section.truncate(half);
                    }
                }
                seal_section(seed, &mut section);
                section
            }
        }
    }
}

/// Merges each pair of neighbouring blocks. The block of a hash among half as many blocks is half
/// its previous number, because [`block_of`] is proportional to the number of blocks. Data after
/// the first half is then unused.
fn halve(blocks: &mut [u8]) {
    for to in 0..blocks.len() / BLOCK_BYTES / 2 {
        for byte in 0..BLOCK_BYTES {
            let (one, other) = (2 * to * BLOCK_BYTES + byte, (2 * to + 1) * BLOCK_BYTES + byte);
            blocks[to * BLOCK_BYTES + byte] = blocks[one] | blocks[other];
        }
    }
}

/// Sets the bits of some keys. Their blocks are rarely in a cache: a first pass reads a byte of
/// each, and the processor waits for many of them at once.
fn place_all(blocks: &mut [u8], hashes: &[u64]) {
    for some in hashes.chunks(PLACED_AT_ONCE) {
        let count = blocks.len() / BLOCK_BYTES;
        let read = some.iter().map(|&hash| blocks[block_of(hash, count) * BLOCK_BYTES]);
        std::hint::black_box(read.fold(0, |all, byte| all | byte));
        some.iter().for_each(|&hash| place(blocks, hash));
    }
}

/// Sets the bits of a key.
fn place(blocks: &mut [u8], hash: u64) {
    let at = block_of(hash, blocks.len() / BLOCK_BYTES) * BLOCK_BYTES;
    let block = &mut blocks[at..at + BLOCK_BYTES];
    for group in groups_of(hash) {
        let (byte, bit) = FilterLayout::V2.place(group);
        block[byte] |= bit;
    }
}

/// Sets the head of a section and the checksums of its blocks.
fn seal_section(seed: u64, section: &mut [u8]) {
    let (head, blocks) = section.split_at_mut(HEAD_BYTES);
    head[..8].copy_from_slice(&seed.to_le_bytes());
    head[8..12].copy_from_slice(&crc32c::crc32c(&seed.to_le_bytes()).to_le_bytes());
    for block in blocks.as_chunks_mut::<BLOCK_BYTES>().0 {
        let crc = crc32c::crc32c(&block[..WORDS * 4]);
        block[WORDS * 4..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The section for keys with these hashes, which must come from `Keyed::new(seed)`.
fn build(seed: u64, hashes: &[u64]) -> Vec<u8> {
    let mut section = vec![0; HEAD_BYTES + blocks_for(hashes.len()) * BLOCK_BYTES];
    place_all(&mut section[HEAD_BYTES..], hashes);
    seal_section(seed, &mut section);
    section
}

/// The section as in version 1, for the tests that such files stay readable.
#[cfg(test)]
pub(super) fn build_version_1(seed: u64, hashes: &[u64]) -> Vec<u8> {
    let blocks = (hashes.len() * 12).div_ceil(8 * BLOCK_BYTES).max(1);
    let mut out = vec![0; HEAD_BYTES_V1 + blocks * BLOCK_BYTES];
    out[..8].copy_from_slice(&seed.to_le_bytes());
    for &hash in hashes {
        for group in groups_of(hash) {
            let (byte, bit) = FilterLayout::V1.place(group);
            out[HEAD_BYTES_V1 + block_of(hash, blocks) * BLOCK_BYTES + byte] |= bit;
        }
    }
    out
}

impl Filter {
    /// Parses a section with a valid checksum; `None` if it is malformed.
    pub(super) fn parse(mut section: Vec<u8>, layout: FilterLayout) -> Option<Filter> {
        let head = match layout {
            FilterLayout::V1 => HEAD_BYTES_V1,
            FilterLayout::V2 => HEAD_BYTES,
        };
        let blocks = section.len().checked_sub(head)?;
        if blocks == 0 || !blocks.is_multiple_of(BLOCK_BYTES) {
            return None;
        }
        let keyed = Keyed::new(read_u64(&section, 0));
        section.drain(..head);
        Some(Filter { keyed, layout, blocks: section })
    }

    /// The hash function for its keys.
    pub(super) fn keyed(&self) -> &Keyed {
        &self.keyed
    }

    /// Whether a key with this hash may be present; `false` is certain.
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let block = block_of(hash, self.blocks.len() / BLOCK_BYTES) * BLOCK_BYTES;
        self.layout.passes(&self.blocks[block..block + BLOCK_BYTES], hash)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks.len()
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
            let filter = Filter::parse(build(99, &hashes), FilterLayout::V2).unwrap();
            assert!(hashes.iter().all(|&hash| filter.may_hold(hash)));
            let passed = (100_000..200_000).filter(|&i| filter.may_hold(hash(i))).count();
            assert!(passed < 1_200, "{passed} of 100,000 with {keys} keys");
        }
    }

    #[test]
    fn a_filter_made_too_large_is_halved_and_keeps_its_keys() {
        let keyed = Keyed::new(7);
        let hash = |i: u32| keyed.bytes(Domain::Tag, &i.to_le_bytes());
        for (bound, keys) in [(0, 0), (1, 1), (50_000, 50_000), (100_000, 20_000), (1 << 20, 300)] {
            let mut placed = FilterKeys::placed(bound);
            (0..keys).for_each(|i| placed.add(hash(i)));
            let section = placed.finish(7);
            let most = (4 * blocks_for(keys as usize)).max(1 << HALVINGS) * BLOCK_BYTES;
            let too_large = bound >> HALVINGS > keys as usize;
            assert!(section.len() <= HEAD_BYTES + most || too_large, "{} bytes", section.len());
            let filter = Filter::parse(section, FilterLayout::V2).unwrap();
            assert!((0..keys).all(|i| filter.may_hold(hash(i))));
            let passed = (200_000..300_000).filter(|&i| filter.may_hold(hash(i))).count();
            assert!(passed < 1_200, "{passed} of 100,000 with {keys} keys of {bound}");
        }
    }

    #[test]
    fn sections_of_impossible_length_are_refused() {
        for len in [0, 7, 8, 71, 73] {
            assert!(Filter::parse(vec![0; len], FilterLayout::V1).is_none());
            assert!(Filter::parse(vec![0; len + 8], FilterLayout::V2).is_none());
        }
    }
}
