//! A node of the group, as its process sees it.

use crate::group::{self, FoundError, Links, Raft, StartError};
use crate::members::{
    ChangeOfMembers, MemberAddress, Members, MembersChange, MembersError, may_replace,
};
use crate::message::Message;
use crate::node_thread::{RaftOptions, assemble, serve_alone};
use crate::runtime::HandRuntime;
use crate::shared_log::{LeadChoice, RaftLog};
use crate::shared_node::{SharedNode, locked};
use crate::wal::{EntryId, Wal};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc as blocking};
use std::thread;
use tokio::sync::oneshot;

/// What a node knows of its group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupReport {
    /// The node that orders, as far as this one knows.
    pub orderer: Option<u64>,
    /// The current term.
    pub term: u64,
    /// The last entry that is durable here.
    pub last: EntryId,
    /// The index of the last entry that was delivered here.
    pub applied: u64,
    /// The index of the last entry that was dropped because copies hold it, 0 if there is none.
    pub purged: u64,
    /// Bytes of entries in the WAL.
    pub kept_bytes: u64,
    /// Whether the disk has no room for entries: this node takes no part until it has.
    pub lacks_room: bool,
    /// Whether a copy here may lack what was dropped: others have it, and this node does not count
    /// as one that has. So for some seconds after each start.
    pub lacks_copies: bool,
    /// Frames that this node has proposed.
    pub frames: u64,
    /// Who votes, as the newest entry about members says that is durable here.
    pub voters: BTreeSet<u64>,
    /// Who gets entries and does not vote.
    pub learners: BTreeSet<u64>,
    /// Who they are and where they were when they became members.
    pub addresses: BTreeMap<u64, MemberAddress>,
    /// Whether one set of voters is being replaced by another: both decide. Whoever orders can end
    /// a change that was left, by another one.
    pub is_replacing_voters: bool,
    /// Why nothing is committed here any more, if so: the node has to be started again.
    pub stopped: Option<String>,
}

/// A node of the group, which works until it is dropped.
pub struct RaftNode {
    pub(crate) shared: Arc<SharedNode>,
    pub(crate) runtime: HandRuntime,
    pub(crate) raft: Raft,
    /// Its sender is dropped when nothing is turned any more.
    pub(crate) has_ended: Option<Mutex<blocking::Receiver<()>>>,
}

impl fmt::Debug for RaftNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaftNode").field("node", &self.shared.node).finish_non_exhaustive()
    }
}

