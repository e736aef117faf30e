//! Looks at several logs in one moment. All heads of a process pass this gate when they move.
//! Holding it excludes them for nanoseconds, so what is read meanwhile shows every cause of every
//! effect it shows. A commit pays two uncontended atomic operations for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use wellspring_types::Position;

/// What the heads of logs pass when they move. While it is [held](Self::hold), none of the logs
/// that share it moves its head, so all of them can be looked at as of one moment: whatever caused
/// an event that is seen is seen, too, in whichever log it is.
#[derive(Debug, Clone, Default)]
pub struct HeadGate(Arc<RwLock<()>>);

/// While it lives, no head moves. Appends wait meanwhile, so it is for microseconds.
#[derive(Debug)]
pub struct HeldHeads<'a> {
    _guard: RwLockWriteGuard<'a, ()>,
}

impl HeadGate {
    /// Stops all heads until the result is dropped.
    #[must_use]
    pub fn hold(&self) -> HeldHeads<'_> {
        HeldHeads { _guard: self.0.write().unwrap_or_else(PoisonError::into_inner) }
    }

    /// While the result lives, a head is moving.
    pub(crate) fn moving(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the last durable batch ends. Set and read inside the log's
/// [`HeadGate`], so that base, offset and head belong together.
#[derive(Debug)]
pub(crate) struct DurableEnd {
    segment_base: AtomicU64,
    offset: AtomicU64,
}

impl DurableEnd {
    pub(crate) fn at(segment_base: Position, offset: u64) -> DurableEnd {
        DurableEnd { segment_base: AtomicU64::new(segment_base), offset: AtomicU64::new(offset) }
    }

    pub(crate) fn set(&self, segment_base: Position, offset: u64) {
        self.segment_base.store(segment_base, Ordering::Relaxed);
        self.offset.store(offset, Ordering::Relaxed);
    }

    /// Base of the segment, and the offset in it.
    pub(crate) fn get(&self) -> (Position, u64) {
        (self.segment_base.load(Ordering::Relaxed), self.offset.load(Ordering::Relaxed))
    }
}
