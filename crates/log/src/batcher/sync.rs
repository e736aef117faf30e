//! The primitives of the ring: atomics, and bytes shared by two threads.
//!
//! `tests/batcher_model.rs` compiles `ring.rs`, `wanted.rs` and `stored_waiters.rs` against loom's
//! versions of the same names and tries every order in which the threads can run.

pub(super) use crate::threads::lock;
use std::cell::UnsafeCell;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(super) use std::sync::{Arc, Mutex};

/// A borrowed range of a [`Bytes`].
pub(super) type Chunk<'a> = &'a [u8];

/// Bytes that one thread writes and another reads, never the same ones at the same time; the users
/// of this type ensure that. The only unsafe code of the crate but for one allocation of zeros.
#[derive(Debug)]
pub(super) struct Bytes {
    cells: Box<[UnsafeCell<u8>]>,
}

// SAFETY: every access goes through `write` and `read`, whose callers promise
// that no two of them touch the same byte at a time unless both read it.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Zeros; pages that are never written cost no memory.
    pub(super) fn zeroed(len: usize) -> Bytes {
        let bytes = Box::into_raw(vec![0u8; len].into_boxed_slice());
        // SAFETY: `UnsafeCell<u8>` has the layout of `u8`, and the box has just been given up.
        Bytes { cells: unsafe { Box::from_raw(bytes as *mut [UnsafeCell<u8>]) } }
    }

    /// Copies `part` to `at`.
    ///
    /// # Safety
    /// No other thread may read or write any of these bytes meanwhile.
    #[inline]
    pub(super) unsafe fn write(&self, at: usize, part: &[u8]) {
        let cells = &self.cells[at..at + part.len()];
        let to = cells.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: the cells are in bounds because of the slicing above and mutable through a shared
        // reference because they are `UnsafeCell`s; the caller promises exclusive access.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len()) }
    }

    /// The `len` bytes at `at`.
    ///
    /// # Safety
    /// No other thread may write any of these bytes while the slice lives.
    #[inline]
    pub(super) unsafe fn read(&self, at: usize, len: usize) -> Chunk<'_> {
        let cells = &self.cells[at..at + len];
        // SAFETY: in bounds because of the slicing above; the caller promises that they are not
        // written meanwhile.
        unsafe { std::slice::from_raw_parts(cells.as_ptr().cast::<u8>(), len) }
    }
}
