//! A cache in bounded memory that evicts the least recently used. A young generation takes new and
//! used entries; when it is full it becomes the old one, and the old one is dropped. So no order
//! must be maintained, and a look-up changes nothing else.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

/// Two generations of at most this number of entries each.
#[derive(Debug)]
pub(crate) struct Generations<K, V, S = RandomState> {
    /// Most entries of a generation.
    most: usize,
    young: HashMap<K, V, S>,
    old: HashMap<K, V, S>,
}

impl<K: Hash + Eq + Copy, V, S: BuildHasher + Default> Generations<K, V, S> {
    /// Keeps at least the last `most` entries (with 0: the last one), and at most twice as many.
    pub(crate) fn new(most: usize) -> Generations<K, V, S> {
        Generations { most: most.max(1), young: HashMap::default(), old: HashMap::default() }
    }

    /// The value of a key. Does not refresh it.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// The value of a key, refreshing it.
    pub(crate) fn renew(&mut self, key: &K) -> Option<&mut V> {
        if !self.young.contains_key(key) {
            let value = self.old.remove(key)?;
            self.insert(*key, value);
        }
        self.young.get_mut(key)
    }

    /// Stores the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.most && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Entries of the young generation and of the old one.
    pub(crate) fn sizes(&self) -> [usize; 2] {
        [self.young.len(), self.old.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_remembered_and_what_is_used_stays() {
        let mut some: Generations<u32, u32> = Generations::new(10);
        for n in 0..1_000 {
            some.insert(n, n);
            assert!(some.sizes().iter().all(|&size| size <= 10));
            assert!((n.saturating_sub(9)..=n).all(|last| some.get(&last) == Some(&last)));
            assert_eq!(some.renew(&0), Some(&mut 0), "used all the time");
        }
        assert_eq!(some.get(&900), None);
        some.insert(0, 7);
        assert_eq!(some.get(&0), Some(&7));
        some.remove(&0);
        assert_eq!(some.get(&0), None);
        assert_eq!(some.renew(&0), None);
    }

    #[test]
    fn what_is_looked_at_only_grows_old() {
        let mut some: Generations<u32, ()> = Generations::new(2);
        for n in 0..6 {
            some.insert(n, ());
            let _ = some.get(&0);
        }
        assert_eq!(some.get(&0), None);
    }
}
