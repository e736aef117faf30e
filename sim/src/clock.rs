//! A node's clock: it runs with the world's time, and its wall clock can be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use wellspring_log::Clock;

const WALL_ORIGIN_US: i64 = 1_700_000_000_000_000;

/// The clock of one node.
#[derive(Debug)]
pub struct NodeClock {
    world_us: Arc<AtomicU64>,
    monotonic_origin_us: u64,
    wall_offset_us: AtomicI64,
}

impl NodeClock {
    /// A clock driven by the world's time.
    #[must_use]
    pub fn new(world_us: Arc<AtomicU64>, monotonic_origin_us: u64) -> NodeClock {
        NodeClock { world_us, monotonic_origin_us, wall_offset_us: AtomicI64::new(0) }
    }

    /// Sets the wall clock forward or back.
    pub fn step_wall(&self, by_us: i64) {
        self.wall_offset_us.fetch_add(by_us, Ordering::Relaxed);
    }
}

impl Clock for NodeClock {
    fn wall_us(&self) -> u64 {
        let world = self.world_us.load(Ordering::Relaxed) as i64;
        let offset = self.wall_offset_us.load(Ordering::Relaxed);
        (WALL_ORIGIN_US + world + offset) as u64
    }

    fn monotonic_us(&self) -> u64 {
        self.monotonic_origin_us + self.world_us.load(Ordering::Relaxed)
    }
}
