//! Lists and maps, which know how deeply they are nested: what goes through a value goes down one call a level, so
//! there must be an end to them.

use super::{Entries, Value};
use crate::error::{Detail, Error, Result};
use std::ops::Deref;

/// How deeply lists and maps may be nested.
pub const MAX_DEPTH: u32 = 256;

/// The items of a list.
#[derive(Debug, Clone, Default)]
pub struct List {
    items: Vec<Value>,
    depth: u32,
}

/// The entries of a map.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: Entries,
    depth: u32,
}

fn deepest<'a>(values: impl IntoIterator<Item = &'a Value>) -> u32 {
    values.into_iter().map(Value::depth).max().unwrap_or(0)
}

impl List {
    /// Adds items at the end.
    pub(crate) fn extend(&mut self, items: &[Value]) {
        self.depth = self.depth.max(deepest(items).saturating_add(1));
        self.items.extend_from_slice(items);
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        let depth = deepest(&items).saturating_add(1);
        Self { items, depth }
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

impl From<Entries> for Map {
    fn from(entries: Entries) -> Self {
        let depth = deepest(entries.values()).saturating_add(1);
        Self { entries, depth }
    }
}

impl Deref for Map {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        &self.entries
    }
}

impl Value {
    /// How many lists and maps lie within each other here.
    pub fn depth(&self) -> u32 {
        match self {
            Self::List(list) => list.depth,
            Self::Map(map) => map.depth,
            _ => 0,
        }
    }

    /// The value itself, if it is not nested too deeply. To be asked wherever a value is made that holds others.
    ///
    /// # Errors
    /// More than [`MAX_DEPTH`] lists and maps within each other.
    pub fn not_too_deep(self) -> Result<Self> {
        if self.depth() <= MAX_DEPTH {
            return Ok(self);
        }
        let message = format!("Lists and maps can be nested {MAX_DEPTH} deep and no deeper.");
        Err(Error::argument(Detail::LimitExceeded, message))
    }
}
