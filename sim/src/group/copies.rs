//! The copies of the log, which nodes read from each other when entries were dropped, and what is
//! known of them.

use crate::dice::Dice;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_journal_raft::CopySource;
use wellspring_log::Log;
use wellspring_log::shared::rule::RuleState;
use wellspring_log::shared::{Place, PlacedEntry, SharedLogError};
use wellspring_types::Position;

/// How much the WALs keep of what the copies hold, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Keeps {
    /// Size of a file.
    pub file_bytes: u64,
    /// At least that much stays.
    pub keep_bytes: u64,
}

impl Keeps {
    /// Everything, or very little.
    pub fn draw(drops: bool, dice: &mut Dice) -> Keeps {
        if !drops {
            return Keeps { file_bytes: 2 << 20, keep_bytes: u64::MAX };
        }
        Keeps {
            file_bytes: [8 << 10, 16 << 10, 64 << 10][dice.index(3)],
            keep_bytes: [1, 20_000][dice.index(2)],
        }
    }

    /// Whether anything is dropped.
    #[must_use]
    pub fn drops(&self) -> bool {
        self.keep_bytes < u64::MAX
    }
}

/// See the module's documentation. Clones share it.
#[derive(Clone, Default)]
pub struct Copies(Arc<Mutex<CopiesState>>);

#[derive(Default)]
struct CopiesState {
    open: BTreeMap<usize, Log>,
    /// By node: the last position that its copy is known to hold durably.
    durable: BTreeMap<usize, Position>,
}

impl Copies {
    fn state(&self) -> MutexGuard<'_, CopiesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process has opened its copy.
    pub fn opened(&self, node: usize, log: &Log) {
        self.state().open.insert(node, log.clone());
    }

    /// A process has ended.
    pub fn closed(&self, node: usize) {
        let log = self.state().open.remove(&node);
        drop(log);
    }

    /// A log says that a copy is durable; what a dying process says is ignored.
    pub(super) fn durable(&self, node: usize, state: &[u8]) {
        let mut copies = self.state();
        if let Some(state) = RuleState::decode(state)
            && copies.open.contains_key(&node)
        {
            copies.durable.insert(node, state.head);
        }
    }

    /// The last position that a copy is known to hold durably.
    #[must_use]
    pub fn durable_head(&self, node: usize) -> Option<Position> {
        self.state().durable.get(&node).copied()
    }

    /// A copy is gone.
    pub fn lost(&self, node: usize) {
        self.state().durable.remove(&node);
    }

    /// Whether another copy has all that this one is known to hold, and all others.
    #[must_use]
    pub fn has_spare(&self, node: usize) -> bool {
        let state = self.state();
        let most = state.durable.values().max();
        state.durable.iter().any(|(of, head)| *of != node && Some(head) == most)
    }

    pub(super) fn others(&self, node: usize) -> Arc<OtherCopies> {
        Arc::new(OtherCopies { node, copies: self.clone(), turn: AtomicUsize::new(0) })
    }
}

/// The copies of the other nodes.
pub(super) struct OtherCopies {
    node: usize,
    copies: Copies,
    turn: AtomicUsize,
}

impl CopySource for OtherCopies {
    fn accepted_after(
        &self,
        _: &str,
        after: Place,
        max_bytes: usize,
    ) -> Result<Vec<PlacedEntry>, SharedLogError> {
        let none = |reason: String| SharedLogError::Unavailable { reason };
        let open = self.copies.state().open.clone();
        let others: Vec<&Log> =
            open.iter().filter(|(of, _)| **of != self.node).map(|(_, log)| log).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let Some(copy) = others.get(turn % others.len().max(1)) else {
            return Err(none("no other copy is open".to_owned()));
        };
        let found = copy.accepted_after(after, max_bytes.min(turn % 3 * 2000));
        found.map_err(|error| none(error.to_string()))
    }
}
