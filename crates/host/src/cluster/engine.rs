//! The engine that orders the logs of a cluster, as the host sees it. The program decides which
//! engines exist: it makes one from `--journal`.

use super::{Group, GroupState};
use std::fmt;
use wellspring_log::shared::SharedLog;

/// Whether the events of a log are also written as rows, where an engine can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRows {
    /// As the settings say.
    AsConfigured,
    /// Never: other clients of the engine must not read the log.
    Never,
}

/// An engine that orders the logs of a cluster.
pub trait Engine: Send + Sync {
    /// The shared log of this name; it is empty if it is new.
    fn shared_log(&self, log: &str, rows: LogRows) -> Box<dyn SharedLog>;

    /// The log of this name was dropped for ever: an engine that keeps its entries for this node's
    /// copy need not.
    fn forget(&self, _log: &str) {}

    /// Has it check at once for entries of other nodes, because a request waits for them.
    fn nudge(&self);

    /// Its status.
    fn status(&self) -> EngineStatus;

    /// The group of nodes that it is, if it is one.
    fn group(&self) -> Option<&dyn Group> {
        None
    }
}

/// The status of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// Its kind: `postgres`, `raft`.
    pub kind: &'static str,
    /// Whether it can be reached.
    pub reach: EngineReach,
    /// Its last error or warning; for an operator.
    pub trouble: Option<String>,
    /// What an acknowledged append survives on it, in words.
    pub durable: String,
    /// Number of reconnections.
    pub reconnects: u64,
    /// Its group, if it is one of nodes.
    pub group: Option<GroupState>,
}

/// Whether an engine can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineReach {
    /// It can.
    Connected,
    /// It cannot, and is retried continuously.
    Lost {
        /// Why, in words.
        reason: String,
    },
}

impl fmt::Display for EngineStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reach {
            EngineReach::Connected => write!(f, "{} is connected", self.kind),
            EngineReach::Lost { reason } => write!(f, "{} cannot be reached: {reason}", self.kind),
        }
    }
}
