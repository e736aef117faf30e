//! A hash table from 32-bit hashes to dense ids, with one writer and lock-free readers.
//!
//! Open addressing with linear probing. A slot holds `hash << 32 | id + 1`;
//! zero is empty. Nothing is ever removed.
//!
//! Growth: when half full, a table of twice the size is allocated and filled a
//! few slots per insertion, so that no single insertion pays for all of it;
//! only when it is complete is it made current. Readers that still probe the
//! older one find in it everything inserted before they began: insertions go
//! to both until the switch, and whatever a reader must see was inserted
//! before the watermark it read, hence before it loaded `current`. Older
//! tables stay allocated (together as large as the current one): freeing them
//! would need to know that no reader is left.

use super::append_vec::Cell;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

const FIRST_BITS: u32 = 8;
const GENERATIONS: usize = 24;
/// Old slots moved per insertion. With 8 the move ends when the old table is
/// five eighths full.
const MOVES: u32 = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct ProbeTable {
    generations: [OnceLock<Box<[AtomicU64]>>; GENERATIONS],
    current: AtomicU32,
    // The rest is the writer's own; atomics only so that it may share the struct.
    used: AtomicU32,
    /// Ids below this are in the old table only, or moved; 0 = not growing.
    moving: AtomicU32,
    moved_slots: AtomicU32,
}

impl ProbeTable {
    pub(super) fn new() -> ProbeTable {
        let table = ProbeTable {
            generations: [const { OnceLock::new() }; GENERATIONS],
            current: AtomicU32::new(0),
            used: AtomicU32::new(0),
            moving: AtomicU32::new(0),
            moved_slots: AtomicU32::new(0),
        };
        table.slots(0);
        table
    }

    fn slots(&self, generation: u32) -> &[AtomicU64] {
        self.generations[generation as usize]
            .get_or_init(|| AtomicU64::zeros(1 << (FIRST_BITS + generation)))
    }

    fn home(hash: u32, generation: u32) -> usize {
        (hash >> (32 - FIRST_BITS - generation)) as usize
    }

    /// The first id with this hash for which `is_it` answers true. What was
    /// stored before the id was inserted is visible to `is_it`.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        // Acquire: pairs with the switch in `step`, so the moved slots are seen.
        let generation = self.current.load(Acquire);
        let slots = self.slots(generation);
        let mut at = Self::home(hash, generation);
        loop {
            // Acquire: pairs with the Release in `place`.
            let slot = slots[at].load(Acquire);
            if slot == 0 {
                return None;
            }
            let id = (slot as u32).wrapping_sub(1);
            if (slot >> 32) as u32 == hash && is_it(id) {
                return Some(id);
            }
            at = (at + 1) & (slots.len() - 1);
        }
    }

    /// Inserts the next id: ids must come as 0, 1, 2, … Only the one writer may call this.
    pub(super) fn insert(&self, hash: u32, id: u32) {
        debug_assert_eq!(id, self.used.load(Relaxed));
        let generation = self.current.load(Relaxed);
        self.place(generation, hash, id);
        self.used.store(id + 1, Relaxed);
        if self.moving.load(Relaxed) != 0 {
            self.place(generation + 1, hash, id);
            self.step(generation);
        } else if (id as usize + 1) * 2 > self.slots(generation).len() {
            self.moving.store(id + 1, Relaxed);
            self.moved_slots.store(0, Relaxed);
        }
    }

    fn place(&self, generation: u32, hash: u32, id: u32) {
        let slots = self.slots(generation);
        let mut at = Self::home(hash, generation);
        while slots[at].load(Relaxed) != 0 {
            at = (at + 1) & (slots.len() - 1);
        }
        // Release: the term's bytes and list were stored before.
        slots[at].store((u64::from(hash) << 32) | (u64::from(id) + 1), Release);
    }

    /// Moves a few slots to the next generation and switches to it after the last.
    fn step(&self, generation: u32) {
        let old = self.slots(generation);
        let limit = self.moving.load(Relaxed);
        let from = self.moved_slots.load(Relaxed);
        let to = (from + MOVES).min(old.len() as u32);
        for slot in &old[from as usize..to as usize] {
            let slot = slot.load(Relaxed);
            let id = (slot as u32).wrapping_sub(1);
            // Later ids were placed in both tables when they were inserted.
            if slot != 0 && id < limit {
                self.place(generation + 1, (slot >> 32) as u32, id);
            }
        }
        self.moved_slots.store(to, Relaxed);
        if to as usize == old.len() {
            self.moving.store(0, Relaxed);
            self.current.store(generation + 1, Release);
        }
    }

    /// Bytes allocated, generations left behind included.
    pub(super) fn memory_bytes(&self) -> usize {
        self.generations.iter().filter_map(OnceLock::get).map(|slots| slots.len() * 8).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(id: u32) -> u32 {
        // Few distinct hashes for some ids, so that runs and wrapping occur.
        if id.is_multiple_of(7) { u32::MAX - id % 5 } else { id.wrapping_mul(0x9e37_79b1) }
    }

    #[test]
    fn every_id_is_found_at_every_moment_of_growth() {
        let table = ProbeTable::new();
        for id in 0..5_000 {
            table.insert(hash(id), id);
            let probe = id / 2;
            assert_eq!(table.find(hash(probe), |found| found == probe), Some(probe));
            assert_eq!(table.find(hash(id), |found| found == id), Some(id));
        }
        assert!((0..5_000).all(|id| table.find(hash(id), |found| found == id) == Some(id)));
        assert_eq!(table.find(12_345, |_| true), None);
    }
}
