//! A hash table from 32-bit hashes to dense ids, with one writer and lock-free readers.
//!
//! Linear hashing with buckets of one cache line: seven entries (hash and id in one word) and the
//! number of an overflow line. A look-up waits for memory once, and an insertion after it not at
//! all; chains of single ids took a wait for each id on the way. Entries of a line are filled in
//! order, so the first empty one ends it. Nothing is ever removed.
//!
//! The table grows by one bucket at a time: when there are more than [`IDS_PER_BUCKET`] times as
//! many ids as buckets, the next bucket in order is split in two by one more bit of the hash. No
//! insertion thus pays for many others, and there is never a second copy of the table.
//!
//! A split moves entries, so a reader in the middle of that bucket may miss one: *found* is always
//! right, *absent* is right only if the bucket was not split meanwhile. `splits` is incremented at
//! the beginning and at the end of each split, and a reader that found nothing checks whether its
//! bucket was affected; if so it looks again. That happens once per bucket and size, and a split
//! takes well under a microsecond. Overflow lines that a split leaves empty are used again, by
//! another bucket perhaps: a reader that followed its bucket into one has been affected by that
//! split, and what it finds there is compared like everything else.

use super::append_vec::Cell;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

/// Buckets of an empty table; a power of two.
const FIRST_BUCKETS: u32 = 1 << 6;
/// Mean number of ids in a bucket. In the course of a doubling, buckets that are not split yet
/// approach twice as many.
const IDS_PER_BUCKET: u32 = 4;
/// Words of a line: entries, then the number of an overflow line plus one.
const LINE_WORDS: usize = 8;
const LINE_BYTES: usize = LINE_WORDS * size_of::<u64>();
const ENTRIES: usize = LINE_WORDS - 1;
/// In the last word of a free line: what follows is not the next line of a bucket.
const FREE: u64 = 1 << 32;
/// Retries of a reader before it yields to another thread, which may be splitting.
const ROUNDS: u32 = 64;

/// The table; see the module's documentation.
#[derive(Debug)]
pub(super) struct BucketTable {
    buckets: Lines,
    overflow: Lines,
    /// Number of overflow lines ever used.
    overflow_used: AtomicU32,
    /// The first of the overflow lines that are free, plus one; each names the next one in its last
    /// word.
    overflow_free: AtomicU32,
    /// Twice the number of completed splits, plus one during a split.
    splits: AtomicU32,
}

/// Lines of words in blocks that double in size and never move.
#[derive(Debug)]
struct Lines {
    blocks: [OnceLock<Block>; BLOCKS],
}

const FIRST_LINES_BITS: u32 = FIRST_BUCKETS.ilog2();
const BLOCKS: usize = 32 - FIRST_LINES_BITS as usize + 1;

#[derive(Debug)]
struct Block {
    words: Box<[AtomicU64]>,
    /// Index of the first word that begins a cache line.
    first: usize,
}

type Line = [AtomicU64; LINE_WORDS];

impl Block {
    fn zeros(lines: usize) -> Block {
        let words = AtomicU64::zeros(lines * LINE_WORDS + ENTRIES);
        let into_line = words.as_ptr().addr() % LINE_BYTES;
        let first = (LINE_BYTES - into_line) % LINE_BYTES / size_of::<u64>();
        Block { words, first }
    }
}

impl Lines {
    fn new() -> Lines {
        Lines { blocks: [const { OnceLock::new() }; BLOCKS] }
    }

    fn place(line: u32) -> (usize, usize) {
        let shifted = u64::from(line) + (1 << FIRST_LINES_BITS);
        let bits = 63 - shifted.leading_zeros();
        ((bits - FIRST_LINES_BITS) as usize, (shifted - (1 << bits)) as usize)
    }

    /// A line that exists.
    #[inline]
    fn get(&self, line: u32) -> &Line {
        let (block, at) = Self::place(line);
        let block = self.blocks[block].get().expect("a line is published after its block");
        let words = &block.words[block.first + at * LINE_WORDS..];
        words.first_chunk().expect("a block consists of whole lines")
    }

