//! Options for opening a node of a shared log.

use super::entry::ClusterId;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The options of a node of a [shared log](super).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOptions {
    /// The log's name, of at most 255 bytes: the same on every node.
    pub log: String,
    /// The node's name, of 1 to 255 bytes without spaces; no other node has it.
    pub node: String,
    /// The URL at which clients reach the node, of at most 2,048 bytes; other nodes refer clients
    /// to it.
    pub url: String,
    /// Random, chosen for each process: a restarted node never mistakes a claim of its previous
    /// process for its own.
    pub start: u64,
    /// After this much silence a leader is considered gone, and a leader whose own entries do not
    /// arrive steps down. At least [what the engine
    /// requires](super::SharedLimits::lead_timeout_min).
    pub lead_timeout: Duration,
    /// When the node claims the lead.
    pub claims: Claims,
}

/// When a node of a [shared log](super) claims the lead on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Claims {
    /// When no leader has been heard for some time, when the engine elects it, or [on
    /// request](crate::Log::claim_lead). The leader sends heartbeats while there is nothing to
    /// append.
    #[default]
    BySilence,
    /// Only [on request](crate::Log::claim_lead): for nodes with many logs, one of which determines
    /// the leader. The leader sends no heartbeats, so an idle log offers nothing; it stays leader
    /// until another node claims, until it [resigns](crate::Log::resign), or until one of its
    /// offers has not arrived within the lead timeout.
    WhenTold,
}

impl SharedOptions {
    /// A node of the log `main` that claims by silence, with a random `start` and a lead timeout of
    /// two seconds.
    #[must_use]
    pub fn new(node: &str, url: &str) -> SharedOptions {
        SharedOptions {
            log: "main".into(),
            node: node.into(),
            url: url.into(),
            start: RandomState::new().hash_one(node),
            lead_timeout: Duration::from_secs(2),
            claims: Claims::BySilence,
        }
    }

    /// An id for a cluster that this node founds, as random as its `start`.
    pub(crate) fn new_cluster(&self) -> ClusterId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.start.to_le_bytes());
        let names =
            crc32c::crc32c_append(crc32c::crc32c(self.log.as_bytes()), self.node.as_bytes());
        id[8..12].copy_from_slice(&names.to_le_bytes());
        ClusterId(id)
    }
}
