//! A node's way to its server: one thread and two connections, for all its logs.

use crate::fault::ConnectError;
use crate::log::PostgresLog;
use crate::options::{ConnectOptions, EventRows};
use crate::report::DurabilityReport;
use crate::session;
use crate::state::{LogState, Rows};
use crate::tls::MakeRustls;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wellspring_log::shared::{Place, PlacedEntry, SharedLimits, SharedLogError};

/// Largest entry. A larger batch travels in parts.
const ENTRY_BYTES: usize = 8 << 20;
/// The least silence after which a leader may be taken for gone, whatever a round trip takes.
const LEAD_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// So many round trips are it, if that is more.
const LEAD_TIMEOUT_ROUND_TRIPS: u32 = 50;

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
    /// What the server said last to a statement that it did not carry out, or of which it warned; for a person.
    pub last_trouble: Option<String>,
    /// How often it was connected anew.
    pub reconnects: u64,
    /// What "durable" means on the server.
    pub durability: DurabilityReport,
}

pub(crate) struct NodeShared {
    pub(crate) options: ConnectOptions,
    pub(crate) tls: Option<MakeRustls>,
    pub(crate) limits: SharedLimits,
    logs: Mutex<Vec<Arc<LogState>>>,
    status: Mutex<NodeStatus>,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A node's way to its server. Clones are the same way; it ends with the last of them and of its logs.
#[derive(Clone)]
pub struct PostgresNode {
    shared: Arc<NodeShared>,
    commands: UnboundedSender<Command>,
}

impl PostgresNode {
    /// Connects, makes the tables if there are none, and stays connected from then on: a connection that is lost
    /// is made anew. Blocks until the first one is there.
    ///
    /// # Errors
    /// [`ConnectError`]. Trying again helps with [`Server`](ConnectError::Server) alone.
    pub fn connect(options: ConnectOptions) -> Result<PostgresNode, ConnectError> {
        options.check()?;
        let tls = MakeRustls::new(&options.tls)?;
        let (commands, received) = unbounded_channel();
        let (told, ready) = mpsc::channel();
        spawn("postgres-journal", move || run(options, tls, received, &told))?;
        let shared = ready
            .recv()
            .unwrap_or_else(|_| Err(ConnectError::System("its thread ended".into())))?;
        Ok(PostgresNode { shared, commands })
    }

    /// A log of this name; it begins empty if nobody has used it. Two logs of the same name on one node are two
    /// readers of the same log.
    #[must_use]
    pub fn shared_log(&self, name: &str) -> PostgresLog {
        let rows = match self.shared.options.event_rows {
            EventRows::Write => Rows::Unknown,
            EventRows::Omit => Rows::Off,
        };
        // With the list locked: a connection that is lost meanwhile is told to the log as well.
        let mut logs = lock(&self.shared.logs);
        let unavailable = match &self.shared.status().connection {
            Connection::Connected => None,
            Connection::Lost { reason } => Some(reason.clone()),
        };
        let state = Arc::new(LogState::new(name, rows, unavailable));
        logs.push(Arc::clone(&state));
        drop(logs);
        let (node, commands) = (Arc::clone(&self.shared), self.commands.clone());
        PostgresLog { node, state, commands }
    }

    /// How it stands with the connections.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        self.shared.status().clone()
    }

    /// What "durable" means on the server.
    #[must_use]
    pub fn durability(&self) -> DurabilityReport {
        self.shared.status().durability.clone()
    }
}

/// The door through which this crate starts threads.
#[allow(clippy::disallowed_methods)]
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), ConnectError> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map(drop).map_err(|error| ConnectError::System(error.to_string()))
}

/// The node's thread.
fn run(
    options: ConnectOptions,
    tls: Option<MakeRustls>,
    commands: UnboundedReceiver<Command>,
    told: &mpsc::Sender<Result<Arc<NodeShared>, ConnectError>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = told.send(Err(ConnectError::System(error.to_string())));
            return;
        }
    };
    runtime.block_on(async {
        match session::connect(&options, tls.as_ref()).await {
            Err(error) => {
                let _ = told.send(Err(error));
            }
            Ok(first) => {
                let shared = Arc::new(first_connected(options, tls, &first));
                if told.send(Ok(Arc::clone(&shared))).is_ok() {
                    session::keep(&shared, first, commands).await;
                }
            }
        }
    });
}

fn first_connected(
    options: ConnectOptions,
    tls: Option<MakeRustls>,
    first: &session::Session,
) -> NodeShared {
    let limits = SharedLimits {
        entry_bytes: ENTRY_BYTES,
        window: 1,
        lead_timeout_min: LEAD_TIMEOUT_MIN.max(first.round_trip * LEAD_TIMEOUT_ROUND_TRIPS),
    };
    let status = NodeStatus {
        connection: Connection::Connected,
        last_trouble: None,
        reconnects: 0,
        durability: first.durability.clone(),
    };
    NodeShared {
        options,
        tls,
        limits,
        logs: Mutex::default(),
        status: Mutex::new(status),
        look: Notify::new(),
    }
}
