//! The checkpoint of a node, which the library calls a snapshot. None is ever built from data: it
//! is written when entries can be purged, and a node that lacks these gets it.

use super::store::{ROOM_AGAIN, WalQueue};
use crate::checkpoint::{Checkpoint, KnownStart};
use crate::runtime::pause;
use crate::wal::{EntryId, WalFault};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// See the module's documentation.
pub(crate) struct Checkpoints {
    queue: WalQueue,
    kept: Mutex<CheckpointsState>,
    /// Another one was kept, or could not be.
    has_changed: Notify,
}

#[derive(Default)]
struct CheckpointsState {
    newest: Option<Arc<Checkpoint>>,
    /// The greatest entry of a checkpoint that is being written or was. One for an earlier entry is
    /// out of date: the library may purge up to this one.
    written: EntryId,
    /// The entries about members that were applied since, and the last one before.
    members: Vec<(EntryId, Bytes)>,
    /// One of another node could not be kept: the engine stops here.
    has_failed: bool,
}

impl Checkpoints {
    pub(crate) fn new(queue: WalQueue, newest: Option<Checkpoint>) -> Checkpoints {
        let members = newest.iter().map(|newest| newest.members.clone()).collect();
        let written = newest.as_ref().map(|newest| newest.id).unwrap_or_default();
        let newest = newest.map(Arc::new);
        let kept = Mutex::new(CheckpointsState { newest, written, members, has_failed: false });
        Checkpoints { queue, kept, has_changed: Notify::new() }
    }

    fn kept(&self) -> MutexGuard<'_, CheckpointsState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest one. It is durable.
    pub(crate) fn newest(&self) -> Option<Arc<Checkpoint>> {
        self.kept().newest.clone()
    }

    /// An entry about members was applied.
    pub(super) fn members_are(&self, id: EntryId, body: Bytes) {
        self.kept().members.push((id, body));
    }

    /// Makes a checkpoint at an entry that was applied, durably.
    ///
    /// # Errors
    /// The disk refuses; the one before stays.
    pub(crate) async fn make(
        &self,
        id: EntryId,
        logs: BTreeMap<Arc<str>, KnownStart>,
    ) -> Result<(), WalFault> {
        let members = self.kept().members.iter().rfind(|(of, _)| of.index <= id.index).cloned();
        let members = members.expect("the first entry of a group is about its members");
        self.keep(Checkpoint { id, members, logs }).await
    }

    /// Waits until a checkpoint stands for the entries up to an index: the library purges them
    /// while it installs that of another node. One caller at a time.
    ///
    /// # Errors
    /// It could not be kept.
    pub(super) async fn until_one_stands_for(&self, index: u64) -> io::Result<()> {
        loop {
            {
                let kept = self.kept();
                if kept.newest.as_ref().is_some_and(|newest| newest.id.index >= index) {
                    return Ok(());
                }
                if kept.has_failed {
                    return Err(io::Error::other("no checkpoint stands for what is to be purged"));
                }
            }
            self.has_changed.notified().await;
        }
    }

    /// Keeps the checkpoint of another node, once there is room for it.
    ///
    /// # Errors
    /// The WAL has ended.
    pub(super) async fn install(&self, checkpoint: Checkpoint) -> Result<(), WalFault> {
        let kept = loop {
            match self.keep(checkpoint.clone()).await {
                Err(WalFault::Io { .. }) => pause(ROOM_AGAIN).await,
                kept => break kept,
            }
        };
        self.kept().has_failed |= kept.is_err();
        self.has_changed.notify_one();
        kept
    }

    /// Replaces the checkpoint, durably, unless a later one is being written.
    ///
    /// # Errors
    /// The disk refuses; the one before stays.
    async fn keep(&self, checkpoint: Checkpoint) -> Result<(), WalFault> {
        {
            let mut kept = self.kept();
            if checkpoint.id < kept.written {
                return Ok(());
            }
            kept.written = checkpoint.id;
        }
        let bytes = checkpoint.encode();
        self.queue.with(move |wal| wal.set_checkpoint(bytes)).await?;
        let mut kept = self.kept();
        kept.members.retain(|(of, _)| of.index > checkpoint.members.0.index);
        kept.members.insert(0, checkpoint.members.clone());
        kept.newest = Some(Arc::new(checkpoint));
        Ok(())
    }
}
