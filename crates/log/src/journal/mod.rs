//! The seam behind which a batch becomes durable. Judging, positions, index,
//! reads and subscriptions are written once, above it; a journal only has to
//! keep batches in order and say truthfully when one is safe.

mod epoch;
mod file;
mod next_segment;

pub(crate) use epoch::{claim_epoch, was_claimed};
pub(crate) use file::{FileJournal, create_segment};

use crate::batch::BatchHeader;
use std::io;
use wellspring_types::Position;

/// A batch on its way to the journal: header fields the sequencer knows, and the records.
#[derive(Debug)]
pub(crate) struct JournalBatch<'a> {
    /// Base of the segment it belongs to.
    pub(crate) segment_base: Position,
    /// Where in the segment its header goes.
    pub(crate) offset: u32,
    /// Position of its first event.
    pub(crate) first: Position,
    /// Number of events.
    pub(crate) count: u32,
    /// When its last event was recorded.
    pub(crate) recorded_at_us: u64,
    /// Room for the batch header, then the records; the journal fills the header in.
    pub(crate) bytes: &'a mut [u8],
}

/// Why a batch is not durable.
#[derive(Debug)]
pub(crate) enum JournalError {
    /// No room. Nothing of the batch can ever appear; the journal goes on.
    Full,
    /// The system refused for a reason that may pass (no descriptors, no memory, an error of the
    /// device before anything was written). Nothing of the batch can ever appear, and the journal is
    /// as it was.
    Retry(io::Error),
    /// Nothing of the batch can ever appear, but the journal is broken.
    Refused(io::Error),
    /// The batch may or may not appear after recovery; the journal is broken.
    Unknown(io::Error),
}

/// A place that keeps batches.
///
/// One writer at a time: the epoch is claimed when a journal is opened, and a
/// writer whose epoch has passed can make nothing durable any more.
pub(crate) trait Journal: Send {
    /// Appends a batch after all before it; when it returns, the batch is as durable as the journal promises.
    fn append(&mut self, batch: &mut JournalBatch<'_>) -> Result<(), JournalError>;

    /// Base of the segment being written and the offset after its last batch.
    fn end(&self) -> (Position, u64);

    /// Whether a batch of about `bytes` would find room now, where it would be written.
    fn has_room(&mut self, bytes: u64) -> bool;

    /// A barrier for everything appended, under a journal that delays them.
    fn sync(&mut self) -> Result<(), io::Error>;

    /// Whether something was appended that no barrier has covered yet.
    fn unsynced(&self) -> bool;
}

/// What a journal needs to know to go on after the last recovered batch of a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resume {
    /// Base of the segment.
    pub(crate) base: Position,
    /// Its salt.
    pub(crate) salt: u64,
    /// Offset after the last good batch.
    pub(crate) end: u64,
    /// CRC of the last good batch's header, 0 if none.
    pub(crate) last_crc: u32,
}

impl JournalBatch<'_> {
    /// Completes the header with what only the journal knows.
    pub(crate) fn seal(&mut self, salt: u64, epoch: u64, previous_crc: u32, synced_to: u32) -> u32 {
        use crate::batch::{BATCH_HEADER_BYTES, zero_slices};
        let body = &self.bytes[BATCH_HEADER_BYTES..];
        let mut header = BatchHeader {
            first: self.first,
            count: self.count,
            body_bytes: body.len() as u32,
            body_crc: crc32c::crc32c(body),
            zero_slices: 0,
            epoch,
            recorded_at_us: self.recorded_at_us,
            previous_crc,
            synced_to,
        };
        // Slices that touch the header are counted with a header in place; the
        // count itself changes no byte from zero to non-zero that matters,
        // because the magic alone keeps the first slice from being zero, and a
        // second header slice is counted as written below.
        loop {
            let encoded = header.encode(salt);
            self.bytes[..BATCH_HEADER_BYTES].copy_from_slice(&encoded);
            let slices = zero_slices(self.bytes, u64::from(self.offset));
            if slices == header.zero_slices {
                return crate::record::read_u32(&encoded, 4);
            }
            header.zero_slices = slices;
        }
    }
}
