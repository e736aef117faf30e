//! Writes checksummed batches into segment files, one after another. The journal decides when to
//! make a barrier and when a batch is durable.
//!
//! The last segment is extended with zeros in advance, geometrically, so that an empty store takes
//! kilobytes and a busy one overwrites allocated blocks. That makes barriers cheaper (no allocation
//! or length to journal) and reveals `ENOSPC` before a batch is written.

use super::next_segment::{NextSegment, nothing_happened};
use super::{JournalBatch, JournalError, SealedBy};
use crate::histogram::{self, Recorder};
use crate::options::{Clock, Options};
use crate::segments::Segments;
use crate::shared::Place;
use crate::storage::{Storage, StorageFile, is_full, write_under};
use std::io;
use std::sync::Arc;
use wellspring_format::batch::BATCH_HEADER_BYTES;
use wellspring_format::segment::{
    Features, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentSource, draw_salt, segment_name,
};
use wellspring_types::Position;

/// First extension of a segment; doubles with its size up to [`LARGEST_GROWTH_BYTES`].
const SMALLEST_GROWTH_BYTES: u64 = 16 << 10;
const LARGEST_GROWTH_BYTES: u64 = 4 << 20;
/// The next segment's file is created when the active one reaches this size or is seven eighths
/// full: a segment can end early when its index has grown large.
const PREPARE_AT_BYTES: u64 = 1 << 20;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

pub(crate) struct SegmentWriter {
    storage: Arc<dyn Storage>,
    segments: Arc<Segments>,
    clock: Arc<dyn Clock>,
    /// Approximate size at which segments end.
    segment_bytes: u64,
    active: ActiveSegment,
    /// The file of the next segment, once created.
    next: Option<NextSegment>,
    /// Offset in the active segment at which the next one's file is created.
    prepare_at: u64,
    barriers_us: Arc<Recorder>,
}

/// Where writing continues: after the last recovered batch of a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resume {
    pub(crate) header: SegmentHeader,
    /// Offset after the last valid batch.
    pub(crate) end: u64,
    /// CRC of the last valid batch's header, 0 if there is none.
    pub(crate) last_crc: u32,
}

/// The segment being written.
struct ActiveSegment {
    file: Arc<dyn StorageFile>,
    header: SegmentHeader,
    last_crc: u32,
    /// Offset after the last batch written.
    end: u64,
    /// Offset that a barrier has covered.
    synced_to: u64,
    /// Size of the file: zeros from `end` to here.
    allocated: u64,
}

/// Creates the file of an empty segment, durable under its final name.
pub(crate) fn create_segment(
    storage: &dyn Storage,
    base: Position,
    epoch: u64,
    source: Option<SegmentSource>,
) -> io::Result<(Arc<dyn StorageFile>, SegmentHeader)> {
    let salt = draw_salt();
    let header = SegmentHeader { base, salt, epoch, source, features: Features::None };
    let name = segment_name(base);
    let temporary = format!("{name}.tmp");
    let file = write_under(storage, &temporary, |file| file.write_all_at(&header.encode(), 0))?;
    storage.rename(&temporary, &name)?;
    // From the rename on, a crash may leave the segment. `Full` must not be returned here, because
    // it promises that nothing can appear.
    storage.sync_dir().map_err(|error| io::Error::other(error.to_string()))?;
    Ok((file, header))
}

impl SegmentWriter {
    /// A writer that continues at the recovered end.
    pub(crate) fn resume(
        storage: Arc<dyn Storage>,
        segments: Arc<Segments>,
        options: &Options,
        at: Resume,
        file: Arc<dyn StorageFile>,
    ) -> io::Result<SegmentWriter> {
        let segment_bytes = u64::from(options.segment_bytes);
        let allocated = file.len()?;
        let active = ActiveSegment {
            file,
            header: at.header,
            last_crc: at.last_crc,
            end: at.end,
            synced_to: at.end,
            allocated,
        };
        Ok(SegmentWriter {
            storage,
            segments,
            clock: Arc::clone(&options.clock),
            segment_bytes,
            active,
            next: None,
            prepare_at: prepare_at(segment_bytes),
            barriers_us: Arc::new(Recorder::new(&histogram::BARRIER_US)),
        })
    }

