//! The interface to the file of a sealed index, and the file's header.

use super::IndexError;
use std::io;
use std::sync::Arc;
use wellspring_format::record::{read_u32, read_u64};

/// A file that many threads can read at any offset. Not a memory map: an I/O error must be returned
/// as an error.
pub(crate) trait ReadAt: Send + Sync + std::fmt::Debug {
    /// Fills the buffer from this offset.
    ///
    /// # Errors
    /// An error of the file system; `UnexpectedEof` if the file is too short.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Length of the file.
    ///
    /// # Errors
    /// An error of the file system.
    fn len(&self) -> io::Result<u64>;

    /// The same bytes as the device has them, for checks; `None` if there is no difference.
    fn past_cache(&self) -> Option<Arc<dyn ReadAt>> {
        None
    }
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

/// A file being written.
pub(crate) trait WriteAt {
    /// Writes all of `bytes`; may extend the file.
    ///
    /// # Errors
    /// An error of the file system.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

#[cfg(test)]
impl WriteAt for std::cell::RefCell<Vec<u8>> {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut file, start) = (self.borrow_mut(), offset as usize);
        let end = start + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[start..end].copy_from_slice(bytes);
        Ok(())
    }
}

/// Reads `len` bytes; a file that is too short is damaged.
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

/// Fills a buffer; a file that is too short is damaged.
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
/// The version written. Versions 1 and 2 can be read: they have no section of segments, and version
/// 1 has another filter ([`super::filter`]).
pub(super) const VERSION: u32 = 3;
pub(super) const SECTIONS: usize = 15;
const SALT_AT: usize = 32;
const SECTIONS_AT: usize = 40;
const SECTION_BYTES: usize = 24;
const EXTENT_BYTES: usize = 24;
/// Maximum number of segments that one index can cover.
pub(crate) const MOST_SEGMENTS: usize = 512;

/// Number of sections in a file of this version.
const fn sections(version: u32) -> usize {
    if version < 3 { SECTIONS - 1 } else { SECTIONS }
}

/// Size of the header in a file of this version.
pub(super) const fn header_bytes(version: u32) -> usize {
    SECTIONS_AT + sections(version) * SECTION_BYTES + 4
}

/// The sections in file order.
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
    Segments = 14,
}

/// A segment that an index covers: enough to distinguish it from another with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentExtent {
    /// Position of its first event.
    pub(crate) base: u64,
    /// End of its last batch, in bytes.
    pub(crate) end: u64,
    /// The salt of its header; 0 in indexes of the first version, which do not contain it.
    pub(crate) salt: u64,
}

/// The location of a section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// First byte in the file.
    pub(super) offset: u64,
    /// Size in bytes.
    pub(super) len: u64,
    /// Number of terms, for sections of a dictionary; otherwise 0.
    pub(super) items: u32,
    /// CRC32C of the whole section, if it is read as a whole; otherwise 0.
    pub(super) crc: u32,
}

/// The header of a sealed index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// 1 to [`VERSION`].
    pub(super) version: u32,
    pub(super) events: u32,
    /// The first segment that it covers.
    pub(super) first: SegmentExtent,
    /// Sections that the version lacks are empty.
    pub(super) sections: [Section; SECTIONS],
}

impl Header {
    pub(super) fn section(&self, part: Part) -> Section {
        self.sections[part as usize]
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(header_bytes(self.version));
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.events.to_le_bytes());
        out.extend_from_slice(&self.first.base.to_le_bytes());
        out.extend_from_slice(&self.first.end.to_le_bytes());
        out.extend_from_slice(&self.first.salt.to_le_bytes());
        assert_eq!(out.len(), SECTIONS_AT);
        for section in &self.sections[..sections(self.version)] {
            out.extend_from_slice(&section.offset.to_le_bytes());
            out.extend_from_slice(&section.len.to_le_bytes());
            out.extend_from_slice(&section.items.to_le_bytes());
            out.extend_from_slice(&section.crc.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads and checks the header, and checks that the sections fill the file exactly.
    pub(super) fn read(file: &dyn ReadAt) -> Result<Header, IndexError> {
        let damaged = |what, at: usize| IndexError::Damaged { what, offset: at as u64 };
        let file_bytes = file.len().map_err(IndexError::Io)?;
        // Enough for the header of any version; at least the shortest must be present.
        let len = file_bytes.clamp(header_bytes(1) as u64, header_bytes(VERSION) as u64);
        let mut bytes = read(file, 0, len as usize, "header")?;
        if bytes[..8] != MAGIC {
            return Err(damaged("magic number", 0));
        }
        let version = read_u32(&bytes, 8);
        if !(1..=VERSION).contains(&version) {
            return Err(IndexError::Version(version));
        }
        let header_bytes = header_bytes(version);
        if bytes.len() < header_bytes {
            return Err(damaged("header", 0));
        }
        bytes.truncate(header_bytes);
        if crc32c::crc32c(&bytes[..header_bytes - 4]) != read_u32(&bytes, header_bytes - 4) {
            return Err(damaged("header checksum", header_bytes - 4));
        }
        let mut sections = [Section::default(); SECTIONS];
        let mut end = header_bytes as u64;
        for (i, section) in sections.iter_mut().take(self::sections(version)).enumerate() {
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
        if end != file_bytes {
            return Err(damaged("length of the file", 0));
        }
        let (base, end) = (read_u64(&bytes, 16), read_u64(&bytes, 24));
        let first = SegmentExtent { base, end, salt: read_u64(&bytes, SALT_AT) };
        Ok(Header { version, events: read_u32(&bytes, 12), first, sections })
    }

    /// All segments it covers, ascending.
    pub(super) fn segments(&self, file: &dyn ReadAt) -> Result<Vec<SegmentExtent>, IndexError> {
        let section = self.section(Part::Segments);
        let damaged = IndexError::Damaged { what: "segments", offset: section.offset };
        let mut segments = vec![self.first];
        if section.len == 0 {
            return Ok(segments);
        }
        if section.len > (MOST_SEGMENTS * EXTENT_BYTES) as u64 {
            return Err(damaged);
        }
        let bytes = read(file, section.offset, section.len as usize, "segments")?;
        let (extents, rest) = bytes.as_chunks::<EXTENT_BYTES>();
        if crc32c::crc32c(&bytes) != section.crc || !rest.is_empty() {
            return Err(damaged);
        }
        segments.extend(extents.iter().map(|extent| SegmentExtent {
            base: read_u64(extent, 0),
            end: read_u64(extent, 8),
            salt: read_u64(extent, 16),
        }));
        let ordered = segments.windows(2).all(|pair| pair[0].base < pair[1].base);
        let last = segments.last().map_or(0, |segment| segment.base);
        if ordered && last - self.first.base <= u64::from(self.events) {
            return Ok(segments);
        }
        Err(damaged)
    }
}

/// The section for all segments but the first.
pub(super) fn put_segments(out: &mut Vec<u8>, segments: &[SegmentExtent]) {
    for segment in segments {
        for number in [segment.base, segment.end, segment.salt] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}
