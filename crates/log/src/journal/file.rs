//! The embedded journal: checksummed segment files, one barrier per batch.
//!
//! The last segment is extended with zeros ahead of need, geometrically, so
//! that an empty store costs kilobytes and a busy one overwrites blocks that
//! are already allocated: that makes the barrier cheaper (no allocation or
//! length to journal) and lets `ENOSPC` appear before a batch is written.

use super::{Journal, JournalBatch, JournalError, Resume};
use crate::batch::BATCH_HEADER_BYTES;
use crate::error::OpenError;
use crate::histogram::{self, Recorder};
use crate::options::{Clock, Sync};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use crate::segments::Segments;
use crate::storage::{Storage, StorageFile, replace_file, write_under};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use wellspring_types::Position;

const EPOCH_FILE: &str = "epoch";
/// First extension of a segment; doubles with its size up to [`LARGEST_GROWTH_BYTES`].
const SMALLEST_GROWTH_BYTES: u64 = 16 << 10;
const LARGEST_GROWTH_BYTES: u64 = 4 << 20;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

pub(crate) struct FileJournal {
    storage: Arc<dyn Storage>,
    segments: Arc<Segments>,
    clock: Arc<dyn Clock>,
    sync: Sync,
    epoch: u64,
    active: Active,
    barriers_us: Arc<Recorder>,
    /// A barrier has failed: what it covered is in doubt, and a later one that succeeds proves nothing.
    broken: bool,
}

/// The segment being written.
struct Active {
    file: Arc<dyn StorageFile>,
    base: Position,
    salt: u64,
    last_crc: u32,
    /// Offset after the last batch written.
    end: u64,
    /// Offset before which a barrier has passed.
    synced_to: u64,
    /// Length of the file: zeros from `end` to here.
    allocated: u64,
}

/// Claims the next epoch: after this no earlier writer's tokens are worth anything.
pub(crate) fn claim_epoch(storage: &dyn Storage) -> Result<u64, OpenError> {
    let failed = |error| OpenError::Io { doing: format!("claiming {EPOCH_FILE}"), error };
    let previous = match storage.open(EPOCH_FILE) {
        Ok(file) => {
            let mut text = [0u8; 20];
            let len = file.read_at(&mut text, 0).map_err(failed)?;
            let digits = std::str::from_utf8(&text[..len]).unwrap_or_default();
            digits.trim().parse::<u64>().map_err(|_| {
                failed(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "not a number; restore the file or write a number larger than any epoch used",
                ))
            })?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(failed(error)),
    };
    let epoch = previous + 1;
    replace_file(storage, EPOCH_FILE, format!("{epoch}\n").as_bytes()).map_err(failed)?;
    Ok(epoch)
}

/// Makes the file of an empty segment, durable under its final name.
pub(crate) fn create_segment(
    storage: &dyn Storage,
    base: Position,
    epoch: u64,
) -> io::Result<(Arc<dyn StorageFile>, SegmentHeader)> {
    let salt = RandomState::new().hash_one((base, epoch));
    let header = SegmentHeader { base, salt, epoch };
    let name = segment_name(base);
    let temporary = format!("{name}.tmp");
    let file = write_under(storage, &temporary, &header.encode())?;
    storage.rename(&temporary, &name)?;
    // From the rename on the segment may be found after a crash. A full disk is
    // no answer here: it would promise that nothing can appear.
    storage.sync_dir().map_err(|error| io::Error::other(error.to_string()))?;
    Ok((file, header))
}

impl FileJournal {
    /// A journal that goes on where recovery found the end.
    pub(crate) fn resume(
        storage: Arc<dyn Storage>,
        segments: Arc<Segments>,
        clock: Arc<dyn Clock>,
        sync: Sync,
        epoch: u64,
        at: Resume,
        file: Arc<dyn StorageFile>,
    ) -> io::Result<FileJournal> {
        let allocated = file.len()?;
        let active = Active {
            file,
            base: at.base,
            salt: at.salt,
            last_crc: at.last_crc,
            end: at.end,
            synced_to: at.end,
            allocated,
        };
        Ok(FileJournal {
            storage,
            segments,
            clock,
            sync,
            epoch,
            active,
            barriers_us: Arc::new(Recorder::new(&histogram::BARRIER_US)),
            broken: false,
        })
    }

