//! The log itself: what a program opens, appends to and reads from.

use crate::error::{AppendError, OpenError};
use crate::feed::Feed;
use crate::lease::{Fence, Leases};
use crate::options::Options;
use crate::read::{Snapshot, Subscription};
use crate::record::{EncodedEvents, RequestKey};
use std::path::Path;
use wellspring_types::{AppendCondition, Position, Query};

/// When an append is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// When it survives a power loss (under [`Sync::Always`](crate::Sync::Always)).
    #[default]
    Durable,
    /// When it is staged in memory: a crash may lose it.
    Accepted,
}

/// A request to append.
#[derive(Debug, Clone, Default)]
pub struct Append {
    /// What to append: at least one event.
    pub events: EncodedEvents,
    /// What must not have happened.
    pub condition: Option<AppendCondition>,
    /// When to answer.
    pub ack: Ack,
    /// Makes a retry safe.
    pub key: Option<RequestKey>,
    /// A lease that must still be held.
    pub fence: Option<Fence>,
}

/// What an append came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Position of its first event.
    pub first: Position,
    /// Position of its last event.
    pub last: Position,
    /// Head of the log when it was answered; at least `last` for durable appends.
    pub head: Position,
    /// Whether this is the answer to an earlier attempt of the same request.
    pub replayed: bool,
}

/// Called once, on a thread of the log or of the caller, with the outcome. Must not block.
pub type Completion = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;

/// Figures about a log, for metrics and people. All counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Last durable position.
    pub head: Position,
    /// Bytes of segments and indexes on disk.
    pub disk_bytes: u64,
    /// Segment files.
    pub segments: u64,
    /// Encoded bytes staged and not yet durable.
    pub staged_bytes: u64,
    /// Appends made (requests, not events), replays not counted.
    pub appends: u64,
    /// Events appended.
    pub events: u64,
    /// Appends refused because their condition failed.
    pub conflicts: u64,
    /// Appends answered as replays.
    pub replays: u64,
    /// Group commits made durable.
    pub batches: u64,
    /// Time spent in barriers, µs.
    pub barrier_us: u64,
    /// The single-writer epoch of this opening.
    pub epoch: u64,
}

/// An open log. Cheap to clone; the last clone to go closes it.
#[derive(Debug, Clone)]
pub struct Log;

impl Log {
    /// Opens the log in `dir`, making it if it is not there, and recovers it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(dir: &Path, options: Options) -> Result<Log, OpenError> {
        let _ = options;
        todo!("{dir:?}")
    }

    /// Appends and waits for the outcome.
    ///
    /// # Errors
    /// [`AppendError`], which says whether a retry helps.
    pub fn append(&self, append: Append) -> Result<Appended, AppendError> {
        todo!("{append:?}")
    }

    /// Judges and stages the append; `done` is called with the outcome, perhaps before this returns.
    /// Costs microseconds unless [`judging_cost`](Self::judging_cost) says otherwise; never waits for the device.
    pub fn submit(&self, append: Append, done: Completion) {
        let _ = done;
        todo!("{append:?}")
    }

    /// Rough number of index entries that judging `condition` may have to visit: a caller on an
    /// async runtime should move an append over some thousands to a thread of its own.
    #[must_use]
    pub fn judging_cost(&self, condition: &AppendCondition) -> u64 {
        todo!("{condition:?}")
    }

    /// The last durable position; 0 if the log is empty.
    #[must_use]
    pub fn head(&self) -> Position {
        todo!()
    }

    /// The log as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }

    /// Matching events after `after`, then those to come.
    #[must_use]
    pub fn subscribe(&self, query: Query, after: Position) -> Subscription {
        todo!("{query:?} {after}")
    }

    /// The head as something to wait for.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        todo!()
    }

    /// The log's leases.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        todo!()
    }

    /// Figures about the log.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        todo!()
    }

    /// Takes no further appends, makes durable what is staged, and releases the folder. Reads go on.
    pub fn close(&self) {
        todo!()
    }
}
