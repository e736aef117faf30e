//! A node's way to its server: one thread and two connections, for all its logs.

use crate::fault::ConnectError;
use crate::keep::keep;
use crate::log::PostgresLog;
use crate::options::{ConnectOptions, EventRows};
use crate::report::DurabilityReport;
use crate::session;
use crate::shared::{Command, Connection, NodeShared, NodeStatus, lock};
use crate::state::{LogState, Rows};
use crate::tls::MakeRustls;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wellspring_log::shared::SharedLimits;

/// Largest entry. A larger batch travels in parts.
const ENTRY_BYTES: usize = 8 << 20;
/// The least silence after which a leader may be taken for gone, whatever a round trip takes.
const LEAD_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// So many round trips are it, if that is more.
const LEAD_TIMEOUT_ROUND_TRIPS: u32 = 50;

/// A node's way to its server. Clones are the same way; it ends with the last of them and of its
/// logs.
#[derive(Clone)]
pub struct PostgresNode {
    shared: Arc<NodeShared>,
    commands: UnboundedSender<Command>,
}

impl PostgresNode {
    /// Connects, makes the tables if there are none, and stays connected from then on: a connection
    /// that is lost is made anew. Blocks until the first one is there.
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

    /// A log of this name; it begins empty if nobody has used it. Two logs of the same name on one
    /// node are two readers of the same log.
    #[must_use]
    pub fn shared_log(&self, name: &str) -> PostgresLog {
        self.shared_log_with(name, self.shared.options.event_rows)
    }

    /// The same; whether its events are written as rows is said for it alone.
    #[must_use]
    pub fn shared_log_with(&self, name: &str, event_rows: EventRows) -> PostgresLog {
        let rows = match event_rows {
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

    /// Reads at once what other nodes have placed, instead of in some milliseconds: somebody waits
    /// for it.
    pub fn nudge(&self) {
        self.shared.look.notify_one();
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
