//! The consensus library and nothing beside it: its types, its storage over the WAL, its network
//! over links. No type of the library leaves this room, so that it can be replaced.
//!
//! The library counts entries from 0, the WAL from 1.

mod body;
mod checkpoints;
mod group_state;
mod machine;
mod network;
mod store;
#[cfg(test)]
mod suite_tests;

pub(crate) use checkpoints::Checkpoints;
pub(crate) use group_state::{
    GroupWatch, ProposalOutcome, change_members, has, propose, purge, stand, step_down, unheard,
};
pub(crate) use machine::Machine;
pub use network::Links;
pub(crate) use network::{LinkNetworks, Peers, answer, confirmed_end};
pub(crate) use store::{LogStore, WalWriter};

use crate::members::{MemberAddress, Members};
use crate::runtime::TurnedRuntime;
use crate::wal::{Entry, EntryId, Vote};
use bytes::Bytes;
use openraft::{CommittedLeaderId, Config, LogId, SnapshotPolicy};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Cursor};
use std::sync::Arc;
use std::time::Duration;

/// Most entries in one request to a follower.
const REQUEST_ENTRIES: u64 = 256;

openraft::declare_raft_types!(
    /// The types of the library.
    pub(crate) Types:
        D = Frame,
        R = (),
        NodeId = u64,
        Node = MemberAddress,
        SnapshotData = Cursor<Vec<u8>>,
        AsyncRuntime = TurnedRuntime,
);

pub(crate) type Raft = openraft::Raft<Types>;
type RaftEntry = openraft::Entry<Types>;

/// The body of an entry that holds a [frame](crate::frame).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame(pub(crate) Bytes);

/// The id of an entry, for the WAL and for messages.
pub(crate) fn entry_id(id: Option<LogId<u64>>) -> EntryId {
    id.map_or(EntryId::default(), |id| EntryId { term: id.leader_id.term, index: id.index + 1 })
}

/// The same, for the library.
pub(crate) fn log_id(id: EntryId) -> Option<LogId<u64>> {
    let leader = CommittedLeaderId::new(id.term, 0);
    (id.index > 0).then(|| LogId::new(leader, id.index - 1))
}

/// A vote, for the WAL and for messages.
pub(crate) fn vote_of(vote: &openraft::Vote<u64>) -> Vote {
    let leader = vote.leader_id();
    Vote { term: leader.term, voted_for: leader.voted_for, is_committed: vote.committed }
}

/// The same, for the library.
pub(crate) fn raft_vote(vote: Vote) -> openraft::Vote<u64> {
    let leader_id = openraft::LeaderId { term: vote.term, voted_for: vote.voted_for };
    openraft::Vote { leader_id, committed: vote.is_committed }
}

/// Entries, for the library.
///
/// # Errors
/// The index of one that is none.
pub(crate) fn raft_entries(entries: Vec<Entry>) -> Result<Vec<RaftEntry>, u64> {
    let entry = |Entry { id, body }| {
        let payload = body::decode(body).ok_or(id.index)?;
        Ok(RaftEntry { log_id: log_id(id).ok_or(id.index)?, payload })
    };
    entries.into_iter().map(entry).collect()
}

/// The members in an entry about them; `None` if it is another one.
pub(crate) fn members_in(body: Bytes) -> Option<Members> {
    match body::decode(body)? {
        openraft::EntryPayload::Membership(members) => Some(group_state::members_of(&members)),
        _ => None,
    }
}

/// The body of an entry that makes a node the only member.
pub(crate) fn only_member(node: u64, at: MemberAddress) -> Bytes {
    body_of_members(&[node], [(node, at)].into())
}

/// The body of an entry with these voters, and all nodes.
pub(crate) fn body_of_members(voters: &[u64], nodes: BTreeMap<u64, MemberAddress>) -> Bytes {
    let voters = vec![voters.iter().copied().collect()];
    body::encode(openraft::EntryPayload::Membership(openraft::Membership::new(voters, nodes)))
}

/// Entries of the library, for the WAL and for messages.
pub(crate) fn wal_entries(entries: impl IntoIterator<Item = RaftEntry>) -> Vec<Entry> {
    let entry = |entry: RaftEntry| Entry {
        id: entry_id(Some(entry.log_id)),
        body: body::encode(entry.payload),
    };
    entries.into_iter().map(entry).collect()
}

/// Why a node does not start.
#[derive(Debug)]
pub enum StartError {
    /// The system has no thread.
    Thread(io::Error),
    /// The library refuses what it finds.
    Library(String),
    /// Entries were purged, and the checkpoint that stands for them is missing, or of a newer
    /// version.
    NoCheckpoint,
}

impl StartError {
    pub(crate) fn stopped() -> StartError {
        StartError::Library("it stopped while it started".to_owned())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Thread(error) => write!(f, "starting a thread of the group: {error}"),
            StartError::NoCheckpoint => write!(
                f,
                "entries of the WAL were purged, and the file checkpoint, which stands for them, is \
                 missing or of a newer version. {}",
                crate::wal::REPLACE
            ),
            StartError::Library(what) => write!(f, "joining the group: {what}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Why a group cannot be founded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundError {
    /// It is founded already, or this node belongs to another one.
    Founded,
    /// This node is not one of the voters, or the engine has stopped.
    Refused(String),
}

impl fmt::Display for FoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FoundError::Founded => f.write_str("this node belongs to a group already"),
            FoundError::Refused(what) => write!(f, "the group was not founded: {what}"),
        }
    }
}

impl std::error::Error for FoundError {}

/// Starts the library on a node.
///
/// # Errors
/// [`StartError::Library`].
pub(crate) async fn start(
    node: u64,
    patience: Duration,
    networks: LinkNetworks,
    store: LogStore,
    machine: Machine,
) -> Result<Raft, StartError> {
    let patience_ms = patience.as_millis() as u64;
    let config = Config {
        cluster_name: "wellspring".to_owned(),
        // A request to a follower may take as long.
        heartbeat_interval: (patience_ms / 4).max(1),
        // A follower that hears the orderer rejects votes for this long. The elector decides which
        // node stands.
        election_timeout_min: patience_ms / 2,
        election_timeout_max: patience_ms / 2 + 1,
        enable_elect: false,
        max_payload_entries: REQUEST_ENTRIES,
        snapshot_policy: SnapshotPolicy::Never,
        // Whoever lags gets entries, and the checkpoint only if they are gone.
        replication_lag_threshold: u64::MAX,
        // What is purged is decided here.
        max_in_snapshot_log_to_keep: u64::MAX,
        ..Config::default()
    };
    let refused = |error: &dyn fmt::Display| StartError::Library(error.to_string());
    let config = config.validate().map_err(|error| refused(&error))?;
    let started = Raft::new(node, Arc::new(config), networks, store, machine).await;
    started.map_err(|error| refused(&error))
}

/// Founds a group of these voters.
///
/// # Errors
/// [`FoundError`].
pub(crate) async fn found(
    raft: &Raft,
    voters: BTreeMap<u64, MemberAddress>,
) -> Result<(), FoundError> {
    use openraft::error::{InitializeError, RaftError};
    raft.initialize(voters).await.map_err(|error| match error {
        RaftError::APIError(InitializeError::NotAllowed(_)) => FoundError::Founded,
        other => FoundError::Refused(other.to_string()),
    })
}
