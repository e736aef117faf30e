//! Adjacent segments under one index, which readers and the judge query together.

use super::index_file::{build_active, open_sealed, replace_index};
use super::open_segment::OpenSegment;
use crate::error::{Corruption, OpenError, ReadError};
use crate::index::{self, IndexError, SegmentExtent, SegmentIndex};
use crate::storage::{Storage, StorageFile};
use crate::threads::lock;
use crate::work::{Repair, Stopped, Work};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use wellspring_format::segment::index_name;
use wellspring_types::Position;

/// One or more adjacent segments and their index. Events are identified by their position relative
/// to the first.
#[derive(Debug)]
pub(crate) struct Run {
    storage: Arc<dyn Storage>,
    /// Ascending, at least one. More than one only if none is being written.
    segments: Vec<Arc<OpenSegment>>,
    /// Number of events, once the run is full and the number is certain.
    events: OnceLock<u32>,
    /// Replaced when the segment is sealed, or when its index is found damaged.
    index: Mutex<SegmentIndex>,
    /// Held while the index file is replaced.
    index_file: Mutex<IndexOwner>,
    /// How often the index has been rebuilt.
    mended: AtomicU64,
}

/// The owner of the index file with which this run was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexOwner {
    Run,
    /// The file was replaced or removed: a larger run has an index for these segments, or they were
    /// cut off, and only older readers still hold this run.
    Gone,
}

