//! The interface behind which batches become durable. Judging, positions, index, reads and
//! subscriptions are implemented once, above it; a journal keeps batches in order and reports the
//! true outcome of each.
//!
//! - [`file`]: segment files; the local barrier is the commit.
//! - [`shared`]: a [shared log](crate::shared), on which several nodes agree; arrival is the
//!   commit, and the local segments are its first view.
//! - [`segment_writer`]: writes the segments of both.

mod epoch;
mod file;
mod next_segment;
mod segment_writer;
mod shared;

pub(crate) use epoch::{EPOCH_FILE, KeptFile, all_lost, claim_epoch, keep_epoch, was_claimed};
pub(crate) use file::FileJournal;
pub(crate) use segment_writer::{Resume, SegmentWriter, create_segment};
pub(crate) use shared::{
    Confirmations, CopyIdentity, JOURNAL_FILE, LeadOrder, Origin, SharedCounters, SharedJournal,
};

use crate::role::Role;
use crate::shared::rule::AcceptedBatch;
use crate::shared::{Fetched, Place, SharedLogError};
use crate::storage::StorageFile;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use wellspring_format::batch::{BATCH_HEADER_BYTES, BatchHeader, seal};
use wellspring_format::segment::Features;
use wellspring_types::Position;

/// A batch for the journal: the header fields known to the sequencer, and the records.
#[derive(Debug)]
pub(crate) struct JournalBatch {
    /// Base of its segment.
    pub(crate) segment_base: Position,
    /// Offset of its header in the segment.
    pub(crate) offset: u32,
    /// Position of its first event.
    pub(crate) first: Position,
    /// Number of events.
    pub(crate) count: u32,
    /// When its last event was recorded.
    pub(crate) recorded_at_us: u64,
    /// What it takes to read it.
    pub(crate) features: Features,
    /// Space for the batch header, which the journal fills in, followed by the records.
    pub(crate) bytes: Vec<u8>,
}

/// Why a batch is not durable.
#[derive(Debug)]
pub(crate) enum JournalError {
    /// No room. None of the batch can ever appear; the journal continues.
    Full,
    /// The system refused for a possibly temporary reason (no descriptors, no memory, a device
    /// error before anything was written). None of the batch can ever appear, and the journal is
    /// unchanged.
    Retry(io::Error),
    /// None of the batch can ever appear, but the journal is broken.
    Refused(io::Error),
    /// The batch may or may not appear after recovery; the journal is broken.
    Unknown(io::Error),
}

/// The limits of a journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalLimits {
    /// Requests join a batch until it reaches this size in bytes.
    pub(crate) batch_bytes: usize,
    /// Whether a batch is settled once offered, without waiting for others.
    pub(crate) settles_at_once: bool,
    /// Whether the thread that wakes the journal may work for it.
    pub(crate) lends_threads: bool,
    /// How long a closed log waits for what it has offered.
    pub(crate) close_patience: Duration,
}

/// A settled outcome.
#[derive(Debug)]
pub(crate) enum Settlement {
    /// The oldest offered batch is durable, and in its segment.
    Durable(JournalBatch),
    /// A batch of another node is durable: it must be indexed and then [kept](Journal::keep).
    /// Reported again until it is kept.
    Foreign(Arc<AcceptedBatch>),
    /// This node's role has changed. The batches are those that were offered and never will be
    /// durable; other offered batches stay in doubt.
    Role { role: Role, lost: Vec<JournalBatch> },
    /// Something arrived that settles nothing; there may be more.
    Passed,
    /// Nothing at present.
    Nothing,
}

/// A place that stores batches.
pub(crate) trait Journal: Send {
    fn limits(&self) -> JournalLimits;

    /// Whether another batch may be offered before an earlier one is settled.
    fn takes_another(&self) -> bool;

    /// Accepts a batch after all previous ones. The journal of files has made it as durable as
    /// configured on return; a shared log only sends it.
    ///
    /// # Errors
    /// The batch, and why it is not durable.
    fn offer(&mut self, batch: JournalBatch) -> Result<(), (JournalBatch, JournalError)>;

    /// The next settled outcome, oldest first. Never blocks; if there is none, `waker` is woken
    /// when asking again is worthwhile.
    ///
    /// # Errors
    /// Only [`JournalError::Full`] and [`Retry`](JournalError::Retry): a batch that is durable
    /// elsewhere could not be written here; it is tried again.
    fn next(&mut self, waker: &Waker) -> Result<Settlement, JournalError>;

    /// Writes a batch of another node into its segment.
    ///
    /// # Errors
    /// [`JournalError::Full`] and [`Retry`](JournalError::Retry); the batch is reported again.
    fn keep(&mut self, batch: &mut JournalBatch) -> Result<(), JournalError>;

    /// Base of the active segment and the offset after its last batch.
    fn end(&self) -> (Position, u64);

    /// Everything up to this place is in the segments. [`Place`]`(0)` in a log of files.
    fn place(&self) -> Place {
        Place(0)
    }

    /// Whether there is room for a batch of about `bytes`, where it would be written.
    fn has_room(&mut self, bytes: u64) -> bool;

    /// Makes a barrier for everything appended, under a journal that delays them.
    fn sync(&mut self) -> Result<(), io::Error>;

    /// Whether appended batches still need a later barrier.
    fn unsynced(&self) -> bool;

    /// Entries of the shared log after a place, to repair a copy; none for a log of files.
    ///
    /// # Errors
    /// [`SharedLogError`].
    fn fetch(&mut self, _after: Place) -> Result<Fetched, SharedLogError> {
        Ok(Fetched::Entries(Vec::new()))
    }

    /// The active segment has been rewritten: its header and its end are the same, except for the
    /// checksum of its last batch.
    fn replace_active(&mut self, _file: Arc<dyn StorageFile>, _at: Resume) {}

    /// Time until the journal has something to do on its own, if any.
    fn due_in(&mut self) -> Option<Duration> {
        None
    }
}

impl JournalBatch {
    /// The position of its last event.
    pub(crate) fn last(&self) -> Position {
        self.first + u64::from(self.count) - 1
    }

    /// The offset after it in its segment.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.offset) + self.bytes.len() as u64
    }

    /// Size of its records.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bytes.len() - wellspring_format::batch::BATCH_HEADER_BYTES
    }

    /// Its records, stamped.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[BATCH_HEADER_BYTES..]
    }

    /// Completes the header with the fields that only the journal knows.
    pub(crate) fn seal(&mut self, salt: u64, known: &SealedBy) -> u32 {
        let body = &self.bytes[BATCH_HEADER_BYTES..];
        let header = BatchHeader {
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
        seal(&mut self.bytes, u64::from(self.offset), header, salt)
    }
}

/// The header fields that only the journal knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedBy {
    pub(crate) epoch: u64,
    pub(crate) place: Place,
    pub(crate) previous_crc: u32,
    pub(crate) synced_to: u32,
}
