//! A page of rows: byte strings of different lengths, by slot.

use super::{PAGE_ROWS, SHARED_BYTES};
use std::sync::Arc;

/// Longer rows are stored outside the page, so that offsets fit 16 bits and copying a page stays
/// cheap.
const LONGEST_INSIDE: usize = 512;

const _: () = assert!(LONGEST_INSIDE * PAGE_ROWS <= u16::MAX as usize);

/// Up to 64 rows. An empty row means that there is none.
#[derive(Debug, Clone)]
pub(crate) struct RowPage {
    /// The end of each row in `bytes`; it starts at the previous row's end.
    ends: [u16; PAGE_ROWS],
    bytes: Vec<u8>,
    /// Rows that are too long, by slot.
    outside: Vec<(u8, Arc<[u8]>)>,
}

impl Default for RowPage {
    fn default() -> RowPage {
        RowPage { ends: [0; PAGE_ROWS], bytes: Vec::new(), outside: Vec::new() }
    }
}

impl RowPage {
    fn span(&self, place: usize) -> std::ops::Range<usize> {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        usize::from(start)..usize::from(self.ends[place])
    }

    /// The row in this slot, below [`PAGE_ROWS`].
    pub(crate) fn get(&self, place: usize) -> Option<&[u8]> {
        let inside = &self.bytes[self.span(place)];
        if !inside.is_empty() {
            return Some(inside);
        }
        let found = self.outside.iter().find(|(at, _)| usize::from(*at) == place);
        found.map(|(_, row)| &**row)
    }

    /// Replaces the row in this slot; an empty row removes it. Returns by how many bytes it grew.
    pub(crate) fn set(&mut self, place: usize, row: &[u8]) -> i64 {
        let growth = row.len() as i64 - self.get(place).map_or(0, <[u8]>::len) as i64;
        self.outside.retain(|(at, _)| usize::from(*at) != place);
        let inside = if row.len() > LONGEST_INSIDE {
            let at = self.outside.partition_point(|(at, _)| usize::from(*at) < place);
            self.outside.insert(at, (place as u8, row.into()));
            &[]
        } else {
            row
        };
        let span = self.span(place);
        let grown = (self.bytes.len() + inside.len()).saturating_sub(span.len());
        if grown > self.bytes.capacity() {
            // Does not double: most pages fill up eventually, and spare capacity would then be
            // wasted.
            self.bytes.reserve_exact(grown - self.bytes.len() + grown / 8);
        }
        let (removed, added) = (span.len() as u16, inside.len() as u16);
        self.bytes.splice(span, inside.iter().copied());
        for end in &mut self.ends[place..] {
            *end = *end - removed + added;
        }
        growth
    }

    /// Approximate heap size in bytes that is not shared with copies.
    pub(crate) fn own_bytes(&self) -> usize {
        let of_none_else = self.outside.iter().filter(|(_, row)| Arc::strong_count(row) == 1);
        let outside: usize = of_none_else.map(|(_, row)| row.len() + SHARED_BYTES).sum();
        self.bytes.capacity() + self.outside.capacity() * size_of::<(u8, Arc<[u8]>)>() + outside
    }

    /// Releases spare capacity when no more rows are expected.
    pub(crate) fn settle(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// All rows with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        (0..PAGE_ROWS).filter_map(|place| Some((place, self.get(place)?)))
    }

    /// The first occupied slot from `place` on.
    pub(crate) fn next(&self, place: usize) -> Option<usize> {
        (place..PAGE_ROWS).find(|&place| self.get(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_page_is_a_map(writes in prop::collection::vec((0..PAGE_ROWS, prop_oneof![Just(0usize), 1..40usize, 500..530usize]), 0..200)) {
            let (mut page, mut model) = (RowPage::default(), BTreeMap::new());
            for (round, (place, length)) in writes.into_iter().enumerate() {
                let row = vec![round as u8; length];
                let before = model.get(&place).map_or(0, Vec::len) as i64;
                prop_assert_eq!(page.set(place, &row), row.len() as i64 - before);
                model.insert(place, row);
                model.retain(|_, row| !row.is_empty());
                prop_assert!(page.iter().eq(model.iter().map(|(&place, row)| (place, &**row))));
            }
        }
    }

    #[test]
    fn a_page_full_of_long_rows_holds_them() {
        let mut page = RowPage::default();
        for length in [512, 70_000, 512] {
            for place in 0..PAGE_ROWS {
                page.set(place, &vec![place as u8 + 1; length]);
            }
            assert!(page.iter().all(|(place, row)| row == vec![place as u8 + 1; length]));
        }
        for place in 0..PAGE_ROWS {
            page.set(place, &[]);
        }
        assert_eq!(page.next(0), None);
    }
}
