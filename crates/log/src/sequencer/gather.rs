//! A batch while it gathers, and those who wait for it.

use crate::batch::BATCH_HEADER_BYTES;
use crate::error::AppendError;
use crate::journal::JournalBatch;
use crate::log::{Append, Appended, Completion};
use std::panic::{AssertUnwindSafe, catch_unwind};
use wellspring_types::Position;

/// Requests go on joining a batch until it is taken or this large.
pub(crate) const BATCH_BYTES: usize = 8 << 20;

/// What a waiter is told when the batch is durable.
pub(crate) enum Outcome {
    /// Its events are in the log.
    Appended { first: Position, last: Position, replayed: bool },
    /// It was refused because of an event that was not durable yet when it was judged:
    /// the refusal may be told only when that event is.
    Refused(AppendError),
    /// It looks like a retry of a request that was not durable yet: judge it again now.
    JudgeAgain(Box<Append>),
}

/// Someone who waits for a batch to become durable.
pub(crate) struct Waiter {
    pub(crate) done: Completion,
    pub(crate) outcome: Outcome,
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
    pub(crate) waiters: Vec<Waiter>,
    /// Encoded bytes of requests among the waiters that are to be judged again.
    pub(crate) riding_bytes: usize,
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
            waiters: Vec::new(),
            riding_bytes: 0,
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

    pub(crate) fn last(&self) -> Position {
        self.first + u64::from(self.count) - 1
    }
}

impl Waiter {
    /// Tells the waiter; a request to be judged again is handed back.
    pub(crate) fn tell(
        self,
        head: Position,
        verdict: Result<(), &AppendError>,
    ) -> Option<(Append, Completion)> {
        match (verdict, self.outcome) {
            (Ok(()), Outcome::Appended { first, last, replayed }) => {
                call(self.done, Ok(Appended { first, last, head, replayed }));
            }
            (Ok(()), Outcome::Refused(error)) => call(self.done, Err(error)),
            (Ok(()), Outcome::JudgeAgain(append)) => return Some((*append, self.done)),
            (Err(error), _) => call(self.done, Err(error.clone())),
        }
        None
    }
}

/// Calls a completion. One that panics is its owner's mistake and must not keep
/// the others of its batch from being answered.
fn call(done: Completion, outcome: Result<Appended, AppendError>) {
    let _ = catch_unwind(AssertUnwindSafe(|| done(outcome)));
}
