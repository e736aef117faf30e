//! What is remembered in bounded memory: what was used longest ago is forgotten. A young generation
//! takes what is new or used; when it is full it becomes the old one, and the old one is gone. So
//! no order has to be kept, and looking something up changes nothing else.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

/// Two generations of so many entries each.
#[derive(Debug)]
pub(crate) struct Generations<K, V, S = RandomState> {
    /// Most entries of a generation.
    most: usize,
    young: HashMap<K, V, S>,
    old: HashMap<K, V, S>,
}

impl<K: Hash + Eq + Copy, V, S: BuildHasher + Default> Generations<K, V, S> {
    /// Remembers the last `most` entries at least (of 0: the last one), and twice as many at most.
    pub(crate) fn new(most: usize) -> Generations<K, V, S> {
        Generations { most: most.max(1), young: HashMap::default(), old: HashMap::default() }
    }

    /// What is remembered of a key. Does not make it young.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// What is remembered of a key, which is young from now on.
    pub(crate) fn renew(&mut self, key: &K) -> Option<&mut V> {
        if !self.young.contains_key(key) {
            let value = self.old.remove(key)?;
            self.insert(*key, value);
        }
        self.young.get_mut(key)
    }

    /// Remembers this of a key from now on.
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
