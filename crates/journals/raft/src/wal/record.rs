//! Records, and the headers of the files that they are in: `docs/format.md` has the fields.

use super::fault::WalFault;
use bytes::{Buf as _, BufMut as _, Bytes};
use wellspring_format::batch::SECTOR_BYTES;
use wellspring_format::record::{read_u32, read_u64};

/// Most bytes in the body of an entry.
pub const MAX_ENTRY_BYTES: usize = 16 << 20;
pub(super) const RECORD_HEADER_BYTES: usize = 40;
const CRC_AT: usize = 36;
const LAST_OF_WRITE: u8 = 1;
const MAGIC: &[u8; 8] = b"WSRFTWAL";
const VERSION: u32 = 1;

/// What names an entry. Before the first one, both numbers are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EntryId {
    /// The term in which it was proposed.
    pub term: u64,
    /// Its place in the order, from 1, dense.
    pub index: u64,
}

impl EntryId {
    /// Appends its 16 bytes, little-endian: the term, the index.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.put_u64_le(self.term);
        out.put_u64_le(self.index);
    }

    /// Takes what [`put`](Self::put) has appended.
    pub(crate) fn take(bytes: &mut Bytes) -> Option<EntryId> {
        let (term, index) = (bytes.try_get_u64_le().ok()?, bytes.try_get_u64_le().ok()?);
        Some(EntryId { term, index })
    }
}

/// An entry of the group's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// What the engine proposed; at most [`MAX_ENTRY_BYTES`].
    pub body: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Entry = 1,
    /// Ends a conflicting tail: entries after the one it names are void.
    Cut = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) kind: RecordKind,
    /// Whether it is the last of its write: a barrier follows.
    pub(super) is_last: bool,
    pub(super) id: EntryId,
    pub(super) body_bytes: u32,
    pub(super) body_crc: u32,
    pub(super) link: u32,
    pub(super) write: u32,
}

impl RecordHeader {
    /// Its bytes, and the link of the next record.
    pub(super) fn encode(&self) -> ([u8; RECORD_HEADER_BYTES], u32) {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        bytes[0] = self.kind as u8;
        bytes[2] = if self.is_last { LAST_OF_WRITE } else { 0 };
        bytes[4..8].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.id.term.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.id.index.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_crc.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.link.to_le_bytes());
        bytes[32..CRC_AT].copy_from_slice(&self.write.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }

    /// The header, and the link of the next record; `None` if it is damaged.
    pub(super) fn decode(bytes: &[u8; RECORD_HEADER_BYTES]) -> Option<(RecordHeader, u32)> {
        let crc = read_u32(bytes, CRC_AT);
        let is_known = bytes[1] == 0 && bytes[2] & !LAST_OF_WRITE == 0 && bytes[3] == 0;
        if crc != crc32c::crc32c(&bytes[..CRC_AT]) || !is_known {
            return None;
        }
        let header = RecordHeader {
            kind: match bytes[0] {
                1 => RecordKind::Entry,
                2 => RecordKind::Cut,
                _ => return None,
            },
            is_last: bytes[2] == LAST_OF_WRITE,
            id: EntryId { term: read_u64(bytes, 8), index: read_u64(bytes, 16) },
            body_bytes: read_u32(bytes, 4),
            body_crc: read_u32(bytes, 24),
            link: read_u32(bytes, 28),
            write: read_u32(bytes, 32),
        };
        (header.body_bytes as usize <= MAX_ENTRY_BYTES).then_some((header, crc))
    }

    pub(super) fn total_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) number: u32,
    pub(super) link: u32,
    pub(super) node_id: u64,
    /// The last entry before the file.
    pub(super) base: EntryId,
    /// Bytes of records in the file before.
    pub(super) end_before: u64,
}

impl FileHeader {
    pub(super) fn encode(&self) -> [u8; SECTOR_BYTES] {
        let mut bytes = [0; SECTOR_BYTES];
        bytes[4..12].copy_from_slice(MAGIC);
        bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.number.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.link.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.node_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.base.term.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.base.index.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.end_before.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes the header of the file with this number, of this node.
    pub(super) fn decode(bytes: &[u8], number: u32, node_id: u64) -> Result<FileHeader, WalFault> {
        let file = file_name(number);
        let damaged = |what| WalFault::damaged(&file, 0, what);
        if read_u32(bytes, 0) != crc32c::crc32c(&bytes[4..]) || &bytes[4..12] != MAGIC {
            return Err(damaged("the header of the file fails its checksum"));
        }
        let version = read_u32(bytes, 12);
        if version != VERSION {
            return Err(WalFault::Version { file, version });
        }
        if read_u32(bytes, 16) != number || read_u64(bytes, 24) != node_id {
            return Err(damaged("it is the file of another node, or has another file's name"));
        }
        let base = EntryId { term: read_u64(bytes, 32), index: read_u64(bytes, 40) };
        let (link, end_before) = (read_u32(bytes, 20), read_u64(bytes, 48));
        Ok(FileHeader { number, link, node_id, base, end_before })
    }
}

/// The name of the file with this number.
pub(super) fn file_name(number: u32) -> String {
    format!("wal-{number}")
}

/// The number of the file with this name; `None` if it is not a file of the WAL.
pub(super) fn file_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("wal-")?.parse().ok()?;
    (file_name(number) == name && number > 0).then_some(number)
}
