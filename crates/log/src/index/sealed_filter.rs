//! The filter of a sealed segment, queried in memory or by reading one block of the file.
//!
//! It is read as a whole if the budget of [`super::loaded`] has room for it, or once it has been
//! queried often enough for that to pay off. All checksums are verified on reading, so damage is an
//! error and never an absent term.

use super::IndexError;
use super::file::{ReadAt, Section, read, read_into};
use super::filter::{self, BLOCK_BYTES, Filter, FilterLayout, HEAD_BYTES};
use super::hash::Keyed;
use super::loaded::{Slot, has_room};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Number of filter bytes that can be read and checked in the time it takes to read one block.
const READ_WORTH_BYTES: usize = 4 << 10;

/// The filter of one index file.
#[derive(Debug)]
pub(super) struct SealedFilter {
    layout: FilterLayout,
    section: Section,
    whole: Slot<Filter>,
    /// Its hash function, once its first bytes have been read.
    keyed: OnceLock<Keyed>,
    /// Number of single blocks read since it was last read as a whole.
    block_reads: AtomicU32,
}

/// A filter ready for queries.
pub(super) enum OpenFilter<'i> {
    /// In memory.
    Whole(Arc<Filter>),
    ByBlock {
        filter: &'i SealedFilter,
        file: &'i dyn ReadAt,
        keyed: &'i Keyed,
    },
}

impl OpenFilter<'_> {
    /// The hash function for its keys.
    pub(super) fn keyed(&self) -> &Keyed {
        match self {
            OpenFilter::Whole(filter) => filter.keyed(),
            OpenFilter::ByBlock { keyed, .. } => keyed,
        }
    }

    /// Whether a key with this hash may be present; `false` is certain.
    pub(super) fn may_hold(&self, hash: u64) -> Result<bool, IndexError> {
        match self {
            OpenFilter::Whole(filter) => Ok(filter.may_hold(hash)),
            OpenFilter::ByBlock { filter, file, .. } => filter.block_passes(*file, hash),
        }
    }
}

impl SealedFilter {
    /// The filter in a section of an index file of this version. Reads nothing.
    pub(super) fn new(version: u32, section: Section) -> SealedFilter {
        SealedFilter {
            layout: if version == 1 { FilterLayout::V1 } else { FilterLayout::V2 },
            section,
            whole: Slot::new(),
            keyed: OnceLock::new(),
            block_reads: AtomicU32::new(0),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.whole.measure(Filter::memory_bytes)
    }

    /// An upper bound of its number of keys.
    pub(super) fn keys_bound(&self) -> usize {
        filter::keys_bound(self.section.len as usize)
    }

    /// Prepares it for queries.
    pub(super) fn open<'i>(&'i self, file: &'i dyn ReadAt) -> Result<OpenFilter<'i>, IndexError> {
        if let Some(filter) = self.whole.get() {
            return Ok(OpenFilter::Whole(filter));
        }
        let len = usize::try_from(self.section.len).map_err(|_| self.damaged())?;
        let paid = self.block_reads.load(Relaxed) as usize > len / READ_WORTH_BYTES;
        if self.layout == FilterLayout::V1 || paid || has_room(len) {
            self.block_reads.store(0, Relaxed);
            return self.load(file, len).map(OpenFilter::Whole);
        }
        if let Some(keyed) = self.keyed.get() {
            return Ok(OpenFilter::ByBlock { filter: self, file, keyed });
        }
        let mut head = [0; HEAD_BYTES];
        read_into(file, self.section.offset, &mut head, "filter")?;
        let keyed = filter::keyed_of(&head).ok_or_else(|| self.damaged())?;
        let keyed = self.keyed.get_or_init(|| keyed);
        Ok(OpenFilter::ByBlock { filter: self, file, keyed })
    }

    /// Reads and checks all of it, whatever of it is in memory.
    pub(super) fn check(&self, file: &dyn ReadAt) -> Result<(), IndexError> {
        const CHUNK_BLOCKS: usize = 1 << 10;
        let len = usize::try_from(self.section.len).map_err(|_| self.damaged())?;
        if self.layout == FilterLayout::V1 {
            let bytes = read(file, self.section.offset, len, "filter")?;
            let is_whole = crc32c::crc32c(&bytes) == self.section.crc;
            return if is_whole { Ok(()) } else { Err(self.damaged()) };
        }
        let mut head = [0; HEAD_BYTES];
        read_into(file, self.section.offset, &mut head, "filter")?;
        filter::keyed_of(&head).ok_or_else(|| self.damaged())?;
        let mut at = HEAD_BYTES;
        while at < len {
            let bytes = (len - at).min(CHUNK_BLOCKS * BLOCK_BYTES);
            let blocks = read(file, self.section.offset + at as u64, bytes, "filter")?;
            let (blocks, rest) = blocks.as_chunks::<BLOCK_BYTES>();
            if !rest.is_empty() || !blocks.iter().all(filter::is_whole) {
                return Err(self.damaged());
            }
            at += bytes;
        }
        Ok(())
    }

    fn damaged(&self) -> IndexError {
        IndexError::Damaged { what: "filter", offset: self.section.offset }
    }

    fn load(&self, file: &dyn ReadAt, len: usize) -> Result<Arc<Filter>, IndexError> {
        let bytes = read(file, self.section.offset, len, "filter")?;
        if crc32c::crc32c(&bytes) != self.section.crc {
            return Err(self.damaged());
        }
        let filter = Filter::parse(bytes, self.layout).ok_or_else(|| self.damaged())?;
        Ok(self.whole.put(filter, len))
    }

    fn block_passes(&self, file: &dyn ReadAt, hash: u64) -> Result<bool, IndexError> {
        self.block_reads.fetch_add(1, Relaxed);
        let blocks = (self.section.len as usize).saturating_sub(HEAD_BYTES) / BLOCK_BYTES;
        if blocks == 0 {
            return Err(self.damaged());
        }
        let at = HEAD_BYTES + filter::block_of(hash, blocks) * BLOCK_BYTES;
        let mut block = [0; BLOCK_BYTES];
        read_into(file, self.section.offset + at as u64, &mut block, "filter")?;
        if !filter::is_whole(&block) {
            return Err(self.damaged());
        }
        Ok(self.layout.passes(&block, hash))
    }
}
