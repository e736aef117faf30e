//! What the suite needs of a journal: a log on its nodes, which can be killed and disturbed.

use crate::link::Link;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Log, OpenError, Options};

/// A journal under test.
pub trait JournalUnderTest: Sync {
    /// A new log that has never been opened. Random choices of the harness derive from the seed.
    fn begin(&self, seed: u64) -> Box<dyn Harness>;

    /// The percentage of random histories to run: less than 100 where each costs device or network
    /// accesses. At least one is always run.
    fn percent(&self) -> u64 {
        100
    }
}

/// The nodes of one log: opens the log on them, kills their processes, disturbs them.
pub trait Harness: Send + Sync {
    /// Number of nodes, which are numbered from 0.
    fn nodes(&self) -> usize {
        1
    }

    /// The name under which a node claims the lead.
    fn name(&self, node: usize) -> String {
        format!("node-{node}")
    }

    /// Opens the log on a node, on the content of its folder.
    ///
    /// # Errors
    /// Those of opening a log.
    fn open(&self, node: usize, options: Options) -> Result<Log, OpenError>;

    /// Kills the process of a node, with a power loss of its disk if the harness supports that:
    /// anything not covered by a barrier may be lost. The old process has no effect from now on;
    /// the next [`open`](Self::open) finds what is left.
    fn kill(&self, node: usize);

    /// The current disk of a node, to fill it up and inject faults. `None` if it cannot be
    /// disturbed.
    fn disk(&self, _node: usize) -> Option<SimulatedStorage> {
        None
    }

    /// The connection of a node's current process to the engine. `None` if there is no engine.
    fn link(&self, _node: usize) -> Option<Link> {
        None
    }
}

/// How many random histories to run if `usual` are run when they are cheap.
pub(crate) fn histories(journal: &dyn JournalUnderTest, usual: u64) -> u64 {
    (usual * journal.percent()).div_ceil(100).max(1)
}
