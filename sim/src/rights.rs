//! Rights that appends are fenced by and that end with the epoch, and what nodes make of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_log::{Fence, FenceRefusal, GiveWay, Log, Work};
use wellspring_types::Position;

/// A right of the epoch in which it was given.
#[derive(Debug)]
pub struct EpochRight {
    epoch: u64,
    usage: Mutex<RightUsage>,
}

/// What an append has made of its right.
#[derive(Debug, Clone, Default)]
pub struct RightUsage {
    /// Where the append was to begin, each time that it passed.
    pub passed: Vec<Position>,
    /// The epoch in which it was given positions, if not that of the right.
    pub placed_late: Option<u64>,
}

impl EpochRight {
    /// A right of the present epoch at a node.
    #[must_use]
    pub fn of(log: &Log) -> Arc<EpochRight> {
        Arc::new(EpochRight { epoch: log.epoch(), usage: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, RightUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the append has made of it so far.
    #[must_use]
    pub fn used(&self) -> RightUsage {
        self.lock().clone()
    }

    /// The append was given positions in an epoch.
    pub fn placed_in(&self, epoch: u64) {
        self.lock().placed_late = (epoch != self.epoch).then_some(epoch);
    }
}

impl Fence for EpochRight {
    fn holds(&self, epoch: u64) -> Result<(), FenceRefusal> {
        (epoch == self.epoch).then_some(()).ok_or(FenceRefusal::DeliveryLost)
    }

    fn stage(&self, epoch: u64, first: Position) -> Result<(), FenceRefusal> {
        self.holds(epoch)?;
        self.lock().passed.push(first);
        Ok(())
    }
}

/// Turns that the other threads of a node take while an append is judged.
struct TurnsMeanwhile {
    log: Log,
    taken: AtomicBool,
}

impl GiveWay for TurnsMeanwhile {
    fn give_way(&self) -> u64 {
        // Only the first time: later ones may come where a thread holds a lock, and here there is
        // only one thread.
        if !self.taken.swap(true, Ordering::Relaxed) {
            for _ in 0..8 {
                self.log.turn();
            }
        }
        0
    }
}

/// Work during which the node goes on with what has arrived.
#[must_use]
pub fn work_beside_turns(log: &Log) -> Work {
    let turns = TurnsMeanwhile { log: log.clone(), taken: AtomicBool::new(false) };
    Work::unbounded().giving_way_by(Arc::new(turns))
}
