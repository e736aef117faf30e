//! Names of labels, relationship types and property keys, and their numbers within a process.
//!
//! A version has numbers for the names that its events have used, in the order in which they came:
//! they are a function of the events. A transaction gives private numbers to the names that its
//! base does not have. They end with it; a commit gives its new names the numbers that the fold of
//! its events gives them.

use crate::limits::MAX_NAME_BYTES;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// A label, relationship type or property key, as a number. All later versions of a graph use the
/// number of a version for a name; other graphs may use different ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

/// The first number of a private name: half of what keys can hold.
const FIRST_PRIVATE: u32 = 1 << 23;
/// Maximum number of private names, without the greatest number that keys can hold.
const MAX_PRIVATE: usize = FIRST_PRIVATE as usize - 1;

impl Name {
    /// A name that nothing in the graph has: lookups with it find nothing.
    pub const UNKNOWN: Name = Name(u32::MAX);

    pub(crate) fn new(number: u32) -> Name {
        Name(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Whether only one transaction knows it.
    pub(crate) fn is_private(self) -> bool {
        self.0 >= FIRST_PRIVATE && self != Name::UNKNOWN
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

/// The names of a version. A clone costs a reference count.
///
/// Each layer has at least twice as many names as the next, so there are few, and a name is copied
/// to another layer a few times at most.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTable(Arc<Vec<Arc<Layer>>>);

/// Names with successive numbers.
#[derive(Debug, Default)]
struct Layer {
    first: u32,
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Layer {
    fn of(first: u32, texts: Vec<Arc<str>>) -> Layer {
        let numbers = texts.iter().cloned().zip(first..).collect();
        Layer { first, texts, numbers }
    }
}

impl NameTable {
    /// The name with this text.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        self.0.iter().find_map(|layer| layer.numbers.get(text)).map(|&number| Name(number))
    }

    /// The text of a name, if it is one of these.
    pub(crate) fn text(&self, name: Name) -> Option<&Arc<str>> {
        let after = self.0.partition_point(|layer| layer.first <= name.0);
        let layer = self.0.get(after.checked_sub(1)?)?;
        layer.texts.get((name.0 - layer.first) as usize)
    }

    /// Number of names: the number of the next one.
    pub(crate) fn len(&self) -> usize {
        self.0.last().map_or(0, |layer| layer.first as usize + layer.texts.len())
    }

    /// All texts, by number.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().flat_map(|layer| &layer.texts)
    }

    /// Adds names that it does not have. `None` if one occurs twice, or there would be too many.
    pub(crate) fn extend(&mut self, mut texts: Vec<Arc<str>>) -> Option<()> {
        if texts.is_empty() {
            return Some(());
        }
        if self.len() + texts.len() > FIRST_PRIVATE as usize {
            return None;
        }
        let mut layers = Vec::clone(&self.0);
        let (mut first, count) = (self.len(), texts.len());
        while let Some(layer) = layers.pop_if(|layer| layer.texts.len() < 2 * texts.len()) {
            first = layer.first as usize;
            texts.splice(0..0, layer.texts.iter().cloned());
        }
        let layer = Layer::of(u32::try_from(first).ok()?, texts);
        let are_new = layer.numbers.len() == layer.texts.len()
            && layer.texts[layer.texts.len() - count..]
                .iter()
                .all(|text| layers.iter().all(|layer| !layer.numbers.contains_key(text)));
        if !are_new {
            return None;
        }
        layers.push(Arc::new(layer));
        self.0 = Arc::new(layers);
        Some(())
    }
}

/// The names that a transaction, or the events of one, has and its base does not.
#[derive(Debug, Default)]
pub(crate) struct PrivateNames(RwLock<PrivateDictionary>);

#[derive(Debug, Default)]
struct PrivateDictionary {
    layer: Layer,
    bytes: usize,
}

impl PrivateNames {
    /// The name with this text.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        let dictionary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        dictionary.layer.numbers.get(text).map(|&at| Name(FIRST_PRIVATE + at))
    }

    /// The name with this text, which the base does not have, added if unknown. `None` if it is not
    /// a valid name, or there are `most` already.
    pub(crate) fn intern(&self, text: &str, most: usize) -> Option<Name> {
        /// Memory of an entry besides its text.
        const ENTRY_BYTES: usize = 80;
        if let Some(name) = self.find(text) {
            return Some(name);
        }
        let mut dictionary = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let PrivateDictionary { layer, bytes } = &mut *dictionary;
        let count = layer.texts.len();
        if !is_name(text) || count >= most.min(MAX_PRIVATE) {
            return None;
        }
        let at = u32::try_from(count).ok()?;
        let text: Arc<str> = text.into();
        *bytes += ENTRY_BYTES + text.len();
        layer.texts.push(text.clone());
        layer.numbers.insert(text, at);
        Some(Name(FIRST_PRIVATE + at))
    }

    /// The text of a name, if it is one of these.
    pub(crate) fn text(&self, name: Name) -> Option<Arc<str>> {
        let at = name.0.checked_sub(FIRST_PRIVATE)?;
        let dictionary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        dictionary.layer.texts.get(at as usize).cloned()
    }

    /// All texts, with their names.
    pub(crate) fn all(&self) -> Vec<(Name, Arc<str>)> {
        let dictionary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let names = (FIRST_PRIVATE..).map(Name);
        names.zip(dictionary.layer.texts.iter().cloned()).collect()
    }

    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).layer.texts.len()
    }

    /// Approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_nonsense_has_none() {
        let names = PrivateNames::default();
        let person = names.intern("Person", 10).expect("a name");
        assert_eq!(names.intern("Person", 10), Some(person));
        assert!(person.is_private());
        assert_eq!(names.text(person).as_deref(), Some("Person"));
        assert_eq!(names.find("Other"), None);
        assert_eq!(names.text(Name::UNKNOWN), None);
        for text in ["", "a\nb", &"x".repeat(241)] {
            assert_eq!(names.intern(text, 10), None);
        }
        assert!(names.intern(&"x".repeat(240), 10).is_some());
        assert_eq!(names.intern("a third", 2), None);
        assert!(names.bytes() > 246);
    }

    #[test]
    fn names_keep_their_numbers_in_all_later_versions() {
        let text = |number: usize| Arc::<str>::from(format!("n{number}"));
        let (mut table, mut versions) = (NameTable::default(), Vec::new());
        for count in [1, 1, 1, 2, 7, 1, 40, 3, 1, 1] {
            versions.push((table.clone(), table.len()));
            let len = table.len();
            table.extend((len..len + count).map(text).collect()).expect("new ones");
        }
        assert!(table.0.len() < 6, "{} layers", table.0.len());
        versions.push((table.clone(), table.len()));
        for (version, len) in versions {
            assert!(version.texts().cloned().eq((0..len).map(text)));
            for number in 0..len {
                let name = version.find(&text(number)).expect("known");
                assert_eq!(
                    (name.number() as usize, version.text(name)),
                    (number, Some(&text(number)))
                );
            }
            assert_eq!(version.find(&text(len)), None);
            assert_eq!(version.text(Name::new(len as u32)), None);
        }
        assert_eq!(table.clone().extend(vec![text(3)]), None);
        assert_eq!(table.extend(vec!["x".into(), "x".into()]), None);
    }
}
