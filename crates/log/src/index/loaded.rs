//! The in-memory cache of parts of sealed index files (filters, directories, offsets), with one
//! budget for the whole process, regardless of the number of segments and logs.
//!
//! A [`Slot`] holds one part of one file, or nothing. Loading a part may evict others by the clock
//! algorithm: a hand cycles through all parts, skips those used since its last visit, and drops the
//! others. A part in use stays alive until its reader is done. An evicted part is read again from
//! its file, which is in the page cache if it is used often.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The default budget in bytes.
const DEFAULT_BUDGET_BYTES: usize = 32 << 20;

/// The parts of all indexes of the process.
static MEMORY: IndexMemory = IndexMemory::new(DEFAULT_BUDGET_BYTES);

/// Sets the memory budget in bytes for the parts kept of all sealed indexes of the
/// process; 32 MiB by default. A single part may be larger. Applies to parts loaded from now on.
pub fn set_sealed_index_budget_bytes(bytes: usize) {
    MEMORY.budget_bytes.store(bytes, Relaxed);
}

/// Memory of the parts kept of all sealed indexes of the process, in bytes.
#[must_use]
pub fn sealed_index_memory_bytes() -> usize {
    MEMORY.used_bytes.load(Relaxed)
}

/// A budget and the parts loaded under it.
#[derive(Debug)]
pub(super) struct IndexMemory {
    budget_bytes: AtomicUsize,
    used_bytes: AtomicUsize,
    /// The front is the position of the hand.
    parts: Mutex<VecDeque<(Weak<dyn Part>, usize)>>,
}

/// A part that can be evicted.
trait Part: Send + Sync + std::fmt::Debug {
    /// Whether it was used since the last call.
    fn take_used(&self) -> bool;
    fn drop_value(&self);
}

/// One part of one index, loaded or not.
#[derive(Debug)]
pub(super) struct Slot<T> {
    held: Arc<LoadedPart<T>>,
}

#[derive(Debug)]
struct LoadedPart<T> {
    value: Mutex<Option<Arc<T>>>,
    used: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The state behind these mutexes is consistent between statements that can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send + Sync + std::fmt::Debug> Part for LoadedPart<T> {
    fn take_used(&self) -> bool {
        self.used.swap(false, Relaxed)
    }

    fn drop_value(&self) {
        *lock(&self.value) = None;
    }
}

impl<T: Send + Sync + std::fmt::Debug + 'static> Slot<T> {
    pub(super) fn new() -> Slot<T> {
        let held = LoadedPart { value: Mutex::new(None), used: AtomicBool::new(false) };
        Slot { held: Arc::new(held) }
    }

    /// The value, if it is loaded.
    #[inline]
    pub(super) fn get(&self) -> Option<Arc<T>> {
        let value = lock(&self.held.value).clone()?;
        // Written only when it changes: readers on other threads share the cache line.
        if !self.held.used.load(Relaxed) {
            self.held.used.store(true, Relaxed);
        }
        Some(value)
    }

    /// A figure of the value, 0 if it is not loaded. Does not count as a use.
    pub(super) fn measure(&self, figure: impl FnOnce(&T) -> usize) -> usize {
        lock(&self.held.value).as_deref().map_or(0, figure)
    }

    /// Stores a value of about this size, and evicts others if the budget requires it.
    pub(super) fn put(&self, value: T, bytes: usize) -> Arc<T> {
        self.put_in(&MEMORY, value, bytes)
    }

    fn put_in(&self, memory: &IndexMemory, value: T, bytes: usize) -> Arc<T> {
        let value = Arc::new(value);
        {
            let mut held = lock(&self.held.value);
            if let Some(first) = held.as_ref() {
                // Another thread was faster.
                return Arc::clone(first);
            }
            *held = Some(Arc::clone(&value));
            // Not marked as used: the hand reaches it last, so it has a whole round to be used.
            self.held.used.store(false, Relaxed);
        }
        let part: Arc<dyn Part> = Arc::clone(&self.held) as Arc<dyn Part>;
        memory.admit(Arc::downgrade(&part), bytes);
        value
    }
}

/// Whether this many bytes fit into the budget without eviction.
pub(super) fn has_room(bytes: usize) -> bool {
    MEMORY.used_bytes.load(Relaxed) + bytes <= MEMORY.budget_bytes.load(Relaxed)
}

impl IndexMemory {
    const fn new(budget_bytes: usize) -> IndexMemory {
        IndexMemory {
            budget_bytes: AtomicUsize::new(budget_bytes),
            used_bytes: AtomicUsize::new(0),
            parts: Mutex::new(VecDeque::new()),
        }
    }

    /// Counts a loaded part and evicts others until the budget holds, or only this one is left.
    fn admit(&self, part: Weak<dyn Part>, bytes: usize) {
        let mut parts = lock(&self.parts);
        let mut used_bytes = self.used_bytes.load(Relaxed) + bytes;
        let budget_bytes = self.budget_bytes.load(Relaxed);
        // Every part is skipped at most once before it is dropped.
        let mut turns = 2 * parts.len();
        while used_bytes > budget_bytes && turns > 0 {
            turns -= 1;
            let Some((part, bytes)) = parts.pop_front() else { break };
            match part.upgrade() {
                Some(alive) if alive.take_used() => {
                    parts.push_back((part, bytes));
                    continue;
                }
                Some(alive) => alive.drop_value(),
                // Its index is gone, and its memory with it.
                None => {}
            }
            assert!(used_bytes >= bytes, "a part is counted once");
            used_bytes -= bytes;
        }
        parts.push_back((part, bytes));
        self.used_bytes.store(used_bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(slots: &[Slot<u32>]) -> Vec<usize> {
        (0..slots.len()).filter(|&i| lock(&slots[i].held.value).is_some()).collect()
    }

    #[test]
    fn the_budget_holds_and_what_is_used_stays() {
        let memory = IndexMemory::new(100);
        let slots: Vec<Slot<u32>> = (0..30).map(|_| Slot::new()).collect();
        for (i, slot) in slots.iter().enumerate() {
            slot.put_in(&memory, i as u32, 10);
            assert!(memory.used_bytes.load(Relaxed) <= 100);
            // The first part is used all the time.
            assert_eq!(slots[0].get().as_deref(), Some(&0), "after {i}");
        }
        let left = loaded(&slots);
        assert_eq!(left.len(), 10);
        assert!(left.contains(&0) && left.contains(&29), "{left:?}");
    }

    #[test]
    fn a_part_larger_than_the_budget_is_alone_and_indexes_that_are_gone_count_no_more() {
        let memory = IndexMemory::new(100);
        let (small, large) = (Slot::new(), Slot::new());
        small.put_in(&memory, 1u32, 10);
        let held = large.put_in(&memory, 2u32, 1_000);
        assert_eq!((small.get(), *held), (None, 2));
        drop(large);
        let next = Slot::new();
        next.put_in(&memory, 3u32, 10);
        assert_eq!(memory.used_bytes.load(Relaxed), 10);
        // A second load of the same part changes nothing.
        assert_eq!(*next.put_in(&memory, 4, 10), 3);
        assert_eq!(memory.used_bytes.load(Relaxed), 10);
    }
}
