//! The library's storage over the WAL, whose writes are done between two turns of the runtime.

use super::checkpoints::Checkpoints;
use super::{RaftEntry, Types, entry_id, log_id, raft_entries, raft_vote, vote_of, wal_entries};
use crate::plants::{Plant, planted};
use crate::runtime::pause;
use crate::wal::{Entry, Wal, WalFault, WalReader};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{
    AnyError, ErrorSubject, ErrorVerb, LogId, LogState, OptionalSend, RaftLogReader, StorageError,
    StorageIOError, Vote,
};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// Most bytes of entries in one request to a follower, except that one entry may be larger.
const REQUEST_BYTES: usize = 4 << 20;

/// Time between two looks for room on the disk.
pub(super) const ROOM_AGAIN: Duration = Duration::from_millis(100);

/// Work on the WAL.
type WalWork = Box<dyn FnOnce(&mut Wal) + Send>;

/// What is to be done on the WAL, in this order.
#[derive(Debug, Clone)]
pub(crate) struct WalQueue {
    sender: Sender<WalWork>,
    /// Whether an entry waits for room on the disk.
    lacks_room: Arc<AtomicBool>,
}

/// The WAL, and what is to be done on it.
pub(crate) struct WalWriter {
    pub(crate) wal: Wal,
    work: Receiver<WalWork>,
    /// The first piece of it, once it was looked for.
    next: Option<WalWork>,
}

impl WalWriter {
    /// A writer, and the queue that it takes from, which says whether it lacks room.
    pub(crate) fn new(wal: Wal, lacks_room: Arc<AtomicBool>) -> (WalQueue, WalWriter) {
        let (sender, work) = channel();
        (WalQueue { sender, lacks_room }, WalWriter { wal, work, next: None })
    }

    /// Works until all queues are gone.
    #[cfg(test)]
    pub(crate) fn serve(mut self) {
        while let Ok(work) = self.work.recv() {
            work(&mut self.wal);
        }
    }

    /// Whether something is to be done.
    pub(crate) fn has_work(&mut self) -> bool {
        self.next = self.next.take().or_else(|| self.work.try_recv().ok());
        self.next.is_some()
    }

    /// Does one piece of work; whether there was one. Blocks until the device has taken it.
    pub(crate) fn work(&mut self) -> bool {
        self.has_work();
        self.next.take().map(|work| work(&mut self.wal)).is_some()
    }
}

impl WalQueue {
    /// Does something on the WAL, and waits for it.
    pub(super) async fn with<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Wal) -> Result<R, WalFault> + Send + 'static,
    ) -> Result<R, WalFault> {
        let (done, result) = oneshot::channel();
        let work = Box::new(move |wal: &mut Wal| {
            // Nobody waits if the node has stopped.
            let _ = done.send(work(wal));
        });
        self.sender.send(work).map_err(|_| WalFault::Ended)?;
        result.await.map_err(|_| WalFault::Ended)?
    }

    /// The same for what needs room on the disk: waits until there is. The library waits with it,
    /// so this node is silent meanwhile, and another one orders.
    async fn with_room<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Wal) -> Result<R, WalFault> + Clone + Send + 'static,
    ) -> Result<R, WalFault> {
        loop {
            let done = self.with(work.clone()).await;
            let Err(WalFault::Io { doing, error }) = &done else {
                self.lacks_room.store(false, Ordering::Release);
                return done;
            };
            if !self.lacks_room.swap(true, Ordering::AcqRel) {
                tracing::error!(doing, %error, "the WAL takes no entries until there is room");
            }
            pause(ROOM_AGAIN).await;
        }
    }
}

fn failed(
    verb: ErrorVerb,
    subject: ErrorSubject<u64>,
    error: &(impl std::error::Error + 'static),
) -> StorageError<u64> {
    StorageIOError::new(subject, verb, AnyError::new(error)).into()
}

/// The library's view of the WAL.
#[derive(Clone)]
pub(crate) struct LogStore {
    queue: WalQueue,
    checkpoints: Arc<Checkpoints>,
    reader: WalReader,
    vote: Option<Vote<u64>>,
}

impl LogStore {
    pub(crate) fn new(queue: WalQueue, checkpoints: Arc<Checkpoints>, wal: &Wal) -> LogStore {
        // The library takes a node that knows of no term for one that never took part. And with a
        // committed vote for itself it would order again at once, knowing neither what it had
        // committed nor that it does not: it would confirm an end from before its restart. So
        // a node that starts must be elected.
        let mut vote = wal.vote();
        vote.is_committed &= planted(Plant::RestoresOrderer);
        let vote = (vote.term > 0).then(|| raft_vote(vote));
        LogStore { queue, checkpoints, reader: wal.reader(), vote }
    }

    fn read(&self, from: u64, to: u64, bytes: usize) -> io::Result<Vec<RaftEntry>> {
        let entries = self.reader.read(from + 1..to.saturating_add(1), bytes);
        let none = |index| io::Error::other(format!("entry {index} of the WAL is none"));
        raft_entries(entries.map_err(io::Error::other)?).map_err(none)
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<RaftEntry>, StorageError<u64>> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(to) => *to,
            Bound::Unbounded => u64::MAX,
        };
        let read = self.read(from, to, usize::MAX);
        read.map_err(|error| failed(ErrorVerb::Read, ErrorSubject::Logs, &error))
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<RaftEntry>, StorageError<u64>> {
        let read = self.read(start, end, REQUEST_BYTES);
        read.map_err(|error| failed(ErrorVerb::Read, ErrorSubject::Logs, &error))
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError<u64>> {
        Ok(LogState {
            last_purged_log_id: log_id(self.reader.purged()),
            last_log_id: log_id(self.reader.last()),
        })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Result<(), StorageError<u64>> {
        let kept = vote_of(vote);
        let saved = self.queue.with(move |wal| wal.set_vote(kept)).await;
        saved.map_err(|error| failed(ErrorVerb::Write, ErrorSubject::Vote, &error))?;
        self.vote = Some(*vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<u64>>, StorageError<u64>> {
        Ok(self.vote)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        flushed: LogFlushed<Types>,
    ) -> Result<(), StorageError<u64>>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Arc<[Entry]> = wal_entries(entries).into();
        let first = entries.first().map_or(0, |entry| entry.id.index);
        // The library waits for the barrier in any case; and what it reads is durable.
        let adding = self.queue.with_room(move |wal| {
            // When there was no room for all of them, the first ones were added.
            let added = (wal.reader().last().index + 1).saturating_sub(first) as usize;
            wal.append(entries.get(added..).unwrap_or_default())
        });
        let added = adding.await;
        if let Err(error) = &added {
            tracing::error!(%error, "the WAL takes no more entries");
        }
        flushed.log_io_completed(added.map_err(io::Error::other));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId<u64>) -> Result<(), StorageError<u64>> {
        // Of the library's count; the entry before it has this index in the WAL.
        let cut = self.queue.with_room(move |wal| wal.truncate_after(from.index)).await;
        cut.map_err(|error| failed(ErrorVerb::Delete, ErrorSubject::Logs, &error))
    }

    async fn purge(&mut self, upto: LogId<u64>) -> Result<(), StorageError<u64>> {
        let upto = entry_id(Some(upto));
        let purged = match self.checkpoints.until_one_stands_for(upto.index).await {
            Ok(()) => self.queue.with(move |wal| wal.purge(upto)).await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        purged.map_err(|error| failed(ErrorVerb::Delete, ErrorSubject::Logs, &error))
    }
}
