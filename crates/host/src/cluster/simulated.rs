//! A cluster in one process, for tests: an in-memory engine for each node.

use super::{
    Cluster, ClusterKey, Engine, EngineReach, EngineStatus, FollowerWrites, LogRows, NodeName,
    Peers,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wellspring_log::shared::SharedLog;
use wellspring_log::shared::simulated::SimulatedLog;

/// The logs that the engines of several nodes share.
#[derive(Default)]
pub struct SimulatedLogs {
    logs: Mutex<HashMap<String, SimulatedLog>>,
}

impl SimulatedLogs {
    /// The log of this name.
    pub fn log(&self, name: &str) -> SimulatedLog {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.entry(name.to_owned()).or_insert_with(SimulatedLog::immediate).clone()
    }

    /// The names of all logs that were opened, in order.
    pub fn names(&self) -> Vec<String> {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = logs.keys().cloned().collect();
        names.sort();
        names
    }

    /// A node of the cluster that these logs make.
    pub fn node(self: &Arc<Self>, number: u64) -> Arc<Cluster> {
        let key = Arc::new(ClusterKey::known(7));
        let node = NodeName::parse(&format!("node-{number}")).expect("a name");
        Arc::new(Cluster {
            url: format!("http://127.0.0.1:{}", 1 + number),
            start: number,
            peers: Peers::new(node.clone(), Arc::clone(&key), None),
            node,
            key,
            engine: Arc::new(SimulatedEngine { logs: Arc::clone(self), number }),
            lead_timeout: Duration::from_millis(300),
            leader_wait: Duration::from_secs(5),
            follower_writes: FollowerWrites::Forward,
        })
    }
}

struct SimulatedEngine {
    logs: Arc<SimulatedLogs>,
    number: u64,
}

impl Engine for SimulatedEngine {
    fn shared_log(&self, log: &str, _: LogRows) -> Box<dyn SharedLog> {
        Box::new(self.logs.log(log).connect(self.number))
    }

    fn nudge(&self) {}

    fn status(&self) -> EngineStatus {
        EngineStatus {
            kind: "simulated",
            reach: EngineReach::Connected,
            trouble: None,
            durable: "nothing survives the test".to_owned(),
            reconnects: 0,
            group: None,
        }
    }
}
