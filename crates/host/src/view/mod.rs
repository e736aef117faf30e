//! The shell around a view: it folds what is committed, keeps snapshots, decides
//! commands, and lets readers wait until the view shows what they must see.
//!
//! ```text
//! execute ─► decide, stage ─► the log ─► durable ─┐
//!                                                 ▼
//!            the fold's thread, or whoever waits: apply up to the head ─► readers
//! ```
//!
//! What is folded is shared with readers, who take no lock. The fold has one writer
//! at a time: a thread of its own that comes every few milliseconds, or whoever
//! waits for a position and finds nobody folding.

mod deciding;
mod execute;
mod figures;
mod fold;
mod freshness;
mod recorded;
mod refusal;
mod slot;
mod snapshot;

pub use execute::{ExecuteError, Executed};
pub(crate) use figures::Figures;
pub use freshness::NotFresh;
pub use freshness::all_stored;
pub use slot::ViewSlot;
pub(crate) use slot::{EachView, LiveView, OpenView, OpenedView, Show, ViewedLog};

use deciding::{Deciding, Ended};
use figures::Counters;
use fold::Writer;
use snapshot::SnapshotFile;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use wellspring_log::{Clock, Feed, Log};
use wellspring_types::Position;
use wellspring_views::view::View;

/// A view of a log, alive: folded as the log grows.
pub struct Live<V: View> {
    log: Log,
    context: V::Context,
    clock: Arc<dyn Clock>,
    snapshots: SnapshotFile,
    /// There once a snapshot has been read or found missing.
    folded: OnceLock<Arc<V::Folded>>,
    /// Everything up to here is folded.
    position: Feed,
    /// Whether the head of the start has been reached.
    caught_up: AtomicBool,
    writer: Mutex<Writer<V>>,
    deciding: Mutex<Deciding<V>>,
    /// Appends that have come to an end since a decision last looked.
    ended: Arc<Mutex<Vec<Ended>>>,
    /// Why nothing more is folded, if so.
    fault: Mutex<Option<String>>,
    closing: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Position of the snapshot on disk, 0 if there is none.
    snapshot_position: AtomicU64,
    counters: Counters,
}

/// How far a view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Everything up to here is folded.
    pub position: Position,
    /// Everything up to here could be.
    pub head: Position,
    /// Up to here a snapshot lies on disk.
    pub snapshot: Position,
    /// Whether it answers.
    pub state: State,
}

/// Whether a view answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is being read from its snapshot or rebuilt from the log.
    Rebuilding,
    /// It answers.
    Live,
    /// The log could not be read.
    Failed,
}

impl<V: View> Live<V> {
    /// Begins to fold a log whose files are in `dir`, on a thread of its own.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn open(
        log: Log,
        dir: &Path,
        context: V::Context,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Live<V>>, String> {
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
            counters: Counters::default(),
        });
        let folding = Arc::clone(&live);
        let name = format!("view-{}", V::NAME);
        let thread = crate::threads::spawn(name, move || folding.run())?;
        *lock(&live.thread) = Some(thread);
        Ok(live)
    }

    /// What is folded, once everything that was in the log at the start is.
    pub fn folded(&self) -> Option<&V::Folded> {
        self.folded_shared().map(|folded| &**folded)
    }

    /// As [`folded`](Self::folded), for who keeps it.
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

    /// Everything up to here is folded.
    pub fn position(&self) -> Position {
        self.position.head()
    }

    /// How far it is.
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

    /// Folds what there is, writes a snapshot, and ends the thread. The log must take no more
    /// appends.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.position.close();
    }

    /// No snapshot is written any more: the log is about to be dropped.
    pub(crate) fn forbid_snapshots(&self) {
        self.snapshots.forbid();
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
mod tests;
