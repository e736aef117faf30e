//! What makes one service of several nodes: the engine that orders their logs, the key that they share, and the
//! way from one to another. Knows no log and no route.

pub mod config;
pub mod engine;

pub use config::{ClusterConfig, FollowerWrites};
pub use engine::{Engine, EngineReach, EngineStatus, LogRows};

use crate::random;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A node of several: what it is, besides its logs.
pub struct Cluster {
    /// Its name.
    pub node: String,
    /// Where others reach it.
    pub url: String,
    /// Drawn at random for each life of the process.
    pub start: u64,
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
    /// The system has no randomness.
    pub(crate) fn new(
        config: &ClusterConfig,
        identity: config::NodeIdentity,
        engine: Arc<dyn Engine>,
    ) -> io::Result<Cluster> {
        Ok(Cluster {
            node: identity.name,
            url: identity.url,
            start: u64::from_le_bytes(random::bytes()?),
            engine,
            lead_timeout: config.lead_timeout(),
            leader_wait: config.leader_wait(),
            follower_writes: config.follower_writes,
        })
    }
}
