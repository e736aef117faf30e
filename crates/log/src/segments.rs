//! The segments of an open log as readers and the judge see them: in runs of one or more, each with
//! its index, in order of position.

use crate::error::{Corruption, OpenError};
use crate::index::{ActiveIndex, ActiveWriter, IndexError, ReadAt, SealedIndex, WriteAt};
use crate::log::Terms;
use crate::recover;
use crate::run::{OpenSegment, Run};
use crate::segment::index_name;
use crate::storage::{Storage, StorageFile, write_under};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_types::Position;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the log's mutexes guard is consistent between statements that can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What reading segments into an index comes to: the index, and its writer with what each segment
/// was found to hold.
pub(crate) type BuiltIndex = (Arc<ActiveIndex>, (ActiveWriter, Vec<recover::ScannedSegment>));

/// Reads adjacent segments into one index in memory.
pub(crate) fn build_active(segments: &[Arc<OpenSegment>]) -> Result<BuiltIndex, OpenError> {
    let mut writer = ActiveWriter::new(segments[0].base());
    let index = Arc::clone(writer.index());
    let mut scanned = Vec::with_capacity(segments.len());
    for (segment, after) in segments.iter().zip((1..).map(|place| segments.get(place))) {
        let name = segment.name();
        let file = segment.file().map_err(|error| OpenError::Io {
            doing: format!("reading {name}"),
            error: io::Error::other(error.to_string()),
        })?;
        let found = recover::scan(&**file, &name, &mut |batch| {
            for found in recover::records(&name, batch) {
                let (offset, record) = found.map_err(OpenError::Corrupt)?;
                writer.push(offset as u32, &record);
            }
            Ok(())
        })?;
        if let Some(after) = after {
            check_next(&name, &found, after.base())?;
        }
        scanned.push(found);
    }
    Ok((index, (writer, scanned)))
}

/// A segment that another follows must reach to it: else every later event would be taken for one
/// before it.
pub(crate) fn check_next(
    name: &str,
    found: &recover::ScannedSegment,
    next_base: Position,
) -> Result<(), OpenError> {
    if found.next == next_base {
        return Ok(());
    }
    let what = format!(
        "the segment ends before position {}, but the next one begins at {next_base}",
        found.next
    );
    Err(OpenError::Corrupt(Corruption { file: name.into(), offset: found.end, what }))
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

/// The same while it is written.
pub(crate) struct NewIndexFile<'f>(pub(crate) &'f dyn StorageFile);

impl WriteAt for NewIndexFile<'_> {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

/// Puts an index file in place of the one there is, if any: after a crash either is there, whole.
pub(crate) fn replace_index(
    storage: &dyn Storage,
    base: Position,
    write: impl FnOnce(&dyn WriteAt) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let (name, temporary) = (index_name(base), format!("{}.tmp", index_name(base)));
    write_under(storage, &temporary, |file| write(&NewIndexFile(file)))?;
    storage.rename(&temporary, &name)?;
    Ok(storage.sync_dir()?)
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

/// All segments of a log, in runs.
#[derive(Debug)]
pub(crate) struct Segments {
    runs: Mutex<Arc<Vec<Arc<Run>>>>,
}

impl Segments {
    pub(crate) fn new(runs: Vec<Arc<Run>>) -> Segments {
        Segments { runs: Mutex::new(Arc::new(runs)) }
    }

    /// The runs in order. The lock is held for the copy of one pointer.
    pub(crate) fn runs(&self) -> Arc<Vec<Arc<Run>>> {
        Arc::clone(&lock(&self.runs))
    }

    /// Number of segments.
    pub(crate) fn count(&self) -> u64 {
        self.runs().iter().map(|run| run.segments().len() as u64).sum()
    }

    pub(crate) fn push(&self, run: Arc<Run>) {
        Arc::make_mut(&mut *lock(&self.runs)).push(run);
    }

    /// Forgets the segments that begin after `base`: nothing of them was made durable.
    pub(crate) fn truncate_after(&self, base: Position) {
        Arc::make_mut(&mut *lock(&self.runs)).retain(|run| run.base() <= base);
    }

    /// Puts one run in the place of those that have its segments.
    pub(crate) fn replace(&self, merged: Arc<Run>) {
        let mut runs = lock(&self.runs);
        let (mut kept, mut replaced): (Vec<_>, Vec<_>) = runs.iter().cloned().partition(|run| {
            let base = run.base();
            merged.segments().iter().all(|segment| segment.base() != base)
        });
        let segments = replaced.drain(..).flat_map(|run| run.segments().to_vec());
        let same = segments.zip(merged.segments()).filter(|(one, other)| Arc::ptr_eq(one, other));
        assert_eq!(same.count(), merged.segments().len(), "the same segments in the same order");
        let at = kept.partition_point(|run| run.base() < merged.base());
        kept.insert(at, merged);
        *runs = Arc::new(kept);
    }

    pub(crate) fn index_usage(&self) -> IndexUsage {
        let mut usage = IndexUsage::default();
        for run in self.runs().iter() {
            let index = run.index();
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

    /// The run that begins with this segment.
    pub(crate) fn find(&self, base: Position) -> Option<Arc<Run>> {
        self.runs().iter().rev().find(|run| run.base() == base).cloned()
    }

    pub(crate) fn set_file(&self, base: Position, file: Arc<dyn StorageFile>) {
        if let Some(run) = self.find(base) {
            run.segments()[0].set_file(file);
        }
    }
}
