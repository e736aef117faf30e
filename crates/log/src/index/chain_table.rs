//! A hash table from 32-bit hashes to dense ids, with one writer and lock-free readers.
//!
//! Linear hashing with chains: `buckets` heads, and for each id the next one in its chain. A chain
//! holds its ids newest first, so every link leads to a smaller id and every walk ends. A new id
//! becomes the head of its chain. Nothing is ever removed.
//!
//! The table grows by one bucket at a time: when there are more ids than buckets, the next bucket
//! in order is split in two by one more bit of the hash. No insertion thus pays for others, there
//! is never a second copy of the table, and it takes twelve bytes per id at every size. Link and
//! hash of an id share one word, because a step along a chain costs little more than a cache miss.
//!
//! A split relinks ids, so a reader in the middle of that chain may miss one: *found* is always
//! right, *absent* is right only if the bucket was not split meanwhile. `splits` is incremented at
//! the beginning and at the end of each split, and a reader that found nothing checks whether its
//! bucket was affected; if so it walks again. That happens once per bucket and size, and a split
//! takes well under a microsecond.

use super::append_vec::{AppendVec, Cell};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

/// Buckets of an empty table; a power of two, and the first bucket of the vector of heads.
const FIRST_BUCKETS: u32 = 1 << 10;
/// Retries of a reader before it yields to another thread, which may be splitting.
const ROUNDS: u32 = 64;

/// The table; see the module's documentation.
#[derive(Debug)]
pub(super) struct ChainTable {
    /// Newest id of each chain plus one; 0 if empty.
    heads: AppendVec<Head>,
    /// By id: `hash << 32 | the next id of its chain plus one`; 0 if there is none.
    links: AppendVec<AtomicU64>,
    /// Twice the number of completed splits, plus one during a split.
    splits: AtomicU32,
}

/// The head of a chain. Unlike other elements of an [`AppendVec`], it publishes an id.
#[derive(Debug)]
struct Head(AtomicU32);

impl Cell for Head {
    type Value = u32;
    fn zeros(len: usize) -> Box<[Head]> {
        let zeros: Vec<u32> = vec![0; len];
        zeros.into_iter().map(|head| Head(AtomicU32::new(head))).collect()
    }
    fn get(&self) -> u32 {
        self.0.load(Acquire)
    }
    fn set(&self, value: u32) {
        self.0.store(value, Release);
    }
}

/// The bucket of a hash in a table of a given size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    bucket: u32,
    /// The bits of the hash that selected the bucket, as a mask; changes when the bucket is split.
    mask: u32,
}

impl Place {
    fn of(hash: u32, buckets: u32) -> Place {
        let half = 1 << buckets.ilog2();
        // Lower buckets have been split since the table had `half` buckets.
        let split = hash & (half - 1) < buckets - half;
        let mask = if split { half << 1 } else { half } - 1;
        Place { bucket: hash & mask, mask }
    }
}

impl ChainTable {
    pub(super) fn new() -> ChainTable {
        let heads = AppendVec::new();
        heads.set(FIRST_BUCKETS - 1, 0);
        ChainTable { heads, links: AppendVec::new(), splits: AtomicU32::new(0) }
    }

