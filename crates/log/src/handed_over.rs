//! Records that another node's batcher hands over: its bytes are checked like a stranger's, then
//! they are one request with a key.

use crate::append::{Append, Completion};
use crate::log::Log;
use crate::record::{EncodedEvents, RecordFault, RecordView, RequestKey, read_u32};
use std::fmt;
use wellspring_types::{EventRef, Invalid};

/// Most bytes of a piece that is handed over; a single record may be longer.
pub const HANDED_OVER_BYTES: usize = 1 << 20;
/// Most records of a piece that is handed over.
pub const HANDED_OVER_EVENTS: usize = 4000;

/// Why bytes are no records that can be taken over. Nothing was done, and a retry does not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOverFault {
    /// There are none.
    Empty,
    /// More bytes than [`HANDED_OVER_BYTES`], in more than one record.
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// More records than [`HANDED_OVER_EVENTS`].
    TooMany,
    /// Something is not a record.
    NotARecord {
        /// Which one, from 0.
        record: usize,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// A record has a position or a time already: it was taken from a log.
    Stamped {
        /// Which one, from 0.
        record: usize,
    },
    /// A record has a request key of its own.
    Keyed {
        /// Which one, from 0.
        record: usize,
    },
    /// An event breaks a limit.
    Invalid(Invalid),
}

impl fmt::Display for HandedOverFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandedOverFault::Empty => write!(f, "no records were handed over"),
            HandedOverFault::TooLong { bytes } => write!(
                f,
                "{bytes} bytes of records are too many at a time; the limit is {HANDED_OVER_BYTES}"
            ),
            HandedOverFault::TooMany => {
                write!(f, "more than {HANDED_OVER_EVENTS} records are too many at a time")
            }
            HandedOverFault::NotARecord { record, fault } => {
                write!(f, "record {record} cannot be read: {fault}")
            }
            HandedOverFault::Stamped { record } => {
                write!(f, "record {record} has a position or a time; only who leads gives them")
            }
            HandedOverFault::Keyed { record } => {
                write!(f, "record {record} has a request key; the key of the piece is given apart")
            }
            HandedOverFault::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl std::error::Error for HandedOverFault {}

impl Log {
    /// Takes records that the batcher of another node hands over, as its
    /// [`HandedPiece`](crate::batcher::HandedPiece) has them: one request with this key. `done` is
    /// called with the outcome, perhaps before this returns: as for an append with a key, so that a
    /// piece that comes again is stored once and answered the same, also while the first is still
    /// under way. What it means to the giver is told by
    /// [`HandOverOutcome::of`](crate::batcher::HandOverOutcome::of). Nothing is waited for.
    ///
    /// # Errors
    /// [`HandedOverFault`], which names the record at fault; `done` is not called then.
    pub fn take_handed_over(
        &self,
        records: &[u8],
        key: RequestKey,
        done: Completion,
    ) -> Result<(), HandedOverFault> {
        let events = check(records)?;
        self.submit(Append { events, key: Some(key), ..Append::default() }, done);
        Ok(())
    }
}

/// The records as events to be appended, if they are as a producer encodes them.
fn check(records: &[u8]) -> Result<EncodedEvents, HandedOverFault> {
    let mut rest = records;
    let mut count = 0;
    while !rest.is_empty() {
        if count == HANDED_OVER_EVENTS {
            return Err(HandedOverFault::TooMany);
        }
        let not_a_record = |fault| HandedOverFault::NotARecord { record: count, fault };
        let split = RecordView::length(rest).and_then(|len| rest.split_at_checked(len));
        let (record, behind) = split.ok_or(not_a_record(RecordFault::Length))?;
        if count == 1 && records.len() > HANDED_OVER_BYTES {
            return Err(HandedOverFault::TooLong { bytes: records.len() });
        }
        check_record(count, record)?;
        rest = behind;
        count += 1;
    }
    match count {
        0 => Err(HandedOverFault::Empty),
        _ => Ok(EncodedEvents::of_records(records.to_vec(), count as u32)),
    }
}

fn check_record(record: usize, bytes: &[u8]) -> Result<(), HandedOverFault> {
    let not_a_record = |fault| HandedOverFault::NotARecord { record, fault };
    if bytes[8..24].iter().any(|byte| *byte != 0) {
        return Err(HandedOverFault::Stamped { record });
    }
    // Without position and time it ends before them.
    if crc32c::crc32c(&bytes[24..]) != read_u32(bytes, 4) {
        return Err(not_a_record(RecordFault::Checksum));
    }
    let view = RecordView::parse(bytes).map_err(not_a_record)?;
    if view.request_key().is_some() {
        return Err(HandedOverFault::Keyed { record });
    }
    let tags: Vec<&str> = view.tags().collect();
    let metadata: Vec<(&str, &str)> = view.metadata().collect();
    let event = EventRef {
        event_type: view.event_type(),
        tags: &tags,
        data: view.data(),
        kind: view.kind(),
        id: view.id(),
        metadata: &metadata,
    };
    event
        .check()
        .map_err(|invalid| HandedOverFault::Invalid(invalid.within(&format!("events[{record}]"))))
}
