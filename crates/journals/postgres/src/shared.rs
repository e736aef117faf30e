//! The state shared by a node's thread and its logs.

use crate::options::ConnectOptions;
use crate::report::DurabilityReport;
use crate::state::LogState;
use crate::tls::MakeRustls;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use tokio::sync::Notify;
use wellspring_log::shared::{Place, PlacedEntry, SharedLimits, SharedLogError};

/// A command for the node's thread.
pub(crate) enum Command {
    /// A log has something to send.
    Work(Arc<LogState>),
    /// A log is to be read from now on.
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

/// Whether a node is connected to its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// It is connected.
    Connected,
    /// It is not, and keeps trying.
    Lost {
        /// The last error.
        reason: String,
    },
}

/// Figures and facts about a node's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Whether it is connected.
    pub connection: Connection,
    /// The server's last error or warning about a statement, for display.
    pub last_trouble: Option<String>,
    /// Number of reconnects.
    pub reconnects: u64,
    /// The meaning of "durable" on the server.
    pub durability: DurabilityReport,
}

/// The shared state; see the module's documentation.
pub(crate) struct NodeShared {
    pub(crate) options: ConnectOptions,
    pub(crate) tls: Option<MakeRustls>,
    pub(crate) limits: SharedLimits,
    pub(crate) logs: Mutex<Vec<Arc<LogState>>>,
    pub(crate) status: Mutex<NodeStatus>,
    /// Notified when there may be something to read.
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
