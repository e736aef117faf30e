//! Intersections of posting lists, for both forms of the index, which differ only in how they find
//! and read a list ([`Source`]). For how items become intersections, see [`super::resolve`].

use super::IndexError;
use super::hash::Domain;
use super::resolve::Resolution;
use super::tag_pairs::TagPair;
use crate::query::{CompiledItem, CompiledQuery};
use crate::work::Work;
use std::ops::Range;

/// One form of the index of one segment.
pub(super) trait Source {
    /// A posting list being read, strictly ascending.
    type List: Clone + std::fmt::Debug;
    /// A type or tag that was found.
    type Term: Clone + std::fmt::Debug;
    /// Steps charged for finding a marked term or the list of a pair.
    const LOAD_STEPS: u64;
    /// Whether an event's type is looked up in the column instead of the type's list.
    const TYPES_BY_COLUMN: bool;

    /// Number of events in the segment, or inserted so far.
    fn events(&self) -> u32;
    /// How the index identifies a type or tag; `None` if no event has it.
    fn mark(&self, domain: Domain, text: &str) -> Result<Option<u64>, IndexError>;
    /// The mark of a found term.
    fn mark_of(&self, term: &Self::Term) -> u64;
    /// Whether a marked type and a marked tag may occur together. Reads no file.
    fn may_meet(&self, event_type: u64, tag: u64) -> Result<bool, IndexError>;
    /// A marked term; `None` if no event has it.
    fn load(&self, domain: Domain, text: &str, mark: u64)
    -> Result<Option<Self::Term>, IndexError>;
    /// The events of a type; `None` if there are none.
    fn type_list(&self, term: &Self::Term) -> Option<Self::List>;
    /// The events of a tag; `None` if there are none.
    fn tag_list(&self, term: &Self::Term) -> Option<Self::List>;
    /// The events that have both a type and a tag.
    fn narrow(
        &self,
        event_type: &Self::Term,
        tag: &Self::Term,
    ) -> Result<Narrowed<Self::List>, IndexError>;
    /// Number of events with a tag, determined cheaply.
    fn tag_count(&self, tag: &Self::Term) -> u32;
    /// The data kept for two tags; `None` if they are not both common.
    fn tag_pair(
        &self,
        one: &Self::Term,
        other: &Self::Term,
    ) -> Result<Option<TagPair<Self::List>>, IndexError>;
    /// The number of a type, as in the type column.
    fn number(&self, term: &Self::Term) -> u32;
    /// The number of an event's type; `column` keeps the data read for the next call.
    fn type_at(&self, rel: u32, column: &mut ColumnBlock) -> Result<u32, IndexError>;

    /// Length of a list.
    fn count(&self, list: &Self::List) -> u32;
    /// Number of elements below a bound.
    fn rank(&self, list: &mut Self::List, bound: u32) -> Result<u32, IndexError>;
    /// The element at an index below the count.
    fn element(&self, list: &mut Self::List, index: u32) -> Result<u32, IndexError>;

    /// The first element at or beyond `from` in the direction of reading.
    fn seek(
        &self,
        list: &mut Self::List,
        from: u32,
        descending: bool,
    ) -> Result<Option<u32>, IndexError> {
        let index = if descending {
            match self.rank(list, from.saturating_add(1))?.checked_sub(1) {
                Some(index) => index,
                None => return Ok(None),
            }
        } else {
            let index = self.rank(list, from)?;
            if index == self.count(list) {
                return Ok(None);
            }
            index
        };
        self.element(list, index).map(Some)
    }
}

/// The data that an index keeps for the events with both a type and a tag.
#[derive(Debug)]
pub(super) enum Narrowed<L> {
    /// There are none.
    Empty,
    /// Their list.
    Pair(L),
    /// They have no separate list; this is the tag's list.
    NotKept(L),
}

/// Part of a column, kept because the next look-up is likely to be near.
#[derive(Debug, Clone, Default)]
pub(super) struct ColumnBlock {
    /// The block's number; meaningless while there are no bytes.
    pub(super) number: u64,
    /// Its bytes, verified.
    pub(super) bytes: Vec<u8>,
}

/// The events that are in all of some lists and, optionally, have one of some types.
#[derive(Debug, Clone)]
pub(super) struct Intersection<L> {
    /// At least one, shortest first.
    lists: Vec<L>,
    /// Ascending.
    types: Option<Vec<u32>>,
    /// The intersection is limited to this range.
    within: Range<u32>,
    column: ColumnBlock,
    /// The last range searched: from its first event on, in the direction of reading, nothing
    /// before the second matches. Stopped work continues there.
    searched: Option<(u32, u32)>,
}

impl<L> Intersection<L> {
    /// For lists that are not empty.
    pub(super) fn new<S: Source<List = L>>(source: &S, mut lists: Vec<L>) -> Intersection<L> {
        lists.sort_by_key(|list| source.count(list));
        Intersection {
            lists,
            types: None,
            within: 0..u32::MAX,
            column: ColumnBlock::default(),
            searched: None,
        }
    }

    /// The same with a condition on the type, which is looked up per event.
    pub(super) fn with_types(mut self, mut types: Vec<u32>) -> Intersection<L> {
        types.sort_unstable();
        self.types = Some(types);
        self
    }

