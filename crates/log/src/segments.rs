//! The segments of an open log as readers and the judge see them: each a file
//! and an index, in order of position.

use crate::error::{Corruption, OpenError, ReadError};
use crate::index::{
    self, ActiveIndex, ActiveWriter, IndexError, ReadAt, SealedIndex, SegmentIndex,
};
use crate::log::Terms;
use crate::recover;
use crate::segment::{index_name, segment_name};
use crate::storage::{Storage, StorageFile, replace_file};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wellspring_types::Position;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the log's mutexes guard is consistent between statements that can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    base: Position,
    storage: Arc<dyn Storage>,
    /// Set before any of its events is published.
    file: OnceLock<Arc<dyn StorageFile>>,
    /// How many events it holds, once it is full and that is known for sure.
    events: OnceLock<u32>,
    /// Replaced when the segment is sealed, or its index found damaged.
    index: Mutex<SegmentIndex>,
    /// Held while a damaged index is made anew: by one reader, while others wait for it.
    mending: Mutex<()>,
    /// How often it has been made anew.
    mended: AtomicU64,
}

impl Segment {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        base: Position,
        file: Option<Arc<dyn StorageFile>>,
        index: SegmentIndex,
    ) -> Segment {
        let slot = OnceLock::new();
        if let Some(file) = file {
            let _ = slot.set(file);
        }
        Segment {
            base,
            storage,
            file: slot,
            events: OnceLock::new(),
            index: Mutex::new(index),
            mending: Mutex::new(()),
            mended: AtomicU64::new(0),
        }
    }

    pub(crate) fn base(&self) -> Position {
        self.base
    }

    pub(crate) fn name(&self) -> String {
        segment_name(self.base)
    }

    pub(crate) fn file(&self) -> Result<&Arc<dyn StorageFile>, ReadError> {
        self.file.get().ok_or_else(|| ReadError::Io {
            doing: format!("reading {}", self.name()),
            error: "the segment has no file yet".into(),
        })
    }

    pub(crate) fn index(&self) -> SegmentIndex {
        lock(&self.index).clone()
    }

    /// The relative positions of `low` (exclusive) to `high` (inclusive) that lie in this segment.
    pub(crate) fn range(&self, low: Position, high: Position) -> Range<u32> {
        let relative =
            |position: Position| position.saturating_sub(self.base).min(u64::from(u32::MAX)) as u32;
        let start = relative(low + 1);
        start..relative(high + 1).max(start)
    }

    /// Asks the index; one found damaged is made anew from the segment and asked again.
    pub(crate) fn ask<R>(
        &self,
        mut question: impl FnMut(&SegmentIndex) -> Result<R, IndexError>,
    ) -> Result<R, ReadError> {
        match question(&self.index()) {
            Ok(answer) => Ok(answer),
            Err(fault) => {
                self.mend(fault)?;
                question(&self.index()).map_err(|fault| self.index_error(fault))
            }
        }
    }

    /// Replaces a damaged index by one made from the segment, its file, too, if that can be written;
    /// any other fault is returned. Of several readers that meet the damage one does the work.
    pub(crate) fn mend(&self, fault: IndexError) -> Result<(), ReadError> {
        let sound = matches!(
            fault,
            IndexError::Io(_) | IndexError::NoSuchEvent { .. } | IndexError::Stopped(_)
        );
        if sound {
            return Err(self.index_error(fault));
        }
        let before = self.mended.load(Ordering::Acquire);
        let _mending = lock(&self.mending);
        if self.mended.load(Ordering::Acquire) != before {
            return Ok(());
        }
        let (index, (_, scanned)) =
            build_active(&**self.file()?, self.base).map_err(|error| match error {
                OpenError::Corrupt(corruption) => ReadError::Corrupt(corruption),
                other => ReadError::Io {
                    doing: format!("rebuilding {}", index_name(self.base)),
                    error: other.to_string(),
                },
            })?;
        let expected = self.events.get().map(|&events| self.base + u64::from(events));
        if expected.is_some_and(|next| next != scanned.next) {
            // A shorter index would make every later answer short.
            let what = "the segment ends before its last event".into();
            let offset = scanned.end;
            return Err(ReadError::Corrupt(Corruption { file: self.name(), offset, what }));
        }
        self.set_index(SegmentIndex::Active(index));
        self.mended.fetch_add(1, Ordering::Release);
        // If the file cannot be written, the index in memory serves, and the next opening tries.
        let _ = self.seal(scanned.end);
        Ok(())
    }

    fn index_error(&self, fault: IndexError) -> ReadError {
        let file = index_name(self.base);
        match fault {
            IndexError::Io(error) => ReadError::io(format!("reading {file}"), &error),
            IndexError::Damaged { what, offset } => {
                ReadError::Corrupt(Corruption { file, offset, what: what.to_string() })
            }
            IndexError::NoSuchEvent { rel, len } => ReadError::Io {
                doing: format!("reading {file}"),
                error: format!("event {rel} of {len} was asked for"),
            },
            IndexError::Stopped(stopped) => ReadError::Stopped(stopped),
            IndexError::Version(version) => ReadError::Io {
                doing: format!("reading {file}"),
                error: format!("unknown format version {version}"),
            },
        }
    }

    /// Says how many events the segment holds now that it is full.
    pub(crate) fn set_events(&self, events: u32) {
        let _ = self.events.set(events);
    }

    pub(crate) fn set_index(&self, index: SegmentIndex) {
        *lock(&self.index) = index;
    }

    /// Writes the sealed index of this full segment of `segment_bytes` and uses it
    /// from now on. Does nothing if it is sealed already.
    pub(crate) fn seal(&self, segment_bytes: u64) -> Result<(), OpenError> {
        let SegmentIndex::Active(active) = self.index() else { return Ok(()) };
        self.set_events(active.len());
        let seed = RandomState::new().hash_one(self.base);
        let mut image = index::seal(&active, segment_bytes, seed);
        let file = self.file().map_err(|error| {
            let error = io::Error::other(error.to_string());
            OpenError::Io { doing: format!("reading {}", self.name()), error }
        })?;
        let header = recover::read_header(&**file, &self.name())?;
        index::tie_to_segment(&mut image, header.salt);
        let name = index_name(self.base);
        let failed = |error| OpenError::Io { doing: format!("writing {name}"), error };
        replace_file(&*self.storage, &name, &image).map_err(failed)?;
        drop(image);
        if let Some(index) = open_sealed(&*self.storage, self.base, header.salt)? {
            self.set_index(SegmentIndex::Sealed(index));
        }
        Ok(())
    }
}

