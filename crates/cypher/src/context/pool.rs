//! Memory that statements under way share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Memory that statements under way may take together, in bytes.
#[derive(Debug)]
pub struct Pool {
    most: u64,
    left: AtomicU64,
}

/// What was taken of a pool; given back when it is dropped.
#[derive(Debug)]
pub struct Grant {
    pool: Arc<Pool>,
    bytes: u64,
}

/// A pool has less left than was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolEmpty;

impl Pool {
    /// A pool of so many bytes.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, left: AtomicU64::new(most) })
    }

    /// How many bytes there are in all.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// How many are taken.
    pub fn taken(&self) -> u64 {
        self.most - self.left.load(Relaxed)
    }
}

impl Grant {
    /// Of a pool, nothing yet.
    pub fn none(pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::clone(pool), bytes: 0 }
    }

    /// How many bytes it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many bytes its pool has in all.
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

    /// Gives some of it back.
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