impl RaftNode {
    /// Starts a node on its WAL. A node that belongs to no group waits until one is
    /// [founded](Self::found) here, or an orderer writes to it. Blocks for a moment, and must not
    /// be called on the thread of the runtime.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        wal: Wal,
        links: Arc<dyn Links>,
        options: RaftOptions,
    ) -> Result<RaftNode, StartError> {
        let given = options.runtime.clone();
        let (turner, started) = assemble(wal, links, options)?;
        let (shared, runtime) = (Arc::clone(&turner.shared), turner.runtime.clone());
        let (ending, has_ended) = blocking::channel();
        let serving = async move {
            turner.serve().await;
            drop(ending);
        };
        match given {
            Some(given) => drop(given.spawn(serving)),
            None => serve_alone(serving).map_err(StartError::Thread)?,
        }
        match started.blocking_recv().unwrap_or_else(|_| Err(StartError::stopped())) {
            Ok(raft) => {
                let has_ended = Some(Mutex::new(has_ended));
                Ok(RaftNode { shared, runtime, raft, has_ended })
            }
            Err(error) => {
                end(&shared, &runtime);
                Err(error)
            }
        }
    }

    /// The node's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.node
    }

    /// Founds a group of these voters, of which this node is one. Nodes that found the same group
    /// at once found one.
    ///
    /// # Errors
    /// [`FoundError`].
    pub fn found_at(&self, voters: BTreeMap<u64, MemberAddress>) -> Result<(), FoundError> {
        let stopped = || FoundError::Refused("the engine has stopped".to_owned());
        self.begin_founding(voters).blocking_recv().map_err(|_| stopped())?
    }

    pub(crate) fn begin_founding(
        &self,
        voters: BTreeMap<u64, MemberAddress>,
    ) -> oneshot::Receiver<Result<(), FoundError>> {
        let (done, result) = oneshot::channel();
        let raft = self.raft.clone();
        self.runtime.spawn(async move {
            let _ = done.send(group::found(&raft, voters).await);
        });
        result
    }

    /// [`found_at`](Self::found_at) with empty addresses.
    ///
    /// # Errors
    /// [`FoundError`].
    pub fn found(&self, voters: &[u64]) -> Result<(), FoundError> {
        self.found_at(voters.iter().map(|id| (*id, MemberAddress::default())).collect())
    }

    /// Adds a node that gets entries and does not vote. Only where the group is ordered. Does
    /// nothing if it is a member already.
    pub fn add_learner_at(&self, node: u64, at: MemberAddress) -> MembersChange {
        self.change_members(move |_| ChangeOfMembers::AddLearner(node, at))
    }

    /// [`add_learner_at`](Self::add_learner_at) with an empty address.
    pub fn add_learner(&self, node: u64) -> MembersChange {
        self.add_learner_at(node, MemberAddress::default())
    }

    /// Replaces the voters. Only where the group is ordered. New ones have to be learners, which
    /// should have caught up: until they have, nothing may be committed. Former ones are members
    /// no more; if the orderer is one of them, it stops ordering, and those that stay have to be a
    /// majority without it.
    pub fn change_voters(&self, voters: &[u64]) -> MembersChange {
        let voters = voters.iter().copied().collect();
        self.change_members(move |_| ChangeOfMembers::Voters(voters))
    }

    /// Makes a learner vote. As [`change_voters`](Self::change_voters); ends a change of voters
    /// that was left half-way.
    pub fn promote(&self, node: u64) -> MembersChange {
        self.change_members(move |members| members.with_voter(node))
    }

    /// Removes a member, whether it votes or not. As [`promote`](Self::promote).
    pub fn remove(&self, node: u64) -> MembersChange {
        self.change_members(move |members| members.without(node))
    }

    /// Asks the node that orders to hand that over to this one, which has to vote. Writes wait
    /// meanwhile, for about an election; nothing is lost or doubted. Returns at once; does nothing
    /// if no node orders. If this one lags, or a message is lost, the other goes on: ask again.
    pub fn take_over(&self) {
        let term = self.shared.term.load(Ordering::Acquire);
        let orderer = self.shared.orderer().filter(|orderer| *orderer != self.id());
        if let Some(orderer) = orderer.filter(|_| self.shared.has_room()) {
            self.shared.peers.links.send(orderer, Message::HandOver { term });
            self.shared.peers.links.flush();
        }
    }

    fn change_members(
        &self,
        change: impl FnOnce(&Members) -> ChangeOfMembers + Send + 'static,
    ) -> MembersChange {
        let (done, result) = oneshot::channel();
        let (shared, raft) = (Arc::clone(&self.shared), self.raft.clone());
        self.runtime.spawn(async move {
            // The library would look first whether the members are committed here; and it takes a
            // change from an orderer that the one before has removed, which stops ordering.
            let (orderer, change, is_allowed) = {
                let members = locked(&shared.members);
                let orderer = shared.orderer().filter(|id| members.votes(*id));
                let change = change(&members);
                let is_allowed = match &change {
                    ChangeOfMembers::Voters(voters) if !voters.is_empty() => {
                        may_replace(&members, shared.node, voters)
                    }
                    _ => true,
                };
                (orderer, change, is_allowed)
            };
            let changed = if orderer != Some(shared.node) {
                Err(MembersError::NotOrdering { orderer })
            } else if is_allowed {
                group::change_members(&raft, change).await
            } else {
                Err(MembersError::RemovesOrderer)
            };
            // Nobody may wait for it.
            let _ = done.send(changed);
        });
        MembersChange(result)
    }

    /// Takes a message from another node.
    pub fn arrived(&self, from: u64, message: Message) {
        // Only a node that has stopped takes none.
        let _ = self.shared.inbox.send((from, message));
    }

    /// A log over the group. It replaces an earlier connection of the same log.
    #[must_use]
    pub fn connect(&self, log: &str, lead: LeadChoice) -> RaftLog {
        RaftLog::new(Arc::clone(&self.shared), log, lead)
    }

    /// The log of this name is gone for ever: its entries hold nothing back.
    pub fn forget(&self, log: &str) {
        self.shared.delivery.forget(log);
    }

    /// What this node knows of its group.
    #[must_use]
    pub fn report(&self) -> GroupReport {
        let shared = &self.shared;
        let members = locked(&shared.members);
        GroupReport {
            orderer: shared.orderer(),
            term: shared.term.load(Ordering::Acquire),
            last: shared.reader.last(),
            applied: shared.delivery.applied_index(),
            purged: shared.reader.purged().index,
            kept_bytes: shared.reader.kept_bytes(),
            lacks_room: shared.lacks_room.load(Ordering::Acquire),
            lacks_copies: shared.delivery.lacks_copies(),
            frames: shared.frames.load(Ordering::Relaxed),
            voters: members.all_voters(),
            learners: members.learners.clone(),
            addresses: members.addresses.clone(),
            is_replacing_voters: members.voters.len() > 1,
            stopped: shared.delivery.ended(),
        }
    }
}

impl Drop for RaftNode {
    fn drop(&mut self) {
        end(&self.shared, &self.runtime);
        let is_turned_here = self.shared.thread.get() == Some(&thread::current().id());
        if let Some(has_ended) = self.has_ended.take().filter(|_| !is_turned_here) {
            let _ = locked(&has_ended).recv();
        }
    }
}

/// Has a node end, soon.
fn end(shared: &SharedNode, runtime: &HandRuntime) {
    shared.is_ending.store(true, Ordering::Release);
    // So that it looks.
    runtime.spawn(async {});
}
