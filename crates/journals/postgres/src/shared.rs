//! What a node's thread and its logs have in common.

use crate::options::ConnectOptions;
use crate::report::DurabilityReport;
use crate::state::LogState;
use crate::tls::MakeRustls;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use tokio::sync::Notify;
use wellspring_log::shared::{Place, PlacedEntry, SharedLimits, SharedLogError};

/// To the node's thread.
pub(crate) enum Command {
    /// There is something to send.
    Work(Arc<LogState>),
    /// A log is read from now on.
    Follow(Arc<LogState>),
    Fetch {
        log: Arc<LogState>,
        after: Place,
        max_bytes: usize,
        reply: mpsc::Sender<Result<Vec<PlacedEntry>, SharedLogError>>,
    },
    FirstKept {
        log: Arc<LogState>,
        reply: mpsc::Sender<Result<Place, SharedLogError>>,
    },
}

/// Whether a node has its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// It has.
    Connected,
    /// It has not, and tries again and again.
    Lost {
        /// What was said last.
        reason: String,
    },
}

/// Figures and facts about a node's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Whether it has its server.
    pub connection: Connection,
    /// What the server said last to a statement that it did not carry out, or of which it warned;
    /// for a person.
    pub last_trouble: Option<String>,
    /// How often it was connected anew.
    pub reconnects: u64,
    /// What "durable" means on the server.
    pub durability: DurabilityReport,
}

/// See the module.
pub(crate) struct NodeShared {
    pub(crate) options: ConnectOptions,
    pub(crate) tls: Option<MakeRustls>,
    pub(crate) limits: SharedLimits,
    pub(crate) logs: Mutex<Vec<Arc<LogState>>>,
    pub(crate) status: Mutex<NodeStatus>,
    /// There may be something to read.
    pub(crate) look: Notify,
}

impl NodeShared {
    pub(crate) fn logs(&self) -> Vec<Arc<LogState>> {
        lock(&self.logs).clone()
    }

    pub(crate) fn forget(&self, log: &Arc<LogState>) {
        lock(&self.logs).retain(|known| !Arc::ptr_eq(known, log));
    }

    pub(crate) fn status(&self) -> MutexGuard<'_, NodeStatus> {
        lock(&self.status)
    }

    pub(crate) fn trouble(&self, said: String) {
        self.status().last_trouble = Some(said);
    }

    pub(crate) fn connected(&self, durability: DurabilityReport) {
        let mut status = self.status();
        status.connection = Connection::Connected;
        status.durability = durability;
        status.reconnects += 1;
        drop(status);
        self.logs().iter().for_each(|log| log.connected());
    }

    pub(crate) fn disconnected(&self, reason: &str) {
        self.status().connection = Connection::Lost { reason: reason.to_owned() };
        self.logs().iter().for_each(|log| log.disconnected(reason));
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
