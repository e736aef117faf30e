//! How a query becomes intersections of posting lists, for either form of the
//! index: the forms differ only in how they find and read a list ([`Source`]).

use super::IndexError;
use crate::work::Work;
use std::ops::Range;
use wellspring_types::QueryItem;

/// From this many types on, an item that also has tags is walked once along its
/// tags, looking up each event's type, rather than once per type: it bounds
/// what a cursor holds open.
const TYPES_APART: usize = 8;
/// And from this many tags, for the same reason.
const TAGS_APART: usize = 4;

/// One form of the index of one segment.
pub(super) trait Source {
    /// A posting list being read: ascending, strictly.
    type List: Clone + std::fmt::Debug;

    /// Events in the segment, or inserted so far.
    fn events(&self) -> u32;
    /// The events of a type; `None` if there are none.
    fn type_list(&self, event_type: &str) -> Result<Option<Self::List>, IndexError>;
    /// The intersection of a type (or any) and tags (at least one); `None` if it is surely empty.
    fn all_of(
        &self,
        event_type: Option<&str>,
        tags: &[String],
    ) -> Result<Option<Intersection<Self::List>>, IndexError>;
    /// The number of a type, as in the type column.
    fn type_id(&self, event_type: &str) -> Result<Option<u32>, IndexError>;
    /// The number of an event's type; `column` keeps what was read for the next call.
    fn type_at(&self, rel: u32, column: &mut ColumnBlock) -> Result<u32, IndexError>;

    /// Length of a list.
    fn count(&self, list: &Self::List) -> u32;
    /// Number of elements below a bound.
    fn rank(&self, list: &mut Self::List, bound: u32) -> Result<u32, IndexError>;
    /// The element at an index below the count.
    fn element(&self, list: &mut Self::List, index: u32) -> Result<u32, IndexError>;

    /// The first element at `from` or beyond it in the direction of reading.
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

/// Part of a column, kept because the next look-up is likely to be near.
#[derive(Debug, Clone, Default)]
pub(super) struct ColumnBlock {
    /// Which block; meaningless while there are no bytes.
    pub(super) number: u64,
    /// Its bytes, verified.
    pub(super) bytes: Vec<u8>,
}

/// The events that stand in all of some lists and, if asked, have one of some types.
#[derive(Debug, Clone)]
pub(super) struct Intersection<L> {
    /// At least one, shortest first.
    lists: Vec<L>,
    /// Ascending.
    types: Option<Vec<u32>>,
    column: ColumnBlock,
    /// The last stretch searched: from its first event on, in the direction of reading, nothing
    /// before the second matches. Work that was stopped goes on there.
    searched: Option<(u32, u32)>,
}

impl<L> Intersection<L> {
    /// Of lists that are not empty.
    pub(super) fn new<S: Source<List = L>>(source: &S, mut lists: Vec<L>) -> Intersection<L> {
        lists.sort_by_key(|list| source.count(list));
        Intersection { lists, types: None, column: ColumnBlock::default(), searched: None }
    }

    /// The same with a condition on the type, to be looked up per event.
    pub(super) fn with_types(mut self, mut types: Vec<u32>) -> Intersection<L> {
        types.sort_unstable();
        self.types = Some(types);
        self
    }

    /// Length of the shortest list.
    fn shortest<S: Source<List = L>>(&self, source: &S) -> u32 {
        self.lists.first().map_or(0, |list| source.count(list))
    }

    /// Whether one list is the whole answer.
    fn is_look_up(&self) -> bool {
        self.lists.len() == 1 && self.types.is_none()
    }

    /// The first event of the intersection at `from` or beyond, within range.
    /// Each list in turn leaps to the candidate; the one that overshoots sets the next.
    ///
    /// # Errors
    /// [`IndexError`]. After [`IndexError::Stopped`] the same call goes on where it stopped.
    pub(super) fn seek<S: Source<List = L>>(
        &mut self,
        source: &S,
        from: u32,
        range: &Range<u32>,
        descending: bool,
        work: &mut Work,
    ) -> Result<Option<u32>, IndexError> {
        let mut candidate = self.resume(from, range, descending);
        let found = self.search(source, &mut candidate, range, descending, work);
        if self.lists.len() > 1 || self.types.is_some() {
            self.searched = Some((from, candidate));
        }
        found
    }

