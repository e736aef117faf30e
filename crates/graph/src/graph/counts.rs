//! Counts that every version maintains.

use crate::names::Name;
use crate::store::{PAGE_ROWS, Paged};

/// Counters by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameCounts(Paged<Counters>);

#[derive(Debug, Clone)]
struct Counters([u64; PAGE_ROWS]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([0; PAGE_ROWS])
    }
}

fn place(name: Name) -> (u64, usize) {
    (u64::from(name.number()) / PAGE_ROWS as u64, name.number() as usize % PAGE_ROWS)
}

impl NameCounts {
    pub(crate) fn get(&self, name: Name) -> u64 {
        let (page, at) = place(name);
        self.0.get(page).map_or(0, |counters| counters.0[at])
    }

    pub(crate) fn increment(&mut self, name: Name) {
        let (page, at) = place(name);
        self.0.get_mut(page).0[at] += 1;
    }

    pub(crate) fn decrement(&mut self, name: Name) {
        let (page, at) = place(name);
        let counter = &mut self.0.get_mut(page).0[at];
        *counter = counter.saturating_sub(1);
    }

    pub(crate) fn set(&mut self, name: Name, count: u64) {
        let (page, at) = place(name);
        self.0.get_mut(page).0[at] = count;
    }

    /// Approximate number of bytes not shared with other versions.
    pub(crate) fn own_bytes(&self) -> usize {
        self.0.own_bytes(|_| 0)
    }

    /// The names with a count above zero.
    pub(crate) fn names(&self) -> impl Iterator<Item = Name> {
        self.0.iter().flat_map(|(page, counters)| {
            let number = move |at: usize| (page * PAGE_ROWS as u64) as u32 + at as u32;
            let used = counters.0.iter().enumerate().filter(|(_, count)| **count > 0);
            used.map(move |(at, _)| Name::new(number(at)))
        })
    }
}