    /// A line, which exists from now on. Only the writer may call this.
    fn create(&self, line: u32) -> &Line {
        let (block, _) = Self::place(line);
        self.blocks[block].get_or_init(|| Block::zeros(1 << (block + FIRST_LINES_BITS as usize)));
        self.get(line)
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

/// Where the next entry of a bucket being written belongs.
struct End<'t> {
    line: &'t Line,
    entries: usize,
}

/// The first id in a line with this hash for which `is_it` returns true.
#[inline]
fn find_in(line: &Line, hash: u32, is_it: &mut impl FnMut(u32) -> bool) -> Option<u32> {
    // An empty entry has a hash of zero and no id. Acquire: pairs with the Release of the entry's
    // insertion or its last move.
    let mut id_at = |at: usize| {
        let entry = line[at].load(Acquire);
        let id = (entry as u32).checked_sub(1).filter(|_| (entry >> 32) as u32 == hash)?;
        is_it(id).then_some(id)
    };
    // Where tables are small, it is the first one.
    if let Some(id) = id_at(0) {
        return Some(id);
    }
    // Elsewhere the place of the entry cannot be predicted: all are compared before one is looked
    // at.
    let mut equal = 0u32;
    for (at, entry) in line[..ENTRIES].iter().enumerate().skip(1) {
        equal |= u32::from((entry.load(Relaxed) >> 32) as u32 == hash) << at;
    }
    while equal != 0 {
        if let Some(id) = id_at(equal.trailing_zeros() as usize) {
            return Some(id);
        }
        equal &= equal - 1;
    }
    None
}

impl BucketTable {
    pub(super) fn new() -> BucketTable {
        let buckets = Lines::new();
        buckets.create(FIRST_BUCKETS - 1);
        BucketTable {
            buckets,
            overflow: Lines::new(),
            overflow_used: AtomicU32::new(0),
            overflow_free: AtomicU32::new(0),
            splits: AtomicU32::new(0),
        }
    }

    /// The line after this one in its bucket.
    #[inline]
    fn after(&self, line: &Line) -> Option<&Line> {
        let next = u32::try_from(line[ENTRIES].load(Acquire)).ok()?.checked_sub(1)?;
        Some(self.overflow.get(next))
    }

    /// The first id with this hash for which `is_it` returns true. Everything stored before the
    /// id's insertion is visible to `is_it`.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut round = 0u32;
        loop {
            let before = self.splits.load(Acquire);
            let place = Place::of(hash, FIRST_BUCKETS + before / 2);
            let mut line = Some(self.buckets.get(place.bucket));
            while let Some(current) = line {
                if let Some(id) = find_in(current, hash, &mut is_it) {
                    return Some(id);
                }
                line = self.after(current);
            }
            // A reader that saw an entry moved by a split also sees the beginning of that split in
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
        let mut line = self.buckets.get(Place::of(hash, buckets).bucket);
        while let Some(next) = self.after(line) {
            line = next;
        }
        let entries = line[..ENTRIES].iter().filter(|entry| entry.load(Relaxed) != 0).count();
        // Release (in `append`): the term's bytes and list were stored before.
        self.append(&mut End { line, entries }, u64::from(hash) << 32 | u64::from(id + 1));
        if id >= buckets * IDS_PER_BUCKET {
            self.split(buckets);
        }
    }

    /// Adds an entry at the end of a bucket.
    fn append<'t>(&'t self, end: &mut End<'t>, entry: u64) {
        if end.entries == ENTRIES {
            let (number, line) = self.overflow_line();
            // Release: a reader may still be in the line from when it belonged to another bucket.
            line[0].store(entry, Release);
            end.line[ENTRIES].store(u64::from(number + 1), Release);
            *end = End { line, entries: 1 };
        } else {
            end.line[end.entries].store(entry, Release);
            end.entries += 1;
        }
    }

