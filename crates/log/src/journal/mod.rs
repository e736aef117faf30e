//! The seam behind which a batch becomes durable. Judging, positions, index, reads and
//! subscriptions are written once, above it; a journal keeps batches in order and says truthfully
//! what has become of each.
//!
//! - [`file`]: segment files; the local barrier is the commit.
//! - [`shared`]: a [shared log](crate::shared), on which several nodes agree; arrival is the
//!   commit, and the local segments are its first view.
//! - [`segment_writer`]: what both write segments with.

mod epoch;
mod file;
mod next_segment;
mod segment_writer;
mod shared;

pub(crate) use epoch::{claim_epoch, was_claimed};
pub(crate) use file::FileJournal;
pub(crate) use segment_writer::{Resume, SegmentWriter, create_segment};
pub(crate) use shared::{
    Confirmations, CopyIdentity, Order, Origin, SharedCounters, SharedJournal,
};

use crate::batch::BatchHeader;
use crate::role::Role;
use crate::shared::rule::AcceptedBatch;
use crate::shared::{Place, PlacedEntry, SharedLogError};
use crate::storage::StorageFile;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use wellspring_types::Position;

/// A batch on its way to the journal: header fields the sequencer knows, and the records.
#[derive(Debug)]
pub(crate) struct JournalBatch {
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
    pub(crate) bytes: Vec<u8>,
}

/// Why a batch is not durable.
#[derive(Debug)]
pub(crate) enum JournalError {
    /// No room. Nothing of the batch can ever appear; the journal goes on.
    Full,
    /// The system refused for a reason that may pass (no descriptors, no memory, an error of the
    /// device before anything was written). Nothing of the batch can ever appear, and the journal
    /// is as it was.
    Retry(io::Error),
    /// Nothing of the batch can ever appear, but the journal is broken.
    Refused(io::Error),
    /// The batch may or may not appear after recovery; the journal is broken.
    Unknown(io::Error),
}

/// What a journal takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalLimits {
    /// Requests go on joining a batch until it has this many bytes.
    pub(crate) batch_bytes: usize,
    /// Whether a batch is settled when it was offered, without a wait for anybody else.
    pub(crate) settles_at_once: bool,
    /// How long a log that is closed waits for what it has offered.
    pub(crate) close_patience: Duration,
}

/// What has become certain.
#[derive(Debug)]
pub(crate) enum Settlement {
    /// The oldest batch that was offered is durable, and in its segment.
    Durable(JournalBatch),
    /// A batch of another node is durable: to be indexed and then [kept](Journal::keep). Told again
    /// until it is kept.
    Foreign(Arc<AcceptedBatch>),
    /// What this node is to the log has changed. The batches are those that were offered and never
    /// will be durable; other batches that were offered before stay in doubt.
    Role { role: Role, lost: Vec<JournalBatch> },
    /// Something arrived that settles nothing; there may be more.
    Passed,
    /// Nothing at the moment.
    Nothing,
}

/// A place that keeps batches.
pub(crate) trait Journal: Send {
    fn limits(&self) -> JournalLimits;

    /// Whether another batch may be offered before one of those offered is settled.
    fn takes_another(&self) -> bool;

    /// Takes a batch after all before it. With files it is as durable as they promise on return; a
    /// shared log only sends it off.
    ///
    /// # Errors
    /// The batch, and why it is not durable.
    fn offer(&mut self, batch: JournalBatch) -> Result<(), (JournalBatch, JournalError)>;

    /// What is settled next, oldest first. Never waits; if there is nothing, `waker` is woken when
    /// it is worth while to ask again.
    ///
    /// # Errors
    /// [`JournalError::Full`] and [`Retry`](JournalError::Retry) alone: what is durable elsewhere
    /// could not be written here; it is tried again.
    fn next(&mut self, waker: &Waker) -> Result<Settlement, JournalError>;

    /// Writes a batch of another node into its segment.
    ///
    /// # Errors
    /// [`JournalError::Full`] and [`Retry`](JournalError::Retry); it is told again.
    fn keep(&mut self, batch: &mut JournalBatch) -> Result<(), JournalError>;

    /// Base of the segment being written and the offset after its last batch.
    fn end(&self) -> (Position, u64);

    /// Everything up to here is in the segments. [`Place`]`(0)` in a log of files.
    fn place(&self) -> Place {
        Place(0)
    }

    /// Whether a batch of about `bytes` would find room now, where it would be written.
    fn has_room(&mut self, bytes: u64) -> bool;

    /// A barrier for everything appended, under a journal that delays them.
    fn sync(&mut self) -> Result<(), io::Error>;

    /// Whether something was appended that a later barrier has to cover in time.
    fn unsynced(&self) -> bool;

    /// What stands in the shared log after a place, to mend a copy with; nothing in a log of files.
    ///
    /// # Errors
    /// [`SharedLogError`].
    fn fetch(&mut self, _after: Place) -> Result<Vec<PlacedEntry>, SharedLogError> {
        Ok(Vec::new())
    }

    /// The segment being written has been written anew: what its header says and where it ends are
    /// the same, but for the checksum of its last batch.
    fn replace_active(&mut self, _file: Arc<dyn StorageFile>, _at: Resume) {}

    /// How long until it does something by itself, if it does.
    fn due_in(&mut self) -> Option<Duration> {
        None
    }
}

impl JournalBatch {
    /// Position of its last event.
    pub(crate) fn last(&self) -> Position {
        self.first + u64::from(self.count) - 1
    }

    /// Offset after it in its segment.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.offset) + self.bytes.len() as u64
    }

    /// Bytes of its records.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bytes.len() - crate::batch::BATCH_HEADER_BYTES
    }

    /// Its records, stamped.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[crate::batch::BATCH_HEADER_BYTES..]
    }

    /// Completes the header with what only the journal knows.
    pub(crate) fn seal(&mut self, salt: u64, known: &SealedBy) -> u32 {
        use crate::batch::{BATCH_HEADER_BYTES, zero_slices};
        let body = &self.bytes[BATCH_HEADER_BYTES..];
        let mut header = BatchHeader {
            first: self.first,
            count: self.count,
            body_bytes: body.len() as u32,
            body_crc: crc32c::crc32c(body),
            zero_slices: 0,
            epoch: known.epoch,
            recorded_at_us: self.recorded_at_us,
            previous_crc: known.previous_crc,
            synced_to: known.synced_to,
            place: known.place,
        };
        // Slices that touch the header are counted with a header in place; the
        // count itself changes no byte from zero to non-zero that matters,
        // because the magic alone keeps the first slice from being zero, and a
        // second header slice is counted as written below.
        loop {
            let encoded = header.encode(salt);
            self.bytes[..BATCH_HEADER_BYTES].copy_from_slice(&encoded);
            let slices = zero_slices(&self.bytes, u64::from(self.offset));
            if slices == header.zero_slices {
                return crate::record::read_u32(&encoded, 4);
            }
            header.zero_slices = slices;
        }
    }
}

/// What a batch header says that only the journal knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedBy {
    pub(crate) epoch: u64,
    pub(crate) place: Place,
    pub(crate) previous_crc: u32,
    pub(crate) synced_to: u32,
}
