//! A segment file: a header, then batches, then (while it is the last one)
//! zeros written ahead of time so that a commit overwrites blocks instead of
//! allocating them.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | `WSSEGMNT` |
//! | 8 | 4 | format version |
//! | 12 | 4 | CRC32C of bytes 0…12 and 16…64 |
//! | 16 | 8 | base: position of the first event it will hold |
//! | 24 | 8 | salt, random |
//! | 32 | 8 | epoch of the writer that made it |
//! | 40 | 24 | zero |

use crate::record::{read_u32, read_u64};
use wellspring_types::Position;

/// Bytes of a segment header; the first batch follows at once.
pub const SEGMENT_HEADER_BYTES: usize = 64;
/// The format this program writes.
pub const FORMAT_VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"WSSEGMNT";

/// The header of a segment, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Position of the first event it holds or will hold.
    pub base: Position,
    /// Random, mixed into every batch header's checksum.
    pub salt: u64,
    /// Epoch of the writer that made the file.
    pub epoch: u64,
}

/// Why bytes are not a segment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// Not the header of a segment, or damaged.
    Damaged,
    /// Written by a version this program does not know.
    Version(u32),
}

impl SegmentHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0u8; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.base.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.epoch.to_le_bytes());
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
        // Judged after the checksum: a flipped bit in the version is damage, not a newer program.
        let version = read_u32(bytes, 8);
        if version != FORMAT_VERSION {
            return Err(HeaderFault::Version(version));
        }
        Ok(SegmentHeader {
            base: read_u64(bytes, 16),
            salt: read_u64(bytes, 24),
            epoch: read_u64(bytes, 32),
        })
    }
}

fn checksum(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

/// Name of the segment whose first event has position `base`; names sort like positions.
#[must_use]
pub fn segment_name(base: Position) -> String {
    format!("{base:020}.seg")
}

/// Name of the index of that segment.
#[must_use]
pub fn index_name(base: Position) -> String {
    format!("{base:020}.idx")
}

/// The base in a segment's name; `None` if the name is not a segment's.
#[must_use]
pub fn parse_segment_name(name: &str) -> Option<Position> {
    name.strip_suffix(".seg").filter(|digits| is_base(digits))?.parse().ok()
}

/// Whether a name is an index's.
pub(crate) fn is_index_name(name: &str) -> bool {
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
        let header = SegmentHeader { base: 1, salt: 2, epoch: 3 };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bad), Err(HeaderFault::Damaged), "bit {bit}");
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
