//! A node's own description, for clients and other nodes.

use super::Node;
use crate::cluster::{EngineReach, EngineStatus, GroupState};
use crate::names::SYSTEM_LOG;
use serde::{Deserialize, Serialize};
use wellspring_log::{Leader, Log, Role};

/// A node's own description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name; none outside a cluster.
    pub node: Option<String>,
    /// Its URL for others.
    pub url: Option<String>,
    /// The version of its program.
    pub version: String,
    /// Random for each life of its process, as hexadecimal digits, because a JSON number is too
    /// small.
    pub start: Option<String>,
    /// Its role for the log `system`.
    pub role: String,
    /// The epoch of that log's leader, as far as known.
    pub epoch: Option<u64>,
    /// Head of its log `system`.
    pub position: u64,
    /// Whether it may lead logs: it is not about to stop.
    #[serde(default)]
    pub takes_leads: bool,
    /// How long nothing has arrived in its log `system`, in ms.
    #[serde(default)]
    pub silent_ms: u64,
    /// Its connection to the engine.
    pub engine: Option<EngineState>,
    /// Its logs.
    pub logs: Vec<LogState>,
    /// Logs that it cannot open.
    #[serde(default)]
    pub unopened: Vec<String>,
}

/// The state of a node's connection to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineState {
    /// The kind of the engine.
    pub kind: String,
    /// Whether it is connected.
    pub connected: bool,
    /// Why it is not connected, or its last error.
    pub trouble: Option<String>,
    /// What durable means on it.
    pub durable: String,
    /// Number of reconnections.
    pub reconnects: u64,
    /// The group of nodes that the engine is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupState>,
}

/// A log on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    /// Its name.
    pub log: String,
    /// Tells apart logs that had the same name.
    #[serde(default)]
    pub incarnation: u64,
    /// The node's role.
    pub role: String,
    /// The leader's, as far as known.
    pub epoch: Option<u64>,
    /// The leader's name.
    pub leader: Option<String>,
    /// The node that it is pinned to.
    #[serde(default)]
    pub pinned_to: Option<String>,
    /// Place in the shared log up to which the copy is complete.
    pub place: Option<u64>,
    /// Its last position.
    pub head: u64,
    /// Events a second over the last minute.
    #[serde(default)]
    pub rate: u64,
    /// Whether it accepts no events because the device is full.
    #[serde(default)]
    pub is_full: bool,
    /// Entries without effect.
    pub void_entries: u64,
    /// Batches of other nodes.
    pub foreign_batches: u64,
    /// Entries that were offered again.
    pub repeated_offers: u64,
}

impl From<EngineStatus> for EngineState {
    fn from(status: EngineStatus) -> EngineState {
        let EngineStatus { kind, reach, trouble, durable, reconnects, group } = status;
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
            group,
        }
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

impl Node {
    /// The leader of a log, as far as this node's copy tells.
    pub fn known_leader(&self, log: &str) -> Option<Leader> {
        self.leader_by(self.get(log)?.role())
    }

    /// The leader of a log that has this role here.
    fn leader_by(&self, role: Role) -> Option<Leader> {
        match role {
            Role::Leading { epoch } => {
                let cluster = self.cluster()?;
                Some(Leader { node: cluster.node.to_string(), url: cluster.url.clone(), epoch })
            }
            Role::Following { leader } => leader,
            Role::CatchingUp { .. } | Role::Claiming { .. } | Role::Detached { .. } => None,
        }
    }

    /// This node's own description.
    pub fn status(&self) -> NodeStatus {
        let cluster = self.cluster();
        let system = self.get(SYSTEM_LOG);
        let role = system.as_ref().map(Log::role);
        let pins = self.pins();
        let state = |(name, log)| {
            let pinned_to = pins.get(&name).cloned();
            self.log_state(name, &log, pinned_to)
        };
        let logs = self.all().into_iter().map(state).collect();
        NodeStatus {
            node: cluster.map(|cluster| cluster.node.to_string()),
            url: cluster.map(|cluster| cluster.url.clone()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            start: cluster.map(|cluster| format!("{:016x}", cluster.start)),
            epoch: role.as_ref().and_then(epoch),
            role: role.map_or("none", |role| role.name()).to_owned(),
            position: system.as_ref().map_or(0, |system| system.head()),
            takes_leads: self.placement().is_none_or(|placement| !placement.is_leaving()),
            silent_ms: self
                .placement()
                .zip(system.as_ref())
                .map_or(0, |(placement, system)| placement.silence(system).as_millis() as u64),
            engine: cluster.map(|cluster| cluster.engine.status().into()),
            logs,
            unopened: self.unopened_logs().into_iter().map(|(name, _)| name).collect(),
        }
    }

    fn log_state(&self, name: String, log: &Log, pinned_to: Option<String>) -> LogState {
        let role = log.role();
        let shared = log.shared_stats();
        let counters = shared.unwrap_or_default();
        LogState {
            incarnation: self.incarnation(&name).unwrap_or_default(),
            epoch: epoch(&role),
            role: role.name().to_owned(),
            leader: self.leader_by(role).map(|leader| leader.node),
            pinned_to,
            place: shared.map(|shared| shared.place.0),
            head: log.head(),
            rate: self.placement().map_or(0, |placement| placement.rate(&name)),
            is_full: log.is_full(),
            void_entries: counters.void_entries,
            foreign_batches: counters.foreign_batches,
            repeated_offers: counters.repeated_offers,
            log: name,
        }
    }
}
