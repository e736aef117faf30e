//! What a node of a shared log is told when it is opened.

use super::entry::ClusterId;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// What a node says of itself to the others of a [shared log](super).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOptions {
    /// The log's name, of at most 255 bytes: the same on every node.
    pub log: String,
    /// The node's name, of 1 to 255 bytes without spaces; no other node has it.
    pub node: String,
    /// Where the node's clients reach it, of at most 2,048 bytes; for others to send theirs there.
    pub url: String,
    /// Drawn at random for each life of the process: a restarted node never takes a claim of its
    /// former life for its own.
    pub start: u64,
    /// After so long a silence a leader is taken for gone, and a leader that hears nothing of its
    /// own steps down. Not less than [what the engine
    /// needs](super::SharedLimits::lead_timeout_min).
    pub lead_timeout: Duration,
    /// When the node claims the lead.
    pub claims: Claims,
}

/// When a node of a [shared log](super) claims its lead by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Claims {
    /// When nobody has shown life for some time, when the engine elects it, or when it is
    /// [told to](crate::Log::claim_lead). The leader shows life while there is nothing to append.
    #[default]
    BySilence,
    /// Only when it is [told to](crate::Log::claim_lead): for the many logs of nodes of which one
    /// log says who leads. The leader shows no life, so an idle log offers nothing; it stays until
    /// another claims, until it [resigns](crate::Log::resign), or until something it offered has
    /// not come back for the lead timeout.
    WhenTold,
}

impl SharedOptions {
    /// A node of the log `main` that claims by silence, with a `start` drawn at random and a lead
    /// timeout of two seconds.
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

    /// An id for a cluster that this node founds: as random as its `start`.
    pub(crate) fn new_cluster(&self) -> ClusterId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.start.to_le_bytes());
        let names =
            crc32c::crc32c_append(crc32c::crc32c(self.log.as_bytes()), self.node.as_bytes());
        id[8..12].copy_from_slice(&names.to_le_bytes());
        ClusterId(id)
    }
}
