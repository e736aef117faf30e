//! Where the events of one segment, or of several adjacent ones, that match a query stand. Derived
//! from the segments, disposable, never part of what makes an append durable.
//!
//! Two forms with the same answers: [`ActiveIndex`] in memory for the segment
//! being written, [`SealedIndex`] in a file for those before. Events are named
//! by `rel`, their position less that of the first event. Every question
//! is bounded by a range of them, and a reader's range ends at the durable
//! watermark at the latest: what has been pushed beyond it does not exist yet.

mod active;
mod active_query;
mod append_vec;
mod candidates;
mod chain_table;
mod column;
mod contents;
mod counting;
mod cut;
mod dictionary;
mod file;
mod filter;
mod hash;
mod image;
mod lists;
mod loaded;
mod matching;
mod merge;
mod resolve;
mod sealed;
mod sealed_filter;
mod sealed_list;
mod sealed_writer;
mod tag_pairs;
mod term_table;
mod varint;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod memory_bench;
#[cfg(test)]
mod oracle_tests;

pub(crate) use active::{ActiveIndex, ActiveWriter};
pub(crate) use active_query::ActiveQuery;
pub(crate) use candidates::Candidates;
pub(crate) use counting::SegmentCount;
pub(crate) use file::{MOST_SEGMENTS, ReadAt, SegmentExtent, WriteAt};
pub use loaded::{sealed_index_memory_bytes, set_sealed_index_budget_bytes};
pub(crate) use merge::merge;
pub(crate) use sealed::SealedIndex;
pub(crate) use sealed_writer::seal;

use crate::query::CompiledQuery;
use crate::work::{Stopped, Work};
use matching::ColumnBlock;
use resolve::Resolution;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Why an index gave no answer. Never is a wrong or short one given instead.
#[derive(Debug)]
pub(crate) enum IndexError {
    /// The file's bytes are damaged. Retrying does not help; building it again from the segment
    /// does.
    Damaged {
        /// What was being read.
        what: &'static str,
        /// About where in the file.
        offset: u64,
    },
    /// The file system refused. A retry may help.
    Io(io::Error),
    /// The file has a format version this program does not know. Build it again.
    Version(u32),
    /// The caller asked for an event that is not in the segment: a mistake in the program.
    NoSuchEvent {
        /// The event asked for.
        rel: u32,
        /// Events there are.
        len: u32,
    },
    /// The caller's [`Work`] ended first. Nothing is wrong with the index.
    Stopped(Stopped),
}

impl IndexError {
    /// Whether building the index again from its segments helps.
    pub(crate) fn calls_for_repair(&self) -> bool {
        matches!(self, IndexError::Damaged { .. } | IndexError::Version(_))
    }
}

impl From<io::Error> for IndexError {
    fn from(error: io::Error) -> IndexError {
        IndexError::Io(error)
    }
}

impl From<Stopped> for IndexError {
    fn from(stopped: Stopped) -> IndexError {
        IndexError::Stopped(stopped)
    }
}

/// Terms in the indexes of a log. Each segment has its own: a term counts once for each segment
/// that it occurs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Types of events.
    pub types: u64,
    /// Tags.
    pub tags: u64,
}

/// What terms a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// Types of events.
    Type,
    /// Tags.
    Tag,
}

/// Which terms, in byte order: the first `limit` that begin with `prefix`, are greater than `after`
/// and not greater than `until`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TermPage<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) after: Option<&'a str>,
    pub(crate) until: Option<&'a str>,
    pub(crate) limit: usize,
}

impl TermPage<'_> {
    /// Every term.
    pub(crate) const ALL: TermPage<'static> =
        TermPage { prefix: "", after: None, until: None, limit: usize::MAX };
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexError::Damaged { what, offset } => {
                write!(f, "the index is damaged at byte {offset}: {what}")
            }
            IndexError::Io(error) => error.fmt(f),
            IndexError::Version(version) => {
                write!(
                    f,
                    "the index has format version {version}, which this program does not know"
                )
            }
            IndexError::NoSuchEvent { rel, len } => {
                write!(f, "event {rel} was asked of a segment of {len}")
            }
            IndexError::Stopped(stopped) => stopped.fmt(f),
        }
    }
}

impl std::error::Error for IndexError {}

