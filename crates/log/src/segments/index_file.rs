//! The index of some segments and its file: built from the segments, opened, replaced.

use super::open_segment::OpenSegment;
use crate::error::{Corruption, LostEnd, OpenError};
use crate::index::{ActiveIndex, ActiveWriter, IndexError, ReadAt, SealedIndex, WriteAt};
use crate::recover;
use crate::storage::{DeviceReader, Storage, StorageFile, write_under};
use std::io;
use std::sync::Arc;
use wellspring_format::segment::{index_name, segment_name};
use wellspring_types::Position;

/// The result of indexing segments: the index, its writer, and the contents found in each segment.
pub(crate) type BuiltIndex = (Arc<ActiveIndex>, (ActiveWriter, Vec<recover::ScannedSegment>));

/// Builds an index in memory from adjacent segments.
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
            for found in batch.records_of(&name) {
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

/// Checks that a segment extends to the next one; otherwise every later event would be mistaken for
/// the one before it.
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

/// A storage file as read by the index.
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

    fn past_cache(&self) -> Option<Arc<dyn ReadAt>> {
        let device = self.0.past_cache()?;
        Some(Arc::new(device))
    }
}

impl ReadAt for DeviceReader {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if self.read_at(buf, offset)? < buf.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.file_bytes()
    }
}

/// A storage file as written by the index.
pub(crate) struct NewIndexFile<'f>(pub(crate) &'f dyn StorageFile);

impl WriteAt for NewIndexFile<'_> {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

/// Replaces an index file: after a crash, either the old or the new one exists, complete.
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

/// Whether an index knows of segments after these, which are its first one and all that there are
/// after it. The index of a log of files is written only once the next segment holds a batch.
pub(crate) fn knows_of_more(index: &SealedIndex, bases: &[Position]) -> bool {
    // A damaged index is no evidence.
    let covered = index.segments().unwrap_or_default();
    let is_theirs = covered.iter().zip(bases).all(|(extent, &base)| extent.base == base);
    is_theirs && covered.len() >= bases.len()
}

/// The segments after this last one are gone, as `index` tells, which was written after they began.
///
/// # Errors
/// The last segment is damaged or cannot be read.
pub(crate) fn lost_after(
    storage: &dyn Storage,
    last_base: Position,
    index: &str,
) -> Result<LostEnd, OpenError> {
    let name = segment_name(last_base);
    let file = storage
        .open(&name)
        .map_err(|error| OpenError::Io { doing: format!("opening {name}"), error })?;
    let head = recover::scan(&*file, &name, &mut |_| Ok(()))?.next - 1;
    Ok(LostEnd { head, last_base, known_from: index.to_owned(), known_end: None })
}

/// The salt of a log's first segment, as its index has it; `None` if there is no usable index,
/// or one of the first version, which does not contain it.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn first_salt_in_index(storage: &dyn Storage) -> Result<Option<u64>, OpenError> {
    let name = index_name(1);
    let failed = |error| OpenError::Io { doing: format!("reading {name}"), error };
    let file = match storage.open(&name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    match SealedIndex::open(Arc::new(IndexFile(file))) {
        Ok(index) => Ok(Some(index.salt()).filter(|&salt| salt != 0 && index.base() == 1)),
        Err(IndexError::Io(error)) => Err(failed(error)),
        Err(_) => Ok(None),
    }
}

/// Opens the index file of a segment; `None` if there is no usable one.
///
/// The salt is the segment's, so the index of another segment at the same base is not used.
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
        // Whatever is wrong with it, it can be rebuilt from the segment.
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
