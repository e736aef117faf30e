//! The terms of a query in one segment: each distinct term is looked up at most once, when an item
//! first needs it.

use super::IndexError;
use super::hash::Domain;
use super::matching::{Intersection, Narrowed, Source};
use super::tag_pairs::TagPair;
use crate::query::{CompiledItem, CompiledQuery};
use crate::work::Work;

/// From this many types on, an item that also has tags is processed by one walk along its tags that
/// looks up each event's type, instead of one per type. This bounds what a cursor holds open.
const TYPES_APART: usize = 8;
/// The same threshold for tags, for the same reason.
const TAGS_APART: usize = 4;
/// Maximum number of intersections, of items with several types, that one query holds open in a
/// segment.
const MOST_APART: usize = 512;

/// The known state of a term.
#[derive(Debug, Clone)]
enum Slot<T> {
    Unasked,
    /// No event of the segment has it.
    Absent,
    /// It may occur; this is how the index identifies it.
    Marked(u64),
    Found(T),
}

/// The terms of one query in one segment, as far as they have been looked up.
#[derive(Debug)]
pub(super) struct Resolution<T> {
    types: Vec<Slot<T>>,
    tags: Vec<Slot<T>>,
    /// Number of intersections created for items with several types.
    apart: usize,
}

/// The found terms of one item.
struct ItemTerms<T> {
    /// The types that may occur together with the tags.
    types: Vec<T>,
    tags: Vec<T>,
}

impl<T: Clone> Resolution<T> {
    /// No look-ups yet.
    pub(super) fn new(query: &CompiledQuery) -> Resolution<T> {
        Resolution {
            types: vec![Slot::Unasked; query.type_count()],
            tags: vec![Slot::Unasked; query.tag_count()],
            apart: 0,
        }
    }

    fn slot(&mut self, domain: Domain, number: u32) -> &mut Slot<T> {
        let slots = if domain == Domain::Type { &mut self.types } else { &mut self.tags };
        &mut slots[number as usize]
    }

    /// How the index identifies a term; `None` if no event has it. Reads no file other than the
    /// filter.
    fn mark<S: Source<Term = T>>(
        &mut self,
        source: &S,
        query: &CompiledQuery,
        (domain, number): (Domain, u32),
        work: &mut Work,
    ) -> Result<Option<u64>, IndexError> {
        let slot = self.slot(domain, number);
        match slot {
            Slot::Absent => return Ok(None),
            Slot::Marked(mark) => return Ok(Some(*mark)),
            Slot::Found(term) => return Ok(Some(source.mark_of(term))),
            Slot::Unasked => {}
        }
        work.step(1)?;
        let mark = source.mark(domain, text(query, domain, number))?;
        *slot = mark.map_or(Slot::Absent, Slot::Marked);
        Ok(mark)
    }

    /// A marked term; `None` if no event has it.
    fn term<S: Source<Term = T>>(
        &mut self,
        source: &S,
        query: &CompiledQuery,
        (domain, number): (Domain, u32),
        work: &mut Work,
    ) -> Result<Option<T>, IndexError> {
        let Some(mark) = self.mark(source, query, (domain, number), work)? else {
            return Ok(None);
        };
        let slot = self.slot(domain, number);
        if let Slot::Found(term) = slot {
            return Ok(Some(term.clone()));
        }
        work.step(S::LOAD_STEPS)?;
        let term = source.load(domain, text(query, domain, number), mark)?;
        *slot = term.clone().map_or(Slot::Absent, Slot::Found);
        Ok(term)
    }

    /// Appends the intersections whose union an item matches. An item that matches every event has
    /// none.
    ///
    /// # Errors
    /// [`IndexError`]; nothing was appended. Completed look-ups are kept, so that stopped work
    /// makes progress on the next call.
    pub(super) fn parts<S: Source<Term = T>>(
        &mut self,
        source: &S,
        query: &CompiledQuery,
        item: &CompiledItem,
        work: &mut Work,
        out: &mut Vec<Intersection<S::List>>,
    ) -> Result<(), IndexError> {
        let before = out.len();
        let made = self.make_parts(source, query, item, work, out);
        if made.is_err() {
            out.truncate(before);
        }
        made
    }

    fn make_parts<S: Source<Term = T>>(
        &mut self,
        source: &S,
        query: &CompiledQuery,
        item: &CompiledItem,
        work: &mut Work,
        out: &mut Vec<Intersection<S::List>>,
    ) -> Result<(), IndexError> {
        let Some(ItemTerms { types, tags }) = self.terms_of(source, query, item, work)? else {
            return Ok(());
        };
        if tags.is_empty() {
            let lists = types.iter().filter_map(|term| source.type_list(term));
            out.extend(lists.map(|list| Intersection::new(source, vec![list])));
            return Ok(());
        }
        let pair = best_pair(source, &tags, work)?;
        let several = types.len() > 1;
        let by_column = several
            && (types.len() > TYPES_APART
                || tags.len() > TAGS_APART
                || self.apart + types.len() > MOST_APART);
        if query.types_of(item).is_empty() || by_column {
            let numbers = types.iter().map(|term| source.number(term)).collect();
            let lists: Option<Vec<_>> = (tags.iter().zip(0..))
                .map(|(tag, at)| Some((source.tag_list(tag)?, Some(at))))
                .collect();
            let all = lists.map(|lists| AllOf { lists, types: by_column.then_some(numbers) });
            all.into_iter().for_each(|all| all.divide(source, pair.as_ref(), out));
            return Ok(());
        }
        self.apart += if several { types.len() } else { 0 };
        for event_type in &types {
            work.step(S::LOAD_STEPS * tags.len() as u64)?;
            if let Some(all) = typed(source, event_type, &tags)? {
                all.divide(source, pair.as_ref(), out);
            }
        }
        Ok(())
    }

