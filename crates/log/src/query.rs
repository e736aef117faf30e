//! A compiled query: its distinct terms and items, with a cost that is known before any index is
//! accessed. Judge, cursor and subscription share one by reference.

use std::ops::Range;
use std::sync::Arc;
use wellspring_types::Query;

/// A query that is compiled once and then shared.
///
/// Equal terms and items are stored once. A repeated item keeps its lowest number, so that a
/// conflict names the same item as the original query.
#[derive(Debug, Clone)]
pub struct CompiledQuery {
    types: Terms,
    tags: Terms,
    /// Numbers of types and tags, item after item.
    slots: Vec<u32>,
    items: Vec<CompiledItem>,
    lookups: u64,
}

/// Distinct texts in byte order.
#[derive(Debug, Clone, Default)]
struct Terms {
    bytes: String,
    /// Where each text ends in `bytes`.
    ends: Vec<u32>,
}

/// One alternative of a compiled query.
#[derive(Debug, Clone)]
pub(crate) struct CompiledItem {
    /// Its index in the query.
    pub(crate) number: usize,
    /// Its types and tags in `slots`.
    types: Range<u32>,
    tags: Range<u32>,
}

impl Terms {
    /// The distinct texts, and each text's number in turn.
    fn of<'q>(texts: impl Iterator<Item = &'q str>) -> (Terms, Vec<u32>) {
        let mut sorted: Vec<(&str, u32)> =
            texts.enumerate().map(|(at, text)| (text, at as u32)).collect();
        sorted.sort_unstable();
        let mut numbers = vec![0; sorted.len()];
        let mut terms = Terms {
            bytes: String::with_capacity(sorted.iter().map(|(text, _)| text.len()).sum()),
            ends: Vec::with_capacity(sorted.len()),
        };
        let mut previous = None;
        for (text, at) in sorted {
            if previous != Some(text) {
                terms.bytes.push_str(text);
                terms.ends.push(terms.bytes.len() as u32);
                previous = Some(text);
            }
            numbers[at as usize] = terms.ends.len() as u32 - 1;
        }
        (terms, numbers)
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn text(&self, number: u32) -> &str {
        let end = self.ends[number as usize] as usize;
        let start = match number.checked_sub(1) {
            Some(before) => self.ends[before as usize] as usize,
            None => 0,
        };
        &self.bytes[start..end]
    }

    fn number(&self, text: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.text(middle).cmp(text) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}

impl CompiledQuery {
    /// Compiles a query in time proportional to its length times the logarithm of its number of
    /// terms.
    #[must_use]
    pub fn new(query: &Query) -> CompiledQuery {
        let texts = |of: fn(&wellspring_types::QueryItem) -> &Vec<String>| {
            Terms::of(query.items.iter().flat_map(of).map(String::as_str))
        };
        let ((types, type_numbers), (tags, tag_numbers)) =
            (texts(|item| &item.types), texts(|item| &item.tags));
        let (mut type_numbers, mut tag_numbers) = (&type_numbers[..], &tag_numbers[..]);
        let mut compiled =
            CompiledQuery { types, tags, slots: Vec::new(), items: Vec::new(), lookups: 0 };
        let mut seen = std::collections::BTreeSet::new();
        for (number, item) in query.items.iter().enumerate() {
            let (own_types, own_tags);
            (own_types, type_numbers) = type_numbers.split_at(item.types.len());
            (own_tags, tag_numbers) = tag_numbers.split_at(item.tags.len());
            let start = compiled.slots.len();
            let middle = start + push_numbers(&mut compiled.slots, own_types);
            let end = middle + push_numbers(&mut compiled.slots, own_tags);
            let key = (middle - start, compiled.slots[start..end].to_vec());
            if query.items.len() > 1 && !seen.insert(key) {
                compiled.slots.truncate(start);
                continue;
            }
            let (start, middle, end) = (start as u32, middle as u32, end as u32);
            compiled.items.push(CompiledItem { number, types: start..middle, tags: middle..end });
        }
        compiled.lookups =
            (compiled.types.len() + compiled.tags.len() + compiled.items.len()) as u64;
        compiled
    }

    /// The same, shared.
    #[must_use]
    pub fn shared(query: &Query) -> Arc<CompiledQuery> {
        Arc::new(CompiledQuery::new(query))
    }

    /// Number of index look-ups per segment: one for each distinct type and tag, and one for each
    /// distinct item. Depends on the query alone.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.lookups
    }

    /// Whether it matches every event.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.items.is_empty() || self.items.iter().any(CompiledItem::is_all)
    }

    /// Whether an event matches, as [`Query::matching_item`] defines it.
    pub fn matches<'t>(
        &self,
        event_type: &str,
        tags: impl Iterator<Item = &'t str> + Clone,
    ) -> bool {
        if self.is_all() {
            return true;
        }
        let event_type = self.types.number(event_type);
        let own: Vec<u32> = tags.filter_map(|tag| self.tags.number(tag)).collect();
        self.items.iter().any(|item| {
            let types = self.types_of(item);
            (types.is_empty() || event_type.is_some_and(|own| types.binary_search(&own).is_ok()))
                && self.tags_of(item).iter().all(|tag| own.contains(tag))
        })
    }

    /// The distinct items in order; empty if every event matches.
    pub(crate) fn items(&self) -> &[CompiledItem] {
        &self.items
    }

    /// The numbers of an item's types, ascending.
    pub(crate) fn types_of(&self, item: &CompiledItem) -> &[u32] {
        &self.slots[item.types.start as usize..item.types.end as usize]
    }

    /// The numbers of an item's tags, ascending.
    pub(crate) fn tags_of(&self, item: &CompiledItem) -> &[u32] {
        &self.slots[item.tags.start as usize..item.tags.end as usize]
    }

    /// Number of distinct types.
    pub(crate) fn type_count(&self) -> usize {
        self.types.len()
    }

    /// Number of distinct tags.
    pub(crate) fn tag_count(&self) -> usize {
        self.tags.len()
    }

    /// The text of a type.
    pub(crate) fn type_text(&self, number: u32) -> &str {
        self.types.text(number)
    }

    /// The text of a tag.
    pub(crate) fn tag_text(&self, number: u32) -> &str {
        self.tags.text(number)
    }

    /// The number of a type, if the query contains it.
    pub(crate) fn type_number(&self, text: &str) -> Option<u32> {
        self.types.number(text)
    }

    /// The number of a tag, if the query contains it.
    pub(crate) fn tag_number(&self, text: &str) -> Option<u32> {
        self.tags.number(text)
    }
}

