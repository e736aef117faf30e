//! The answer of `GET /v1/cluster`, as far as the tools use it.

use crate::answer;
use crate::exit::Failure;
use serde::{Deserialize, Serialize};

/// The nodes of a service, as one of them sees them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ClusterDocument {
    /// The node that answered; none if it is a single server.
    pub(crate) node: Option<String>,
    /// What orders its logs: `postgres`, or `files` of its own.
    pub(crate) journal: String,
    pub(crate) engine: Option<EngineDocument>,
    pub(crate) leader: Option<LeaderDocument>,
    pub(crate) nodes: Vec<NodeDocument>,
    pub(crate) logs: Vec<LogDocument>,
}

/// What orders the logs of all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineDocument {
    pub(crate) kind: String,
    pub(crate) connected: bool,
    #[serde(default)]
    pub(crate) trouble: Option<String>,
    pub(crate) durable: String,
    #[serde(default)]
    pub(crate) reconnects: u64,
    /// The group of the nodes, if they order the logs themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<GroupDocument>,
}

/// The group of nodes that order their logs themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupDocument {
    pub(crate) stage: String,
    pub(crate) orderer: Option<String>,
    pub(crate) term: u64,
    pub(crate) last_index: u64,
    pub(crate) applied_index: u64,
    pub(crate) members: Vec<MemberLine>,
}

/// A member of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberLine {
    pub(crate) node: String,
    pub(crate) votes: bool,
    pub(crate) reachable: bool,
}

impl GroupDocument {
    /// Voters that are reached from the node that answered, and all.
    pub(crate) fn voters(&self) -> (usize, usize) {
        let voters = || self.members.iter().filter(|member| member.votes);
        (voters().filter(|member| member.reachable).count(), voters().count())
    }

    /// A warning, if the number of voters is even.
    pub(crate) fn even_voters_warning(&self) -> Option<String> {
        let (_, voters) = self.voters();
        (voters > 0 && voters.is_multiple_of(2))
            .then(|| format!("{voters} voters survive no more failures than {}", voters - 1))
    }

    /// What it lacks for its work, in words.
    pub(crate) fn lacks(&self) -> Option<String> {
        match (&*self.stage, self.voters()) {
            ("member", (reachable, voters)) if voters > 0 && 2 * reachable <= voters => {
                Some(format!("{reachable} of {voters} voters reachable"))
            }
            ("waiting", _) => Some("the node waits for cluster init or join".to_owned()),
            ("accepted", _) => {
                Some("a founding has not begun: repeat wellspring cluster init".to_owned())
            }
            _ => None,
        }
    }
}

/// The leader.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LeaderDocument {
    pub(crate) node: String,
    pub(crate) url: String,
    pub(crate) epoch: u64,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeDocument {
    pub(crate) node: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) version: Option<String>,
    pub(crate) reachable: bool,
    /// Why it is not reachable.
    #[serde(default)]
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) role: Option<String>,
    /// Head of its log `system`.
    #[serde(default)]
    pub(crate) position: Option<u64>,
    /// The last entry of the group that it has applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) applied_index: Option<u64>,
}

/// A log on the node that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LogDocument {
    pub(crate) log: String,
    pub(crate) role: String,
    pub(crate) epoch: Option<u64>,
    pub(crate) leader: Option<String>,
    #[serde(default)]
    pub(crate) pinned_to: Option<String>,
    /// Events a second over the last minute.
    #[serde(default)]
    pub(crate) rate: u64,
    pub(crate) place: Option<u64>,
    pub(crate) head: u64,
}

impl ClusterDocument {
    /// Reads it.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn read(text: &[u8]) -> Result<ClusterDocument, Failure> {
        answer::read(text)
    }
}
