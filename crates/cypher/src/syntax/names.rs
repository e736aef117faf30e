//! Which name stands for which slot.

use std::sync::Arc;

use crate::ir::Slot;

/// The names in scope, innermost last.
#[derive(Default)]
pub(super) struct Names {
    entries: Vec<(Arc<str>, Slot)>,
    /// Where the names of the query begin that is being lowered; those before are of the queries
    /// around it.
    base: usize,
}

impl Names {
    /// The slot of a name; the innermost, if there are several.
    pub(super) fn get(&self, name: &str) -> Option<Slot> {
        self.entries.iter().rev().find(|(known, _)| **known == *name).map(|entry| entry.1)
    }

    /// Declares a name.
    pub(super) fn push(&mut self, name: &str, slot: Slot) {
        self.entries.push((name.into(), slot));
    }

    /// How many names there are, for [`Self::forget`].
    pub(super) fn mark(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the names declared since.
    pub(super) fn forget(&mut self, mark: usize) {
        self.entries.truncate(mark);
    }

    /// From here on, what is declared is a query's own. The value given is for [`Self::leave`].
    pub(super) fn enter(&mut self) -> usize {
        std::mem::replace(&mut self.base, self.entries.len())
    }

    /// Ends a query: its names are forgotten.
    pub(super) fn leave(&mut self, before: usize) {
        self.entries.truncate(self.base);
        self.base = before;
    }

    /// After a projection: only these names of the query are left.
    pub(super) fn replace(&mut self, names: Vec<(Arc<str>, Slot)>) {
        self.entries.truncate(self.base);
        self.entries.extend(names);
    }

    /// The names of the query, in the order of their declaration.
    pub(super) fn own(&self) -> &[(Arc<str>, Slot)] {
        self.entries.get(self.base..).unwrap_or_default()
    }

    /// The slots of the query's names, each once.
    pub(super) fn own_slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.own().iter().map(|entry| entry.1).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }
}