    /// Where the time of each barrier is counted.
    pub(crate) fn barriers_us(&self) -> Arc<Recorder> {
        Arc::clone(&self.barriers_us)
    }

    fn barrier(&mut self) -> io::Result<()> {
        let start = self.clock.monotonic_us();
        if self.broken {
            return Err(io::Error::other("an earlier barrier failed"));
        }
        self.active.file.sync_data().inspect_err(|_| self.broken = true)?;
        self.barriers_us.record(self.clock.monotonic_us().saturating_sub(start));
        self.active.synced_to = self.active.end;
        Ok(())
    }

    /// Ends the active segment and begins the one with this base.
    fn rotate(&mut self, base: Position) -> Result<(), JournalError> {
        if self.active.synced_to < self.active.end {
            self.barrier().map_err(JournalError::Unknown)?;
        }
        let (file, header) = match create_segment(&*self.storage, base, self.epoch) {
            Ok(made) => made,
            Err(error) if is_full(&error) => return Err(JournalError::Full),
            Err(error) => return Err(JournalError::Refused(error)),
        };
        // Zeros after the end of a full segment are of no use any more. Losing
        // this cut in a crash is harmless: recovery accepts zeros there.
        let _ = self.active.file.set_len(self.active.end);
        self.segments.set_file(base, Arc::clone(&file));
        let end = SEGMENT_HEADER_BYTES as u64;
        self.active = Active {
            file,
            base,
            salt: header.salt,
            last_crc: 0,
            end,
            synced_to: end,
            allocated: end,
        };
        Ok(())
    }

    /// Makes sure that `len` bytes at the end overwrite zeros that are already in the file.
    fn reserve(&mut self, len: u64) -> io::Result<()> {
        let needed = self.active.end + len;
        if needed <= self.active.allocated {
            return Ok(());
        }
        let growth = self.active.allocated.clamp(SMALLEST_GROWTH_BYTES, LARGEST_GROWTH_BYTES);
        let comfortable = (needed + growth).next_multiple_of(4096);
        match self.extend(comfortable) {
            // Near the end of the disk, what is needed now may still fit.
            Err(error) if is_full(&error) => self.extend(needed),
            other => other,
        }
    }

    fn extend(&mut self, to: u64) -> io::Result<()> {
        let from = self.active.allocated;
        let mut at = from;
        while at < to {
            let len = (to - at).min(ZEROS.len() as u64);
            if let Err(error) = self.active.file.write_all_at(&ZEROS[..len as usize], at) {
                // Give back what did fit: reads and other files may need it.
                let _ = self.active.file.set_len(from);
                return Err(error);
            }
            at += len;
        }
        self.active.allocated = to;
        Ok(())
    }
}

fn is_full(error: &io::Error) -> bool {
    // A limit on the size of files (`ulimit -f`) is a full disk, too.
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

impl Journal for FileJournal {
    fn append(&mut self, batch: &mut JournalBatch<'_>) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Refused(io::Error::other("an earlier barrier failed")));
        }
        if batch.segment_base != self.active.base {
            self.rotate(batch.segment_base)?;
        }
        debug_assert_eq!(u64::from(batch.offset), self.active.end);
        match self.reserve(batch.bytes.len() as u64) {
            Ok(()) => {}
            Err(error) if is_full(&error) => return Err(JournalError::Full),
            Err(error) => return Err(JournalError::Refused(error)),
        }
        let crc = batch.seal(
            self.active.salt,
            self.epoch,
            self.active.last_crc,
            self.active.synced_to as u32,
        );
        if let Err(error) = self.active.file.write_all_at(batch.bytes, self.active.end) {
            return Err(JournalError::Unknown(error));
        }
        self.active.end += batch.bytes.len() as u64;
        self.active.last_crc = crc;
        if self.sync == Sync::Always {
            self.barrier().map_err(JournalError::Unknown)?;
        }
        Ok(())
    }

    fn end(&self) -> (Position, u64) {
        (self.active.base, self.active.end)
    }

    fn has_room(&mut self, bytes: u64) -> bool {
        self.reserve(bytes + BATCH_HEADER_BYTES as u64).is_ok()
    }

    fn sync(&mut self) -> Result<(), io::Error> {
        if self.unsynced() {
            self.barrier()?;
        }
        Ok(())
    }

    fn unsynced(&self) -> bool {
        self.active.synced_to < self.active.end
    }
}
