//! PostgreSQL as the engine.

use std::sync::Arc;
use std::time::Duration;
use wellspring_host::cluster::{ClusterConfig, Engine, EngineReach, EngineStatus, LogRows};
use wellspring_host::setup::SetupError;
use wellspring_journal_postgres::{
    ConnectError, ConnectOptions, Connection, Durability, EventRows, PostgresNode, Retry,
};
use wellspring_log::shared::SharedLog;

/// Attempts to reach a server, and the time between them: it may be starting, too.
const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn engine(config: &ClusterConfig) -> Result<Arc<dyn Engine>, SetupError> {
    let named = |error: String| format!("journal: {error}");
    let mut options = ConnectOptions::parse(config.journal.secret_text())
        .map_err(|error| named(error.to_string()))?
        .or_password_of_environment();
    if let Some(file) = &config.journal_password_file {
        options = options
            .with_password_file(file)
            .map_err(|error| format!("journal_password_file: {error}"))?;
    }
    if !config.journal_rows {
        options.event_rows = EventRows::Omit;
    }
    if let Some(node) = &config.node {
        options.application_name = format!("wellspring {node}");
    }
    let node = connect(&options).map_err(|error| named(error.to_string()))?;
    let durability = node.durability();
    match durability.durability() {
        Durability::Unsafe => tracing::warn!("journal: {durability}"),
        Durability::OneServer | Durability::Standby => tracing::info!("journal: {durability}"),
    }
    Ok(Arc::new(PostgresEngine(node)))
}

fn connect(options: &ConnectOptions) -> Result<PostgresNode, ConnectError> {
    let mut tried = 1;
    loop {
        match PostgresNode::connect(options.clone()) {
            Err(error) if error.retry() == Retry::MayHelp && tried < TRIES => {
                if tried == 1 {
                    tracing::warn!("journal: {error}; retrying for {TRIES} s");
                }
                tried += 1;
            }
            done => return done,
        }
        std::thread::sleep(PAUSE);
    }
}

struct PostgresEngine(PostgresNode);

impl Engine for PostgresEngine {
    fn shared_log(&self, log: &str, rows: LogRows) -> Box<dyn SharedLog> {
        Box::new(match rows {
            LogRows::AsConfigured => self.0.shared_log(log),
            LogRows::Never => self.0.shared_log_with(log, EventRows::Omit),
        })
    }

    fn nudge(&self) {
        self.0.nudge();
    }

    fn status(&self) -> EngineStatus {
        let status = self.0.status();
        EngineStatus {
            kind: "postgres",
            reach: match status.connection {
                Connection::Connected => EngineReach::Connected,
                Connection::Lost { reason } => EngineReach::Lost { reason },
            },
            trouble: status.last_trouble,
            durable: status.durability.to_string(),
            reconnects: status.reconnects,
            group: None,
        }
    }
}
