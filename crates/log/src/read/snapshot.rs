//! A snapshot of the log, and the cursor over its matching events.

use super::cursor::{CursorFault, RunCursor};
use super::position_range::{PositionRange, find_id, find_key};
use crate::append::StoredRequest;
use crate::error::ReadError;
use crate::feed::Feed;
use crate::query::CompiledQuery;
use crate::segments::{Run, Segments};
use crate::work::Work;
use std::sync::Arc;
use wellspring_format::record::RecordView;
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

/// The start, direction and limit of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Exclusive start in the direction of reading. Ascending: events after it (0 or `None`: from
    /// the beginning); descending: events before it (`None`: from the head).
    pub after: Option<Position>,
    /// Direction.
    pub order: Order,
    /// Maximum number of events; `None`: no limit.
    pub limit: Option<u64>,
}

/// The log at one moment: everything up to [`head`](Self::head), nothing after. Cheap to take and
/// to clone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    head: Position,
    runs: Arc<Vec<Arc<Run>>>,
}

impl Snapshot {
    pub(crate) fn new(feed: &Feed, segments: &Segments) -> Snapshot {
        // The head is read first: segments only grow beyond it.
        let head = feed.head();
        Snapshot { head, runs: segments.runs() }
    }

    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Its last position; 0 if the log is empty.
    #[must_use]
    pub fn head(&self) -> Position {
        self.head
    }

    /// Position of its first event, 1 unless the beginning was cut off. What is read from before it
    /// is refused with [`ReadError::Trimmed`].
    #[must_use]
    pub fn first(&self) -> Position {
        self.runs.first().map_or(1, |run| run.base())
    }

    /// The same without what follows a position.
    #[must_use]
    pub fn up_to(&self, position: Position) -> Snapshot {
        Snapshot { head: self.head.min(position), runs: Arc::clone(&self.runs) }
    }

    /// The matching events in order. Files are read, blocking, in [`Events::next`].
    #[must_use]
    pub fn read(&self, query: &Query, options: ReadOptions) -> Events {
        self.read_compiled(CompiledQuery::shared(query), options)
    }

    /// As [`read`](Self::read), for a compiled query.
    #[must_use]
    pub fn read_compiled(&self, query: Arc<CompiledQuery>, options: ReadOptions) -> Events {
        let (low, high) = match options.order {
            Order::Ascending => (options.after.unwrap_or(0), self.head),
            Order::Descending => {
                (0, options.after.map_or(self.head, |after| self.head.min(after.saturating_sub(1))))
            }
        };
        Events {
            snapshot: self.clone(),
            query,
            descending: options.order == Order::Descending,
            low,
            high,
            remaining: options.limit.unwrap_or(u64::MAX),
            cursor: None,
            work: Work::unbounded(),
        }
    }

    /// The matching events that the log still has, whatever was cut off before them.
    #[must_use]
    pub fn read_kept(&self, query: &Query, order: Order) -> Events {
        let options = ReadOptions { order, ..ReadOptions::default() };
        self.read(query, options).only_after(self.first() - 1)
    }

    /// Passes the record at a position to `f`; `None` if there is none.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn at<R>(
        &self,
        position: Position,
        f: impl FnOnce(&RecordView<'_>) -> R,
    ) -> Result<Option<R>, ReadError> {
        self.at_within(position, Work::unbounded(), f)
    }

    /// As [`at`](Self::at), within a budget.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops.
    pub fn at_within<R>(
        &self,
        position: Position,
        work: Work,
        f: impl FnOnce(&RecordView<'_>) -> R,
    ) -> Result<Option<R>, ReadError> {
        if position == 0 || position > self.head {
            return Ok(None);
        }
        let after = Some(position - 1);
        let mut events = self
            .read(&Query::all(), ReadOptions { after, limit: Some(1), ..ReadOptions::default() });
        events.bound(work);
        Ok(events.next()?.map(|record| f(&record)))
    }

    /// Position of the event with this id.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn find_id(&self, id: EventId) -> Result<Option<Position>, ReadError> {
        self.find_id_within(id, &mut Work::unbounded())
    }

    /// As [`find_id`](Self::find_id), within a budget.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops.
    pub fn find_id_within(
        &self,
        id: EventId,
        work: &mut Work,
    ) -> Result<Option<Position>, ReadError> {
        find_id(&self.runs, &id.0, PositionRange { low: 0, high: self.head }, work)
    }

    /// The append with this request key among what follows a position, whatever its content; `None`
    /// if there is none. Segments up to that position are not looked at, so many keys can be looked
    /// up near the head of a long log.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops.
    pub fn request_with_key_after(
        &self,
        key: &str,
        after: Position,
        work: &mut Work,
    ) -> Result<Option<StoredRequest>, ReadError> {
        let positions = PositionRange { low: after.min(self.head), high: self.head };
        let found = find_key(&self.runs, key, positions, work)?;
        let Some(first) = found else { return Ok(None) };
        let stored = self.at(first, |record| {
            let (text, digest, events) = record.request_key()?;
            (text == key).then(|| StoredRequest { first, events: events.into(), digest })
        })?;
        Ok(stored.flatten())
    }
}

