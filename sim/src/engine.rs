//! The shared log under the nodes.

use crate::dice::Dice;
use crate::group::Group;
use wellspring_journal_raft::LeadChoice;
use wellspring_log::shared::SharedLog;
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_types::Position;

/// Which engine is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// One that does everything that an engine may do.
    Simulated,
    /// Nodes of the Raft engine.
    Raft,
}

/// The engine.
pub enum Engine {
    /// One that does everything that an engine may do.
    Simulated(SimulatedLog),
    /// Nodes of the Raft engine.
    Raft(Box<Group>),
}

impl Engine {
    /// A connection of a node; `None` if the engine does not run there.
    #[must_use]
    pub fn connect(&self, node: usize, elects: bool) -> Option<Box<dyn SharedLog>> {
        let lead = if elects { LeadChoice::Orderer } else { LeadChoice::Claims };
        match self {
            Engine::Simulated(log) => Some(Box::new(log.connect(node as u64))),
            Engine::Raft(group) => group.connect(node, "main", lead),
        }
    }

    /// The last position that a node's copy is known to hold durably.
    #[must_use]
    pub fn durable_head(&self, node: usize) -> Option<Position> {
        match self {
            Engine::Simulated(log) => log.durable_head(node as u64),
            Engine::Raft(group) => group.copies.durable_head(node),
        }
    }

    /// A node's copy is gone.
    pub fn lose_copy(&self, node: usize) {
        match self {
            Engine::Simulated(log) => log.lose_copy(node as u64),
            Engine::Raft(group) => group.copies.lost(node),
        }
    }

    /// Number of entries so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        match self {
            Engine::Simulated(log) => log.end().0,
            Engine::Raft(group) => group.facts.committed(),
        }
    }

    /// Whether the engine has stopped at a node, as after a barrier that failed.
    #[must_use]
    pub fn has_stopped(&self, node: usize) -> bool {
        matches!(self, Engine::Raft(group) if group.has_stopped(node))
    }

    /// Cuts a node off, or connects it again.
    pub fn cut_off(&mut self, node: usize, is_cut: bool, dice: &mut Dice) {
        match self {
            Engine::Simulated(log) if is_cut => log.disconnect(node as u64),
            Engine::Simulated(log) => log.reconnect(node as u64),
            Engine::Raft(group) => group.cut_off(node, is_cut, dice),
        }
    }

    /// Shows a node more entries, if the simulator decides what it sees.
    pub fn show(&self, node: usize, more: u64) {
        if let Engine::Simulated(log) = self {
            log.show(node as u64, more);
        }
    }
}
