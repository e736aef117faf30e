//! A segment file: a header, then batches, then (while it is the last one) preallocated zeros, so
//! that a commit overwrites blocks instead of allocating them.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | `WSSEGMNT` |
//! | 8 | 4 | format version: 1 in a log of files, 2 in a copy of a shared log, 3 with features |
//! | 12 | 4 | CRC32C of bytes 0…12 and 16…64 |
//! | 16 | 8 | base: position of the first event it will hold |
//! | 24 | 8 | salt, random |
//! | 32 | 8 | epoch of the writer that made it |
//! | 40 | 4 | version 2: chain of the batch before its first, 0 if there is none; else zero |
//! | 44 | 4 | version 3: features that a reader has to know, see [`Features`]; else zero |
//! | 48 | 8 | version 2: place in the shared log after which its first batch is found; else zero |
//! | 56 | 8 | zero |
//!
//! A copy has a separate version, so that a program without support for shared logs refuses to
//! append to it. A segment has version 3 from the first record on that needs a feature, so that a
//! program without it refuses the segment and does not call the record damaged.

use crate::place::Place;
use crate::record::{read_u32, read_u64};
use std::hash::{BuildHasher, RandomState};
use wellspring_types::Position;

/// Size of a segment header; the first batch follows immediately.
pub const SEGMENT_HEADER_BYTES: usize = 64;
/// The format of a log of files.
pub const FORMAT_VERSION: u32 = 1;
/// The format of a copy of a shared log.
pub const COPY_FORMAT_VERSION: u32 = 2;
/// The format of a log of files with [`Features`].
pub const FEATURES_FORMAT_VERSION: u32 = 3;
const MAGIC: &[u8; 8] = b"WSSEGMNT";
const FEATURES_AT: usize = 44;

/// What a program has to know to read a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Features {
    /// Version 1 or 2.
    #[default]
    None,
    /// Bit 0: records with [sealed parts](crate::sealed_parts).
    SealedParts,
}

impl Features {
    fn bits(self) -> u32 {
        match self {
            Features::None => 0,
            Features::SealedParts => 1,
        }
    }
}

/// A decoded segment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Position of the first event it holds or will hold.
    pub base: Position,
    /// Random; part of every batch header's checksum.
    pub salt: u64,
    /// Epoch of the writer that created the file.
    pub epoch: u64,
    /// The origin of its batches, if it is a copy.
    pub source: Option<SegmentSource>,
    /// What it takes to read it.
    pub features: Features,
}

/// Where in the shared log a copy's segment can be fetched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentSource {
    /// The segment's first batch is after this place.
    pub after: Place,
    /// [`BatchId::chain`](crate::place::BatchId::chain) of the batch before its first; 0 if
    /// there is none.
    pub chain: u32,
}

/// A new salt.
#[must_use]
pub fn draw_salt() -> u64 {
    // Keyed anew by the system at each start, and different at each call.
    RandomState::new().hash_one("salt of a segment")
}

/// Why bytes are not a valid segment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// Not a segment header, or damaged.
    Damaged,
    /// Written by an unsupported version, or with features that this one does not know.
    Version(u32),
}

impl SegmentHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0u8; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let version = match (self.source, self.features) {
            (None, Features::None) => FORMAT_VERSION,
            (Some(_), Features::None) => COPY_FORMAT_VERSION,
            (None, Features::SealedParts) => FEATURES_FORMAT_VERSION,
            (Some(_), Features::SealedParts) => unreachable!("copies have no sealed parts"),
        };
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.base.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.epoch.to_le_bytes());
        let source = self.source.unwrap_or_default();
        bytes[40..44].copy_from_slice(&source.chain.to_le_bytes());
        bytes[FEATURES_AT..48].copy_from_slice(&self.features.bits().to_le_bytes());
        bytes[48..56].copy_from_slice(&source.after.0.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// [`HeaderFault`].
    pub fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<SegmentHeader, HeaderFault> {
        if &bytes[..8] != MAGIC || read_u32(bytes, 12) != checksum(bytes) {
            return Err(HeaderFault::Damaged);
        }
        // Checked after the checksum: a flipped bit in the version is damage, not a newer version.
        let (source, features) = match (read_u32(bytes, 8), read_u32(bytes, FEATURES_AT)) {
            (FORMAT_VERSION, _) => (None, Features::None),
            (COPY_FORMAT_VERSION, _) => {
                let after = Place(read_u64(bytes, 48));
                let source = SegmentSource { after, chain: read_u32(bytes, 40) };
                (Some(source), Features::None)
            }
            (FEATURES_FORMAT_VERSION, 1) => (None, Features::SealedParts),
            (version, _) => return Err(HeaderFault::Version(version)),
        };
        Ok(SegmentHeader {
            base: read_u64(bytes, 16),
            salt: read_u64(bytes, 24),
            epoch: read_u64(bytes, 32),
            source,
            features,
        })
    }
}

fn checksum(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

/// The name of the segment whose first event has position `base`; names sort like positions.
#[must_use]
pub fn segment_name(base: Position) -> String {
    format!("{base:020}.seg")
}

/// The name of that segment's index.
#[must_use]
pub fn index_name(base: Position) -> String {
    format!("{base:020}.idx")
}

/// The base in a segment's name; `None` if it is not a segment's name.
#[must_use]
pub fn parse_segment_name(name: &str) -> Option<Position> {
    name.strip_suffix(".seg").filter(|digits| is_base(digits))?.parse().ok()
}

/// Whether a name is an index's.
#[must_use]
pub fn is_index_name(name: &str) -> bool {
    name.strip_suffix(".idx").is_some_and(is_base)
}

fn is_base(digits: &str) -> bool {
    digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_any_flipped_bit_is_damage() {
        let source = SegmentSource { after: Place(4), chain: 5 };
        let kinds =
            [(None, Features::None), (Some(source), Features::None), (None, Features::SealedParts)];
        for (source, features) in kinds {
            let header = SegmentHeader { base: 1, salt: 2, epoch: 3, source, features };
            let bytes = header.encode();
            assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
            for bit in 0..SEGMENT_HEADER_BYTES * 8 {
                let mut bad = bytes;
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(SegmentHeader::decode(&bad), Err(HeaderFault::Damaged), "bit {bit}");
            }
        }
    }

    #[test]
    fn names_sort_like_positions() {
        assert_eq!(parse_segment_name(&segment_name(42)), Some(42));
        assert!(segment_name(9) < segment_name(10));
        assert_eq!(parse_segment_name("00000000000000000042.idx"), None);
        assert_eq!(parse_segment_name("42.seg"), None);
        assert_eq!(parse_segment_name("99999999999999999999.seg"), None);
    }
}
