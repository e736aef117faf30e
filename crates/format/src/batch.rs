//! A batch: the unit of durability. After a crash, either all events of a group commit exist (and
//! so all events of each request in it) or none.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 4 | magic, above any record length |
//! | 4 | 4 | CRC32C of bytes 8…64, continued over the segment's salt |
//! | 8 | 8 | position of the first event |
//! | 16 | 4 | number of events |
//! | 20 | 4 | length of the body (the records) |
//! | 24 | 4 | CRC32C of the body |
//! | 28 | 4 | sector slices of the batch that are all zero as written |
//! | 32 | 8 | epoch of the writer |
//! | 40 | 8 | recorded at, µs since 1970 UTC, of the last event |
//! | 48 | 4 | header CRC of the previous batch in the segment, 0 for the first |
//! | 52 | 4 | everything before this offset was durable when the batch was written |
//! | 56 | 8 | place of its entry in the shared log that this is a copy of, else 0 |
//!
//! The body CRC is the commit marker. The zero-slice count distinguishes a torn write (sectors that
//! never arrived read as zeros) from bit rot; see `recover`.

use crate::place::Place;
use crate::record::{read_u32, read_u64};
use wellspring_types::Position;

/// Bytes of a batch header.
pub const BATCH_HEADER_BYTES: usize = 64;
/// First four bytes of every batch. A record length never reaches 2^31, so the two cannot be
/// confused.
pub const BATCH_MAGIC: u32 = 0xb5a7_c4d1;
/// The unit that a disk is assumed to write atomically.
pub const SECTOR_BYTES: usize = 512;

/// A decoded batch header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Position of its first event.
    pub first: Position,
    /// Number of events, at least 1.
    pub count: u32,
    /// Length of the records in bytes.
    pub body_bytes: u32,
    /// CRC32C of the records.
    pub body_crc: u32,
    /// Number of sector slices of the batch that were all zero when it was written.
    pub zero_slices: u32,
    /// Epoch of its writer.
    pub epoch: u64,
    /// When its last event was recorded, µs since 1970 UTC.
    pub recorded_at_us: u64,
    /// Header CRC of the previous batch in the segment.
    pub previous_crc: u32,
    /// Offset in the segment before which everything was durable when this batch was written.
    pub synced_to: u32,
    /// Place of its entry in the shared log; [`Place`]`(0)` in a log of files.
    pub place: Place,
}

impl BatchHeader {
    /// Encodes the header. Its CRC field chains the next batch to this one.
    #[must_use]
    pub fn encode(&self, salt: u64) -> [u8; BATCH_HEADER_BYTES] {
        let mut bytes = [0u8; BATCH_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&BATCH_MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.count.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_crc.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.zero_slices.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.recorded_at_us.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.previous_crc.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.synced_to.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.place.0.to_le_bytes());
        let crc = header_crc(&bytes, salt);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header; `None` if magic, checksum or a field is wrong.
    #[must_use]
    pub fn decode(bytes: &[u8; BATCH_HEADER_BYTES], salt: u64) -> Option<BatchHeader> {
        if read_u32(bytes, 0) != BATCH_MAGIC || read_u32(bytes, 4) != header_crc(bytes, salt) {
            return None;
        }
        let header = BatchHeader {
            first: read_u64(bytes, 8),
            count: read_u32(bytes, 16),
            body_bytes: read_u32(bytes, 20),
            body_crc: read_u32(bytes, 24),
            zero_slices: read_u32(bytes, 28),
            epoch: read_u64(bytes, 32),
            recorded_at_us: read_u64(bytes, 40),
            previous_crc: read_u32(bytes, 48),
            synced_to: read_u32(bytes, 52),
            place: Place(read_u64(bytes, 56)),
        };
        (header.first > 0 && header.count > 0 && header.body_bytes > 0).then_some(header)
    }

    /// Position of its last event.
    #[must_use]
    pub fn last(&self) -> Position {
        self.first + u64::from(self.count) - 1
    }

    /// Length of header and body.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        BATCH_HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }
}

/// Writes the header of a batch, whose records follow it in `bytes`, for this offset in a segment.
/// Returns the header's CRC, which the next batch names.
pub fn seal(bytes: &mut [u8], offset: u64, mut header: BatchHeader, salt: u64) -> u32 {
    // The zero slices that touch the header are counted with a header in place. Writing the
    // count itself makes no difference: the magic alone keeps the first slice from being zero,
    // and a second header slice is counted as written below.
    header.zero_slices = 0;
    loop {
        let encoded = header.encode(salt);
        bytes[..BATCH_HEADER_BYTES].copy_from_slice(&encoded);
        let slices = zero_slices(bytes, offset);
        if slices == header.zero_slices {
            return read_u32(&encoded, 4);
        }
        header.zero_slices = slices;
    }
}

/// The checksum of an encoded header. The salt is random per segment and never leaves the disk, so
/// no client can send bytes that pass for a header.
#[must_use]
pub fn header_crc(bytes: &[u8; BATCH_HEADER_BYTES], salt: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[8..]), &salt.to_le_bytes())
}

/// The number of all-zero pieces when `bytes`, which lie at `offset` in the file, are split at
/// sector boundaries.
#[must_use]
pub fn zero_slices(bytes: &[u8], offset: u64) -> u32 {
    let mut count = 0;
    let mut rest = bytes;
    let mut room = SECTOR_BYTES - (offset as usize % SECTOR_BYTES);
    while !rest.is_empty() {
        let (slice, after) = rest.split_at(room.min(rest.len()));
        count += u32::from(slice.iter().all(|&byte| byte == 0));
        rest = after;
        room = SECTOR_BYTES;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BatchHeader {
        BatchHeader {
            first: 7,
            count: 3,
            body_bytes: 900,
            body_crc: 1,
            zero_slices: 0,
            epoch: 2,
            recorded_at_us: 3,
            previous_crc: 4,
            synced_to: 64,
            place: Place(8),
        }
    }

    #[test]
    fn a_header_reads_back_and_any_flipped_bit_is_noticed() {
        let bytes = header().encode(99);
        assert_eq!(BatchHeader::decode(&bytes, 99), Some(header()));
        assert_eq!(BatchHeader::decode(&bytes, 98), None);
        for bit in 0..BATCH_HEADER_BYTES * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BatchHeader::decode(&bad, 99), None, "bit {bit}");
        }
    }

    #[test]
    fn slices_are_cut_at_sector_borders() {
        let zeros = [0u8; 1200];
        assert_eq!(zero_slices(&zeros, 0), 3);
        assert_eq!(zero_slices(&zeros, 500), 4);
        let mut mixed = zeros;
        mixed[20] = 1;
        assert_eq!(zero_slices(&mixed, 500), 3);
        assert_eq!(zero_slices(&[], 3), 0);
    }
}
