//! Reading: snapshots, cursors, subscriptions.

use crate::error::ReadError;
use crate::record::RecordView;
use std::time::Duration;
use wellspring_types::{EventId, Position, Query};

/// Direction of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

/// Where a read starts, which way it goes and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Exclusive start in the direction of reading: ascending, events after it
    /// (0 or `None` = from the beginning); descending, events before it (`None` = from the head).
    pub after: Option<Position>,
    /// Direction.
    pub order: Order,
    /// Most events to return; `None` = no limit.
    pub limit: Option<u64>,
}

/// A type or tag and the number of events that carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermCount {
    /// The type or tag.
    pub term: String,
    /// Events that carry it.
    pub count: u64,
}

/// The log as it was at one moment: everything up to [`head`](Self::head), nothing after. Cheap to take and to clone.
#[derive(Debug, Clone)]
pub struct Snapshot;

impl Snapshot {
    /// The last position it shows; 0 if the log is empty.
    #[must_use]
    pub fn head(&self) -> Position {
        todo!()
    }

    /// The matching events in order. Blocking file reads happen inside [`Events::next`].
    #[must_use]
    pub fn read(&self, query: &Query, options: ReadOptions) -> Events {
        todo!("{query:?} {options:?}")
    }

    /// The event at a position, as its record's bytes passed to `f`; `None` if there is none.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn at<R>(
        &self,
        position: Position,
        f: impl FnOnce(&RecordView<'_>) -> R,
    ) -> Result<Option<R>, ReadError> {
        let _ = f;
        todo!("{position}")
    }

    /// Position of the event with this id.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn find_id(&self, id: EventId) -> Result<Option<Position>, ReadError> {
        todo!("{id:?}")
    }

    /// All types with their counts, in byte order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn types(&self) -> Result<Vec<TermCount>, ReadError> {
        todo!()
    }

    /// The first `limit` tags that begin with `prefix` and are greater than `after`, with their counts, in byte order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn tags(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TermCount>, ReadError> {
        todo!("{prefix} {after:?} {limit}")
    }
}

/// A cursor over matching events. Holds one buffer; memory does not grow with the number of events.
#[derive(Debug)]
pub struct Events;

impl Events {
    /// The next event, or `None` at the end. The view is valid until the next call.
    ///
    /// # Errors
    /// [`ReadError`]; the cursor then stays where it was, so that a retry loses nothing.
    #[allow(clippy::should_implement_trait)] // it lends
    pub fn next(&mut self) -> Result<Option<RecordView<'_>>, ReadError> {
        todo!()
    }
}

/// The same read repeated from a cursor whenever the head moves: catch-up and live are one path.
#[derive(Debug)]
pub struct Subscription;

impl Subscription {
    /// The next matching event, waiting up to `timeout` for one; `None` if none came or the log closed.
    ///
    /// # Errors
    /// [`ReadError`]; the subscription stays where it was.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<RecordView<'_>>, ReadError> {
        todo!("{timeout:?}")
    }

    /// Everything up to this position has been seen or does not match: where to resume after a restart.
    #[must_use]
    pub fn position(&self) -> Position {
        todo!()
    }
}
