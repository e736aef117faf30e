//! The posting lists of the active segment: ascending numbers, appended by one writer, read by
//! index from any thread.
//!
//! A list of one element consists of its head alone: most tags and pairs occur once. A longer list
//! has chunks of 2, 4, 8, … elements in one arena shared by all lists; each chunk but the first
//! begins with the address of the previous one. Finding an element by index takes at most as many
//! steps as there are chunks, one for the newest elements, and a list wastes less than its length.

use super::append_vec::{AppendVec, zeroed};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

const MAX_CHUNKS: usize = 31;

/// The memory of all lists' chunks.
#[derive(Debug)]
pub(super) struct Arena {
    cells: AppendVec<AtomicU32>,
    used: AtomicU32,
}

/// Lists numbered from 0, each with a label set by its owner. A head is `count << 32 | tail`, where
/// `tail` is the address of the newest chunk, or the element itself while there is only one. As a
/// single atomic, it always gives a reader a consistent count and chunk.
#[derive(Debug)]
pub(super) struct Lists {
    /// Alternating labels and heads, which are usually read together.
    heads: AppendVec<AtomicHead>,
}

/// A head needs `Release`, which elements of an [`AppendVec`] do not have.
#[derive(Debug)]
#[repr(transparent)]
struct AtomicHead(AtomicU64);

impl super::append_vec::Cell for AtomicHead {
    type Value = u64;
    fn zeros(len: usize) -> Box<[AtomicHead]> {
        // SAFETY: it is an atomic, which has the size and the values of its integer.
        unsafe { zeroed::<u64, AtomicHead>(len) }
    }
    fn get(&self) -> u64 {
        self.0.load(Acquire)
    }
    fn set(&self, value: u64) {
        self.0.store(value, Release);
    }
}

/// A list at one moment, with the addresses of its chunks as far as they have been needed.
#[derive(Debug, Clone)]
pub(super) struct ListView {
    count: u32,
    /// The last result of `rank`, from which the next search gallops.
    hint: u32,
    first_known: u8,
    chunks: [u32; MAX_CHUNKS],
}

/// The chunk of an element and its place in it: chunk k holds the elements from 2^(k+1) - 2.
#[inline]
fn place(index: u32) -> (usize, u32) {
    let shifted = index + 2;
    let bits = 31 - shifted.leading_zeros();
    (bits as usize - 1, shifted - (1 << bits))
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena { cells: AppendVec::new(), used: AtomicU32::new(0) }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        AppendVec::<AtomicU32>::memory_bytes(self.used.load(Relaxed))
    }

    /// Allocates chunk `k` after the chunk at `before`; returns its first element's address.
    fn allocate(&self, k: usize, before: u32) -> u32 {
        let at = self.used.load(Relaxed);
        let header = u32::from(k > 0);
        if k > 0 {
            self.cells.set(at, before);
        }
        let end = at
            .checked_add(header + (2 << k))
            .expect("a segment is too small to hold 2^32 index entries");
        self.used.store(end, Relaxed);
        at + header
    }
}

impl Lists {
    pub(super) fn new() -> Lists {
        Lists { heads: AppendVec::new() }
    }

    /// Creates an empty list. Only the writer may call this, before the list's number is published.
    pub(super) fn begin(&self, list: u32, label: u64) {
        self.heads.set(list * 2, label);
        self.heads.set(list * 2 + 1, 0);
    }

    /// The label of a list.
    pub(super) fn label(&self, list: u32) -> u64 {
        self.heads.get(list * 2)
    }

    fn head(&self, list: u32) -> (u32, u32) {
        let head = self.heads.get(list * 2 + 1);
        ((head >> 32) as u32, head as u32)
    }

    fn set_head(&self, list: u32, count: u32, tail: u32) {
        self.heads.set(list * 2 + 1, u64::from(count) << 32 | u64::from(tail));
    }

    /// Size of this many lists without their chunks.
    pub(super) fn memory_bytes(lists: u32) -> usize {
        lists as usize * 16
    }

    /// Number of elements.
    pub(super) fn count(&self, list: u32) -> u32 {
        self.head(list).0
    }

    /// Reads all elements into `out`, which it clears.
    pub(super) fn read(&self, arena: &Arena, list: u32, out: &mut Vec<u32>) {
        out.clear();
        let (count, mut tail) = self.head(list);
        match count {
            0 => return,
            1 => return out.push(tail),
            _ => out.resize(count as usize, 0),
        }
        let (mut chunk, last) = place(count - 1);
        let mut rest = out.as_mut_slice();
        let mut len = last + 1;
        loop {
            let at = rest.len() - len as usize;
            for (element, address) in rest[at..].iter_mut().zip(tail..) {
                *element = arena.cells.get(address);
            }
            if chunk == 0 {
                return;
            }
            rest = &mut rest[..at];
            tail = arena.cells.get(tail - 1);
            chunk -= 1;
            len = 2 << chunk;
        }
    }

    /// The element of a list with one; otherwise the number of elements.
    pub(super) fn only(&self, list: u32) -> Result<u32, u32> {
        match self.head(list) {
            (1, element) => Ok(element),
            (count, _) => Err(count),
        }
    }

