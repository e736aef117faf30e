//! The open keys: entries that keep their number, found by name.
//!
//! A name is kept once, in its entry; a map of the standard library would need it twice.

use crate::key::{Key, KeyRef};
use std::hash::{BuildHasher, RandomState};
use std::ops::{Index, IndexMut};

const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    entries: Vec<Option<Key>>,
    /// Numbers of entries without a key.
    free: Vec<u32>,
    /// The first key of each bucket; a power of two of them, or none.
    buckets: Vec<u32>,
    hasher: RandomState,
}

impl KeyTable {
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// An empty table with room for so many keys.
    pub(crate) fn with_capacity(keys: usize) -> KeyTable {
        let buckets = if keys == 0 { 0 } else { keys.next_power_of_two().max(16) };
        KeyTable {
            entries: Vec::with_capacity(keys),
            buckets: vec![NONE; buckets],
            ..KeyTable::default()
        }
    }

    fn bucket(&self, name: KeyRef<'_>) -> usize {
        let hash = self.hasher.hash_one(name);
        usize::try_from(hash & (self.buckets.len() as u64 - 1)).expect("below a length")
    }

    pub(crate) fn get(&self, name: KeyRef<'_>) -> Option<u32> {
        if self.buckets.is_empty() {
            return None;
        }
        let mut number = self.buckets[self.bucket(name)];
        while number != NONE {
            if self[number].name.borrowed() == name {
                return Some(number);
            }
            number = self[number].chain;
        }
        None
    }

    /// Adds a key whose name is not there.
    pub(crate) fn insert(&mut self, key: Key) -> u32 {
        debug_assert!(self.get(key.name.borrowed()).is_none(), "{:?} is open", key.name);
        if self.len() >= self.buckets.len() {
            self.spread();
        }
        let number = self.free.pop().unwrap_or_else(|| {
            // By an eighth: doubling would leave half of the memory unused.
            if self.entries.len() == self.entries.capacity() {
                self.entries.reserve_exact(self.entries.len() / 8 + 32);
            }
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).expect("bounded by MAX_OPEN_KEYS")
        });
        self.entries[number as usize] = Some(key);
        self.chain(number);
        number
    }

    fn chain(&mut self, number: u32) {
        let bucket = self.bucket(self[number].name.borrowed());
        self[number].chain = self.buckets[bucket];
        self.buckets[bucket] = number;
    }

    fn spread(&mut self) {
        self.buckets = vec![NONE; (self.buckets.len() * 2).max(16)];
        for number in 0..u32::try_from(self.entries.len()).expect("bounded") {
            if self.entries[number as usize].is_some() {
                self.chain(number);
            }
        }
    }

    pub(crate) fn remove(&mut self, number: u32) -> Key {
        let bucket = self.bucket(self[number].name.borrowed());
        let after = self[number].chain;
        if self.buckets[bucket] == number {
            self.buckets[bucket] = after;
        } else {
            let mut before = self.buckets[bucket];
            while self[before].chain != number {
                before = self[before].chain;
            }
            self[before].chain = after;
        }
        self.free.push(number);
        self.entries[number as usize].take().expect("an open key")
    }

    /// The entry with this number, which may hold no key or another one by now.
    pub(crate) fn entry(&mut self, number: u32) -> Option<&mut Key> {
        self.entries[number as usize].as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Key)> {
        let numbered = (0..).zip(&self.entries);
        numbered.filter_map(|(number, entry)| Some((number, entry.as_ref()?)))
    }
}

impl Index<u32> for KeyTable {
    type Output = Key;

    fn index(&self, number: u32) -> &Key {
        self.entries[number as usize].as_ref().expect("an open key")
    }
}

impl IndexMut<u32> for KeyTable {
    fn index_mut(&mut self, number: u32) -> &mut Key {
        self.entries[number as usize].as_mut().expect("an open key")
    }
}