    /// The first id with this hash for which `is_it` returns true. Everything stored before the
    /// id's insertion is visible to `is_it`.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut round = 0u32;
        loop {
            let before = self.splits.load(Acquire);
            let place = Place::of(hash, FIRST_BUCKETS + before / 2);
            // Acquire (in `Head`): pairs with the Release of the id's insertion, or of a later one.
            let mut at = self.heads.get(place.bucket);
            while let Some(id) = at.checked_sub(1) {
                let link = self.links.get(id);
                if (link >> 32) as u32 == hash && is_it(id) {
                    return Some(id);
                }
                at = link as u32;
            }
            // A reader that saw a link of a split also sees the beginning of that split in
            // `splits`.
            fence(Acquire);
            let after = self.splits.load(Relaxed).div_ceil(2);
            if Place::of(hash, FIRST_BUCKETS + after) == place {
                return None;
            }
            round += 1;
            if round.is_multiple_of(ROUNDS) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Inserts the next id: ids must come in the order 0, 1, 2, … Only the writer may call this.
    pub(super) fn insert(&self, hash: u32, id: u32) {
        let buckets = FIRST_BUCKETS + self.splits.load(Relaxed) / 2;
        let place = Place::of(hash, buckets);
        let head = self.heads.get(place.bucket);
        assert!(head <= id, "ids are inserted in order");
        self.links.set(id, u64::from(hash) << 32 | u64::from(head));
        // Release (in `Head`): the term's bytes and list were stored before.
        self.heads.set(place.bucket, id + 1);
        if id >= buckets {
            self.split(buckets);
        }
    }

    /// Creates bucket `new` by splitting the bucket that holds its ids.
    fn split(&self, new: u32) {
        let bit = 1 << new.ilog2();
        let old = new - bit;
        let splits = self.splits.load(Relaxed);
        self.splits.store(splits + 1, Relaxed);
        // Pairs with the fence in `find`: a reader that sees a link set below also sees this
        // beginning.
        fence(Release);
        // First and last id of each side so far, plus one; the order within a side is kept.
        let (mut firsts, mut lasts) = ([0; 2], [0; 2]);
        let mut at = self.heads.get(old);
        while let Some(id) = at.checked_sub(1) {
            let link = self.links.get(id);
            let side = usize::from((link >> 32) as u32 & bit != 0);
            match u32::checked_sub(lasts[side], 1) {
                None => firsts[side] = at,
                Some(last) => self.relink(last, at),
            }
            lasts[side] = at;
            at = link as u32;
        }
        for last in lasts.into_iter().filter_map(|last: u32| last.checked_sub(1)) {
            self.relink(last, 0);
        }
        self.heads.set(new, firsts[1]);
        self.heads.set(old, firsts[0]);
        self.splits.store(splits + 2, Release);
    }

    /// Sets the next id in an id's chain.
    fn relink(&self, id: u32, next: u32) {
        let link = self.links.get(id);
        if link as u32 != next {
            self.links.set(id, link >> 32 << 32 | u64::from(next));
        }
    }

    /// Size of a table with this many ids.
    pub(super) fn memory_bytes(&self, ids: u32) -> usize {
        let buckets = FIRST_BUCKETS + self.splits.load(Relaxed) / 2;
        buckets as usize * size_of::<u32>() + ids as usize * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(id: u32) -> u32 {
        // Few distinct hashes for some ids, so that long chains occur.
        if id.is_multiple_of(7) { u32::MAX - id % 5 } else { id.wrapping_mul(0x9e37_79b1) }
    }

    #[test]
    fn every_id_is_found_at_every_moment_of_growth() {
        let table = ChainTable::new();
        for id in 0..5_000 {
            table.insert(hash(id), id);
            let probe = id / 2;
            assert_eq!(table.find(hash(probe), |found| found == probe), Some(probe));
            assert_eq!(table.find(hash(id), |found| found == id), Some(id));
        }
        assert!((0..5_000).all(|id| table.find(hash(id), |found| found == id) == Some(id)));
        assert_eq!(table.find(12_345, |_| false), None);
    }

    #[test]
    fn chains_stay_short() {
        let table = ChainTable::new();
        let even = |id: u32| id.wrapping_mul(0x9e37_79b1).rotate_left(13);
        (0..100_000).for_each(|id| table.insert(even(id), id));
        let mut steps = 0u64;
        (0..100_000).for_each(|id| {
            table.find(even(id), |found| {
                steps += 1;
                found == id
            });
        });
        assert!(steps < 200_000, "{steps} steps");
        assert!(table.memory_bytes(100_000) <= 12 * 100_000);
    }

    #[test]
    fn readers_find_all_that_was_inserted_before_while_buckets_are_split() {
        const IDS: u32 = 200_000;
        let even = |id: u32| id.wrapping_mul(0x9e37_79b1).rotate_left(13);
        let table = ChainTable::new();
        let published = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for reader in 0..3u32 {
                let (table, published) = (&table, &published);
                scope.spawn(move || {
                    let mut probe = reader;
                    loop {
                        let end = published.load(Acquire);
                        for _ in 0..100.min(end) {
                            probe = probe.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            let id = probe % end;
                            let found = table.find(even(id), |found| found == id);
                            assert_eq!(found, Some(id), "of {end}");
                        }
                        if end == IDS {
                            break;
                        }
                    }
                });
            }
            for id in 0..IDS {
                table.insert(even(id), id);
                published.store(id + 1, Release);
            }
        });
    }
}
