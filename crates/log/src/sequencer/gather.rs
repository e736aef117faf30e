//! A batch while it gathers, and the requests that wait for one of its positions.

use super::replays::ReplayBytes;
use crate::append::{Append, Appended, Completion};
use crate::batch::BATCH_HEADER_BYTES;
use crate::error::AppendError;
use crate::journal::JournalBatch;
use crate::record::{self, RecordView};
use std::panic::{AssertUnwindSafe, catch_unwind};
use wellspring_types::Position;

/// Requests go on joining a batch until it is taken or this large.
pub(crate) const BATCH_BYTES: usize = 8 << 20;

/// What a waiter is told when its position is durable.
pub(crate) enum Outcome {
    /// Its events are in the log.
    Appended { first: Position, last: Position },
    /// It was refused because of an event that was not durable yet when it was judged:
    /// the refusal may be told only when that event is.
    Refused(AppendError),
    /// It looks like a retry of a request that was not durable yet: it is compared with what is
    /// stored there, apart from the commits.
    Replay(Box<Replay>),
}

/// A retry to be compared with the request whose first staged event it met at `position`.
pub(crate) struct Replay {
    pub(crate) append: Append,
    pub(crate) position: Position,
    pub(crate) _reserved: ReplayBytes,
}

/// A request that waits for a position to become durable, or for that to fail.
pub(crate) struct Waiter {
    pub(crate) done: Completion,
    pub(crate) outcome: Outcome,
}

/// A retry whose first attempt is durable: to be answered.
pub(crate) struct ReplayRequest {
    pub(crate) replay: Box<Replay>,
    pub(crate) done: Completion,
}

/// A batch that requests may still join, or that waits for the journal.
pub(crate) struct Gathering {
    pub(crate) segment_base: Position,
    pub(crate) offset: u32,
    pub(crate) first: Position,
    pub(crate) count: u32,
    pub(crate) recorded_at_us: u64,
    /// Room for the header, then records.
    pub(crate) bytes: Vec<u8>,
    /// Of these, bytes of records from batchers.
    pub(crate) ingest_bytes: usize,
    /// Those who wait for one of its positions.
    pub(crate) waiters: Vec<Waiter>,
}

/// The batch that the journal has. Its positions can still be waited for.
pub(crate) struct InFlight {
    pub(crate) first: Position,
    pub(crate) last: Position,
    /// Those who came to wait after the journal had taken it.
    pub(crate) waiters: Vec<Waiter>,
}

impl Gathering {
    pub(crate) fn new(
        segment_base: Position,
        offset: u32,
        first: Position,
        mut bytes: Vec<u8>,
    ) -> Gathering {
        bytes.clear();
        bytes.resize(BATCH_HEADER_BYTES, 0);
        Gathering {
            segment_base,
            offset,
            first,
            count: 0,
            recorded_at_us: 0,
            bytes,
            ingest_bytes: 0,
            waiters: Vec::new(),
        }
    }

    pub(crate) fn journal_batch(&mut self) -> JournalBatch<'_> {
        JournalBatch {
            segment_base: self.segment_base,
            offset: self.offset,
            first: self.first,
            count: self.count,
            recorded_at_us: self.recorded_at_us,
            bytes: &mut self.bytes,
        }
    }

    pub(crate) fn in_flight(&self) -> InFlight {
        InFlight { first: self.first, last: self.last(), waiters: Vec::new() }
    }

    pub(crate) fn last(&self) -> Position {
        self.first + u64::from(self.count) - 1
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = RecordView<'_>> {
        record::records(&self.bytes[BATCH_HEADER_BYTES..])
    }
}

impl Waiter {
    /// Tells the waiter what became of its position; a retry that has to be compared with what is
    /// stored is handed back.
    pub(crate) fn tell(
        self,
        head: Position,
        verdict: Result<(), &AppendError>,
    ) -> Option<ReplayRequest> {
        match (verdict, self.outcome) {
            (Ok(()), Outcome::Appended { first, last }) => {
                answer(self.done, Ok(Appended { first, last, head, replayed: false }));
            }
            (Ok(()), Outcome::Refused(error)) => answer(self.done, Err(error)),
            (Ok(()), Outcome::Replay(replay)) => {
                return Some(ReplayRequest { replay, done: self.done });
            }
            (Err(error), _) => answer(self.done, Err(error.clone())),
        }
        None
    }
}

/// Calls a completion. One that panics is its owner's mistake and must not keep
/// the others of its batch from being answered.
pub(crate) fn answer(done: Completion, outcome: Result<Appended, AppendError>) {
    let _ = catch_unwind(AssertUnwindSafe(|| done(outcome)));
}
