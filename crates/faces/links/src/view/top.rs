//! The most frequent of many names in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi
//! 2005). Exact until all places are taken; then a new name replaces the rarest one and inherits
//! its count, by which it may be too high.

/// Number of names kept.
pub(super) const PLACES: usize = 64;

/// A name and its count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Box<str>,
    pub(super) count: u64,
    /// By how much the count may be too high.
    pub(super) excess: u64,
}

/// The counter; see the module's documentation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FrequentNames {
    entries: Vec<Entry>,
}

impl FrequentNames {
    /// Counts a name.
    pub(super) fn add(&mut self, name: &str) {
        if let Some(at) = self.entries.iter().position(|entry| *entry.name == *name) {
            self.entries[at].count += 1;
            // Keeps frequent names in front, where they are found first.
            if at > 0 && self.entries[at - 1].count < self.entries[at].count {
                self.entries.swap(at - 1, at);
            }
            return;
        }
        if self.entries.len() < PLACES {
            self.entries.push(Entry { name: name.into(), count: 1, excess: 0 });
            return;
        }
        debug_assert!(self.entries.len() == PLACES, "an entry is replaced only if all are taken");
        // The rarest entry; of several, the last.
        let rarest = self.entries.iter_mut().rev().min_by_key(|entry| entry.count);
        if let Some(entry) = rarest {
            let excess = entry.count;
            *entry = Entry { name: name.into(), count: excess + 1, excess };
        }
    }

    /// The entries, in no particular order.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Entries from a snapshot; `None` if there are too many.
    pub(super) fn from_entries(entries: Vec<Entry>) -> Option<FrequentNames> {
        (entries.len() <= PLACES).then_some(FrequentNames { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn frequent_names_are_never_missed_and_no_count_is_too_low() {
        let (mut top, mut truth) = (FrequentNames::default(), HashMap::<String, u64>::new());
        for n in 0..20_000u64 {
            // Ten frequent names among thousands of rare ones.
            let name = if n % 3 == 0 { format!("rare{n}") } else { format!("often{}", n % 10) };
            top.add(&name);
            *truth.entry(name).or_default() += 1;
        }
        for often in 0..10 {
            let name = format!("often{often}");
            let entry = top.entries().iter().find(|e| *e.name == *name).expect(&name);
            assert!(entry.count >= truth[&name] && entry.count - entry.excess <= truth[&name]);
        }
    }

    #[test]
    fn while_there_are_places_counts_are_exact() {
        let mut top = FrequentNames::default();
        for n in 0..6_400usize {
            top.add(&format!("n{}", n % PLACES));
        }
        assert!(top.entries().iter().all(|entry| entry.count == 100 && entry.excess == 0));
    }
}
