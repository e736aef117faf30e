//! A node without a thread: what it would do is done by hand, in the order in which the simulator
//! wants it. So barriers are slow, fail, or never come, and a node dies between any two pieces of
//! work.

use crate::checkpoint::Checkpoint;
use crate::frame;
use crate::group::{self, Links, StartError};
use crate::members::MemberAddress;
use crate::node::RaftNode;
use crate::node_thread::{NodeTurner, RaftOptions, assemble};
use crate::wal::{Entry, Wal};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use wellspring_log::shared::Place;

/// See the module's documentation. Its time is that of its clock.
pub struct HandNode {
    node: RaftNode,
    turner: NodeTurner,
}

impl HandNode {
    /// Starts a node on its WAL.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        wal: Wal,
        links: Arc<dyn Links>,
        options: RaftOptions,
    ) -> Result<HandNode, StartError> {
        let (mut turner, mut started) = assemble(wal, links, options)?;
        let raft = loop {
            turner.runtime.turn();
            if let Ok(raft) = started.try_recv() {
                break raft?;
            }
            if !turner.writer.work() {
                return Err(StartError::stopped());
            }
        };
        let (shared, runtime) = (Arc::clone(&turner.shared), turner.runtime.clone());
        Ok(HandNode { node: RaftNode { shared, runtime, raft, has_ended: None }, turner })
    }

    /// Does what is due and ready. Returns when the next timer is due, in µs of the clock.
    pub fn turn(&self) -> Option<u64> {
        self.turner.runtime.turn()
    }

    /// Whether something is to be done on the WAL.
    pub fn has_wal_work(&mut self) -> bool {
        self.turner.writer.has_work()
    }

    /// Does one piece of work on the WAL, if there is one: a write and its barrier.
    pub fn work_on_wal(&mut self) {
        self.turner.writer.work();
    }

    /// The WAL.
    #[must_use]
    pub fn wal(&self) -> &Wal {
        &self.turner.writer.wal
    }

    /// Stands for election, although it may hear an orderer.
    pub fn stand(&self) {
        let raft = self.node.raft.clone();
        self.node.runtime.spawn(async move {
            // Whether the library runs is in the report.
            let _ = group::stand(&raft).await;
        });
    }

    /// Starts [`RaftNode::found`] without waiting for the outcome.
    pub fn begin_founding(&self, voters: &[u64]) {
        let voters = voters.iter().map(|id| (*id, MemberAddress::default()));
        drop(self.node.begin_founding(voters.collect()));
    }
}

impl Deref for HandNode {
    type Target = RaftNode;

    fn deref(&self) -> &RaftNode {
        &self.node
    }
}

/// What an entry of the group says, for the simulator's own account of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryContent {
    /// An orderer's first entry.
    Blank,
    /// The log of each item, in their order.
    Frame(Vec<Arc<str>>),
    /// The sets of voters.
    Voters(Vec<BTreeSet<u64>>),
}

/// What an entry of the group says; `None` if it is none.
#[must_use]
pub fn entry_content(entry: &Entry) -> Option<EntryContent> {
    if entry.body.is_empty() {
        return Some(EntryContent::Blank);
    }
    match frame::decode(entry.body.clone()) {
        Some(items) => Some(EntryContent::Frame(items.into_iter().map(|item| item.log).collect())),
        None => group::members_in(entry.body.clone()).map(|of| EntryContent::Voters(of.voters)),
    }
}

/// The last entry that the checkpoint of a WAL stands for, 0 if there is none.
#[must_use]
pub fn checkpoint_index(wal: &Wal) -> u64 {
    wal.checkpoint().and_then(Checkpoint::decode).map_or(0, |checkpoint| checkpoint.id.index)
}

/// The place of the n-th item of an entry.
#[must_use]
pub fn place_of(index: u64, item: usize) -> Place {
    frame::place(index, item)
}