/// The index of one segment, in either form. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum SegmentIndex {
    /// Of the segment being written.
    Active(Arc<ActiveIndex>),
    /// Of a segment that takes no more events.
    Sealed(Arc<SealedIndex>),
}

impl SegmentIndex {
    /// Position of the segment's first event.
    #[cfg(test)]
    pub(crate) fn base(&self) -> u64 {
        match self {
            SegmentIndex::Active(index) => index.base(),
            SegmentIndex::Sealed(index) => index.base(),
        }
    }

    /// Events inserted, the durable watermark notwithstanding.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        match self {
            SegmentIndex::Active(index) => index.len(),
            SegmentIndex::Sealed(index) => index.len(),
        }
    }

    /// Where an event begins in the segment.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn offset(&self, rel: u32) -> Result<u32, IndexError> {
        match self {
            SegmentIndex::Active(index) => index.offset(rel),
            SegmentIndex::Sealed(index) => index.offset(rel, &mut ColumnBlock::default()),
        }
    }

    /// Appends to `out` where each of some events begins; neighbours share a read.
    ///
    /// # Errors
    /// [`IndexError`]; nothing was appended then.
    pub(crate) fn offsets(&self, rels: &[u32], out: &mut Vec<u32>) -> Result<(), IndexError> {
        let before = out.len();
        let mut block = ColumnBlock::default();
        for &rel in rels {
            let offset = match self {
                SegmentIndex::Active(index) => index.offset(rel),
                SegmentIndex::Sealed(index) => index.offset(rel, &mut block),
            };
            match offset {
                Ok(offset) => out.push(offset),
                Err(error) => {
                    out.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The newest event in range that matches the query, exactly, and the lowest-numbered item it
    /// matches. Never a scan over events: a look-up for one term or a type with one tag, else an
    /// intersection driven from the shortest list.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn newest(
        &self,
        query: &CompiledQuery,
        range: Range<u32>,
        work: &mut Work,
    ) -> Result<Option<(u32, usize)>, IndexError> {
        match self {
            SegmentIndex::Active(index) => {
                matching::newest(&**index, query, &mut Resolution::new(query), range, work)
            }
            SegmentIndex::Sealed(index) => {
                matching::newest(&**index, query, &mut Resolution::new(query), range, work)
            }
        }
    }

    /// A cursor over the events in range that match the query.
    pub(crate) fn cursor(
        &self,
        query: &Arc<CompiledQuery>,
        range: Range<u32>,
        descending: bool,
    ) -> Candidates {
        Candidates::new(self, query, range, descending)
    }

    /// The newest event in range with this id.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn find_id(
        &self,
        id: &[u8; 16],
        range: Range<u32>,
    ) -> Result<Option<u32>, IndexError> {
        match self {
            SegmentIndex::Active(index) => Ok(index.find_id(id, range)),
            SegmentIndex::Sealed(index) => index.find_id(id, range),
        }
    }

    /// The newest event in range that begins a request with this key.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn find_key(&self, key: &str, range: Range<u32>) -> Result<Option<u32>, IndexError> {
        match self {
            SegmentIndex::Active(index) => Ok(index.find_key(key, range)),
            SegmentIndex::Sealed(index) => index.find_key(key, range),
        }
    }

    /// All types that have events below `end`, with how many, in byte order.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn types(&self, end: u32) -> Result<Vec<(String, u64)>, IndexError> {
        self.page(TermKind::Type, &TermPage::ALL, end)
    }

    /// A page of the terms that have events below `end`, with how many, in byte order.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn page(
        &self,
        kind: TermKind,
        page: &TermPage<'_>,
        end: u32,
    ) -> Result<Vec<(String, u64)>, IndexError> {
        match self {
            SegmentIndex::Active(index) => Ok(index.terms(kind, page, end)),
            SegmentIndex::Sealed(index) => index.terms_of(kind, page, end),
        }
    }

    /// About how many bytes of memory it holds now.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            SegmentIndex::Active(index) => index.memory_bytes(),
            SegmentIndex::Sealed(index) => index.memory_bytes(),
        }
    }

    /// How many terms it holds. Reads no file.
    pub(crate) fn terms(&self) -> Terms {
        let (types, tags) = match self {
            SegmentIndex::Active(index) => (index.type_table().count(), index.tag_table().count()),
            SegmentIndex::Sealed(index) => index.terms(),
        };
        Terms { types: types.into(), tags: tags.into() }
    }
}