    /// Appends an element, which must be greater than the last one. The last one is not read for a
    /// check, because it is rarely in cache. Only the writer may call this.
    pub(super) fn push(&self, arena: &Arena, list: u32, value: u32) {
        let (count, mut tail) = self.head(list);
        if count == 0 {
            self.set_head(list, 1, value);
            return;
        }
        if count == 1 {
            let first = tail;
            tail = arena.allocate(0, 0);
            arena.cells.set(tail, first);
            arena.cells.set(tail + 1, value);
        } else {
            let (chunk, at) = place(count);
            if at == 0 {
                tail = arena.allocate(chunk, tail);
            }
            arena.cells.set(tail + at, value);
        }
        // Release (in `AtomicHead::set`): a reader that sees this count sees the element and its
        // chunk.
        self.set_head(list, count + 1, tail);
    }

    /// The last element; `None` for an empty list. Only the writer may call this.
    pub(super) fn last(&self, arena: &Arena, list: u32) -> Option<u32> {
        let (count, tail) = self.head(list);
        match count {
            0 => None,
            1 => Some(tail),
            _ => Some(arena.cells.get(tail + place(count - 1).1)),
        }
    }

    /// Removes the elements at or above `bound`. Only the writer may call this. A chunk that
    /// becomes empty is abandoned; see `cut.rs` for the reason.
    pub(super) fn cut(&self, arena: &Arena, list: u32, bound: u32) {
        let (before, mut tail) = self.head(list);
        let mut count = before;
        while count > 0 {
            let last = match count {
                1 => tail,
                _ => arena.cells.get(tail + place(count - 1).1),
            };
            if last < bound {
                break;
            }
            count -= 1;
            match count {
                0 => tail = 0,
                // Only the first element of the first chunk is left: it becomes the head.
                1 => tail = arena.cells.get(tail),
                // The removed element began its chunk, so the previous chunk is the newest now.
                _ if place(count).1 == 0 => tail = arena.cells.get(tail - 1),
                _ => {}
            }
        }
        if count < before {
            self.set_head(list, count, tail);
        }
    }

    /// The current list.
    pub(super) fn view(&self, list: u32) -> ListView {
        let (count, tail) = self.head(list);
        let last_chunk = if count < 2 { 0 } else { place(count - 1).0 };
        let mut chunks = [0; MAX_CHUNKS];
        chunks[last_chunk] = tail;
        ListView { count, hint: count, first_known: last_chunk as u8, chunks }
    }
}

impl ListView {
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The element at an index below the count.
    #[inline]
    pub(super) fn get(&mut self, arena: &Arena, index: u32) -> u32 {
        debug_assert!(index < self.count);
        if self.count == 1 {
            return self.chunks[0];
        }
        let (chunk, at) = place(index);
        while usize::from(self.first_known) > chunk {
            let address = self.chunks[usize::from(self.first_known)];
            self.first_known -= 1;
            self.chunks[usize::from(self.first_known)] = arena.cells.get(address - 1);
        }
        arena.cells.get(self.chunks[chunk] + at)
    }

    /// Number of elements below `bound`. Gallops from the last result, so a walk in either
    /// direction costs little per step, and a jump its logarithm.
    pub(super) fn rank(&mut self, arena: &Arena, bound: u32) -> u32 {
        let (mut low, mut high) = (0, self.count);
        let mut step = 1;
        if self.hint > 0 && self.get(arena, self.hint - 1) >= bound {
            high = self.hint - 1;
            while high > low {
                let probe = high.saturating_sub(step);
                if self.get(arena, probe) < bound {
                    low = probe + 1;
                    break;
                }
                high = probe;
                step *= 2;
            }
        } else {
            low = self.hint;
            while low < high {
                let probe = low.saturating_add(step - 1).min(high - 1);
                if self.get(arena, probe) >= bound {
                    high = probe;
                    break;
                }
                low = probe + 1;
                step = step.saturating_mul(2);
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(arena, middle) < bound { low = middle + 1 } else { high = middle }
        }
        self.hint = low;
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn interleaved_lists_read_back_and_rank(
            pushes in prop::collection::vec((0u32..4, 1u32..5), 0..300),
            bounds in prop::collection::vec(0u32..1000, 1..40),
        ) {
            let (arena, lists) = (Arena::new(), Lists::new());
            (0..4).for_each(|list| lists.begin(list, 0));
            let mut model = vec![Vec::new(); 4];
            let mut value = 0;
            for (list, gap) in pushes {
                value += gap;
                lists.push(&arena, list, value);
                model[list as usize].push(value);
            }
            for (list, model) in model.iter().enumerate() {
                let mut view = lists.view(list as u32);
                prop_assert_eq!(view.count() as usize, model.len());
                for &bound in &bounds {
                    let rank = model.iter().filter(|&&v| v < bound).count();
                    prop_assert_eq!(view.rank(&arena, bound) as usize, rank);
                }
                for (i, &v) in model.iter().enumerate().rev() {
                    prop_assert_eq!(view.get(&arena, i as u32), v);
                }
            }
        }
    }
}
