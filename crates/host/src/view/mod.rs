//! The shell around a view: it folds committed events, keeps snapshots, decides commands, and lets
//! readers wait until the view is fresh enough.
//!
//! ```text
//! execute ─► decide, stage ─► the log ─► durable ─┐
//!                                                 ▼
//!            the fold's thread, or a waiting caller: apply up to the head ─► readers
//! ```
//!
//! Readers share the fold and take no lock. The fold has one writer at a time: its own thread,
//! every few milliseconds, or a caller that waits for a position while no thread is folding.
//!
//! A command is decided against what is folded and what is decided but not folded yet, and staged,
//! under one lock. The append condition covers what came after the folded position; a view that
//! judges its own events has it begin after the last of these (`ConditionStart::OwnLast`). If
//! another writer appended in between, the command is decided again. A refusal that rests on
//! something not yet durable is not told: the command waits and is decided again.
//!
//! A write is answered after it is folded. An ordinary reader writes the snapshot while the fold
//! goes on, so its content may be later than its position, though never later than its *end*, which
//! it names; applying an event twice must change nothing (decision 0010).

pub mod contract;
mod deciding;
mod execute;
mod figures;
mod fold;
mod freshness;
mod refusal;
mod slot;
mod snapshot;
mod stored_record;

pub use execute::{CommandResults, ExecuteError};
pub(crate) use figures::Figures;
pub use freshness::NotFresh;
pub use freshness::all_stored;
pub use slot::ViewSlot;
pub(crate) use slot::{EachView, LiveView, OpenView, OpenedView, Publish, ViewedLog};

use crate::setup::SetupError;
use crate::view::contract::View;
use deciding::{FinishedAppend, PendingDecisions};
use figures::Counters;
use fold::Writer;
pub(crate) use snapshot::FoundSnapshot;
use snapshot::SnapshotFile;
pub use snapshot::{SnapshotAhead, snapshot_ahead};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use wellspring_log::{Clock, Feed, Log};
use wellspring_types::Position;

/// A live view of a log: folded as the log grows.
pub struct Live<V: View> {
    log: Log,
    context: V::Context,
    clock: Arc<dyn Clock>,
    snapshots: SnapshotFile,
    /// Present once a snapshot has been read or found missing.
    folded: OnceLock<Arc<V::Folded>>,
    /// Position up to which events are folded.
    position: Feed,
    /// Whether the head of the start has been reached.
    caught_up: AtomicBool,
    writer: Mutex<Writer<V>>,
    deciding: Mutex<PendingDecisions<V>>,
    /// Appends finished since a decision last checked.
    ended: Arc<Mutex<Vec<FinishedAppend>>>,
    /// Why folding has stopped, if so.
    fault: Mutex<Option<String>>,
    closing: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Position of the snapshot on disk, 0 if there is none.
    snapshot_position: AtomicU64,
    /// The snapshot on disk was damaged and removed: another one is due.
    is_snapshot_lost: AtomicBool,
    counters: Counters,
}

/// The progress of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Position up to which events are folded.
    pub position: Position,
    /// Position up to which they could be.
    pub head: Position,
    /// Position of the snapshot on disk.
    pub snapshot: Position,
    /// Its state.
    pub state: State,
}

/// The state of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is being loaded from its snapshot or rebuilt from the log.
    Rebuilding,
    /// It is ready.
    Live,
    /// The log could not be read.
    Failed,
}

impl<V: View> Live<V> {
    /// Starts folding a log whose files are in `dir`, on a dedicated thread.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(crate) fn open(
        log: Log,
        dir: &Path,
        context: V::Context,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Live<V>>, SetupError> {
        let live = Arc::new(Live {
            log,
            context,
            clock,
            snapshots: SnapshotFile::new(dir, V::NAME, V::VERSION),
            folded: OnceLock::new(),
            position: Feed::at(0),
            caught_up: AtomicBool::new(false),
            writer: Mutex::new(Writer::Unread),
            deciding: Mutex::default(),
            ended: Arc::default(),
            fault: Mutex::default(),
            closing: AtomicBool::new(false),
            thread: Mutex::default(),
            snapshot_position: AtomicU64::new(0),
            is_snapshot_lost: AtomicBool::new(false),
            counters: Counters::default(),
        });
        let folding = Arc::clone(&live);
        let name = format!("view-{}", V::NAME);
        let thread = crate::threads::spawn(name, move || folding.run())?;
        *lock(&live.thread) = Some(thread);
        Ok(live)
    }

    /// The fold, once everything that was in the log at the start is in it.
    pub fn folded(&self) -> Option<&V::Folded> {
        self.folded_shared().map(|folded| &**folded)
    }

    /// As [`folded`](Self::folded), as a shared handle.
    fn shared(&self) -> Option<Arc<V::Folded>> {
        self.folded_shared().cloned()
    }

    fn folded_shared(&self) -> Option<&Arc<V::Folded>> {
        self.folded.get().filter(|_| self.caught_up.load(Ordering::Acquire))
    }

    /// The log that is folded.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Whether it has ended, because its log was closed or dropped.
    pub fn is_closed(&self) -> bool {
        self.position.is_closed()
    }

    /// Position up to which events are folded.
    pub fn position(&self) -> Position {
        self.position.head()
    }

    /// Its progress.
    pub(crate) fn progress(&self) -> Progress {
        // The position first, so that the head is never behind it.
        let position = self.position();
        let state = match (&*lock(&self.fault), self.folded()) {
            (Some(_), _) => State::Failed,
            (None, Some(_)) => State::Live,
            (None, None) => State::Rebuilding,
        };
        let snapshot = self.snapshot_position.load(Ordering::Relaxed);
        Progress { position, head: self.log.head(), snapshot, state }
    }

    /// Folds the remaining events, writes a snapshot, and ends the thread. The log must accept no
    /// more appends.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.position.close();
    }

    /// Forbids further snapshots: the log is about to be dropped.
    pub(crate) fn forbid_snapshots(&self) {
        self.snapshots.forbid();
    }

    /// Has the thread write a snapshot: the one on disk was damaged and removed.
    pub(crate) fn renew_snapshot(&self) {
        self.is_snapshot_lost.store(true, Ordering::Release);
        self.nudge();
    }

    /// Ends the thread without another snapshot.
    pub(crate) fn discard(&self) {
        self.forbid_snapshots();
        self.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod chain;
#[cfg(test)]
mod chain_tests;
#[cfg(test)]
mod fold_tests;
#[cfg(test)]
mod short_links;
#[cfg(test)]
mod tests;
