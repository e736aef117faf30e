//! Names of labels, relationship types and property keys, and their numbers within a process.

use crate::limits::{MAX_NAME_BYTES, MAX_NAMES};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// A label, relationship type or property key, as a number. All versions of a graph use the same
/// number for a name; other graphs, and the same graph after a restart, may use different ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

impl Name {
    /// A name that nothing in the graph has: lookups with it find nothing.
    pub const UNKNOWN: Name = Name(u32::MAX);

    pub(crate) fn new(number: u32) -> Name {
        Name(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The number as part of a key.
    pub(crate) fn bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.0)
    }
}

/// Whether a label, type or key can have this text: 1 to 240 bytes, no control characters.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// The names that any version of a graph has ever used. Names are only added, even by discarded
/// transactions.
#[derive(Debug, Default)]
pub(crate) struct Names(RwLock<Dictionary>);

#[derive(Debug, Default)]
struct Dictionary {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// Maximum number that keys can hold. The limit for statements is much lower, so names of discarded
/// statements never displace names of events, whose meaning must be the same in every process.
const MAX_NUMBERS: usize = (1 << 24) - 1;

impl Names {
    /// The name with this text, if it is known.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        let dictionary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        dictionary.numbers.get(text).map(|&number| Name(number))
    }

    /// The name with this text, added if unknown. `None` if it is not a valid name.
    pub(crate) fn intern(&self, text: &str) -> Option<Name> {
        self.intern_among(MAX_NUMBERS, text)
    }

    /// The same for a statement; also `None` if the name is new and the limit is reached.
    pub(crate) fn intern_for_statement(&self, text: &str) -> Option<Name> {
        self.intern_among(MAX_NAMES, text)
    }

    /// Whether statements can add no further name.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= MAX_NAMES
    }

    fn intern_among(&self, most: usize, text: &str) -> Option<Name> {
        if let Some(name) = self.find(text) {
            return Some(name);
        }
        if !is_name(text) {
            return None;
        }
        let mut dictionary = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = dictionary.numbers.get(text) {
            return Some(Name(number));
        }
        let number = dictionary.texts.len();
        if number >= most {
            return None;
        }
        let text: Arc<str> = text.into();
        dictionary.texts.push(text.clone());
        dictionary.numbers.insert(text, number as u32);
        Some(Name(number as u32))
    }

    /// The text of a name; empty for [`Name::UNKNOWN`].
    pub(crate) fn text(&self, name: Name) -> Arc<str> {
        let dictionary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        dictionary.texts.get(name.0 as usize).cloned().unwrap_or_default()
    }

    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).texts.len()
    }

    /// All texts, by number.
    pub(crate) fn texts(&self) -> Vec<Arc<str>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).texts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_nonsense_has_none() {
        let names = Names::default();
        let person = names.intern("Person").expect("a name");
        assert_eq!(names.intern("Person"), Some(person));
        assert_eq!(&*names.text(person), "Person");
        assert_eq!(names.find("Other"), None);
        assert_eq!(&*names.text(Name::UNKNOWN), "");
        for text in ["", "a\nb", &"x".repeat(241)] {
            assert_eq!(names.intern(text), None);
        }
        assert!(names.intern(&"x".repeat(240)).is_some());
    }

    #[test]
    fn statements_leave_room_for_events() {
        let names = Names::default();
        for number in 0..MAX_NAMES {
            assert!(names.intern_for_statement(&number.to_string()).is_some());
        }
        assert!(names.is_full());
        assert_eq!(names.intern_for_statement("another"), None);
        assert!(names.intern_for_statement("7").is_some());
        assert!(names.intern("another").is_some());
        assert!(names.intern_for_statement("another").is_some());
    }
}
