//! Names of labels, relationship types and property keys, and the numbers they stand under within a
//! process.

use crate::limits::{MAX_NAME_BYTES, MAX_NAMES};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// A label, relationship type or property key, as a number. All versions of a graph give one name
/// one number; another graph, or the same one after a restart, another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

impl Name {
    /// A name that nothing in the graph has: reading by it finds nothing.
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

/// Whether a label, type or key may have this text: 1 to 240 bytes, no control characters.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// The names that any version of a graph ever saw. They are only added to, also by transactions
/// that end in nothing.
#[derive(Debug, Default)]
pub(crate) struct Names(RwLock<Dictionary>);

#[derive(Debug, Default)]
struct Dictionary {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// Numbers that keys have room for. Statements end long before, so that names of theirs that came
/// to nothing take none from events, which must mean the same in every process.
const MAX_NUMBERS: usize = (1 << 24) - 1;

impl Names {
    /// The name of that text, if it is known.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        let dictionary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        dictionary.numbers.get(text).map(|&number| Name(number))
    }

    /// The name of that text; a new one if it is not known. `None` for what is no name.
    pub(crate) fn intern(&self, text: &str) -> Option<Name> {
        self.intern_among(MAX_NUMBERS, text)
    }

    /// The same for a statement; also `None` for a new name when there are too many.
    pub(crate) fn intern_for_statement(&self, text: &str) -> Option<Name> {
        self.intern_among(MAX_NAMES, text)
    }

    /// Whether a statement can bring no other name.
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

    /// The text of a name; nothing for [`Name::UNKNOWN`].
    pub(crate) fn text(&self, name: Name) -> Arc<str> {
        let dictionary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        dictionary.texts.get(name.0 as usize).cloned().unwrap_or_default()
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).texts.len()
    }

    /// All texts in order of number.
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
