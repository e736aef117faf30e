//! A sorted dictionary of a sealed index: byte strings, each with a posting list.
//!
//! Terms are in byte order, in blocks of a fixed number of terms (the last may have fewer). A term
//! within a block:
//!
//! | size | field |
//! |---|---|
//! | 1 | bytes shared with the previous term; 0 for the first |
//! | 1+k | length of the rest; the rest |
//! | … | its list: see [`super::sealed_list`] |
//!
//! The directory, one section, is read as a whole when needed and kept under the budget of
//! [`super::loaded`]: per block 16 bytes (offset of its first term in the directory u32, CRC32C of
//! the block u32, offset of the block in its section u64), then those first terms.

use super::IndexError;
use super::file::{Part, ReadAt, Section, read};
use super::image::Image;
use super::loaded::Slot;
use super::sealed_list::SealedList;
use std::sync::Arc;
use wellspring_format::record::{read_u32, read_u64};

const ENTRY_BYTES: usize = 16;
/// A dictionary of at most this size is kept in memory once read: types are few, and every query
/// uses them.
const RESIDENT_BYTES: u64 = 64 << 10;

/// Writes the two sections of a dictionary, block by block.
#[derive(Debug)]
pub(super) struct DictionaryWriter {
    per_block: usize,
    terms: u32,
    previous: Vec<u8>,
    /// The block being filled.
    block: Vec<u8>,
    /// Per block: offset of its first term in `firsts`, CRC, offset of the block.
    entries: Vec<(u32, u32, u64)>,
    firsts: Vec<u8>,
}

impl DictionaryWriter {
    pub(super) fn new(per_block: usize) -> DictionaryWriter {
        DictionaryWriter {
            per_block,
            terms: 0,
            previous: Vec::new(),
            block: Vec::new(),
            entries: Vec::new(),
            firsts: Vec::new(),
        }
    }

    /// Adds a term greater than all previous ones, with its list.
    pub(super) fn push(
        &mut self,
        term: &[u8],
        values: &[u32],
        postings: &mut Vec<u8>,
        image: &mut Image<'_>,
    ) -> Result<(), IndexError> {
        debug_assert!(self.terms == 0 || self.previous.as_slice() < term);
        let mut shared = 0;
        if (self.terms as usize).is_multiple_of(self.per_block) {
            self.close_block(image)?;
            self.entries.push((self.firsts.len() as u32, 0, image.section_len()));
            self.firsts.extend_from_slice(term);
        } else {
            shared = shared_bytes(&self.previous, term);
        }
        debug_assert!(u8::try_from(term.len()).is_ok(), "a length takes one byte");
        self.block.push(shared as u8);
        self.block.push((term.len() - shared) as u8);
        self.block.extend_from_slice(&term[shared..]);
        super::sealed_list::put(&mut self.block, postings, values);
        self.previous.truncate(shared);
        self.previous.extend_from_slice(&term[shared..]);
        self.terms += 1;
        Ok(())
    }

