//! A node's connection to its server: one thread and five database connections for all its logs.

use crate::fault::ConnectError;
use crate::keep::keep;
use crate::log::PostgresLog;
use crate::options::{ConnectOptions, EventRows};
use crate::report::DurabilityReport;
use crate::session;
use crate::shared::{Command, Connection, NodeShared, NodeStatus, lock};
use crate::state::{LogState, MOST_ON_THE_WAY, Rows};
use crate::tls::MakeRustls;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wellspring_log::shared::{Retention, SharedLimits};

/// Maximum size of an entry. A larger batch is sent in parts.
const ENTRY_BYTES: usize = 8 << 20;
/// Minimum silence after which a leader may be considered gone, regardless of the round-trip time.
const LEAD_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The same as a number of round trips, if that is more.
const LEAD_TIMEOUT_ROUND_TRIPS: u32 = 50;
/// The round trip from which a server has more than two offers of a log on the way: larger batches
/// are worth more to a near one.
const FAR: Duration = Duration::from_micros(500);

/// A node's connection to its server. Clones share it; it ends with the last of them and of its
/// logs.
#[derive(Clone)]
pub struct PostgresNode {
    shared: Arc<NodeShared>,
    commands: UnboundedSender<Command>,
}

impl PostgresNode {
    /// Connects, creates the tables if necessary, and stays connected: a lost connection is
    /// reopened. Blocks until the first connection is established.
    ///
    /// # Errors
    /// [`ConnectError`]. A retry can help only for [`Server`](ConnectError::Server).
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

    /// A log with this name, initially empty. Two logs with the same name on one node are two
    /// readers of the same log.
    #[must_use]
    pub fn shared_log(&self, name: &str) -> PostgresLog {
        self.shared_log_with(name, self.shared.options.event_rows)
    }

    /// As [`shared_log`](Self::shared_log), with a separate setting for writing events as rows.
    #[must_use]
    pub fn shared_log_with(&self, name: &str, event_rows: EventRows) -> PostgresLog {
        let rows = match event_rows {
            EventRows::Write => Rows::Unknown,
            EventRows::Omit => Rows::Off,
        };
        // With the list locked, so that a loss of the connection is also reported to this log.
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

    /// Reads entries of other nodes immediately instead of within milliseconds, because a caller
    /// waits for them.
    pub fn nudge(&self) {
        self.shared.look.notify_one();
    }

    /// The status of the connections.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        self.shared.status().clone()
    }

    /// The meaning of "durable" on the server.
    #[must_use]
    pub fn durability(&self) -> DurabilityReport {
        self.shared.status().durability.clone()
    }
}

/// The only place where this crate starts threads.
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
                    keep(&shared, first, commands).await;
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
        window: if first.round_trip < FAR { 2 } else { MOST_ON_THE_WAY },
        lead_timeout_min: LEAD_TIMEOUT_MIN.max(first.round_trip * LEAD_TIMEOUT_ROUND_TRIPS),
        retention: Retention::Everything,
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