    /// An item's types that may occur with its tags, and its tags; `None` if nothing matches.
    fn terms_of<S: Source<Term = T>>(
        &mut self,
        source: &S,
        query: &CompiledQuery,
        item: &CompiledItem,
        work: &mut Work,
    ) -> Result<Option<ItemTerms<T>>, IndexError> {
        // Checks that need no file come first: they rule out most absent terms.
        let mut marks = Vec::with_capacity(query.tags_of(item).len());
        for &tag in query.tags_of(item) {
            match self.mark(source, query, (Domain::Tag, tag), work)? {
                Some(mark) => marks.push(mark),
                None => return Ok(None),
            }
        }
        let mut met = Vec::with_capacity(query.types_of(item).len());
        for &event_type in query.types_of(item) {
            let Some(mark) = self.mark(source, query, (Domain::Type, event_type), work)? else {
                continue;
            };
            let mut meets = true;
            for &tag in &marks {
                meets = meets && source.may_meet(mark, tag)?;
            }
            if meets {
                met.push(event_type);
            }
        }
        if met.is_empty() && !query.types_of(item).is_empty() {
            return Ok(None);
        }
        let mut tags = Vec::with_capacity(marks.len());
        for &tag in query.tags_of(item) {
            match self.term(source, query, (Domain::Tag, tag), work)? {
                Some(term) => tags.push(term),
                None => return Ok(None),
            }
        }
        let mut types = Vec::with_capacity(met.len());
        for event_type in met {
            types.extend(self.term(source, query, (Domain::Type, event_type), work)?);
        }
        let none = types.is_empty() && !query.types_of(item).is_empty();
        Ok((!none).then_some(ItemTerms { types, tags }))
    }
}

impl Resolution<u32> {
    /// Looks up unknown terms after the tables of the active index have grown from `before` to
    /// `now` (types, tags). Visits the new terms or the unknown ones, whichever are fewer.
    pub(super) fn grow<S: Source<Term = u32>>(
        &mut self,
        source: &S,
        query: &CompiledQuery,
        before: (u32, u32),
        now: (u32, u32),
        new_text: impl Fn(Domain, u32, &mut dyn FnMut(&str)),
    ) -> Result<(), IndexError> {
        for (domain, new) in [(Domain::Type, before.0..now.0), (Domain::Tag, before.1..now.1)] {
            let slots = if domain == Domain::Type { &mut self.types } else { &mut self.tags };
            let unknown = |slot: &Slot<u32>| matches!(slot, Slot::Absent | Slot::Unasked);
            let missing = slots.iter().filter(|slot| unknown(slot)).count();
            if missing == 0 || new.is_empty() {
                continue;
            }
            if new.len() < missing {
                slots.iter_mut().filter(|slot| unknown(slot)).for_each(|slot| *slot = Slot::Absent);
                for id in new {
                    new_text(domain, id, &mut |text| {
                        let number = match domain {
                            Domain::Type => query.type_number(text),
                            _ => query.tag_number(text),
                        };
                        if let Some(number) = number {
                            slots[number as usize] = Slot::Found(id);
                        }
                    });
                }
                continue;
            }
            for (slot, number) in slots.iter_mut().zip(0..) {
                if unknown(slot) {
                    let mark = source.mark(domain, text(query, domain, number))?;
                    *slot = mark.map_or(Slot::Absent, |mark| Slot::Found(mark as u32));
                }
            }
        }
        Ok(())
    }

    /// Whether an event at or above `low` may match the item: all of its tags and one of its types
    /// are in `touched`.
    pub(super) fn may_be_touched(
        &self,
        query: &CompiledQuery,
        item: &CompiledItem,
        touched: &TouchedTerms,
    ) -> bool {
        let types = query.types_of(item);
        query.tags_of(item).iter().all(|&tag| touched.tags[tag as usize])
            && (types.is_empty() || types.iter().any(|&name| touched.types[name as usize]))
    }