    fn close_block(&mut self, image: &mut Image<'_>) -> Result<(), IndexError> {
        if let Some(entry) = self.entries.last_mut() {
            entry.1 = crc32c::crc32c(&self.block);
            image.put(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    /// Ends the section of the blocks, whose table entry has the checksum `crc`, and writes that of
    /// the directory.
    pub(super) fn finish(
        mut self,
        parts: (Part, Part),
        crc: u32,
        image: &mut Image<'_>,
    ) -> Result<(), IndexError> {
        self.close_block(image)?;
        image.end_section(parts.0, self.terms, crc);
        let keys_at = self.entries.len() * ENTRY_BYTES;
        let mut directory = Vec::with_capacity(keys_at + self.firsts.len());
        for (first_at, crc, block_at) in self.entries {
            directory.extend_from_slice(&(keys_at as u32 + first_at).to_le_bytes());
            directory.extend_from_slice(&crc.to_le_bytes());
            directory.extend_from_slice(&block_at.to_le_bytes());
        }
        directory.extend_from_slice(&self.firsts);
        image.put_whole(parts.1, &directory)
    }
}

/// Number of bytes that two texts begin with alike.
fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    let whole = 8 * words.take_while(|(a, b)| a == b).count();
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

/// A dictionary in a file.
#[derive(Debug)]
pub(super) struct Dictionary {
    what: &'static str,
    per_block: u32,
    blocks: Section,
    directory: Section,
    postings: Section,
    events: u32,
    loaded: Slot<Vec<u8>>,
    resident: Slot<Vec<u8>>,
}

impl Dictionary {
    pub(super) fn new(
        what: &'static str,
        per_block: usize,
        blocks: Section,
        directory: Section,
        postings: Section,
        events: u32,
    ) -> Dictionary {
        let (loaded, resident) = (Slot::new(), Slot::new());
        let per_block = per_block as u32;
        Dictionary { what, per_block, blocks, directory, postings, events, loaded, resident }
    }

    fn damaged(&self, offset: u64) -> IndexError {
        IndexError::Damaged { what: self.what, offset }
    }

    pub(super) fn terms(&self) -> u32 {
        self.blocks.items
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.loaded.measure(Vec::len) + self.resident.measure(Vec::len)
    }

    /// Whether it is kept in memory as a whole once it has been read.
    pub(super) fn is_small(&self) -> bool {
        self.blocks.len <= RESIDENT_BYTES
    }

    fn block_count(&self) -> usize {
        self.terms().div_ceil(self.per_block) as usize
    }

    fn directory(&self, file: &dyn ReadAt) -> Result<Arc<Vec<u8>>, IndexError> {
        if let Some(directory) = self.loaded.get() {
            return Ok(directory);
        }
        let bytes = self.read_directory(file)?;
        let len = bytes.len();
        Ok(self.loaded.put(bytes, len))
    }

    fn read_directory(&self, file: &dyn ReadAt) -> Result<Vec<u8>, IndexError> {
        let at = self.directory.offset;
        // The header check guarantees that the section is within the file.
        let len = usize::try_from(self.directory.len).map_err(|_| self.damaged(at))?;
        let bytes = read(file, at, len, self.what)?;
        if crc32c::crc32c(&bytes) != self.directory.crc || len < self.block_count() * ENTRY_BYTES {
            return Err(self.damaged(at));
        }
        Ok(bytes)
    }

    /// The first term of a block.
    fn first<'d>(&self, directory: &'d [u8], block: usize) -> Result<&'d [u8], IndexError> {
        let start = read_u32(directory, block * ENTRY_BYTES) as usize;
        let end = match block + 1 {
            next if next < self.block_count() => read_u32(directory, next * ENTRY_BYTES) as usize,
            _ => directory.len(),
        };
        directory.get(start..end).ok_or_else(|| self.damaged(self.directory.offset))
    }

    /// The last block whose first term is not greater than `term`; block 0 if there is none.
    fn block_for(&self, directory: &[u8], term: &[u8]) -> Result<usize, IndexError> {
        let (mut low, mut high) = (0, self.block_count());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.first(directory, middle)? <= term { low = middle } else { high = middle }
        }
        Ok(low)
    }

    fn block(
        &self,
        file: &dyn ReadAt,
        directory: &[u8],
        block: usize,
    ) -> Result<Vec<u8>, IndexError> {
        let entry = &directory[block * ENTRY_BYTES..];
        let start = read_u64(entry, 8);
        let end = match block + 1 {
            next if next < self.block_count() => read_u64(directory, next * ENTRY_BYTES + 8),
            _ => self.blocks.len,
        };
        if start > end || end > self.blocks.len {
            return Err(self.damaged(self.directory.offset));
        }
        let at = self.blocks.offset + start;
        let len = usize::try_from(end - start).map_err(|_| self.damaged(at))?;
        let bytes = if self.is_small() {
            let start = start as usize;
            self.resident(file)?[start..start + len].to_vec()
        } else {
            read(file, at, len, self.what)?
        };
        if crc32c::crc32c(&bytes) != read_u32(entry, 4) {
            return Err(self.damaged(at));
        }
        Ok(bytes)
    }

    fn resident(&self, file: &dyn ReadAt) -> Result<Arc<Vec<u8>>, IndexError> {
        if let Some(bytes) = self.resident.get() {
            return Ok(bytes);
        }
        let len = self.blocks.len as usize;
        let bytes = read(file, self.blocks.offset, len, self.what)?;
        Ok(self.resident.put(bytes, len))
    }

    /// The term's number in byte order, and its list.
    pub(super) fn find(
        &self,
        file: &dyn ReadAt,
        term: &[u8],
    ) -> Result<Option<(u32, SealedList)>, IndexError> {
        let mut found = None;
        self.walk(file, term, |number, candidate, list| {
            if candidate == term {
                found = Some((number, list));
            }
            Ok(false)
        })?;
        Ok(found)
    }

