//! Lists and maps that know their depth and size. Traversing a value recurses once per level, so
//! the depth must be bounded; and a holder of a value can charge its size without traversing it.

use super::{Entries, Value};
use crate::error::{Detail, Error, ErrorKind, Result};
use std::ops::Deref;
use std::sync::Arc;

/// Maximum nesting of lists and maps.
pub const MAX_DEPTH: u32 = 256;

/// Maximum size of a value as if nothing in it were shared, which bounds its traversal.
const MAX_BYTES: u64 = 1 << 30;

/// The items of a list.
#[derive(Debug, Clone, Default)]
pub struct List {
    items: Vec<Value>,
    depth: u32,
    bytes: u64,
}

/// The entries of a map.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: Entries,
    depth: u32,
    bytes: u64,
}

/// Bytes of a value that are traversed in a step.
const BYTES_PER_STEP: u64 = 64;

/// The steps of traversing each of these values.
pub fn steps_of<'a>(values: impl IntoIterator<Item = &'a Value>) -> u64 {
    values.into_iter().map(Value::steps).sum()
}

/// Overhead of a map entry.
const ENTRY_BYTES: u64 = 40;

/// The maximum depth and total size of these values.
fn measure<'a>(values: impl IntoIterator<Item = &'a Value>) -> (u32, u64) {
    values.into_iter().fold((0, 0), |(depth, bytes), value| {
        (depth.max(value.depth()), bytes.saturating_add(value.bytes()))
    })
}

impl List {
    /// Appends items.
    pub(crate) fn extend(&mut self, items: &[Value]) {
        let (depth, bytes) = measure(items);
        self.depth = self.depth.max(depth.saturating_add(1));
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.extend_from_slice(items);
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        let (depth, bytes) = measure(&items);
        Self { items, depth: depth.saturating_add(1), bytes }
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
        let (depth, bytes) = measure(entries.values());
        let bytes = bytes.saturating_add(ENTRY_BYTES.saturating_mul(entries.len() as u64));
        Self { entries, depth: depth.saturating_add(1), bytes }
    }
}

impl Deref for Map {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        &self.entries
    }
}

impl Value {
    /// The nesting of lists and maps in it.
    pub fn depth(&self) -> u32 {
        match self {
            Self::List(list) => list.depth,
            Self::Map(map) => map.depth,
            _ => 0,
        }
    }

    /// Approximate memory in bytes of it and its contents, as if nothing were shared.
    pub fn bytes(&self) -> u64 {
        self.inner_bytes().saturating_add(size_of::<Self>() as u64)
    }

    /// The bytes to charge an additional holder: a shared value is charged to each holder in part.
    /// The share changes with the number of holders, so exactly what was charged must be returned.
    pub fn share_of_bytes(&self) -> u64 {
        self.share_of_outer_bytes().saturating_add(size_of::<Self>() as u64)
    }

    /// The part of those bytes outside the value itself; zero for most values.
    pub fn share_of_outer_bytes(&self) -> u64 {
        let holders = match self {
            Self::String(text) => Arc::strong_count(text),
            Self::Bytes(bytes) => Arc::strong_count(bytes),
            Self::List(list) => Arc::strong_count(list),
            Self::Map(map) => Arc::strong_count(map),
            Self::Path(path) => Arc::strong_count(path),
            _ => 1,
        };
        self.inner_bytes() / holders.max(1) as u64
    }

    /// The bytes outside the value itself.
    fn inner_bytes(&self) -> u64 {
        match self {
            Self::String(text) => text.len() as u64 + 16,
            Self::Bytes(bytes) => bytes.len() as u64 + 16,
            Self::List(list) => list.bytes,
            Self::Map(map) => map.bytes,
            Self::Path(path) => path.length() as u64 * 16 + 48,
            Self::DateTime(_) | Self::Duration(_) | Self::Point(_) => 48,
            _ => 0,
        }
    }

    /// The steps of one traversal; none for small values.
    pub fn steps(&self) -> u64 {
        self.inner_bytes() / BYTES_PER_STEP
    }

    /// Returns the value if it is neither nested too deeply nor too large. Called wherever a
    /// compound value is created.
    ///
    /// # Errors
    /// More than [`MAX_DEPTH`] nested lists and maps, or more than 1 GiB. A list that contains
    /// another one twice uses little memory but can still be too long to traverse.
    pub fn bounded(self) -> Result<Self> {
        if self.depth() > MAX_DEPTH {
            let message = format!("Lists and maps can be nested at most {MAX_DEPTH} deep.");
            return Err(Error::argument(Detail::LimitExceeded, message));
        }
        if self.bytes() > MAX_BYTES {
            let message = format!("A list or map can have at most {MAX_BYTES} bytes.");
            return Err(Error::runtime(
                ErrorKind::ResourceExhausted,
                Detail::LimitExceeded,
                message,
            ));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_small_and_knows_what_hangs_on_it() {
        assert_eq!(size_of::<Value>(), 24);
        let text = Value::string("x".repeat(1_000));
        let list = Value::list(vec![text.clone(), Value::list(vec![text])]);
        assert!((2_000..2_300).contains(&list.bytes()), "{}", list.bytes());
        assert_eq!(list.depth(), 2);
        let mut grown = List::default();
        grown.extend(&[list.clone(), Value::Null]);
        assert_eq!((grown.depth, grown.len()), (3, 2));
        assert_eq!(grown.bytes, list.bytes() + 24);
    }

    #[test]
    fn what_many_keep_is_charged_in_parts() {
        let list = Value::list(vec![Value::Null; 1_000]);
        let alone = list.share_of_bytes();
        let copies: Vec<Value> = vec![list.clone(); 999];
        assert!(alone > 24_000 && list.share_of_bytes() < 60, "{alone} {}", copies.len());
    }
}