    /// Which terms have events at or above `low`, according to `newest`. A term that has not been
    /// looked up counts as one that has.
    pub(super) fn touched(
        &self,
        low: u32,
        newest: impl Fn(Domain, u32) -> Option<u32>,
    ) -> TouchedTerms {
        let of = |domain, slots: &[Slot<u32>]| {
            let touched = |slot: &Slot<u32>| match slot {
                Slot::Unasked => true,
                Slot::Absent => false,
                Slot::Marked(id) => newest(domain, *id as u32).is_some_and(|rel| rel >= low),
                Slot::Found(id) => newest(domain, *id).is_some_and(|rel| rel >= low),
            };
            slots.iter().map(touched).collect()
        };
        TouchedTerms { types: of(Domain::Type, &self.types), tags: of(Domain::Tag, &self.tags) }
    }
}

/// For each term of a query, whether it has events in the range.
#[derive(Debug)]
pub(super) struct TouchedTerms {
    types: Vec<bool>,
    tags: Vec<bool>,
}

fn text(query: &CompiledQuery, domain: Domain, number: u32) -> &str {
    match domain {
        Domain::Type => query.type_text(number),
        _ => query.tag_text(number),
    }
}

/// Number of an item's tags considered for a pair: the shortest ones.
const TAGS_PAIRED: usize = 4;

/// Two tags of an item, by their index in it, and the data kept for them.
struct BestPair<L> {
    places: (usize, usize),
    kept: TagPair<L>,
}

/// The pair of tags with the fewest common events, among pairs for which data is kept.
fn best_pair<S: Source>(
    source: &S,
    tags: &[S::Term],
    work: &mut Work,
) -> Result<Option<BestPair<S::List>>, IndexError> {
    if tags.len() < 2 {
        return Ok(None);
    }
    let mut places: Vec<usize> = (0..tags.len()).collect();
    places.sort_by_key(|&at| source.tag_count(&tags[at]));
    places.truncate(TAGS_PAIRED);
    let mut best: Option<(u32, BestPair<S::List>)> = None;
    for (i, &one) in places.iter().enumerate() {
        for &other in &places[i + 1..] {
            work.step(S::LOAD_STEPS)?;
            let Some(kept) = source.tag_pair(&tags[one], &tags[other])? else { continue };
            let count = kept.list.as_ref().map_or(0, |list| source.count(list));
            if best.as_ref().is_none_or(|(least, _)| count < *least) {
                best = Some((count, BestPair { places: (one, other), kept }));
            }
        }
    }
    Ok(best.map(|(_, pair)| pair))
}

/// Lists that must all contain an event, and types of which it must have one.
struct AllOf<L> {
    /// Each with the index of its tag in the item, if it is exactly that tag's list.
    lists: Vec<(L, Option<usize>)>,
    types: Option<Vec<u32>>,
}

impl<L: Clone> AllOf<L> {
    /// Turns it into intersections: one, or those enabled by the list of a pair of its tags.
    fn divide<S: Source<List = L>>(
        self,
        source: &S,
        pair: Option<&BestPair<L>>,
        out: &mut Vec<Intersection<L>>,
    ) {
        let types = self.types;
        let make = |lists: Vec<L>| {
            let part = Intersection::new(source, lists);
            match &types {
                Some(types) => part.with_types(types.clone()),
                None => part,
            }
        };
        let all = |more: Option<L>| -> Vec<L> {
            self.lists.iter().map(|(list, _)| list.clone()).chain(more).collect()
        };
        let Some(BestPair { places: (one, other), kept }) = pair else {
            out.push(make(all(None)));
            return;
        };
        let from_there = kept.since..u32::MAX;
        if let Some(list) = &kept.list {
            let implied = |place: &Option<usize>| *place == Some(*one) || *place == Some(*other);
            let rest = self.lists.iter().filter(|(_, place)| !implied(place));
            let lists = rest.map(|(list, _)| list.clone()).chain([list.clone()]).collect();
            out.push(make(lists).within(from_there.clone()));
        }
        if let Some(wide) = &kept.wide {
            out.push(make(all(Some(wide.clone()))).within(from_there));
        }
        if kept.since > 0 {
            out.push(make(all(None)).within(0..kept.since));
        }
    }
}

/// The events of one type that have all of some tags; `None` if there are certainly none.
fn typed<S: Source>(
    source: &S,
    event_type: &S::Term,
    tags: &[S::Term],
) -> Result<Option<AllOf<S::List>>, IndexError> {
    let mut lists = Vec::with_capacity(tags.len() + 1);
    let mut type_is_sure = false;
    for (at, tag) in tags.iter().enumerate() {
        match source.narrow(event_type, tag)? {
            Narrowed::Empty => return Ok(None),
            Narrowed::Pair(list) => {
                lists.push((list, None));
                type_is_sure = true;
            }
            Narrowed::NotKept(list) => lists.push((list, Some(at))),
        }
    }
    if type_is_sure {
        return Ok(Some(AllOf { lists, types: None }));
    }
    if S::TYPES_BY_COLUMN {
        return Ok(Some(AllOf { lists, types: Some(vec![source.number(event_type)]) }));
    }
    lists.extend(source.type_list(event_type).map(|list| (list, None)));
    Ok(Some(AllOf { lists, types: None }))
}
