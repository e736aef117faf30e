//! The engine that orders the logs of several nodes, as the host sees it. Which engines there are
//! is the program's to say: it makes one from `--journal`.

use std::fmt;
use wellspring_log::shared::SharedLog;

/// Whether the events of a log are written as rows beside its entries, where an engine can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRows {
    /// As the settings say.
    AsConfigured,
    /// Never: what is in the log is not for other clients of the engine.
    Never,
}

/// An engine that orders the logs of several nodes.
pub trait Engine: Send + Sync {
    /// The shared log of this name; it begins empty if nobody has used it.
    fn shared_log(&self, log: &str, rows: LogRows) -> Box<dyn SharedLog>;

    /// Has it look at once for what other nodes have appended: somebody waits for it.
    fn nudge(&self);

    /// How it stands.
    fn status(&self) -> EngineStatus;
}

/// How it stands with an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// What kind it is: `postgres`.
    pub kind: &'static str,
    /// Whether it can be reached.
    pub reach: EngineReach,
    /// What it said last of something it did not do, or of which it warned; for a person.
    pub trouble: Option<String>,
    /// What an acknowledged append survives on it, in words.
    pub durable: String,
    /// How often it was connected anew.
    pub reconnects: u64,
}

/// Whether an engine can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineReach {
    /// It can.
    Connected,
    /// It cannot, and is tried again and again.
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