    /// Records the duration of each barrier.
    pub(crate) fn barriers_us(&self) -> Arc<Recorder> {
        Arc::clone(&self.barriers_us)
    }

    /// Base of the active segment.
    pub(super) fn base(&self) -> Position {
        self.active.header.base
    }

    /// Base of the active segment and the offset after its last batch.
    pub(super) fn end(&self) -> (Position, u64) {
        (self.active.header.base, self.active.end)
    }

    /// Whether anything written is not covered by a barrier yet.
    pub(super) fn unsynced(&self) -> bool {
        self.active.synced_to < self.active.end
    }

    /// Bytes that no barrier has covered yet.
    pub(super) fn unsynced_bytes(&self) -> u64 {
        self.active.end - self.active.synced_to
    }

    /// Makes everything written durable.
    ///
    /// # Errors
    /// An error of the file system. Everything not covered by an earlier barrier is then in doubt,
    /// and a later successful barrier proves nothing about it.
    pub(super) fn barrier(&mut self) -> io::Result<()> {
        let start = self.clock.monotonic_us();
        self.active.file.sync_data()?;
        self.barriers_us.record(self.clock.monotonic_us().saturating_sub(start));
        self.active.synced_to = self.active.end;
        Ok(())
    }

    /// Ends the active segment and begins the one with this base.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub(super) fn begin_segment(
        &mut self,
        base: Position,
        epoch: u64,
        source: Option<SegmentSource>,
    ) -> Result<(), JournalError> {
        assert!(base > self.base(), "segments come in order");
        let next = match self.next.take() {
            Some(next) => next,
            None => NextSegment::prepare(&*self.storage).map_err(nothing_happened)?,
        };
        let begun = next.begin(&*self.storage, base, epoch, source)?;
        // Zeros after the end of a full segment are useless. If a crash undoes this truncation, no
        // harm is done: recovery accepts zeros there.
        let _ = self.active.file.set_len(self.active.end);
        self.segments.set_file(base, Arc::clone(&begun.file));
        let end = SEGMENT_HEADER_BYTES as u64;
        self.active = ActiveSegment {
            file: begun.file,
            header: begun.header,
            last_crc: 0,
            end,
            synced_to: end,
            allocated: begun.allocated,
        };
        self.prepare_at = prepare_at(self.segment_bytes);
        Ok(())
    }

    /// Creates the next segment's file once it is nearly needed. If that fails, there is time to
    /// try again.
    pub(super) fn prepare_ahead(&mut self) {
        if self.next.is_none() && self.active.end >= self.prepare_at {
            self.next = NextSegment::prepare(&*self.storage).ok();
            self.prepare_at = self.active.end + self.segment_bytes / 64;
        }
    }

    /// Whether the next segment's file has room for `bytes` after its header; extends it if
    /// necessary.
    fn next_has_room(&mut self, bytes: u64) -> bool {
        if self.next.is_none() {
            self.next = NextSegment::prepare(&*self.storage).ok();
        }
        let needed = SEGMENT_HEADER_BYTES as u64 + bytes;
        self.next.as_mut().is_some_and(|next| next.reserve(needed).is_ok())
    }

    /// Continues in another file of the active segment with the same end.
    pub(super) fn replace_active(&mut self, file: Arc<dyn StorageFile>, at: Resume) {
        let Resume { header, end, last_crc } = at;
        assert_eq!((header.base, end), self.end(), "the same segment");
        self.active = ActiveSegment { file, header, last_crc, end, synced_to: end, allocated: end };
    }

    /// Ensures that a batch will overwrite zeros that are already in the file. Called before any of
    /// it is written or sent.
    ///
    /// # Errors
    /// [`JournalError::Full`] and [`Retry`](JournalError::Retry): nothing has happened.
    pub(super) fn reserve(&mut self, batch: &JournalBatch) -> Result<(), JournalError> {
        if batch.segment_base == self.base() {
            return self.reserve_to(batch.end()).map_err(nothing_happened);
        }
        if self.next.is_none() {
            self.next = Some(NextSegment::prepare(&*self.storage).map_err(nothing_happened)?);
        }
        let next = self.next.as_mut().expect("just made");
        next.reserve(batch.end()).map_err(nothing_happened)
    }

    /// Ensures that the active segment's file reaches this offset.
    fn reserve_to(&mut self, needed: u64) -> io::Result<()> {
        if needed <= self.active.allocated {
            return Ok(());
        }
        let growth = self.active.allocated.clamp(SMALLEST_GROWTH_BYTES, LARGEST_GROWTH_BYTES);
        let comfortable = (needed + growth).next_multiple_of(4096);
        match self.extend(comfortable) {
            // Near the end of the disk, the amount needed now may still fit.
            Err(error) if is_full(&error) => self.extend(needed),
            other => other,
        }
    }

    fn extend(&mut self, to: u64) -> io::Result<()> {
        extend_with_zeros(&*self.active.file, self.active.allocated, to)?;
        self.active.allocated = to;
        Ok(())
    }

    /// Writes a [reserved](Self::reserve) batch of the active segment at its end.
    ///
    /// # Errors
    /// An error of the file system; some of it may have been written. Another attempt overwrites
    /// it.
    pub(super) fn write(
        &mut self,
        batch: &mut JournalBatch,
        epoch: u64,
        place: Place,
    ) -> io::Result<()> {
        assert_eq!(batch.segment_base, self.base(), "a batch of this segment");
        self.require_features(batch.features)?;
        assert_eq!(u64::from(batch.offset), self.active.end, "batches follow each other");
        let known = SealedBy {
            epoch,
            place,
            previous_crc: self.active.last_crc,
            synced_to: self.active.synced_to as u32,
        };
        let crc = batch.seal(self.active.header.salt, &known);
        self.active.file.write_all_at(&batch.bytes, self.active.end)?;
        self.active.end += batch.bytes.len() as u64;
        self.active.last_crc = crc;
        Ok(())
    }

    /// Makes sure that the header of the active segment names what its next batch needs: durably
    /// before any of the batch, so that no program reads the batch without knowing it. The header
    /// is part of one sector, which a disk writes whole.
    fn require_features(&mut self, features: Features) -> io::Result<()> {
        let was = self.active.header.features;
        if features == Features::None || was == features {
            return Ok(());
        }
        let header = SegmentHeader { features, ..self.active.header };
        self.active.file.write_all_at(&header.encode(), 0)?;
        self.barrier()?;
        self.active.header = header;
        Ok(())
    }

    /// Whether there is room for a batch of about `bytes`, where it would be written.
    pub(super) fn has_room(&mut self, bytes: u64) -> bool {
        let needed = bytes + BATCH_HEADER_BYTES as u64;
        let empty = self.active.end == SEGMENT_HEADER_BYTES as u64;
        if empty || self.active.end + needed <= self.segment_bytes {
            self.reserve_to(self.active.end + needed).is_ok()
        } else {
            self.next_has_room(needed)
        }
    }
}

fn prepare_at(segment_bytes: u64) -> u64 {
    (segment_bytes / 8 * 7).min(PREPARE_AT_BYTES)
}

/// Writes zeros between two offsets at the end of a file.
///
/// # Errors
/// An error of the file system; the file is truncated to `from` then, because reads and other files
/// may need the space.
pub(super) fn extend_with_zeros(file: &dyn StorageFile, from: u64, to: u64) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let len = (to - at).min(ZEROS.len() as u64);
        if let Err(error) = file.write_all_at(&ZEROS[..len as usize], at) {
            let _ = file.set_len(from);
            return Err(error);
        }
        at += len;
    }
    Ok(())
}
