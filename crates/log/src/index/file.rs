//! Reading a sealed index: the seam to the file, and its header.

use super::IndexError;
use crate::record::{read_u32, read_u64};
use std::io;

/// A file that can be read at any offset, by many threads. Not a memory map:
/// an error must arrive as an error.
pub(crate) trait ReadAt: Send + Sync + std::fmt::Debug {
    /// Fills the buffer from the offset on.
    ///
    /// # Errors
    /// Whatever the file system says; `UnexpectedEof` if the file is too short.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Length of the file.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn len(&self) -> io::Result<u64>;
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let bytes = from.and_then(|bytes| bytes.get(..buf.len()));
        buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(Vec::len(self) as u64)
    }
}

/// Reads `len` bytes; a file that ends too early is damaged.
pub(super) fn read(
    file: &dyn ReadAt,
    offset: u64,
    len: usize,
    what: &'static str,
) -> Result<Vec<u8>, IndexError> {
    let mut bytes = vec![0; len];
    read_into(file, offset, &mut bytes, what)?;
    Ok(bytes)
}

/// Fills a buffer; a file that ends too early is damaged.
pub(super) fn read_into(
    file: &dyn ReadAt,
    offset: u64,
    bytes: &mut [u8],
    what: &'static str,
) -> Result<(), IndexError> {
    file.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => IndexError::Damaged { what, offset },
        _ => IndexError::Io(error),
    })
}

pub(super) const MAGIC: [u8; 8] = *b"WSINDEX\n";
/// The version that is written. Version 1 is read; its filter is another ([`super::filter`]).
pub(super) const VERSION: u32 = 2;
pub(super) const SECTIONS: usize = 14;
const SALT_AT: usize = 32;
const SECTIONS_AT: usize = 40;
const SECTION_BYTES: usize = 24;
pub(super) const HEADER_BYTES: usize = SECTIONS_AT + SECTIONS * SECTION_BYTES + 4;

/// The sections in the order they stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Offsets = 0,
    TypeColumn = 1,
    Types = 2,
    TypeDirectory = 3,
    Tags = 4,
    TagDirectory = 5,
    Pairs = 6,
    PairDirectory = 7,
    Ids = 8,
    IdDirectory = 9,
    Keys = 10,
    KeyDirectory = 11,
    Postings = 12,
    Filter = 13,
}

/// Where a section stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// First byte in the file.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) len: u64,
    /// Terms, for the sections of a dictionary; else 0.
    pub(super) items: u32,
    /// CRC32C of the whole, for sections that are read as a whole; else 0.
    pub(super) crc: u32,
}

/// The header of a sealed index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// 1 or 2.
    pub(super) version: u32,
    pub(super) events: u32,
    pub(super) base: u64,
    pub(super) segment_len: u64,
    /// The segment's salt; 0 in files of earlier versions, which do not say.
    pub(super) salt: u64,
    pub(super) sections: [Section; SECTIONS],
}

/// Writes the salt of its segment into the image of an index that has none yet.
pub(crate) fn tie_to_segment(image: &mut [u8], salt: u64) {
    image[SALT_AT..SECTIONS_AT].copy_from_slice(&salt.to_le_bytes());
    let crc = crc32c::crc32c(&image[..HEADER_BYTES - 4]);
    image[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}

impl Header {
    pub(super) fn section(&self, part: Part) -> Section {
        self.sections[part as usize]
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.events.to_le_bytes());
        out.extend_from_slice(&self.base.to_le_bytes());
        out.extend_from_slice(&self.segment_len.to_le_bytes());
        out.extend_from_slice(&self.salt.to_le_bytes());
        assert_eq!(out.len(), SECTIONS_AT);
        for section in &self.sections {
            out.extend_from_slice(&section.offset.to_le_bytes());
            out.extend_from_slice(&section.len.to_le_bytes());
            out.extend_from_slice(&section.items.to_le_bytes());
            out.extend_from_slice(&section.crc.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads and checks the header, and that the sections fill the file exactly.
    pub(super) fn read(file: &dyn ReadAt) -> Result<Header, IndexError> {
        let damaged = |what, at: usize| IndexError::Damaged { what, offset: at as u64 };
        let bytes = read(file, 0, HEADER_BYTES, "header")?;
        if bytes[..8] != MAGIC {
            return Err(damaged("magic number", 0));
        }
        let version = read_u32(&bytes, 8);
        if !(1..=VERSION).contains(&version) {
            return Err(IndexError::Version(version));
        }
        if crc32c::crc32c(&bytes[..HEADER_BYTES - 4]) != read_u32(&bytes, HEADER_BYTES - 4) {
            return Err(damaged("header checksum", HEADER_BYTES - 4));
        }
        let mut sections = [Section::default(); SECTIONS];
        let mut end = HEADER_BYTES as u64;
        for (i, section) in sections.iter_mut().enumerate() {
            let at = SECTIONS_AT + i * SECTION_BYTES;
            *section = Section {
                offset: read_u64(&bytes, at),
                len: read_u64(&bytes, at + 8),
                items: read_u32(&bytes, at + 16),
                crc: read_u32(&bytes, at + 20),
            };
            let next = end.checked_add(section.len).filter(|_| section.offset == end);
            end = next.ok_or(damaged("section table", at))?;
        }
        if end != file.len().map_err(IndexError::Io)? {
            return Err(damaged("length of the file", 0));
        }
        Ok(Header {
            version,
            events: read_u32(&bytes, 12),
            base: read_u64(&bytes, 16),
            segment_len: read_u64(&bytes, 24),
            salt: read_u64(&bytes, SALT_AT),
            sections,
        })
    }
}
