//! Where in the data of events a reducer finds its value.

use std::fmt;
use wellspring_json::{Pointer, PointerSet};

/// JSON Pointers, of which the first with a value counts. A field that was renamed has several.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValuePath {
    pointers: Vec<Pointer>,
    /// Their numbers among all pointers of the request.
    numbers: Vec<usize>,
}

impl ValuePath {
    /// At least one.
    pub(super) fn of(pointers: Vec<Pointer>) -> ValuePath {
        debug_assert!(!pointers.is_empty(), "a path has a pointer");
        ValuePath { pointers, numbers: Vec::new() }
    }

    /// Adds its pointers to those of the request.
    pub(super) fn add_to(&mut self, set: &mut PointerSet) {
        self.numbers = self.pointers.iter().map(|pointer| set.add(pointer)).collect();
    }

    /// The value, of those found for the pointers of the request. `null` is a value only if no
    /// other pointer has one.
    pub(super) fn value_of<'a>(&self, found: &[Option<&'a str>]) -> Option<&'a str> {
        let values = || self.numbers.iter().filter_map(|number| found[*number]);
        values().find(|value| *value != "null").or_else(|| values().next())
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pointer) in self.pointers.iter().enumerate() {
            let before = if i == 0 { "" } else { " or " };
            write!(f, "{before}\"{pointer}\"")?;
        }
        Ok(())
    }
}
