//! Records handed over by another node's batcher: they are validated like untrusted input and then
//! form one request with a key.

use crate::append::{Append, Completion};
use crate::log::Log;
use std::fmt;
use wellspring_format::record::{EncodedEvents, RecordFault, RecordView, RequestKey, read_u32};
use wellspring_types::{EventRef, Invalid};

/// Maximum size of a piece that is handed over, in bytes; a single record may be longer.
pub const HANDED_OVER_BYTES: usize = 1 << 20;
/// Maximum number of records in a piece.
pub const HANDED_OVER_EVENTS: usize = 4000;

/// Why bytes cannot be accepted as records. They had no effect, and a retry does not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOverFault {
    /// There are no records.
    Empty,
    /// More bytes than [`HANDED_OVER_BYTES`], in more than one record.
    TooLong {
        /// Their size in bytes.
        bytes: usize,
    },
    /// More records than [`HANDED_OVER_EVENTS`].
    TooMany,
    /// A record is malformed.
    NotARecord {
        /// Its index, from 0.
        record: usize,
        /// The fault.
        fault: RecordFault,
    },
    /// A record already has a position or a time: it comes from a log.
    Stamped {
        /// Its index, from 0.
        record: usize,
    },
    /// A record has its own request key.
    Keyed {
        /// Its index, from 0.
        record: usize,
    },
    /// A record has sealed parts, which no shared log has.
    Sealed {
        /// Its index, from 0.
        record: usize,
    },
    /// An event violates a limit.
    Invalid(Invalid),
}

impl fmt::Display for HandedOverFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandedOverFault::Empty => write!(f, "no records were handed over"),
            HandedOverFault::TooLong { bytes } => write!(
                f,
                "{bytes} bytes of records exceed the limit of {HANDED_OVER_BYTES} at a time"
            ),
            HandedOverFault::TooMany => {
                write!(f, "the limit of {HANDED_OVER_EVENTS} records at a time is exceeded")
            }
            HandedOverFault::NotARecord { record, fault } => {
                write!(f, "record {record} cannot be read: {fault}")
            }
            HandedOverFault::Stamped { record } => {
                write!(f, "record {record} has a position or a time, which only the leader assigns")
            }
            HandedOverFault::Keyed { record } => {
                write!(f, "record {record} has a request key; pass the key of the piece separately")
            }
            HandedOverFault::Sealed { record } => {
                write!(f, "record {record} has sealed parts, which a shared log cannot store")
            }
            HandedOverFault::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl std::error::Error for HandedOverFault {}

impl Log {
    /// Appends records that another node's batcher hands over, in the form of its
    /// [`HandedPiece`](crate::batcher::HandedPiece), as one request with this key. `done` is called
    /// with the outcome, possibly before this returns. As for any append with a key, a repeated
    /// piece is stored once and gets the same answer, even while the first attempt is in progress.
    /// [`HandOverOutcome::of`](crate::batcher::HandOverOutcome::of) translates the outcome for the
    /// sender. Does not block.
    ///
    /// # Errors
    /// [`HandedOverFault`], which names the offending record; `done` is not called then.
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

/// The records as events to append, if they have the form that a producer encodes.
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
    // Without position and time, the checksum ends before them.
    if crc32c::crc32c(&bytes[24..]) != read_u32(bytes, 4) {
        return Err(not_a_record(RecordFault::Checksum));
    }
    let view = RecordView::parse(bytes).map_err(not_a_record)?;
    if view.request_key().is_some() {
        return Err(HandedOverFault::Keyed { record });
    }
    if !view.sealed_parts().is_empty() {
        return Err(HandedOverFault::Sealed { record });
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
