//! The file of the next segment, created in advance, so that beginning a segment needs no space and
//! no descriptor that a full disk or a busy process could refuse.
//!
//! The file has a temporary name and a few KiB of zeros. To begin the segment, its header is
//! written over the first of them and made durable, then the file is renamed, then the folder is
//! made durable. Until the rename, a crash leaves nothing of the segment: opening a log removes
//! files with temporary names.

use super::JournalError;
use super::segment_writer::extend_with_zeros;
use crate::storage::{Storage, StorageFile, is_full};
use std::io;
use std::sync::Arc;
use wellspring_format::segment::{
    Features, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentSource, draw_salt, segment_name,
};
use wellspring_types::Position;

/// Ends with `.tmp`, like all names that opening removes.
const NEXT_NAME: &str = "next.tmp";
/// Initial size of the file: enough for a small batch after the header.
const PREPARED_BYTES: u64 = 16 << 10;
/// `EIO`: the only error of a rename that leaves open whether it happened.
const EIO: i32 = 5;

/// A file for the next segment.
pub(super) struct NextSegment {
    file: Arc<dyn StorageFile>,
    /// Size of the file, which consists of zeros except for a header that a failed attempt may have
    /// left.
    pub(super) allocated: u64,
}

/// A segment that has begun: durable and empty, under its final name.
pub(super) struct BegunSegment {
    pub(super) file: Arc<dyn StorageFile>,
    pub(super) header: SegmentHeader,
    pub(super) allocated: u64,
}

/// The error of a batch of which nothing has been written, in an unchanged journal.
pub(super) fn nothing_happened(error: io::Error) -> JournalError {
    if is_full(&error) { JournalError::Full } else { JournalError::Retry(error) }
}

impl NextSegment {
    /// Creates the file.
    ///
    /// # Errors
    /// An error of the file system; nothing is left behind then.
    pub(super) fn prepare(storage: &dyn Storage) -> io::Result<NextSegment> {
        let prepare = || {
            let file = storage.create(NEXT_NAME)?;
            let allocated = match extend_with_zeros(&*file, 0, PREPARED_BYTES) {
                Ok(()) => PREPARED_BYTES,
                // A segment may still fit near the end of the disk.
                Err(error) if is_full(&error) => {
                    extend_with_zeros(&*file, 0, SEGMENT_HEADER_BYTES as u64)?;
                    SEGMENT_HEADER_BYTES as u64
                }
                Err(error) => return Err(error),
            };
            Ok(NextSegment { file, allocated })
        };
        prepare().inspect_err(|_| {
            let _ = storage.remove(NEXT_NAME);
        })
    }

    /// Extends the file to at least `bytes`.
    ///
    /// # Errors
    /// An error of the file system; the size is unchanged then.
    pub(super) fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.allocated {
            extend_with_zeros(&*self.file, self.allocated, bytes)?;
            self.allocated = bytes;
        }
        Ok(())
    }

    /// Makes it the file of the segment with this base.
    ///
    /// # Errors
    /// [`JournalError::Full`] and [`Retry`](JournalError::Retry): nothing was renamed, and another
    /// attempt creates another file. [`Refused`](JournalError::Refused): it may have been renamed.
    pub(super) fn begin(
        self,
        storage: &dyn Storage,
        base: Position,
        epoch: u64,
        source: Option<SegmentSource>,
    ) -> Result<BegunSegment, JournalError> {
        let salt = draw_salt();
        let header = SegmentHeader { base, salt, epoch, source, features: Features::None };
        let name = segment_name(base);
        let written =
            self.file.write_all_at(&header.encode(), 0).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            let _ = storage.remove(NEXT_NAME);
            return Err(nothing_happened(error));
        }
        if let Err(error) = storage.rename(NEXT_NAME, &name) {
            if error.raw_os_error() == Some(EIO) {
                return Err(JournalError::Refused(error));
            }
            let _ = storage.remove(NEXT_NAME);
            return Err(nothing_happened(error));
        }
        // From the rename on, a crash may leave the segment. `Full` must not be returned here,
        // because it promises that nothing can appear.
        storage.sync_dir().map_err(JournalError::Refused)?;
        Ok(BegunSegment { file: self.file, header, allocated: self.allocated })
    }
}
