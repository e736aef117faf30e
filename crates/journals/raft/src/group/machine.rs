//! The library's state machine: what is committed goes to the logs, in its order. Nothing is kept
//! here; after a start everything is applied anew.

use super::{Frame, RaftEntry, Types, entry_id};
use crate::delivery::Delivery;
use crate::frame;
use crate::members::MemberAddress;
use openraft::storage::RaftStateMachine;
use openraft::{
    AnyError, EntryPayload, ErrorSubject, ErrorVerb, LogId, OptionalSend, RaftSnapshotBuilder,
    Snapshot, SnapshotMeta, StorageError, StorageIOError, StoredMembership,
};
use std::io::{self, Cursor};
use std::sync::Arc;

/// The state machine of a node.
pub(crate) struct Machine {
    delivery: Arc<Delivery>,
    last: Option<LogId<u64>>,
    members: StoredMembership<u64, MemberAddress>,
}

impl Machine {
    pub(crate) fn new(delivery: Arc<Delivery>) -> Machine {
        Machine { delivery, last: None, members: StoredMembership::default() }
    }
}

fn failed(verb: ErrorVerb, what: &str) -> StorageError<u64> {
    let error = AnyError::new(&io::Error::other(what.to_owned()));
    StorageIOError::new(ErrorSubject::StateMachine, verb, error).into()
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = NoSnapshots;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId<u64>>, StoredMembership<u64, MemberAddress>), StorageError<u64>> {
        Ok((self.last, self.members.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, StorageError<u64>>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut answers = Vec::new();
        for entry in entries {
            let index = entry_id(Some(entry.log_id)).index;
            let items = match entry.payload {
                EntryPayload::Blank => Vec::new(),
                EntryPayload::Normal(Frame(body)) => frame::decode(body).ok_or_else(|| {
                    failed(ErrorVerb::Read, &format!("entry {index} of the group is no frame"))
                })?,
                EntryPayload::Membership(members) => {
                    self.members = StoredMembership::new(Some(entry.log_id), members);
                    Vec::new()
                }
            };
            self.last = Some(entry.log_id);
            self.delivery.applied(index, items);
            answers.push(());
        }
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> NoSnapshots {
        NoSnapshots
    }

    async fn begin_receiving_snapshot(
        &mut self,
    ) -> Result<Box<Cursor<Vec<u8>>>, StorageError<u64>> {
        Err(failed(ErrorVerb::Write, NO_SNAPSHOTS))
    }

    async fn install_snapshot(
        &mut self,
        _: &SnapshotMeta<u64, MemberAddress>,
        _: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError<u64>> {
        Err(failed(ErrorVerb::Write, NO_SNAPSHOTS))
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError<u64>> {
        Ok(None)
    }
}

const NO_SNAPSHOTS: &str = "the group keeps its whole log and makes no snapshots";

/// Never asked: the policy is never to make one.
pub(crate) struct NoSnapshots;

impl RaftSnapshotBuilder<Types> for NoSnapshots {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError<u64>> {
        Err(failed(ErrorVerb::Write, NO_SNAPSHOTS))
    }
}
