//! The memory that bodies being received may take together: charged as bytes
//! arrive, not as they are announced. Both connection loops charge the same account.

use super::problem::{self, Problem};
use crate::limits::Refused;
use crate::stats::Stats;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Bodies up to this size are not charged: every connection's read buffer is about as large.
pub(crate) const FREE_BYTES: usize = 16 << 10;

/// The memory that bodies being received may take, shared by all threads.
#[derive(Clone)]
pub(crate) struct BodyMemory {
    stats: Arc<Stats>,
    limit: usize,
}

impl BodyMemory {
    /// At most `limit` bytes, counted in `stats.body_bytes`.
    pub(crate) fn new(stats: &Arc<Stats>, limit: usize) -> BodyMemory {
        BodyMemory { stats: Arc::clone(stats), limit }
    }
}

/// What one body is charged. Given back when dropped.
#[derive(Default)]
pub(crate) struct Charge(Option<(BodyMemory, usize)>);

impl Charge {
    /// Counts the body's memory as `bytes`.
    ///
    /// # Errors
    /// 503: all bodies together would take more than they may. A retry helps.
    pub(crate) fn raise(&mut self, memory: &BodyMemory, bytes: usize) -> Result<(), Box<Problem>> {
        let charged = self.0.as_ref().map_or(0, |(_, charged)| *charged);
        if bytes <= FREE_BYTES.max(charged) {
            return Ok(());
        }
        let more = (bytes - charged) as i64;
        let counter = &memory.stats.body_bytes;
        if counter.fetch_add(more, Relaxed) + more > memory.limit as i64 {
            counter.fetch_sub(more, Relaxed);
            memory.stats.refusals.count(Refused::BodyMemory);
            return Err(problem::OVERLOADED
                .because("bodies being received take all the memory they may")
                .limit(memory.limit as u64));
        }
        self.0.get_or_insert_with(|| (memory.clone(), 0)).1 = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some((memory, charged)) = &self.0 {
            memory.stats.body_bytes.fetch_sub(*charged as i64, Relaxed);
        }
    }
}