    /// An empty overflow line and its number.
    fn overflow_line(&self) -> (u32, &Line) {
        if let Some(free) = self.overflow_free.load(Relaxed).checked_sub(1) {
            let line = self.overflow.get(free);
            self.overflow_free.store(line[ENTRIES].load(Relaxed) as u32, Relaxed);
            line[ENTRIES].store(0, Relaxed);
            return (free, line);
        }
        let number = self.overflow_used.load(Relaxed);
        self.overflow_used.store(number + 1, Relaxed);
        (number, self.overflow.create(number))
    }

    /// Creates bucket `new` by splitting the bucket that holds its ids.
    fn split(&self, new: u32) {
        let bit = 1 << new.ilog2();
        let first = self.buckets.get(new - bit);
        let splits = self.splits.load(Relaxed);
        self.splits.store(splits + 1, Relaxed);
        // Pairs with the fence in `find`: a reader that sees an entry moved below also sees this
        // beginning.
        fence(Release);
        let mut moved = End { line: self.buckets.create(new), entries: 0 };
        // Entries that stay close the gaps. The place they go to is never after that of the next
        // one to be looked at.
        let mut kept = End { line: first, entries: 0 };
        let mut line = Some(first);
        while let Some(current) = line {
            for entry in &current[..ENTRIES] {
                let entry = entry.load(Relaxed);
                if entry == 0 {
                    break;
                }
                if (entry >> 32) as u32 & bit != 0 {
                    self.append(&mut moved, entry);
                    continue;
                }
                if kept.entries == ENTRIES {
                    let line = self.after(kept.line).expect("the line that the entry was in");
                    kept = End { line, entries: 0 };
                }
                kept.line[kept.entries].store(entry, Release);
                kept.entries += 1;
            }
            line = self.after(current);
        }
        self.free_after(kept);
        self.splits.store(splits + 2, Release);
    }

    /// Empties everything after the end of a bucket.
    fn free_after(&self, end: End<'_>) {
        end.line[end.entries..ENTRIES].iter().for_each(|entry| entry.store(0, Relaxed));
        let mut next = end.line[ENTRIES].swap(0, Relaxed) as u32;
        while let Some(number) = next.checked_sub(1) {
            let line = self.overflow.get(number);
            line[..ENTRIES].iter().for_each(|entry| entry.store(0, Relaxed));
            next = line[ENTRIES].load(Relaxed) as u32;
            line[ENTRIES].store(FREE | u64::from(self.overflow_free.load(Relaxed)), Relaxed);
            self.overflow_free.store(number + 1, Relaxed);
        }
    }

    /// Size of the table.
    pub(super) fn memory_bytes(&self) -> usize {
        let buckets = FIRST_BUCKETS + self.splits.load(Relaxed) / 2;
        (buckets + self.overflow_used.load(Relaxed)) as usize * LINE_BYTES
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
        let table = BucketTable::new();
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
    fn buckets_stay_short_and_overflow_lines_are_used_again() {
        let table = BucketTable::new();
        let keyed = super::super::hash::Keyed::new(7);
        let hash =
            |id: u32| (keyed.words(super::super::hash::Domain::Tag, &[id.into()]) >> 32) as u32;
        let mut done = 0;
        for ids in [10_000u32, 30_000, 100_000, 131_072, 200_000] {
            (done..ids).for_each(|id| table.insert(hash(id), id));
            done = ids;
            let buckets = FIRST_BUCKETS + table.splits.load(Relaxed) / 2;
            let more = (0..buckets).filter(|&at| table.after(table.buckets.get(at)).is_some());
            assert!(more.count() as u32 <= buckets / 8, "{ids} ids");
            assert!(table.overflow_used.load(Relaxed) <= buckets / 6, "{ids} ids");
            assert!(table.memory_bytes() <= 19 * ids as usize, "{ids} ids");
        }
    }

    #[test]
    fn readers_find_all_that_was_inserted_before_while_buckets_are_split() {
        const IDS: u32 = 200_000;
        let even = |id: u32| id.wrapping_mul(0x9e37_79b1).rotate_left(13);
        let table = BucketTable::new();
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
