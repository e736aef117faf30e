//! State of many clients, in bounded memory and for many threads: the least recently seen are
//! evicted. An evicted bucket is almost always full, so nothing is lost.

use super::client::Key;
use crate::generations::Generations;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

/// Clients stored in each of the two generations.
pub(crate) const GENERATION: usize = 32_768;
/// Number of shards, each with a lock; a power of two.
const SHARDS: usize = 16;

/// The state of each client; the default for unknown ones.
#[derive(Debug)]
pub(crate) struct Table<V>(Box<[Shard<V>; SHARDS]>);

/// On cache lines of its own: threads do not wait for each other's clients.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<V>(Mutex<Generations<Key, V, BuildHasherDefault<AsItIs>>>);

/// Keys are hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl<V: Copy + Default> Default for Table<V> {
    fn default() -> Table<V> {
        Table(Box::new(std::array::from_fn(|_| {
            Shard(Mutex::new(Generations::new(GENERATION / SHARDS)))
        })))
    }
}

impl<V: Copy + Default> Table<V> {
    /// Applies `change` to the state of a client.
    pub(crate) fn with<T>(&self, key: Key, change: impl FnOnce(&mut V) -> T) -> T {
        // The middle bits: a map uses those at both ends.
        let Shard(shard) = &self.0[(key.0 >> 32) as usize % SHARDS];
        let mut generations = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = generations.renew(&key) {
            return change(value);
        }
        let mut value = V::default();
        let result = change(&mut value);
        generations.insert(key, value);
        result
    }

    /// The state of a client.
    pub(crate) fn get(&self, key: Key) -> V {
        let Shard(shard) = &self.0[(key.0 >> 32) as usize % SHARDS];
        let generations = shard.lock().unwrap_or_else(PoisonError::into_inner);
        generations.get(&key).copied().unwrap_or_default()
    }

    /// The capacity, and the number of clients stored.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let of = |Shard(shard): &Shard<V>| shard.lock().unwrap().sizes().iter().sum::<usize>();
        (2 * GENERATION, self.0.iter().map(of).sum())
    }
}
