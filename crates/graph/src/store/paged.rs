//! A sparse array of pages: a radix tree whose levels and pages are shared between versions until
//! one of them writes.

use super::SHARED_BYTES;
use std::sync::Arc;

const BITS: u32 = 5;
const FAN_OUT: usize = 1 << BITS;

/// Pages by number. A clone is a version: writes to one are never visible in the other.
#[derive(Debug)]
pub(crate) struct Paged<P> {
    root: Option<Arc<Level<P>>>,
    /// Number of branch levels above the pages.
    height: u32,
}

#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "each stands in an allocation of its own, and a step less counts"
)]
enum Level<P> {
    Branch([Option<Arc<Level<P>>>; FAN_OUT]),
    Page(P),
}

impl<P> Clone for Paged<P> {
    fn clone(&self) -> Paged<P> {
        Paged { root: self.root.clone(), height: self.height }
    }
}

impl<P> Default for Paged<P> {
    fn default() -> Paged<P> {
        Paged { root: None, height: 0 }
    }
}

fn slot(number: u64, height: u32) -> usize {
    (number >> (BITS * height)) as usize % FAN_OUT
}

impl<P: Clone + Default> Paged<P> {
    /// Whether a root of this height covers `number`.
    fn reaches(&self, number: u64) -> bool {
        number.checked_shr(BITS * self.height).unwrap_or(0) == 0
    }

    /// The page with this number.
    pub(crate) fn get(&self, number: u64) -> Option<&P> {
        if !(self.reaches(number)) {
            return None;
        }
        let mut level = self.root.as_deref()?;
        let mut height = self.height;
        loop {
            match level {
                Level::Page(page) => return Some(page),
                Level::Branch(below) => {
                    height -= 1;
                    level = below[slot(number, height)].as_deref()?;
                }
            }
        }
    }

    /// The page with this number for writing; created empty if it does not exist.
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut P {
        while !self.reaches(number) {
            if let Some(root) = self.root.take() {
                let mut below = [const { None }; FAN_OUT];
                below[0] = Some(root);
                self.root = Some(Arc::new(Level::Branch(below)));
            }
            self.height += 1;
        }
        level_mut(&mut self.root, number, self.height)
    }

    /// The first page from this number on, and its number.
    pub(crate) fn next(&self, number: u64) -> Option<(u64, &P)> {
        if !self.reaches(number) {
            return None;
        }
        first_from(self.root.as_deref()?, number, self.height)
    }

    /// Approximate number of bytes not shared with other versions; `bytes_of` returns the heap size
    /// of a page.
    pub(crate) fn own_bytes(&self, bytes_of: impl Fn(&P) -> usize) -> usize {
        self.root.as_ref().map_or(0, |root| own_bytes(root, &bytes_of))
    }

    /// All pages by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &P)> {
        let mut following = Some(0);
        std::iter::from_fn(move || {
            let (number, page) = self.next(following?)?;
            following = number.checked_add(1);
            Some((number, page))
        })
    }
}

fn level_mut<P: Clone + Default>(
    level: &mut Option<Arc<Level<P>>>,
    number: u64,
    height: u32,
) -> &mut P {
    let empty = || match height {
        0 => Arc::new(Level::Page(P::default())),
        _ => Arc::new(Level::Branch([const { None }; FAN_OUT])),
    };
    match Arc::make_mut(level.get_or_insert_with(empty)) {
        Level::Page(page) => page,
        Level::Branch(below) => level_mut(&mut below[slot(number, height - 1)], number, height - 1),
    }
}

/// A shared node shares everything below it.
fn own_bytes<P>(level: &Arc<Level<P>>, bytes_of: &impl Fn(&P) -> usize) -> usize {
    if Arc::strong_count(level) > 1 {
        return 0;
    }
    let below = match &**level {
        Level::Page(page) => bytes_of(page),
        Level::Branch(below) => below.iter().flatten().map(|one| own_bytes(one, bytes_of)).sum(),
    };
    SHARED_BYTES + size_of::<Level<P>>() + below
}

/// The first page at or after `number`, relative to this level.
fn first_from<P>(level: &Level<P>, number: u64, height: u32) -> Option<(u64, &P)> {
    let below = match level {
        Level::Page(page) => return Some((number, page)),
        Level::Branch(below) => below,
    };
    let reach = 1u64 << (BITS * (height - 1));
    let base = number & !(reach * FAN_OUT as u64 - 1);
    let first = slot(number, height - 1);
    let candidates = below.iter().enumerate().skip(first);
    candidates.filter_map(|(at, level)| Some((at, level.as_deref()?))).find_map(|(at, level)| {
        let start = base + at as u64 * reach;
        first_from(level, start.max(number), height - 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn far_apart_pages_are_found_in_order() {
        let numbers = [0, 1, 31, 32, 33, 1023, 1024, 1 << 20, (1 << 42) - 1];
        let mut pages = Paged::<u64>::default();
        assert!(pages.get(0).is_none() && pages.next(0).is_none());
        for number in numbers.into_iter().rev() {
            *pages.get_mut(number) = number;
        }
        assert_eq!(pages.iter().map(|(number, _)| number).collect::<Vec<_>>(), numbers);
        assert!(pages.iter().all(|(number, &page)| number == page));
        assert_eq!(pages.next(34).map(|(number, _)| number), Some(1023));
        assert_eq!(pages.next(1 << 42), None);
    }

    proptest! {
        #[test]
        fn versions_stay_as_they_were(writes in prop::collection::vec((0u64..5000, 0u64..9, any::<bool>()), 0..200)) {
            let (mut pages, mut model) = (Paged::<u64>::default(), BTreeMap::new());
            let mut versions = Vec::new();
            for (number, value, keep) in writes {
                if keep {
                    versions.push((pages.clone(), model.clone()));
                }
                *pages.get_mut(number) = value;
                model.insert(number, value);
            }
            versions.push((pages, model));
            for (pages, model) in versions {
                prop_assert!(pages.iter().map(|(n, &p)| (n, p)).eq(model.iter().map(|(&n, &p)| (n, p))));
                for probe in (0..5200).step_by(97) {
                    let expected = model.range(probe..).next().map(|(&n, &p)| (n, p));
                    prop_assert_eq!(pages.next(probe).map(|(n, &p)| (n, p)), expected);
                    prop_assert_eq!(pages.get(probe), model.get(&probe));
                }
            }
        }
    }
}
