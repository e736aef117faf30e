//! The index finds the events that match a query in one segment, or in several adjacent ones. It is
//! derived from the segments, disposable, and never part of what makes an append durable.
//!
//! It has two equivalent forms: [`ActiveIndex`] in memory for the segment being written,
//! [`SealedIndex`] in a file for earlier ones. Events are identified by `rel`, their position
//! relative to the first event. Every query is bounded by a range, and a reader's range ends at the
//! durable watermark at the latest: events beyond it do not exist for readers yet.
//!
//! A segment ends when its index has `active_index_bytes` (8 MiB), so that a start reads little. A
//! thread of its own then writes the sealed index: checksummed sections with a term dictionary,
//! compressed postings, an offset column, a type column and a filter. It is never fsynced on the
//! path of an append. Four adjacent indexes become one, and four of these again, term by term and
//! in the background, so that a question about the whole log asks few (decision 0018). A missing or
//! damaged index is rebuilt, also in the middle of a read.

mod active;
mod active_query;
mod append_vec;
mod bucket_table;
mod candidates;
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
mod recent_terms;
mod resolve;
mod scrub;
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
pub(crate) use merge::{merge, without_beginning};
pub(crate) use sealed::SealedIndex;
pub(crate) use sealed_writer::seal;

use crate::query::CompiledQuery;
use crate::work::{Stopped, Work};
use resolve::Resolution;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Why an index gave no answer. It never gives a wrong or incomplete one instead.
#[derive(Debug)]
pub(crate) enum IndexError {
    /// The file is damaged. A retry does not help; rebuilding it from the segment does.
    Damaged {
        /// The part being read.
        what: &'static str,
        /// Approximate offset in the file.
        offset: u64,
    },
    /// The file system refused. A retry may help.
    Io(io::Error),
    /// The file has an unsupported format version. Rebuild it.
    Version(u32),
    /// The requested event is not in the segment: a bug in the program.
    NoSuchEvent {
        /// The requested event.
        rel: u32,
        /// Number of events.
        len: u32,
    },
    /// The caller's [`Work`] stopped first. The index is fine.
    Stopped(Stopped),
}

impl IndexError {
    /// Whether rebuilding the index from its segments helps.
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

/// Number of terms in the indexes of a log. Each segment has its own index: a term counts once for
/// each segment that it occurs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// Event types.
    pub types: u64,
    /// Tags.
    pub tags: u64,
}

/// The kind of terms in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// Event types.
    Type,
    Tag,
}

/// A page of terms in byte order: the first `limit` that begin with `prefix`, are greater than
/// `after` and at most `until`.
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
    /// For the segment being written.
    Active(Arc<ActiveIndex>),
    /// For a full segment.
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

    /// Number of events inserted, regardless of the durable watermark.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        match self {
            SegmentIndex::Active(index) => index.len(),
            SegmentIndex::Sealed(index) => index.len(),
        }
    }

    /// The offset of an event in the segment.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn offset(&self, rel: u32) -> Result<u32, IndexError> {
        match self {
            SegmentIndex::Active(index) => index.offset(rel),
            SegmentIndex::Sealed(index) => {
                let mut offset = 0;
                index.offsets_of(&[rel], |found| offset = found)?;
                Ok(offset)
            }
        }
    }

    /// Appends the offsets of some events to `out`; neighbours share a read.
    ///
    /// # Errors
    /// [`IndexError`]; nothing was appended then.
    pub(crate) fn offsets(&self, rels: &[u32], out: &mut Vec<u32>) -> Result<(), IndexError> {
        let before = out.len();
        let read = match self {
            SegmentIndex::Active(index) => {
                rels.iter().try_for_each(|&rel| index.offset(rel).map(|offset| out.push(offset)))
            }
            SegmentIndex::Sealed(index) => index.offsets_of(rels, |offset| out.push(offset)),
        };
        if read.is_err() {
            out.truncate(before);
        }
        read
    }

    /// The newest event in range that matches the query exactly, and the lowest-numbered item it
    /// matches. Never scans events: performs a look-up for one term or a type with one tag,
    /// otherwise an intersection driven by the shortest list.
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

    /// All types with events below `end` and their counts, in byte order.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn types(&self, end: u32) -> Result<Vec<(String, u64)>, IndexError> {
        self.page(TermKind::Type, &TermPage::ALL, end)
    }

    /// A page of the terms with events below `end` and their counts, in byte order.
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

    /// Approximate current memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            SegmentIndex::Active(index) => index.memory_bytes(),
            SegmentIndex::Sealed(index) => index.memory_bytes(),
        }
    }

    /// Number of terms. Reads no file.
    pub(crate) fn terms(&self) -> Terms {
        let (types, tags) = match self {
            SegmentIndex::Active(index) => (index.type_table().count(), index.tag_table().count()),
            SegmentIndex::Sealed(index) => index.terms(),
        };
        Terms { types: types.into(), tags: tags.into() }
    }
}
