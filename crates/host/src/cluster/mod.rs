//! What makes one service of several nodes: the engine that orders their logs, the key they share,
//! how one proves to another that it is a node, and the sealing of what an engine keeps for them.
//! Knows no log and no route.

mod ask;
pub mod config;
pub mod engine;
pub mod key;
pub mod node_auth;
pub mod peers;
pub mod sealed_log;
#[cfg(any(test, feature = "testing"))]
#[cfg(any(test, feature = "testing"))]
pub mod simulated;

pub use ask::PeerAnswer;
pub use config::{ClusterConfig, FollowerWrites};
pub use engine::{Engine, EngineReach, EngineStatus, LogRows};
pub use key::ClusterKey;
pub use node_auth::NodeName;
pub use peers::{PeerError, PeerRequest, Peers};

use crate::random;
use std::sync::Arc;
use std::time::Duration;

/// A node of several: what it is, besides its logs.
pub struct Cluster {
    /// Its name.
    pub node: NodeName,
    /// Where others reach it.
    pub url: String,
    /// Drawn at random for each life of the process.
    pub start: u64,
    /// What the nodes share.
    pub key: Arc<ClusterKey>,
    /// The way to the others.
    pub peers: Peers,
    /// Orders the logs.
    pub engine: Arc<dyn Engine>,
    /// The silence after which a leader is taken for gone.
    pub lead_timeout: Duration,
    /// How long a write waits for a leader.
    pub leader_wait: Duration,
    /// What a node that does not lead does with a write.
    pub follower_writes: FollowerWrites,
}

impl Cluster {
    /// The node that these settings describe, over this engine.
    ///
    /// # Errors
    /// A sentence: the key cannot be read, or the system has no randomness.
    pub(crate) fn open(
        config: &ClusterConfig,
        identity: config::NodeIdentity,
        engine: Arc<dyn Engine>,
    ) -> Result<Cluster, String> {
        let file = config.cluster_key.as_deref().ok_or("cluster_key is missing")?;
        let start = random::bytes().map_err(|error| format!("no randomness: {error}"))?;
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

    /// Whether this is the node of that name at that URL. Two processes of one name are a mistake,
    /// and one must not take the other for itself.
    pub fn is_at(&self, node: &str, url: &str) -> bool {
        node == self.node.as_str() && url == self.url
    }
}
