//! This node's own description, for clients and other nodes.

use serde::{Deserialize, Serialize};
use wellspring_host::cluster::{EngineReach, EngineStatus};
use wellspring_host::http::Host;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_log::{Leader, Log, Role};

/// A node's own description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeStatus {
    /// Its name; none outside a cluster.
    pub(super) node: Option<String>,
    pub(super) url: Option<String>,
    pub(super) version: String,
    /// Random for each life of its process, as hexadecimal digits, because a JSON number is too
    /// small.
    pub(super) start: Option<String>,
    /// Its role for the log `system`, and eventually for all.
    pub(super) role: String,
    pub(super) epoch: Option<u64>,
    /// Head of its log `system`.
    pub(super) position: u64,
    pub(super) engine: Option<EngineState>,
    pub(super) logs: Vec<LogState>,
}

/// The state of a node's connection to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EngineState {
    pub(super) kind: String,
    pub(super) connected: bool,
    /// Why it is not connected, or its last error.
    pub(super) trouble: Option<String>,
    pub(super) durable: String,
    pub(super) reconnects: u64,
}

/// A log on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogState {
    pub(super) log: String,
    pub(super) role: String,
    /// The leader's, as far as known.
    pub(super) epoch: Option<u64>,
    /// The leader's name.
    pub(super) leader: Option<String>,
    /// Place in the shared log up to which the copy is complete.
    pub(super) place: Option<u64>,
    pub(super) head: u64,
    pub(super) void_entries: u64,
    pub(super) foreign_batches: u64,
    pub(super) repeated_offers: u64,
}

impl From<EngineStatus> for EngineState {
    fn from(status: EngineStatus) -> EngineState {
        let EngineStatus { kind, reach, trouble, durable, reconnects } = status;
        let (connected, lost) = match reach {
            EngineReach::Connected => (true, None),
            EngineReach::Lost { reason } => (false, Some(reason)),
        };
        EngineState {
            kind: kind.to_owned(),
            connected,
            trouble: lost.or(trouble),
            durable,
            reconnects,
        }
    }
}

/// The leader of a log, as far as this node knows.
pub(super) fn leader(host: &Host, log: &str) -> Option<Leader> {
    match host.node.get(log)?.role() {
        Role::Leading { epoch } => {
            let cluster = host.node.cluster()?;
            Some(Leader { node: cluster.node.to_string(), url: cluster.url.clone(), epoch })
        }
        Role::Following { leader } => leader,
        Role::CatchingUp { .. } | Role::Claiming { .. } | Role::Detached { .. } => None,
    }
}

/// This node's own description.
pub(super) fn status(host: &Host) -> NodeStatus {
    let cluster = host.node.cluster();
    let system = host.node.get(SYSTEM_LOG);
    let role = system.as_ref().map(Log::role);
    NodeStatus {
        node: cluster.map(|cluster| cluster.node.to_string()),
        url: cluster.map(|cluster| cluster.url.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        start: cluster.map(|cluster| format!("{:016x}", cluster.start)),
        epoch: role.as_ref().and_then(epoch),
        role: role.map_or("none", |role| role.name()).to_owned(),
        position: system.map_or(0, |system| system.head()),
        engine: cluster.map(|cluster| cluster.engine.status().into()),
        logs: host.node.all().iter().map(|(name, log)| state(host, name, log)).collect(),
    }
}

/// The leader's epoch, as far as known.
fn epoch(role: &Role) -> Option<u64> {
    match role {
        Role::Leading { epoch } => Some(*epoch),
        Role::Following { leader } => leader.as_ref().map(|leader| leader.epoch),
        Role::CatchingUp { .. } | Role::Claiming { .. } | Role::Detached { .. } => None,
    }
}

fn state(host: &Host, name: &str, log: &Log) -> LogState {
    let role = log.role();
    let shared = log.shared_stats();
    let counters = shared.unwrap_or_default();
    LogState {
        log: name.to_owned(),
        epoch: epoch(&role),
        leader: leader(host, name).map(|leader| leader.node),
        role: role.name().to_owned(),
        place: shared.map(|shared| shared.place.0),
        head: log.head(),
        void_entries: counters.void_entries,
        foreign_batches: counters.foreign_batches,
        repeated_offers: counters.repeated_offers,
    }
}