impl CompiledItem {
    /// Whether it matches every event.
    pub(crate) fn is_all(&self) -> bool {
        self.types.is_empty() && self.tags.is_empty()
    }
}

/// Appends numbers in ascending order without duplicates; returns how many.
fn push_numbers(slots: &mut Vec<u32>, numbers: &[u32]) -> usize {
    let start = slots.len();
    slots.extend_from_slice(numbers);
    slots[start..].sort_unstable();
    let mut kept = start;
    for at in start..slots.len() {
        if at == start || slots[at] != slots[kept - 1] {
            slots[kept] = slots[at];
            kept += 1;
        }
    }
    slots.truncate(kept);
    kept - start
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wellspring_types::QueryItem;

    #[test]
    fn terms_and_items_stand_once_and_the_lowest_number_is_kept() {
        let items = vec![
            QueryItem::new(&["B", "A", "B"], &["y", "x"]),
            QueryItem::new(&["C"], &[]),
            QueryItem::new(&["A", "B"], &["x", "y"]),
            QueryItem::new(&["C"], &["x"]),
        ];
        let compiled = CompiledQuery::new(&Query { items });
        let numbers: Vec<_> = compiled.items().iter().map(|item| item.number).collect();
        assert_eq!(numbers, [0, 1, 3]);
        assert_eq!((compiled.type_count(), compiled.tag_count()), (3, 2));
        assert_eq!(compiled.lookups(), 3 + 2 + 3);
        let first = &compiled.items()[0];
        let texts: Vec<_> =
            compiled.types_of(first).iter().map(|&number| compiled.type_text(number)).collect();
        assert_eq!(texts, ["A", "B"]);
        assert_eq!(compiled.tag_number("y"), Some(1));
        assert_eq!(compiled.tag_number("z"), None);
        assert!(!compiled.is_all());
        assert!(CompiledQuery::new(&Query::all()).is_all());
    }

    fn any_texts(most: usize) -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec((0u8..5).prop_map(|n| format!("t{n}")), 0..most)
    }

    proptest! {
        #[test]
        fn a_compiled_query_matches_what_the_query_matches(
            items in prop::collection::vec((any_texts(4), any_texts(3)), 0..6),
            event_type in 0u8..6, tags in any_texts(4),
        ) {
            let items = items.into_iter().map(|(types, tags)| QueryItem { types, tags }).collect();
            let query = Query { items };
            let (event_type, tags) = (format!("t{event_type}"), tags.iter().map(String::as_str));
            let expected = query.matching_item(&event_type, tags.clone()).is_some();
            prop_assert_eq!(CompiledQuery::new(&query).matches(&event_type, tags), expected);
        }
    }
}
