//! An engine that the nodes are themselves: a group whose members vote. How one is founded is in
//! [`founding`](super::founding).

use crate::protocol::Protocol;
use crate::setup::SetupError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A member, as founding or joining names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    /// Its id in the group: random, below 2^53.
    pub id: u64,
    /// Its name.
    pub node: String,
    /// Its URL.
    pub url: String,
}

/// Whether a node begins as a voter of a new group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberEntry {
    /// It founds the group, together with the other members.
    Founds,
    /// It joins one.
    Joins,
}

/// The group to which a node belongs from now on: accepted once, durably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Founding {
    /// The cluster, 32 hexadecimal digits.
    pub cluster: String,
    /// Its generation.
    pub generation: u64,
    /// How this node begins.
    pub entry: MemberEntry,
    /// The members, with this node.
    pub members: Vec<GroupMember>,
}

impl Founding {
    /// A line of JSON.
    ///
    /// # Errors
    /// [`GroupError::Failed`].
    pub fn to_line(&self) -> Result<String, GroupError> {
        serde_json::to_string(self).map_err(|error| GroupError::Failed(error.to_string()))
    }

    /// Reads that line.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Founding> {
        serde_json::from_str(line).ok()
    }
}

/// How far a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupStage {
    /// It belongs to no group.
    Waiting,
    /// It has accepted a founding that has not begun.
    Accepted,
    /// It takes part.
    Member,
}

/// A member as a node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// Its name.
    pub node: String,
    /// Its id.
    pub id: u64,
    /// Where it was when it became a member.
    pub url: String,
    /// Whether it votes.
    pub votes: bool,
    /// Whether this node has streams to it.
    pub reachable: bool,
}

/// A group as a node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupState {
    /// How far the node is.
    pub stage: GroupStage,
    /// The cluster.
    pub cluster: Option<String>,
    /// The name of the node that orders.
    pub orderer: Option<String>,
    /// Whether this node does.
    pub orders: bool,
    /// The term.
    pub term: u64,
    /// Index of the last entry that is durable here.
    pub last_index: u64,
    /// Index of the last entry that was applied here.
    pub applied_index: u64,
    /// Index of the newest entry here that makes this node a member, or 0.
    #[serde(default)]
    pub member_since: u64,
    /// Index of the last entry that this node has dropped because its copies hold it.
    pub dropped_index: u64,
    /// Bytes of entries that this node keeps.
    pub kept_bytes: u64,
    /// Whether a copy here may lack what was dropped.
    pub lacks_copies: bool,
    /// Frames that this node has proposed.
    pub frames: u64,
    /// Streams that were refused.
    pub refused_streams: u64,
    /// Why this node takes part no more, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Who belongs to it.
    pub members: Vec<MemberState>,
}

impl GroupState {
    /// The member of this name.
    #[must_use]
    pub fn member(&self, node: &str) -> Option<&MemberState> {
        self.members.iter().find(|member| member.node == node)
    }

    /// The member with this id.
    #[must_use]
    pub fn member_with_id(&self, id: u64) -> Option<&MemberState> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Voters that this node reaches, itself included, and all.
    #[must_use]
    pub fn voters(&self) -> (usize, usize) {
        let voters = || self.members.iter().filter(|member| member.votes);
        (voters().filter(|member| member.reachable).count(), voters().count())
    }
}

/// Why a node does not do what a founding asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupError {
    /// It belongs to another group, or has accepted another founding.
    Belongs {
        /// The cluster.
        cluster: String,
    },
    /// Another change of the members is under way.
    UnderWay,
    /// It cannot: a sentence.
    Failed(String),
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Belongs { cluster } => {
                write!(f, "it has accepted to belong to the cluster {cluster}")
            }
            GroupError::UnderWay => f.write_str("another change of the members is under way"),
            GroupError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for GroupError {}

impl From<SetupError> for GroupError {
    fn from(error: SetupError) -> GroupError {
        GroupError::Failed(error.to_string())
    }
}

/// The group of an engine that the nodes are themselves.
pub trait Group: Send + Sync {
    /// What this node knows of it.
    fn state(&self) -> GroupState;

    /// The founding that this node has accepted.
    fn founding(&self) -> Option<Founding>;

    /// Accepts a founding, durably. The same again is accepted again, and tells where the members
    /// are by now. Blocks.
    ///
    /// # Errors
    /// [`GroupError`].
    fn accept(&self, founding: &Founding) -> Result<(), GroupError>;

    /// Takes part in the group of the accepted founding. Blocks.
    ///
    /// # Errors
    /// [`GroupError::Failed`].
    fn begin(&self) -> Result<(), GroupError>;

    /// Makes a node that has begun a member that does not vote. Only where the group is ordered.
    /// Blocks until it is committed.
    ///
    /// # Errors
    /// [`GroupError::Failed`].
    fn add(&self, member: &GroupMember) -> Result<(), GroupError>;

    /// Makes a member vote. As [`add`](Self::add).
    ///
    /// # Errors
    /// [`GroupError::Failed`].
    fn promote(&self, id: u64) -> Result<(), GroupError>;

    /// Asks the node that orders to hand that over to this one. Returns at once, and has to be
    /// repeated until this one orders; does nothing if it does.
    ///
    /// # Errors
    /// [`GroupError::Failed`]: this node does not vote.
    fn take_over(&self) -> Result<(), GroupError>;

    /// Removes a member. As [`add`](Self::add).
    ///
    /// # Errors
    /// [`GroupError::UnderWay`], [`GroupError::Failed`].
    fn remove(&self, id: u64) -> Result<(), GroupError>;

    /// The protocol of its streams.
    fn protocol(&self) -> Arc<dyn Protocol>;
}
