//! The library's state machine: what is committed goes to the logs, in its order. Nothing but the
//! checkpoint is kept; after a start everything behind it is applied anew.

use super::checkpoints::Checkpoints;
use super::{Frame, RaftEntry, Types, body, entry_id, log_id};
use crate::checkpoint::Checkpoint;
use crate::delivery::Delivery;
use crate::frame;
use crate::members::MemberAddress;
use crate::wal::EntryId;
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
    checkpoints: Arc<Checkpoints>,
    last: Option<LogId<u64>>,
    members: StoredMembership<u64, MemberAddress>,
}

impl Machine {
    /// Goes on after the newest checkpoint; `None` if its members cannot be read.
    pub(crate) fn new(delivery: Arc<Delivery>, checkpoints: Arc<Checkpoints>) -> Option<Machine> {
        let (last, members) = match checkpoints.newest() {
            None => (None, StoredMembership::default()),
            Some(newest) => (log_id(newest.id), stored_members(&newest)?),
        };
        Some(Machine { delivery, checkpoints, last, members })
    }
}

fn stored_members(checkpoint: &Checkpoint) -> Option<StoredMembership<u64, MemberAddress>> {
    let (id, body) = &checkpoint.members;
    match body::decode(body.clone())? {
        EntryPayload::Membership(members) => Some(StoredMembership::new(log_id(*id), members)),
        _ => None,
    }
}

/// What the library calls the snapshot of a checkpoint.
///
/// # Errors
/// Its members cannot be read.
#[allow(clippy::result_large_err)] // the library's
pub(super) fn snapshot_of(checkpoint: &Checkpoint) -> Result<Snapshot<Types>, StorageError<u64>> {
    let unreadable = || failed(ErrorVerb::Read, "the members of the checkpoint cannot be read");
    let EntryId { term, index } = checkpoint.id;
    let meta = SnapshotMeta {
        last_log_id: log_id(checkpoint.id),
        last_membership: stored_members(checkpoint).ok_or_else(unreadable)?,
        snapshot_id: format!("{term}-{index}"),
    };
    let snapshot = Box::new(Cursor::new(checkpoint.encode().to_vec()));
    Ok(Snapshot { meta, snapshot })
}

fn failed(verb: ErrorVerb, what: &str) -> StorageError<u64> {
    let error = AnyError::new(&io::Error::other(what.to_owned()));
    StorageIOError::new(ErrorSubject::StateMachine, verb, error).into()
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = CheckpointTeller;

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
                    self.members = StoredMembership::new(Some(entry.log_id), members.clone());
                    let body = body::encode(EntryPayload::Membership(members));
                    self.checkpoints.members_are(entry_id(Some(entry.log_id)), body);
                    Vec::new()
                }
            };
            self.last = Some(entry.log_id);
            self.delivery.applied(index, items);
            answers.push(());
        }
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> CheckpointTeller {
        CheckpointTeller(Arc::clone(&self.checkpoints))
    }

    async fn begin_receiving_snapshot(
        &mut self,
    ) -> Result<Box<Cursor<Vec<u8>>>, StorageError<u64>> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, MemberAddress>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError<u64>> {
        let checkpoint = Checkpoint::decode(snapshot.into_inner().into())
            .ok_or_else(|| failed(ErrorVerb::Read, "a checkpoint cannot be read"))?;
        let kept = self.checkpoints.install(checkpoint.clone()).await;
        kept.map_err(|error| failed(ErrorVerb::Write, &error.to_string()))?;
        (self.last, self.members) = (meta.last_log_id, meta.last_membership.clone());
        self.delivery.install(&checkpoint);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError<u64>> {
        match self.checkpoints.newest() {
            Some(newest) => snapshot_of(&newest).map(Some),
            None => Ok(None),
        }
    }
}

/// Tells the library the checkpoint that was made.
pub(crate) struct CheckpointTeller(Arc<Checkpoints>);

impl RaftSnapshotBuilder<Types> for CheckpointTeller {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError<u64>> {
        let none = || failed(ErrorVerb::Read, "no checkpoint was made");
        snapshot_of(&*self.0.newest().ok_or_else(none)?)
    }
}
