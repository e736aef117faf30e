//! What the library knows of the group, and what it is asked to do.

use super::{Frame, Raft, Types, entry_id};
use crate::members::{ChangeOfMembers, MemberAddress, Members, MembersError};
use crate::wal::EntryId;
use bytes::Bytes;
use openraft::error::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::raft::{ClientWriteResult, VoteRequest};
use openraft::{
    ChangeMembers, CommittedLeaderId, LeaderId, LogId, Membership, RaftMetrics, ServerState,
};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// What a node knows of its group.
#[derive(Debug, Clone)]
pub(crate) struct GroupState {
    pub(crate) orderer: Option<u64>,
    pub(crate) term: u64,
    /// Whether this node orders and has applied an entry of its term.
    pub(crate) orders: bool,
    pub(crate) members: Members,
    /// Why the library has stopped.
    pub(crate) stopped: Option<String>,
}

/// Follows what the library knows.
pub(crate) struct GroupWatch(watch::Receiver<RaftMetrics<u64, MemberAddress>>);

impl GroupWatch {
    pub(crate) fn new(raft: &Raft) -> GroupWatch {
        GroupWatch(raft.metrics())
    }

    /// The state now.
    pub(crate) fn now(&mut self) -> GroupState {
        let now = self.0.borrow_and_update();
        let leads = now.state == ServerState::Leader;
        // One that has just begun to stand is no orderer yet.
        let orderer = now.current_leader.filter(|leader| leads || *leader != now.id);
        let has_applied =
            now.last_applied.is_some_and(|applied| applied.leader_id.term == now.current_term);
        let members = now.membership_config.membership();
        GroupState {
            orderer: if leads { Some(now.id) } else { orderer },
            term: now.current_term,
            orders: leads && has_applied,
            members: Members {
                index: entry_id(*now.membership_config.log_id()).index,
                ..members_of(members)
            },
            stopped: now.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    /// Waits for another one; whether there may be one.
    pub(crate) async fn changes(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// The members that an entry names.
pub(super) fn members_of(members: &Membership<u64, MemberAddress>) -> Members {
    Members {
        index: 0,
        voters: members.get_joint_config().clone(),
        learners: members.learner_ids().collect(),
        addresses: members.nodes().map(|(id, at)| (*id, at.clone())).collect(),
    }
}

/// Has the node stand for election; whether the library runs.
pub(crate) async fn stand(raft: &Raft) -> bool {
    raft.trigger().elect().await.is_ok()
}

/// How long no majority has answered a node that orders; `None` if none ever has, or the node does
/// not order.
pub(crate) fn unheard(raft: &Raft) -> Option<Duration> {
    raft.metrics().borrow().millis_since_quorum_ack.map(Duration::from_millis)
}

/// Whether a member has the entries of this node, which orders, up to an index.
pub(crate) fn has(raft: &Raft, member: u64, index: u64) -> bool {
    let metrics = raft.metrics();
    let now = metrics.borrow();
    let has = now.replication.as_ref().and_then(|replication| replication.get(&member).copied());
    has.is_some_and(|has| entry_id(has).index >= index)
}

/// Stops ordering; whether it did. The library has no such request, but an orderer steps down for a
/// vote in a later term. The vote made here names no candidate, so the node can still vote for one
/// in that term. The library refuses it for a moment after the node has begun to order.
pub(crate) async fn step_down(raft: &Raft) -> bool {
    let (state, term) = {
        let metrics = raft.metrics();
        let now = metrics.borrow();
        (now.state, now.current_term + 1)
    };
    if state != ServerState::Leader {
        return false;
    }
    // If another node has begun to order since, the present vote names it, in that term or a later
    // one: the library refuses this vote.
    let vote = openraft::Vote { leader_id: LeaderId { term, voted_for: None }, committed: false };
    // As if of a node with the longest log.
    let last = LogId::new(CommittedLeaderId::new(u64::MAX, 0), u64::MAX);
    let answered = raft.vote(VoteRequest::new(vote, Some(last))).await;
    answered.is_ok_and(|answer| answer.vote_granted)
}

/// A frame that is under way.
pub(crate) struct Proposal(oneshot::Receiver<ClientWriteResult<Types>>);

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProposalOutcome {
    Committed,
    /// Another node orders: it may be committed, or become so, or not.
    Unknown,
}

impl Proposal {
    /// Waits for the outcome.
    pub(crate) async fn outcome(self) -> ProposalOutcome {
        match self.0.await {
            Ok(Ok(_)) => ProposalOutcome::Committed,
            _ => ProposalOutcome::Unknown,
        }
    }
}

/// Proposes a frame; `None`: the library has stopped.
pub(crate) async fn propose(raft: &Raft, frame: Bytes) -> Option<Proposal> {
    raft.client_write_ff(Frame(frame)).await.ok().map(Proposal)
}

/// Tells the library of a checkpoint that was made, and purges entries that it stands for; whether
/// the library runs.
pub(crate) async fn purge(raft: &Raft, checkpoint: EntryId, upto: u64) -> bool {
    assert!(0 < upto && upto <= checkpoint.index, "the checkpoint stands for what is purged");
    if raft.trigger().snapshot().await.is_err() {
        return false;
    }
    let mut metrics = raft.metrics();
    let told = metrics.wait_for(|now| {
        now.running_state.is_err() || entry_id(now.snapshot).index >= checkpoint.index
    });
    if told.await.is_err() {
        return false;
    }
    // The library counts from 0.
    raft.trigger().purge_log(upto - 1).await.is_ok()
}
/// Changes the members; returns once it is committed. Replacing voters takes two entries, the
/// first of which lets old and new ones decide together. If only that one is committed, because its
/// orderer was lost, the next change ends what it began.
///
/// # Errors
/// [`MembersError`].
pub(crate) async fn change_members(
    raft: &Raft,
    change: ChangeOfMembers,
) -> Result<(), MembersError> {
    let change = match change {
        ChangeOfMembers::AddLearner(node, at) => ChangeMembers::AddNodes([(node, at)].into()),
        ChangeOfMembers::RemoveLearner(node) => ChangeMembers::RemoveNodes([node].into()),
        ChangeOfMembers::Voters(voters) => ChangeMembers::ReplaceAllVoters(voters),
    };
    let refused = match raft.change_membership(change, false).await {
        Ok(_) => return Ok(()),
        Err(RaftError::APIError(refused)) => refused,
        Err(RaftError::Fatal(_)) => return Err(MembersError::Unknown),
    };
    Err(match refused {
        ClientWriteError::ForwardToLeader(to) => {
            MembersError::NotOrdering { orderer: to.leader_id }
        }
        ClientWriteError::ChangeMembershipError(refused) => match refused {
            ChangeMembershipError::InProgress(_) => MembersError::UnderWay,
            ChangeMembershipError::EmptyMembership(_) => MembersError::NoVoters,
            ChangeMembershipError::LearnerNotFound(lacks) => {
                MembersError::NoMember { node: lacks.node_id }
            }
        },
    })
}
