//! Maps names to slots.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ir::Slot;

/// The names in scope, innermost last.
#[derive(Default)]
pub(super) struct Names {
    entries: Vec<(Arc<str>, Slot)>,
    /// The slots of each name, innermost last.
    slots: HashMap<Arc<str>, Vec<Slot>>,
    /// Start of the current query's names; earlier ones belong to the enclosing queries.
    base: usize,
}

impl Names {
    /// The slot of a name; the innermost, if there are several.
    pub(super) fn get(&self, name: &str) -> Option<Slot> {
        self.slots.get(name)?.last().copied()
    }

    /// Declares a name.
    pub(super) fn push(&mut self, name: &str, slot: Slot) {
        self.extend([(name.into(), slot)]);
    }

    fn extend(&mut self, names: impl IntoIterator<Item = (Arc<str>, Slot)>) {
        for (name, slot) in names {
            self.slots.entry(name.clone()).or_default().push(slot);
            self.entries.push((name, slot));
        }
    }

    /// Number of names, for [`Self::forget`].
    pub(super) fn mark(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the names declared since `mark`.
    pub(super) fn forget(&mut self, mark: usize) {
        for (name, _) in self.entries.drain(mark.min(self.entries.len())..) {
            if let Some(slots) = self.slots.get_mut(&name) {
                slots.pop();
            }
        }
    }

    /// Starts the scope of a query. Returns a value for [`Self::leave`].
    pub(super) fn enter(&mut self) -> usize {
        std::mem::replace(&mut self.base, self.entries.len())
    }

    /// Ends a query and forgets its names.
    pub(super) fn leave(&mut self, before: usize) {
        self.forget(self.base);
        self.base = before;
    }

    /// After a projection: keeps only these names of the query.
    pub(super) fn replace(&mut self, names: Vec<(Arc<str>, Slot)>) {
        self.forget(self.base);
        self.extend(names);
    }

    /// All names in scope, in order of declaration; of equal ones the last counts.
    pub(super) fn all(&self) -> &[(Arc<str>, Slot)] {
        &self.entries
    }

    /// The query's names, in order of declaration.
    pub(super) fn own(&self) -> &[(Arc<str>, Slot)] {
        self.entries.get(self.base..).unwrap_or_default()
    }

    /// The slots of the query's names, without repetitions.
    pub(super) fn own_slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.own().iter().map(|entry| entry.1).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }
}