/// A cursor over matching events. It holds one buffer; memory does not grow with the number of
/// events.
#[derive(Debug)]
pub struct Events {
    snapshot: Snapshot,
    query: Arc<CompiledQuery>,
    descending: bool,
    /// Exclusive.
    low: Position,
    /// Inclusive. Together with `low`: what is still to be read.
    high: Position,
    remaining: u64,
    cursor: Option<RunCursor>,
    work: Work,
}

impl Events {
    /// Leaves out what is at or before a position, whatever the direction.
    #[must_use]
    pub fn only_after(mut self, position: Position) -> Events {
        self.low = self.low.max(position);
        self
    }

    /// Limits the work of subsequent [`next`](Self::next) calls, until set again. Fewer than a few
    /// thousand steps may not suffice for progress.
    pub fn bound(&mut self, work: Work) {
        self.work = work;
    }

    /// The budget and the steps used by the search for events.
    #[must_use]
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The next event, or `None` at the end. The view is valid until the next call.
    ///
    /// # Errors
    /// [`ReadError`]; the cursor keeps its place for a retry. After [`ReadError::Stopped`] a retry
    /// continues the search under a new [`bound`](Self::bound).
    #[allow(clippy::should_implement_trait)] // a lending iterator
    pub fn next(&mut self) -> Result<Option<RecordView<'_>>, ReadError> {
        let mut mended = false;
        loop {
            if self.remaining == 0 || self.low >= self.high {
                return Ok(None);
            }
            if self.cursor.is_none() {
                let mut work = std::mem::take(&mut self.work);
                let opened = self.open_run(&mut work);
                self.work = work;
                self.cursor = Some(opened?);
            }
            let cursor = self.cursor.as_mut().expect("just opened");
            match cursor.advance(&mut self.work) {
                Ok(Some(position)) => {
                    if self.descending {
                        self.high = position - 1;
                    } else {
                        self.low = position;
                    }
                    self.remaining -= 1;
                    break;
                }
                Ok(None) => {
                    let (first, last) = cursor.span();
                    if self.descending {
                        self.high = first - 1;
                    } else {
                        self.low = last;
                    }
                    self.cursor = None;
                }
                Err(CursorFault::Read(error)) => {
                    if !matches!(error, ReadError::Stopped(_)) {
                        self.cursor = None;
                    }
                    return Err(error);
                }
                // Rebuilds the index and continues after the last event. A second fault before the
                // next event is reported: the index in memory has no damage to repair.
                Err(CursorFault::Index(fault)) => {
                    let run = Arc::clone(cursor.run());
                    self.cursor = None;
                    if mended {
                        return Err(run.index_error(fault));
                    }
                    run.mend_within(fault, &self.work)?;
                    mended = true;
                }
            }
        }
        let cursor = self.cursor.as_ref().expect("it has just advanced");
        Ok(Some(cursor.record()))
    }

    /// Charges steps for processing the event that [`next`](Self::next) has returned, such as
    /// writing it out; the next call checks the limit.
    pub fn spend(&mut self, steps: u64) {
        let _ = self.work.step(steps);
    }

    /// Takes the budget out of the cursor.
    pub(crate) fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    /// The event that [`next`](Self::next) has returned.
    pub(crate) fn current(&self) -> RecordView<'_> {
        self.cursor.as_ref().expect("it has just advanced").record()
    }

    /// Everything up to this position has been returned or does not match (ascending reads).
    pub(crate) fn settled(&self) -> Position {
        self.low
    }

    fn open_run(&self, work: &mut Work) -> Result<RunCursor, ReadError> {
        let wanted = if self.descending { self.high } else { self.low + 1 };
        let runs = &self.snapshot.runs;
        let at = runs.partition_point(|run| run.base() <= wanted);
        let Some(run) = at.checked_sub(1).and_then(|i| runs.get(i)) else {
            return Err(ReadError::Trimmed { first: self.snapshot.first() });
        };
        let last = runs.get(at).map_or(self.high, |next| self.high.min(next.base() - 1));
        let first = run.base().max(self.low + 1);
        let open = |work: &mut Work| {
            let run = Arc::clone(run);
            RunCursor::open(run, &self.query, first, last, self.descending, work)
        };
        match open(work) {
            Ok(cursor) => Ok(cursor),
            Err(CursorFault::Index(fault)) => {
                run.mend_within(fault, work)?;
                open(work).map_err(|fault| fault.into_read(run))
            }
            Err(CursorFault::Read(error)) => Err(error),
        }
    }
}