    /// Where a search from `from` on may begin.
    fn resume(&self, from: u32, range: &Range<u32>, descending: bool) -> u32 {
        match self.searched {
            Some((begin, end)) if descending && end <= from && from <= begin => end,
            Some((begin, end)) if !descending && begin <= from && from <= end => end,
            _ => return from,
        }
        .clamp(range.start, range.end - 1)
    }

    /// The first event of the intersection at the candidate or beyond, where it then stands; on an
    /// error or at the end it stands where nothing has been found before.
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

/// The range cut to the events there are; `None` if nothing is left.
pub(super) fn clamp<S: Source>(source: &S, range: Range<u32>) -> Option<Range<u32>> {
    let range = range.start..range.end.min(source.events());
    (!range.is_empty()).then_some(range)
}

/// One type's own intersection within an item (`None`: any type).
fn part<S: Source>(
    source: &S,
    event_type: Option<&str>,
    tags: &[String],
) -> Result<Option<Intersection<S::List>>, IndexError> {
    match event_type {
        Some(name) if tags.is_empty() => {
            Ok(source.type_list(name)?.map(|list| Intersection::new(source, vec![list])))
        }
        _ => source.all_of(event_type, tags),
    }
}

/// The types an item names, each once; one `None` if it names none.
fn alternatives(item: &QueryItem) -> Vec<Option<&str>> {
    if item.types.is_empty() {
        return vec![None];
    }
    if item.types.len() == 1 {
        return vec![Some(&item.types[0])];
    }
    let mut types: Vec<_> = item.types.iter().map(|name| Some(name.as_str())).collect();
    types.sort_unstable();
    types.dedup();
    types
}

/// The newest event in range that matches the item.
pub(super) fn newest<S: Source>(
    source: &S,
    item: &QueryItem,
    range: Range<u32>,
    work: &mut Work,
) -> Result<Option<u32>, IndexError> {
    let Some(mut range) = clamp(source, range) else { return Ok(None) };
    if item.is_all() {
        return Ok(Some(range.end - 1));
    }
    let mut newest = None;
    for event_type in alternatives(item) {
        work.step(1 + item.tags.len() as u64)?;
        let Some(mut part) = part(source, event_type, &item.tags)? else { continue };
        if let Some(found) = part.seek(source, range.end - 1, &range, true, work)? {
            newest = Some(found);
            // Only something newer is of interest now.
            range.start = found + 1;
            if range.is_empty() {
                break;
            }
        }
    }
    Ok(newest)
}

/// About how many index entries [`newest`] may visit.
pub(super) fn cost<S: Source>(
    source: &S,
    item: &QueryItem,
    range: Range<u32>,
) -> Result<u64, IndexError> {
    let Some(range) = clamp(source, range) else { return Ok(0) };
    if item.is_all() {
        return Ok(0);
    }
    let mut total = 0;
    for event_type in alternatives(item) {
        if let Some(part) = part(source, event_type, &item.tags)? {
            let entries = part.shortest(source).min(range.end - range.start);
            total += if part.is_look_up() { 1 } else { u64::from(entries) };
        }
    }
    Ok(total)
}

/// The intersections whose union is what the items match, within what a cursor may hold open.
pub(super) fn parts<S: Source>(
    source: &S,
    items: &[QueryItem],
) -> Result<Vec<Intersection<S::List>>, IndexError> {
    let mut all = Vec::new();
    let mut plain_types = std::collections::BTreeSet::new();
    for item in items {
        if item.tags.is_empty() {
            plain_types.extend(item.types.iter());
            continue;
        }
        let types = alternatives(item);
        if types.len() <= 1 || types.len() <= TYPES_APART && item.tags.len() <= TAGS_APART {
            for event_type in types {
                all.extend(part(source, event_type, &item.tags)?);
            }
            continue;
        }
        let mut ids = Vec::new();
        for name in types.into_iter().flatten() {
            ids.extend(source.type_id(name)?);
        }
        if !ids.is_empty() {
            all.extend(part(source, None, &item.tags)?.map(|part| part.with_types(ids)));
        }
    }
    for name in plain_types {
        all.extend(part(source, Some(name), &[])?);
    }
    Ok(all)
}
