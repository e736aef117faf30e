//! A batch while it gathers, and the requests that wait for its positions.

use super::replays::ReplayBytes;
use crate::append::{Append, Appended, Completion};
use crate::error::AppendError;
use crate::journal::JournalBatch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wellspring_format::batch::BATCH_HEADER_BYTES;
use wellspring_format::record;
use wellspring_format::segment::Features;
use wellspring_types::Position;

/// The answer to a waiter when its position is durable.
pub(crate) enum PendingAnswer {
    /// Its events are in the log.
    Appended { first: Position, last: Position },
    /// It was refused because of an event that was not durable when it was judged: the refusal may
    /// be sent only once that event is.
    Refused(AppendError),
    /// It looks like a retry of a request that was not durable: it is compared with what is stored
    /// there, separately from commits.
    Replay(Box<Replay>),
}

/// A retry to compare with the request whose first staged event is at `position`.
pub(crate) struct Replay {
    pub(crate) append: Append,
    pub(crate) position: Position,
    pub(crate) _reserved: ReplayBytes,
}

/// A request that waits for a position to become durable, or to be discarded.
pub(crate) struct Waiter {
    pub(crate) done: Completion,
    pub(crate) outcome: PendingAnswer,
}

/// A retry whose first attempt is durable and which must be answered.
pub(crate) struct ReplayRequest {
    pub(crate) replay: Box<Replay>,
    pub(crate) done: Completion,
}

/// A batch that requests can still join, or that waits for the journal.
pub(crate) struct Gathering {
    pub(crate) batch: JournalBatch,
    /// Of its bytes, those of records from batchers.
    pub(crate) ingest_bytes: usize,
    /// The waiters for its positions.
    pub(crate) waiters: Vec<Waiter>,
}

/// A batch that the journal has. Requests can still wait for its positions.
pub(crate) struct InFlight {
    pub(crate) first: Position,
    pub(crate) last: Position,
    pub(crate) segment_base: Position,
    /// Offset after it in that segment.
    pub(crate) end: u64,
    /// The time of its last event.
    pub(crate) recorded_at_us: u64,
    /// Size of its records; and of those from batchers.
    pub(crate) body_bytes: usize,
    pub(crate) ingest_bytes: usize,
    /// The waiters for its positions.
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
        let batch = JournalBatch {
            segment_base,
            offset,
            first,
            count: 0,
            recorded_at_us: 0,
            features: Features::None,
            bytes,
        };
        Gathering { batch, ingest_bytes: 0, waiters: Vec::new() }
    }

    /// The batch for the journal, and the part that stays here.
    pub(crate) fn taken(self) -> (JournalBatch, InFlight) {
        let Gathering { batch, ingest_bytes, waiters } = self;
        let in_flight = InFlight {
            first: batch.first,
            last: batch.last(),
            segment_base: batch.segment_base,
            end: batch.end(),
            recorded_at_us: batch.recorded_at_us,
            body_bytes: batch.body_bytes(),
            ingest_bytes,
            waiters,
        };
        (batch, in_flight)
    }
}

/// The records of a batch.
pub(crate) fn records(batch: &JournalBatch) -> impl Iterator<Item = record::RecordView<'_>> {
    record::records(batch.body())
}

impl Waiter {
    /// Answers the waiter with the outcome of its position; returns a retry that must be compared
    /// with what is stored.
    pub(crate) fn tell(
        self,
        head: Position,
        verdict: Result<(), &AppendError>,
    ) -> Option<ReplayRequest> {
        match (verdict, self.outcome) {
            (Ok(()), PendingAnswer::Appended { first, last }) => {
                answer(self.done, Ok(Appended { first, last, head, replayed: false }));
            }
            (Ok(()), PendingAnswer::Refused(error)) => answer(self.done, Err(error)),
            (Ok(()), PendingAnswer::Replay(replay)) => {
                return Some(ReplayRequest { replay, done: self.done });
            }
            (Err(error), _) => answer(self.done, Err(error.clone())),
        }
        None
    }
}

/// Calls a completion. A panic in one is its owner's bug and must not prevent the others of its
/// batch from being answered.
pub(crate) fn answer(done: Completion, outcome: Result<Appended, AppendError>) {
    let _ = catch_unwind(AssertUnwindSafe(|| done(outcome)));
}
