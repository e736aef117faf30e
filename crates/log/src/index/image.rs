//! Writes the file of a sealed index section by section, so that only a part of it is in memory.

use super::IndexError;
use super::file::{Header, Part, Section, SegmentExtent, WriteAt, header_bytes};

/// Size of the write buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// The writer; see the module's documentation.
pub(super) struct Image<'f> {
    file: &'f dyn WriteAt,
    header: Header,
    /// Number of bytes in the file.
    written: u64,
    /// The bytes after those.
    buffer: Vec<u8>,
    /// Start of the current section.
    section_at: u64,
}

impl<'f> Image<'f> {
    pub(super) fn new(
        file: &'f dyn WriteAt,
        version: u32,
        events: u32,
        first: SegmentExtent,
    ) -> Image<'f> {
        let header = Header { version, events, first, sections: Default::default() };
        // The header is written last: until then the file is not recognized as an index.
        let section_at = header_bytes(version) as u64;
        Image { file, header, written: section_at, buffer: Vec::new(), section_at }
    }

    /// Adds bytes to the current section.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), IndexError> {
        if bytes.len() < BUFFER_BYTES {
            self.buffer.extend_from_slice(bytes);
            return if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) };
        }
        self.flush()?;
        self.file.write_all_at(bytes, self.written).map_err(IndexError::Io)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IndexError> {
        self.file.write_all_at(&self.buffer, self.written).map_err(IndexError::Io)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Size of the current section so far.
    pub(super) fn section_len(&self) -> u64 {
        self.written + self.buffer.len() as u64 - self.section_at
    }

    /// Ends a section, which contains everything put since the previous one.
    pub(super) fn end_section(&mut self, part: Part, items: u32, crc: u32) {
        let len = self.section_len();
        let section = Section { offset: self.section_at, len, items, crc };
        self.header.sections[part as usize] = section;
        self.section_at += len;
    }

    /// Adds a section that is read as a whole.
    pub(super) fn put_whole(&mut self, part: Part, bytes: &[u8]) -> Result<(), IndexError> {
        assert_eq!(self.section_len(), 0, "one section after the other");
        self.put(bytes)?;
        self.end_section(part, 0, crc32c::crc32c(bytes));
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), IndexError> {
        self.flush()?;
        self.file.write_all_at(&self.header.encode(), 0).map_err(IndexError::Io)
    }
}

#[cfg(test)]
impl Image<'_> {
    /// A finished section, counted from the end of the header.
    pub(super) fn section(&self, part: Part) -> Section {
        let section = self.header.section(part);
        Section { offset: section.offset - header_bytes(self.header.version) as u64, ..section }
    }
}

/// Only the bytes that `write` puts after the header.
#[cfg(test)]
pub(super) fn image_of(write: impl FnOnce(&mut Image<'_>) -> Result<(), IndexError>) -> Vec<u8> {
    let file = std::cell::RefCell::new(Vec::new());
    let extent = SegmentExtent { base: 1, end: 0, salt: 0 };
    let mut image = Image::new(&file, super::file::VERSION, 0, extent);
    write(&mut image).expect("a file in memory takes everything");
    image.flush().expect("a file in memory takes everything");
    file.into_inner().split_off(header_bytes(super::file::VERSION))
}
