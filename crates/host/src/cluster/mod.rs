//! What makes several nodes one service: the engine that orders their logs, the shared key, proof
//! of being a node, and sealed entries. Knows no log and no route.

mod ask;
pub mod config;
pub mod copies;
pub mod engine;
pub mod founding;
pub mod group;
pub mod key;
pub mod node_auth;
pub mod peers;
pub mod removal;
pub mod sealed_log;
#[cfg(any(test, feature = "testing"))]
pub mod simulated;
pub mod streams;

pub use ask::PeerAnswer;
pub(crate) use ask::{WholeBodyFault, whole};
pub use config::{ClusterConfig, FollowerWrites};
pub use engine::{Engine, EngineReach, EngineStatus, LogRows};
pub use group::{Group, GroupState};
pub use key::ClusterKey;
pub use node_auth::NodeName;
pub use peers::{PeerError, PeerRequest, Peers};

use crate::random;
use crate::setup::SetupError;
use std::sync::Arc;
use std::time::Duration;

/// A node of a cluster, apart from its logs.
pub struct Cluster {
    /// Its name.
    pub node: NodeName,
    /// Its URL for others.
    pub url: String,
    /// Random for each life of the process.
    pub start: u64,
    /// The shared key.
    pub key: Arc<ClusterKey>,
    /// The connections to the others.
    pub peers: Peers,
    /// Orders the logs.
    pub engine: Arc<dyn Engine>,
    /// The silence after which a leader is considered gone.
    pub lead_timeout: Duration,
    /// How long a write waits for a leader.
    pub leader_wait: Duration,
    /// What this node does with a write while it follows.
    pub follower_writes: FollowerWrites,
}

impl Cluster {
    /// The node that these settings describe, over this engine.
    ///
    /// # Errors
    /// A sentence: the key cannot be read, or the system provides no random bytes.
    pub(crate) fn open(
        config: &ClusterConfig,
        identity: config::NodeIdentity,
        engine: Arc<dyn Engine>,
    ) -> Result<Cluster, SetupError> {
        let file = config.cluster_key.as_deref().ok_or("cluster_key is missing")?;
        let start = random::bytes().map_err(|error| format!("no random bytes: {error}"))?;
        let key = Arc::new(ClusterKey::read(file)?);
        let authorities = config.cluster_cacert.clone();
        Ok(Cluster {
            peers: Peers::new(identity.name.clone(), Arc::clone(&key), authorities),
            node: identity.name,
            url: identity.url,
            start: u64::from_le_bytes(start),
            key,
            engine,
            lead_timeout: config.lead_timeout(),
            leader_wait: config.leader_wait(),
            follower_writes: config.follower_writes,
        })
    }

    /// Whether this is the node of that name at that URL. Two processes with one name are a
    /// mistake, and one must not take the other for itself.
    pub fn is_at(&self, node: &str, url: &str) -> bool {
        node == self.node.as_str() && url == self.url
    }
}
