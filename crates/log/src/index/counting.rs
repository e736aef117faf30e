//! Counts the matching events of one segment from its index, without reading any of them.
//!
//! A query of one posting list is the difference of two ranks. So are queries of several types
//! without tags, and of several types with one tag if the pairs have lists: an event has one type,
//! so none is counted twice. All others are counted by walking the merged lists, in steps.

use super::{Candidates, IndexError, SegmentIndex, TermKind};
use crate::query::CompiledQuery;
use crate::work::Work;
use std::ops::Range;
use std::sync::Arc;
use wellspring_types::{Query, QueryItem};

/// Index entries visited in one step of a walk.
const STEP_EVENTS: usize = 4096;

/// Counts the events of a segment that match a query.
#[derive(Debug)]
pub(crate) struct SegmentCount {
    counted: u64,
    /// `None` once everything has been counted.
    walk: Option<Walk>,
}

#[derive(Debug)]
struct Walk {
    candidates: Candidates,
    chunk: Vec<u32>,
}

impl SegmentCount {
    /// Counts what look-ups can answer, and starts a walk for everything else, with the query
    /// compiled.
    ///
    /// # Errors
    /// [`IndexError`].
    pub(crate) fn begin(
        index: &SegmentIndex,
        query: &Query,
        compiled: impl FnOnce() -> Arc<CompiledQuery>,
        range: Range<u32>,
    ) -> Result<SegmentCount, IndexError> {
        if let Some(counted) = index.count_at_once(query, &range)? {
            return Ok(SegmentCount { counted, walk: None });
        }
        let candidates = index.cursor(&compiled(), range, false);
        Ok(SegmentCount { counted: 0, walk: Some(Walk { candidates, chunk: Vec::new() }) })
    }

    /// The count, once complete; until then, every call visits a few thousand more entries.
    ///
    /// # Errors
    /// [`IndexError`]; the count keeps its state.
    pub(crate) fn step(&mut self, work: &mut Work) -> Result<Option<u64>, IndexError> {
        let Some(Walk { candidates, chunk }) = &mut self.walk else {
            return Ok(Some(self.counted));
        };
        chunk.clear();
        let more = candidates.next_chunk(chunk, STEP_EVENTS, work)?;
        self.counted += chunk.len() as u64;
        if more {
            return Ok(None);
        }
        self.walk = None;
        Ok(Some(self.counted))
    }
}

impl SegmentIndex {
    /// The number of matching events in range, if look-ups can answer.
    fn count_at_once(&self, query: &Query, range: &Range<u32>) -> Result<Option<u64>, IndexError> {
        let range = range.start..range.end.min(self.events());
        if range.is_empty() {
            return Ok(Some(0));
        }
        if query.is_all() {
            return Ok(Some(range.len() as u64));
        }
        if query.items.iter().all(|item| item.tags.is_empty()) {
            let types = distinct(query.items.iter().flat_map(|item| &item.types));
            return types
                .into_iter()
                .try_fold(0, |sum, name| {
                    self.count_term(TermKind::Type, name, &range).map(|n| sum + n)
                })
                .map(Some);
        }
        match query.items.as_slice() {
            [QueryItem { types, tags }] if tags.len() == 1 => {
                self.count_tagged(types, &tags[0], &range)
            }
            _ => Ok(None),
        }
    }

    /// Events with one tag and one of some types, or any type if there are none.
    fn count_tagged(
        &self,
        types: &[String],
        tag: &str,
        range: &Range<u32>,
    ) -> Result<Option<u64>, IndexError> {
        if types.is_empty() {
            return self.count_term(TermKind::Tag, tag, range).map(Some);
        }
        let mut sum = 0;
        for name in distinct(types) {
            let counted = match self {
                SegmentIndex::Active(index) => index.count_pair(name, tag, range),
                SegmentIndex::Sealed(index) => index.count_pair(name, tag, range)?,
            };
            let Some(counted) = counted else { return Ok(None) };
            sum += u64::from(counted);
        }
        Ok(Some(sum))
    }

    fn count_term(
        &self,
        kind: TermKind,
        term: &str,
        range: &Range<u32>,
    ) -> Result<u64, IndexError> {
        match self {
            SegmentIndex::Active(index) => Ok(index.count_term(kind, term, range).into()),
            SegmentIndex::Sealed(index) => index.count_term(kind, term, range).map(u64::from),
        }
    }

    fn events(&self) -> u32 {
        match self {
            SegmentIndex::Active(index) => index.len(),
            SegmentIndex::Sealed(index) => index.len(),
        }
    }
}

fn distinct<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let mut texts: Vec<&str> = texts.into_iter().map(String::as_str).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}