    /// The part of it in a range.
    pub(super) fn within(mut self, range: Range<u32>) -> Intersection<L> {
        self.within = range;
        self
    }

    /// The first event of the intersection at or beyond `from`, within range. Each list in turn
    /// leaps to the candidate; one that overshoots sets the next candidate.
    ///
    /// # Errors
    /// [`IndexError`]. After [`IndexError::Stopped`] the same call continues where it stopped.
    pub(super) fn seek<S: Source<List = L>>(
        &mut self,
        source: &S,
        from: u32,
        range: &Range<u32>,
        descending: bool,
        work: &mut Work,
    ) -> Result<Option<u32>, IndexError> {
        let range = &(range.start.max(self.within.start)..range.end.min(self.within.end));
        let past = if descending { from < range.start } else { from >= range.end };
        if range.is_empty() || past {
            return Ok(None);
        }
        let from = from.clamp(range.start, range.end - 1);
        let mut candidate = self.resume(from, range, descending);
        let found = self.search(source, &mut candidate, range, descending, work);
        if self.lists.len() > 1 || self.types.is_some() {
            self.searched = Some((from, candidate));
        }
        found
    }

    /// Where a search from `from` can begin.
    fn resume(&self, from: u32, range: &Range<u32>, descending: bool) -> u32 {
        match self.searched {
            Some((begin, end)) if descending && end <= from && from <= begin => end,
            Some((begin, end)) if !descending && begin <= from && from <= end => end,
            _ => return from,
        }
        .clamp(range.start, range.end - 1)
    }

    /// The first event of the intersection at or beyond the candidate, which is set to it; on an
    /// error or at the end, the candidate is where the search stopped.
    fn search<S: Source<List = L>>(
        &mut self,
        source: &S,
        at: &mut u32,
        range: &Range<u32>,
        descending: bool,
        work: &mut Work,
    ) -> Result<Option<u32>, IndexError> {
        let mut candidate = *at;
        'candidates: loop {
            *at = candidate;
            for (i, list) in self.lists.iter_mut().enumerate() {
                work.step(1)?;
                let Some(found) = source.seek(list, candidate, descending)? else {
                    return Ok(None);
                };
                if !range.contains(&found) {
                    return Ok(None);
                }
                if found != candidate {
                    candidate = found;
                    if i > 0 {
                        continue 'candidates;
                    }
                }
            }
            *at = candidate;
            let Some(types) = &self.types else { return Ok(Some(candidate)) };
            work.step(1)?;
            let event_type = source.type_at(candidate, &mut self.column)?;
            if types.binary_search(&event_type).is_ok() {
                return Ok(Some(candidate));
            }
            match beyond(candidate, range, descending) {
                Some(next) => candidate = next,
                None => return Ok(None),
            }
        }
    }
}

/// The number after (before, if descending) `at`, if it is in range.
pub(super) fn beyond(at: u32, range: &Range<u32>, descending: bool) -> Option<u32> {
    let next = if descending { at.checked_sub(1) } else { at.checked_add(1) };
    next.filter(|next| range.contains(next))
}

/// The range limited to existing events; `None` if nothing is left.
pub(super) fn clamp<S: Source>(source: &S, range: Range<u32>) -> Option<Range<u32>> {
    let range = range.start..range.end.min(source.events());
    (!range.is_empty()).then_some(range)
}

/// The newest matching event in range, and the lowest-numbered item it matches.
pub(super) fn newest<S: Source>(
    source: &S,
    query: &CompiledQuery,
    resolution: &mut Resolution<S::Term>,
    range: Range<u32>,
    work: &mut Work,
) -> Result<Option<(u32, usize)>, IndexError> {
    let Some(range) = clamp(source, range) else { return Ok(None) };
    if query.items().is_empty() {
        return Ok(Some((range.end - 1, 0)));
    }
    let mut newest = Newest { range, found: None };
    for item in query.items() {
        if newest.range.is_empty() {
            break;
        }
        newest.consider(source, query, resolution, item, work)?;
    }
    Ok(newest.found)
}

/// A search for the newest event that matches any of some items.
pub(super) struct Newest {
    /// The range in which a newer event than the best so far could be.
    pub(super) range: Range<u32>,
    /// The best event so far, and the number of the first item that it matches.
    pub(super) found: Option<(u32, usize)>,
}

impl Newest {
    /// Checks whether an item matches a newer event. The range is not empty.
    pub(super) fn consider<S: Source>(
        &mut self,
        source: &S,
        query: &CompiledQuery,
        resolution: &mut Resolution<S::Term>,
        item: &CompiledItem,
        work: &mut Work,
    ) -> Result<(), IndexError> {
        work.step(1)?;
        if item.is_all() {
            self.take(self.range.end - 1, item.number);
            return Ok(());
        }
        let mut parts = Vec::new();
        resolution.parts(source, query, item, work, &mut parts)?;
        for part in &mut parts {
            if self.range.is_empty() {
                break;
            }
            if let Some(found) = part.seek(source, self.range.end - 1, &self.range, true, work)? {
                self.take(found, item.number);
            }
        }
        Ok(())
    }

    fn take(&mut self, rel: u32, item: usize) {
        assert!(self.range.contains(&rel), "an answer lies in the range asked about");
        self.found = Some((rel, item));
        self.range.start = rel + 1;
    }
}
