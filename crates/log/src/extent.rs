//! The durable bytes of an open log, for backups and for checks: a list of segments,
//! each with the part that holds events up to the head. These bytes never change.

use crate::error::{Corruption, ReadError};
use crate::segments::{OpenSegment, Run};
use crate::sequencer::Sequencer;
use crate::storage::{DeviceReader, Storage, StorageFile};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use wellspring_types::{HistoryId, Position};

/// What of a log is durable at one moment.
#[derive(Debug, Clone)]
pub struct Extent {
    /// The last durable position.
    pub head: Position,
    /// The log's history; `None` for a copy that does not know its shared log yet.
    pub history: Option<HistoryId>,
    /// Whether the log is a copy of a shared log.
    pub is_copy: bool,
    /// Its segments in order, at least one.
    pub segments: Vec<SegmentExtent>,
}

/// One segment of an [`Extent`].
#[derive(Debug, Clone)]
pub struct SegmentExtent {
    segment: Arc<OpenSegment>,
    /// In the segment that was being written: the offset after the last durable batch.
    end: Option<u64>,
    /// Position after its last event.
    next: Position,
}

/// An [`Extent`] as captured while the heads were held: a few numbers and a pointer.
#[derive(Debug)]
pub struct ExtentMark {
    head: Position,
    history: Option<HistoryId>,
    is_copy: bool,
    /// Base of the segment that was being written, and where its durable part ends.
    last: Position,
    end: u64,
    runs: Arc<Vec<Arc<Run>>>,
}

impl ExtentMark {
    pub(crate) fn of(sequencer: &Sequencer) -> ExtentMark {
        let head = sequencer.feed.head();
        let (last, end) = sequencer.durable_end.get();
        ExtentMark {
            head,
            history: sequencer.history.get().copied(),
            is_copy: sequencer.shared_counters.is_some(),
            last,
            end,
            runs: sequencer.segments.runs(),
        }
    }

    /// The extent. Takes time in proportion to the number of segments.
    #[must_use]
    pub fn resolve(self) -> Extent {
        let ExtentMark { head, history, is_copy, last, end, runs } = self;
        // A later segment has been begun, perhaps, but holds nothing durable.
        let durable: Vec<_> = runs
            .iter()
            .flat_map(|run| run.segments())
            .filter(|segment| segment.base() <= last)
            .cloned()
            .collect();
        let bases: Vec<_> = durable.iter().skip(1).map(|segment| segment.base()).collect();
        let nexts = bases.into_iter().chain([head + 1]);
        let segments = durable.into_iter().zip(nexts).map(|(segment, next)| {
            let end = (segment.base() == last).then_some(end);
            SegmentExtent { segment, end, next }
        });
        Extent { head, history, is_copy, segments: segments.collect() }
    }
}

impl SegmentExtent {
    /// Position of its first event.
    #[must_use]
    pub fn base(&self) -> Position {
        self.segment.base()
    }

    /// Position after its last event, of those that are durable.
    #[must_use]
    pub fn next(&self) -> Position {
        self.next
    }

    /// Whether it is full, so that its bytes are all there will ever be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.end.is_none()
    }

    /// The number of bytes that hold its durable events. Asks the file system for a full segment.
    ///
    /// # Errors
    /// [`ReadError::Io`]; a retry may help.
    pub fn byte_len(&self) -> Result<u64, ReadError> {
        match self.end {
            Some(end) => Ok(end),
            None => self.segment.file()?.len().map_err(|error| self.failed(&error)),
        }
    }

    /// Its durable bytes from an offset on.
    ///
    /// # Errors
    /// As [`byte_len`](Self::byte_len).
    pub fn read_from(&self, offset: u64) -> Result<SegmentSlice, ReadError> {
        let source = SliceSource::File(Arc::clone(self.segment.file()?));
        Ok(SegmentSlice { source, at: offset, end: self.byte_len()? })
    }

    /// Its durable bytes as the device has them, past the page cache. Those of the segment that is
    /// being written are read as usual: appends write beside them.
    ///
    /// # Errors
    /// As [`byte_len`](Self::byte_len).
    pub(crate) fn read_past_cache(&self) -> Result<SegmentSlice, ReadError> {
        let mut slice = self.read_from(0)?;
        if self.is_full()
            && let Some(device) = self.segment.file()?.past_cache()
        {
            slice.source = SliceSource::Device(device);
        }
        Ok(slice)
    }

    /// Checks that its file still has its name.
    ///
    /// # Errors
    /// [`Storage::still_named`].
    pub(crate) fn still_named(&self, storage: &dyn Storage) -> io::Result<()> {
        // One without a file has nothing durable.
        let Ok(file) = self.segment.file() else { return Ok(()) };
        storage.still_named(&self.segment.name(), &**file)
    }

    /// Records damage that a check found, as if a read had met it: the log's figures and
    /// [`damage`](crate::Log::damage) show it, and a copy is mended.
    pub fn report_damage(&self, corruption: Corruption) {
        let _ = self.segment.damaged(corruption);
    }

    fn failed(&self, error: &io::Error) -> ReadError {
        ReadError::io(format!("reading {}", self.segment.name()), error)
    }
}

/// A part of a segment's bytes, to be read once from its beginning. It can be read on after the
/// log was closed or its folder removed.
pub struct SegmentSlice {
    source: SliceSource,
    at: u64,
    end: u64,
}

/// Where a slice's bytes come from.
enum SliceSource {
    /// The file, as reads of the log see it.
    File(Arc<dyn StorageFile>),
    Device(DeviceReader),
}

impl SegmentSlice {
    /// The same bytes, up to an offset in the segment.
    #[must_use]
    pub fn until(self, end: u64) -> SegmentSlice {
        SegmentSlice { end: self.end.min(end), ..self }
    }

    /// The number of bytes that are left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }
}

impl fmt::Debug for SegmentSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentSlice").field("at", &self.at).field("end", &self.end).finish()
    }
}

impl Read for SegmentSlice {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = (buf.len() as u64).min(self.remaining()) as usize;
        let got = match &self.source {
            SliceSource::File(file) => file.read_at(&mut buf[..len], self.at),
            SliceSource::Device(device) => device.read_at(&mut buf[..len], self.at),
        }?;
        self.at += got as u64;
        Ok(got)
    }
}