    /// The terms from `from` on in byte order, with their numbers and lists, until `f` returns
    /// false.
    pub(super) fn walk(
        &self,
        file: &dyn ReadAt,
        from: &[u8],
        mut f: impl FnMut(u32, &[u8], SealedList) -> Result<bool, IndexError>,
    ) -> Result<(), IndexError> {
        if self.terms() == 0 {
            return Ok(());
        }
        let directory = self.directory(file)?;
        let block = self.block_for(&directory, from)?;
        let mut scan = DictionaryScan::new(self, directory, block);
        while let Some(number) = scan.next(file)? {
            if scan.term() < from {
                continue;
            }
            let list = std::mem::take(&mut scan.list);
            if !f(number, &scan.term, list)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// All terms in byte order. Data read for this is not kept under the budget, where it would
    /// displace what readers use.
    pub(super) fn scan(&self, file: &dyn ReadAt) -> Result<DictionaryScan<'_>, IndexError> {
        let directory = match self.loaded.get() {
            Some(directory) => directory,
            None => Arc::new(self.read_directory(file)?),
        };
        Ok(DictionaryScan::new(self, directory, 0))
    }

    fn next_term(&self, bytes: &[u8], at: &mut usize, term: &mut Vec<u8>) -> Option<()> {
        let (&shared, &rest) = (bytes.get(*at)?, bytes.get(*at + 1)?);
        let rest = bytes.get(*at + 2..*at + 2 + usize::from(rest))?;
        if usize::from(shared) > term.len() {
            return None;
        }
        term.truncate(usize::from(shared));
        term.extend_from_slice(rest);
        *at += 2 + rest.len();
        Some(())
    }
}

/// Iterates over the terms of a dictionary from some block on.
#[derive(Debug)]
pub(super) struct DictionaryScan<'d> {
    dictionary: &'d Dictionary,
    directory: Arc<Vec<u8>>,
    /// The block after the one in `bytes`.
    block: usize,
    bytes: Vec<u8>,
    /// Offset of the next term in `bytes`.
    at: usize,
    /// Number of the next term, and of the first one after those in `bytes`.
    number: u32,
    end: u32,
    term: Vec<u8>,
    list: SealedList,
}

impl<'d> DictionaryScan<'d> {
    fn new(dictionary: &'d Dictionary, directory: Arc<Vec<u8>>, block: usize) -> Self {
        let number = block as u32 * dictionary.per_block;
        DictionaryScan {
            dictionary,
            directory,
            block,
            bytes: Vec::new(),
            at: 0,
            number,
            end: number,
            term: Vec::new(),
            list: SealedList::default(),
        }
    }

    /// The current term.
    pub(super) fn term(&self) -> &[u8] {
        &self.term
    }

    /// The current term's list.
    pub(super) fn list(&mut self) -> &mut SealedList {
        &mut self.list
    }

    /// Advances to the next term; returns its number.
    pub(super) fn next(&mut self, file: &dyn ReadAt) -> Result<Option<u32>, IndexError> {
        let dictionary = self.dictionary;
        if self.number == self.end {
            if self.number >= dictionary.terms() {
                return Ok(None);
            }
            self.bytes = dictionary.block(file, &self.directory, self.block)?;
            self.block += 1;
            self.end = dictionary.terms().min(self.number + dictionary.per_block);
            self.at = 0;
            self.term.clear();
        }
        let (bytes, at) = (&self.bytes, &mut self.at);
        let term = dictionary.next_term(bytes, at, &mut self.term);
        let read =
            term.and_then(|()| self.list.take(bytes, at, dictionary.events, dictionary.postings));
        if read.is_none() {
            return Err(dictionary.damaged(dictionary.blocks.offset));
        }
        self.number += 1;
        Ok(Some(self.number - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::image_of;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn terms_read_back_in_order(
            terms in prop::collection::btree_set(prop::collection::vec(0u8..4, 0..6), 0..300),
            probes in prop::collection::vec(prop::collection::vec(0u8..5, 0..6), 0..20),
            per_block in 1usize..40,
        ) {
            let mut parts = [Section::default(); 2];
            let file = image_of(|image| {
                let (mut writer, mut postings) = (DictionaryWriter::new(per_block), Vec::new());
                for (i, term) in terms.iter().enumerate() {
                    writer.push(term, &[i as u32], &mut postings, image)?;
                }
                writer.finish((Part::Types, Part::TypeDirectory), 0, image)?;
                parts = [Part::Types, Part::TypeDirectory].map(|part| image.section(part));
                Ok(())
            });
            let [blocks, directory] = parts;
            let dictionary =
                Dictionary::new("test", per_block, blocks, directory, Section::default(), 1000);
            for (i, term) in terms.iter().enumerate() {
                let (number, mut list) = dictionary.find(&file, term).unwrap().unwrap();
                prop_assert_eq!((number, list.get(&file, 0, 1000).unwrap()), (i as u32, i as u32));
            }
            for probe in probes {
                prop_assert_eq!(dictionary.find(&file, &probe).unwrap().is_some(), terms.contains(&probe));
                let mut seen = Vec::new();
                dictionary.walk(&file, &probe, |_, term, _| { seen.push(term.to_vec()); Ok(true) }).unwrap();
                prop_assert_eq!(seen, terms.range(probe..).cloned().collect::<Vec<_>>());
            }
        }
    }
}
