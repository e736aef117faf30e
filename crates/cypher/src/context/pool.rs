//! Memory shared by running statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The memory that running statements may use together, in bytes.
#[derive(Debug)]
pub struct Pool {
    most: u64,
    left: AtomicU64,
}

/// Memory taken from a pool; returned on drop.
#[derive(Debug)]
pub struct Grant {
    pool: Arc<Pool>,
    bytes: u64,
}

/// The pool has less left than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolEmpty;

impl Pool {
    /// A pool of this many bytes.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, left: AtomicU64::new(most) })
    }

    /// Its size in bytes.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Number of bytes taken.
    pub fn taken(&self) -> u64 {
        self.most - self.left.load(Relaxed)
    }
}

impl Grant {
    /// A grant of nothing yet.
    pub fn none(pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::clone(pool), bytes: 0 }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The size of its pool in bytes.
    pub(super) fn most(&self) -> u64 {
        self.pool.most
    }

    /// Takes more.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), PoolEmpty> {
        let less = |left: u64| left.checked_sub(bytes);
        self.pool.left.fetch_update(Relaxed, Relaxed, less).map_err(|_| PoolEmpty)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Returns a part of it.
    pub(super) fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.pool.left.fetch_add(bytes, Relaxed);
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}
