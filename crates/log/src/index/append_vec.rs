//! A vector that one thread appends to while others read its published elements.
//!
//! Elements live in buckets that double in size and never move, so a reader needs no lock and a
//! growing vector copies nothing.
//!
//! Ordering: elements are stored and loaded `Relaxed`. An index must be passed to a reader through
//! a `Release` store that the reader loads with `Acquire` (a list's head, a table's slot, the
//! length of the index, the log's watermark); everything stored before is then visible, the bucket
//! itself through its `OnceLock`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const FIRST_BITS: u32 = 10;
const BUCKETS: usize = 32 - FIRST_BITS as usize + 1;

/// An atomic integer that can be an element.
pub(super) trait Cell: Sized + Send + Sync {
    /// The plain integer.
    type Value: Copy;
    /// `len` zeros from the allocator's zeroed memory, so that the page faults of a large bucket
    /// occur as it fills, not all at once under the writer's lock.
    fn zeros(len: usize) -> Box<[Self]>;
    fn get(&self) -> Self::Value;
    fn set(&self, value: Self::Value);
}

/// `len` zeros from the allocator's zeroed memory, none of which is touched: to convert them one by
/// one would touch all.
///
/// # Safety
/// `A` has the size of `V`, and is valid when all of its bytes are zero.
pub(super) unsafe fn zeroed<V: Clone + Default, A>(len: usize) -> Box<[A]> {
    const { assert!(size_of::<V>() == size_of::<A>() && align_of::<V>() == align_of::<A>()) };
    let zeros = Box::into_raw(vec![V::default(); len].into_boxed_slice());
    // SAFETY: the layout is the same, the caller promises that the bytes are valid, and the box has
    // just been given up.
    unsafe { Box::from_raw(zeros as *mut [A]) }
}

macro_rules! cell {
    ($atomic:ty, $value:ty) => {
        impl Cell for $atomic {
            type Value = $value;
            fn zeros(len: usize) -> Box<[Self]> {
                // SAFETY: an atomic has the size and the values of its integer.
                unsafe { zeroed::<$value, Self>(len) }
            }
            fn get(&self) -> $value {
                self.load(Relaxed)
            }
            fn set(&self, value: $value) {
                self.store(value, Relaxed);
            }
        }
    };
}
cell!(AtomicU32, u32);
cell!(AtomicU64, u64);

/// The vector; see the module's documentation.
#[derive(Debug)]
pub(super) struct AppendVec<C> {
    buckets: [OnceLock<Box<[C]>>; BUCKETS],
}

impl<C: Cell> AppendVec<C> {
    pub(super) fn new() -> AppendVec<C> {
        AppendVec { buckets: [const { OnceLock::new() }; BUCKETS] }
    }

    fn place(index: u32) -> (usize, usize) {
        let shifted = u64::from(index) + (1 << FIRST_BITS);
        let bits = 63 - shifted.leading_zeros();
        ((bits - FIRST_BITS) as usize, (shifted - (1 << bits)) as usize)
    }

    /// The element at a published index.
    #[inline]
    pub(super) fn get(&self, index: u32) -> C::Value {
        let (bucket, at) = Self::place(index);
        let bucket = self.buckets[bucket].get().expect("an index is published after its bucket");
        bucket[at].get()
    }

    /// The elements from a published index to the end of its bucket, at most `len`.
    #[inline]
    pub(super) fn run(&self, index: u32, len: usize) -> &[C] {
        let (bucket, at) = Self::place(index);
        let bucket = self.buckets[bucket].get().expect("an index is published after its bucket");
        &bucket[at..bucket.len().min(at + len)]
    }

    /// The first index from `index` on at which `len` elements fit into one bucket, so that
    /// [`run`](Self::run) returns all of them. `len` is at most the size of the first bucket.
    pub(super) fn fit(index: u32, len: usize) -> u32 {
        debug_assert!(len <= 1 << FIRST_BITS);
        let (bucket, at) = Self::place(index);
        let left = (1 << (bucket + FIRST_BITS as usize)) - at;
        if len <= left { index } else { index + left as u32 }
    }

    /// Stores an element. Only the writer may call this.
    #[inline]
    pub(super) fn set(&self, index: u32, value: C::Value) {
        let (bucket, at) = Self::place(index);
        let elements =
            self.buckets[bucket].get_or_init(|| C::zeros(1 << (bucket + FIRST_BITS as usize)));
        elements[at].set(value);
    }

    /// Size of the elements up to `used`; memory allocated beyond is not touched yet.
    pub(super) fn memory_bytes(used: u32) -> usize {
        used as usize * size_of::<C>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_read_back_across_buckets() {
        let vec = AppendVec::<AtomicU32>::new();
        (0..100_000).for_each(|i| vec.set(i, i ^ 0x5555));
        assert!((0..100_000).all(|i| vec.get(i) == i ^ 0x5555));
    }

    #[test]
    fn runs_that_fit_are_whole() {
        let vec = AppendVec::<AtomicU32>::new();
        let mut at = 0;
        for len in (1..33).cycle().take(3_000) {
            let start = AppendVec::<AtomicU32>::fit(at, len);
            assert!(start >= at && start < at + 33);
            at = start + len as u32;
            (start..at).for_each(|i| vec.set(i, i));
            assert_eq!(vec.run(start, len).len(), len);
            assert_eq!(vec.run(start, len)[len - 1].get(), at - 1);
        }
    }

    #[test]
    fn buckets_meet_without_gap_or_overlap() {
        let mut previous = AppendVec::<AtomicU32>::place(0);
        assert_eq!(previous, (0, 0));
        for i in 1..200_000 {
            let place = AppendVec::<AtomicU32>::place(i);
            let next = (previous.0, previous.1 + 1);
            let wrapped = (previous.0 + 1, 0);
            let full = previous.1 + 1 == 1 << (previous.0 + FIRST_BITS as usize);
            assert_eq!(place, if full { wrapped } else { next });
            previous = place;
        }
        let last = AppendVec::<AtomicU32>::place(u32::MAX);
        assert!(last.0 < BUCKETS);
    }
}