impl Run {
    /// A run of one segment.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        base: Position,
        file: Option<Arc<dyn StorageFile>>,
        index: SegmentIndex,
    ) -> Run {
        Run::of(storage, vec![OpenSegment::new(base, file)], index)
    }

    /// A run of these adjacent segments, in ascending order.
    pub(crate) fn of(
        storage: Arc<dyn Storage>,
        segments: Vec<Arc<OpenSegment>>,
        index: SegmentIndex,
    ) -> Run {
        assert!(segments.is_sorted_by_key(|segment| segment.base()) && !segments.is_empty());
        Run {
            storage,
            segments,
            events: OnceLock::new(),
            index: Mutex::new(index),
            index_file: Mutex::new(IndexOwner::Run),
            mended: AtomicU64::new(0),
        }
    }

    /// The same run with another, undamaged file for the segment with this base.
    pub(super) fn with_file(&self, base: Position, file: Arc<dyn StorageFile>) -> Run {
        let other = |segment: &Arc<OpenSegment>| {
            if segment.base() == base {
                OpenSegment::new(base, Some(Arc::clone(&file)))
            } else {
                Arc::clone(segment)
            }
        };
        let segments = self.segments.iter().map(other).collect();
        let run = Run::of(Arc::clone(&self.storage), segments, self.index());
        if let Some(&events) = self.events.get() {
            run.set_events(events);
        }
        run
    }

    pub(crate) fn base(&self) -> Position {
        self.segments[0].base()
    }

    /// The segments, ascending.
    pub(crate) fn segments(&self) -> &[Arc<OpenSegment>] {
        &self.segments
    }

    /// The index of the segment that holds a position of this run.
    pub(crate) fn place_of(&self, position: Position) -> usize {
        assert!(position >= self.base(), "a position of this run");
        self.segments.partition_point(|segment| segment.base() <= position) - 1
    }

    /// The relative positions that a segment holds or may hold.
    pub(crate) fn rels_of(&self, place: usize) -> Range<u32> {
        let rel = |segment: &OpenSegment| (segment.base() - self.base()) as u32;
        let end = self.segments.get(place + 1).map_or(u32::MAX, |after| rel(after));
        rel(&self.segments[place])..end
    }

    pub(crate) fn index(&self) -> SegmentIndex {
        lock(&self.index).clone()
    }

    /// The relative positions from `low` (exclusive) to `high` (inclusive) in this run.
    pub(crate) fn range(&self, low: Position, high: Position) -> Range<u32> {
        let relative = |position: Position| {
            position.saturating_sub(self.base()).min(u64::from(u32::MAX)) as u32
        };
        let start = relative(low + 1);
        start..relative(high + 1).max(start)
    }

    /// Queries the index; a damaged index is rebuilt from the segments and queried again.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Stopped`] if the work stops first, or leaves repairs to other
    /// threads.
    pub(crate) fn ask<R>(
        &self,
        work: &mut Work,
        mut question: impl FnMut(&SegmentIndex, &mut Work) -> Result<R, IndexError>,
    ) -> Result<R, ReadError> {
        work.step(1).map_err(ReadError::Stopped)?;
        match question(&self.index(), work) {
            Ok(answer) => Ok(answer),
            Err(fault) => {
                self.mend_within(fault, work)?;
                question(&self.index(), work).map_err(|fault| self.index_error(fault))
            }
        }
    }

    /// As [`mend`](Self::mend), unless the work leaves repairs to other threads.
    pub(crate) fn mend_within(&self, fault: IndexError, work: &Work) -> Result<(), ReadError> {
        if fault.calls_for_repair() && work.repair() == Repair::Elsewhere {
            return Err(ReadError::Stopped(Stopped::Repair));
        }
        self.mend(fault)
    }

    /// Rebuilds a damaged index from the segments, and its file if that can be written; returns any
    /// other fault. Only one of several readers that find the damage does the work.
    pub(crate) fn mend(&self, fault: IndexError) -> Result<(), ReadError> {
        if !fault.calls_for_repair() {
            return Err(self.index_error(fault));
        }
        let before = self.mended.load(Ordering::Acquire);
        let owner = lock(&self.index_file);
        if self.mended.load(Ordering::Acquire) != before {
            return Ok(());
        }
        let (index, (_, scanned)) = build_active(&self.segments).map_err(|error| match error {
            OpenError::Corrupt(corruption) => self.damaged(corruption),
            other => ReadError::Io {
                doing: format!("rebuilding {}", index_name(self.base())),
                error: other.to_string(),
            },
        })?;
        let (last, ended) = (self.segments.last(), scanned.last());
        let (last, ended) = last.zip(ended).expect("a run has segments");
        let expected = self.events.get().map(|&events| self.base() + u64::from(events));
        if expected.is_some_and(|next| next != ended.next) {
            // A shorter index would make later answers incomplete.
            let what = "the segment ends before its last event".into();
            let offset = ended.end;
            return Err(last.damaged(Corruption { file: last.name(), offset, what }));
        }
        self.set_index(SegmentIndex::Active(index));
        self.mended.fetch_add(1, Ordering::Release);
        self.segments[0].count_mended();
        if *owner == IndexOwner::Run {
            // If the file cannot be written, the index in memory is used, and the next opening
            // tries again.
            let ends: Vec<u64> = scanned.iter().map(|scanned| scanned.end).collect();
            let _ = self.write_index(&ends);
        }
        Ok(())
    }

    /// Records damage with the segment that contains it; damage of an index with the first segment.
    fn damaged(&self, corruption: Corruption) -> ReadError {
        let segment = self.segments.iter().find(|segment| segment.name() == corruption.file);
        segment.unwrap_or(&self.segments[0]).damaged(corruption)
    }

    /// Converts a fault of the index to a reader's error.
    pub(crate) fn index_error(&self, fault: IndexError) -> ReadError {
        let file = index_name(self.base());
        match fault {
            IndexError::Io(error) => ReadError::io(format!("reading {file}"), &error),
            IndexError::Damaged { what, offset } => {
                self.damaged(Corruption { file, offset, what: what.to_string() })
            }
            IndexError::NoSuchEvent { rel, len } => ReadError::Io {
                doing: format!("reading {file}"),
                error: format!("event {rel} of {len} was requested"),
            },
            IndexError::Stopped(stopped) => ReadError::Stopped(stopped),
            IndexError::Version(version) => ReadError::Io {
                doing: format!("reading {file}"),
                error: format!("unsupported format version {version}"),
            },
        }
    }

    /// Sets the number of events of a full run.
    pub(crate) fn set_events(&self, events: u32) {
        let _ = self.events.set(events);
    }

    pub(crate) fn set_index(&self, index: SegmentIndex) {
        *lock(&self.index) = index;
    }

    /// Prevents other threads from replacing the index file.
    pub(crate) fn own_index_file(&self) -> MutexGuard<'_, IndexOwner> {
        lock(&self.index_file)
    }

    /// Writes the sealed index of this full segment, whose last batch ends at `end`, and uses it
    /// from now on. Does nothing if it is already sealed.
    pub(crate) fn seal(&self, end: u64) -> Result<(), OpenError> {
        match *self.own_index_file() {
            IndexOwner::Run => self.write_index(&[end]),
            IndexOwner::Gone => Ok(()),
        }
    }

    /// Writes the sealed index of all segments, with the index file locked.
    fn write_index(&self, ends: &[u64]) -> Result<(), OpenError> {
        let SegmentIndex::Active(active) = self.index() else { return Ok(()) };
        assert_eq!(ends.len(), self.segments.len(), "each segment ends somewhere");
        self.set_events(active.len());
        let mut extents = Vec::with_capacity(ends.len());
        for (segment, &end) in self.segments.iter().zip(ends) {
            let salt = segment.salt()?;
            extents.push(SegmentExtent { base: segment.base(), end, salt });
        }
        let seed = self.seed();
        replace_index(&*self.storage, self.base(), |file| {
            index::seal(&active, &extents, seed, file)
        })
        .map_err(|error| OpenError::Io {
            doing: format!("writing {}", index_name(self.base())),
            error: match error {
                IndexError::Io(error) => error,
                other => io::Error::other(other.to_string()),
            },
        })?;
        if let Some(index) = open_sealed(&*self.storage, self.base(), extents[0].salt)? {
            self.set_index(SegmentIndex::Sealed(index));
        }
        Ok(())
    }

    /// Makes everything written to its segments durable.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        for segment in &self.segments {
            let file = segment.file().map_err(|error| io::Error::other(error.to_string()))?;
            file.sync_data()?;
        }
        Ok(())
    }

    /// A seed that clients cannot predict.
    pub(crate) fn seed(&self) -> u64 {
        RandomState::new().hash_one(self.base())
    }
}