/// Reads a whole segment into an index in memory.
pub(crate) fn build_active(
    file: &dyn StorageFile,
    base: Position,
) -> Result<(Arc<ActiveIndex>, (ActiveWriter, recover::ScannedSegment)), OpenError> {
    let name = segment_name(base);
    let mut writer = ActiveWriter::new(base);
    let index = Arc::clone(writer.index());
    let scanned = recover::scan(file, &name, &mut |batch| {
        for found in recover::records(&name, batch) {
            let (offset, record) = found.map_err(OpenError::Corrupt)?;
            writer.push(offset as u32, &record);
        }
        Ok(())
    })?;
    Ok((index, (writer, scanned)))
}

/// A storage file as the index reads it.
#[derive(Debug)]
struct IndexFile(Arc<dyn StorageFile>);

impl ReadAt for IndexFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if self.0.read_at(buf, offset)? < buf.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

/// Opens the index file of a segment; `None` if there is none, or none that can be used.
///
/// The salt is the segment's: an index of another segment of the same place cannot be used.
pub(crate) fn open_sealed(
    storage: &dyn Storage,
    base: Position,
    salt: u64,
) -> Result<Option<Arc<SealedIndex>>, OpenError> {
    let name = index_name(base);
    let file = match storage.open(&name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::Io { doing: format!("opening {name}"), error }),
    };
    match SealedIndex::open(Arc::new(IndexFile(file))) {
        Ok(index) if index.base() == base && index.is_of_segment(salt) => Ok(Some(Arc::new(index))),
        // Whatever is wrong with it, the segment can make it anew.
        Ok(_)
        | Err(
            IndexError::Damaged { .. } | IndexError::Version(_) | IndexError::NoSuchEvent { .. },
        ) => Ok(None),
        Err(IndexError::Io(error)) => {
            Err(OpenError::Io { doing: format!("reading {name}"), error })
        }
        Err(IndexError::Stopped(_)) => unreachable!("opening takes no work to stop"),
    }
}

/// What the indexes of a log take and hold.
#[derive(Debug, Default)]
pub(crate) struct IndexUsage {
    pub(crate) memory_bytes: u64,
    /// Of these, what the index of the segment being written takes.
    pub(crate) active_memory_bytes: u64,
    pub(crate) terms: Terms,
}

/// All segments of a log.
#[derive(Debug)]
pub(crate) struct Segments {
    list: Mutex<Arc<Vec<Arc<Segment>>>>,
}

impl Segments {
    pub(crate) fn new(list: Vec<Arc<Segment>>) -> Segments {
        Segments { list: Mutex::new(Arc::new(list)) }
    }

    /// The segments in order. The lock is held for the copy of one pointer.
    pub(crate) fn all(&self) -> Arc<Vec<Arc<Segment>>> {
        Arc::clone(&lock(&self.list))
    }

    pub(crate) fn push(&self, segment: Arc<Segment>) {
        Arc::make_mut(&mut *lock(&self.list)).push(segment);
    }

    /// Forgets the segments that begin after `base`: nothing of them was made durable.
    pub(crate) fn truncate_after(&self, base: Position) {
        Arc::make_mut(&mut *lock(&self.list)).retain(|segment| segment.base <= base);
    }

    pub(crate) fn index_usage(&self) -> IndexUsage {
        let mut usage = IndexUsage::default();
        for segment in self.all().iter() {
            let index = segment.index();
            let memory_bytes = index.memory_bytes() as u64;
            usage.memory_bytes += memory_bytes;
            // The last one is written to; one before it may be active until it is sealed.
            usage.active_memory_bytes = memory_bytes;
            let Terms { types, tags } = index.terms();
            usage.terms.types += types;
            usage.terms.tags += tags;
        }
        usage
    }

    pub(crate) fn find(&self, base: Position) -> Option<Arc<Segment>> {
        self.all().iter().rev().find(|segment| segment.base == base).cloned()
    }

    pub(crate) fn set_file(&self, base: Position, file: Arc<dyn StorageFile>) {
        if let Some(segment) = self.find(base) {
            let _ = segment.file.set(file);
        }
    }
}
