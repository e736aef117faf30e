//! Where in the data of events a reducer finds its value.

use std::fmt;
use wellspring_json::Pointer;

/// JSON Pointers, of which the first with a value counts. A field that was renamed has several.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValuePath(Vec<Pointer>);

impl ValuePath {
    /// At least one.
    pub(super) fn of(pointers: Vec<Pointer>) -> ValuePath {
        debug_assert!(!pointers.is_empty(), "a path has a pointer");
        ValuePath(pointers)
    }

    /// The value in a JSON text of checked syntax. `null` is a value only if no other pointer has
    /// one.
    pub(super) fn find<'a>(&self, json: &'a str) -> Option<&'a str> {
        let mut found = None;
        for pointer in &self.0 {
            let value = pointer.find(json);
            if value.is_some_and(|value| value != "null") {
                return value;
            }
            found = found.or(value);
        }
        found
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pointer) in self.0.iter().enumerate() {
            let before = if i == 0 { "" } else { " or " };
            write!(f, "{before}\"{pointer}\"")?;
        }
        Ok(())
    }
}
