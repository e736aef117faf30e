//! The embedded journal: segment files, one barrier per batch.
//!
//! There is one writer at a time: opening the log claims the epoch, and a writer with an older
//! epoch can make nothing durable any more.

use super::segment_writer::SegmentWriter;
use super::{Journal, JournalBatch, JournalError, JournalLimits, Settlement};
use crate::options::Sync;
use crate::shared::Place;
use std::io;
use std::task::Waker;
use std::time::Duration;
use wellspring_types::Position;

/// Requests join a batch until it is taken or reaches this size.
const BATCH_BYTES: usize = 8 << 20;

/// Maximum wait of a closed log for what is staged; never reached, because a barrier or an error
/// settles each batch.
const UNTIL_SETTLED: Duration = Duration::from_secs(u32::MAX as u64);

pub(crate) struct FileJournal {
    writer: SegmentWriter,
    sync: Sync,
    epoch: u64,
    /// Written but not reported yet.
    durable: Option<JournalBatch>,
    /// Whether a write or a barrier has failed: what it covered is in doubt, and a later success
    /// proves nothing.
    broken: bool,
}

impl FileJournal {
    /// A journal that continues where the writer is.
    pub(crate) fn new(writer: SegmentWriter, sync: Sync, epoch: u64) -> FileJournal {
        FileJournal { writer, sync, epoch, durable: None, broken: false }
    }

    fn barrier(&mut self) -> io::Result<()> {
        if self.broken {
            return Err(broken());
        }
        self.writer.barrier().inspect_err(|_| self.broken = true)
    }

    fn append(&mut self, batch: &mut JournalBatch) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Refused(broken()));
        }
        if batch.segment_base != self.writer.base() {
            if self.writer.unsynced() {
                // Nothing of the batch that needs another segment has been written.
                self.barrier().map_err(JournalError::Refused)?;
            }
            self.writer.begin_segment(batch.segment_base, self.epoch, None)?;
        }
        self.writer.reserve(batch)?;
        if let Err(error) = self.writer.write(batch, self.epoch, Place(0)) {
            // Some of it may have been written: it must not be overwritten or covered by a later
            // barrier.
            self.broken = true;
            return Err(JournalError::Unknown(error));
        }
        if self.sync == Sync::Always {
            self.barrier().map_err(JournalError::Unknown)?;
        }
        self.writer.prepare_ahead();
        Ok(())
    }
}

fn broken() -> io::Error {
    io::Error::other("an earlier write or barrier failed")
}

impl Journal for FileJournal {
    fn limits(&self) -> JournalLimits {
        JournalLimits {
            batch_bytes: BATCH_BYTES,
            settles_at_once: true,
            lends_threads: false,
            close_patience: UNTIL_SETTLED,
        }
    }

    fn takes_another(&self) -> bool {
        self.durable.is_none()
    }

    fn offer(&mut self, mut batch: JournalBatch) -> Result<(), (JournalBatch, JournalError)> {
        match self.append(&mut batch) {
            Ok(()) => {
                self.durable = Some(batch);
                Ok(())
            }
            Err(error) => Err((batch, error)),
        }
    }

    fn next(&mut self, _waker: &Waker) -> Result<Settlement, JournalError> {
        Ok(self.durable.take().map_or(Settlement::Nothing, Settlement::Durable))
    }

    fn keep(&mut self, _batch: &mut JournalBatch) -> Result<(), JournalError> {
        unreachable!("a log of files has one node")
    }

    fn end(&self) -> (Position, u64) {
        self.writer.end()
    }

    fn has_room(&mut self, bytes: u64) -> bool {
        self.writer.has_room(bytes)
    }

    fn sync(&mut self) -> Result<(), io::Error> {
        if self.unsynced() {
            self.barrier()?;
        }
        Ok(())
    }

    fn unsynced(&self) -> bool {
        self.writer.unsynced()
    }
}
