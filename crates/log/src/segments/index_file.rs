//! The index of some segments and its file: built from the segments, opened, replaced.

use super::open_segment::OpenSegment;
use crate::error::{Corruption, OpenError};
use crate::index::{ActiveIndex, ActiveWriter, IndexError, ReadAt, SealedIndex, WriteAt};
use crate::recover;
use crate::segment::{index_name, segment_name};
use crate::storage::{DeviceReader, Storage, StorageFile, write_under};
use std::io;
use std::sync::Arc;
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

/// Checks that a segment follows those of an index. The index of a log of files is written only
/// once the next segment holds a batch, so if none follows, the last segments have been lost.
/// `bases` are those of the index's first segment and of all after it.
///
/// # Errors
/// [`OpenError::Corrupt`], which names the last segment.
pub(crate) fn check_followed(index: &SealedIndex, bases: &[Position]) -> Result<(), OpenError> {
    // A damaged index is no evidence.
    let covered = index.segments().unwrap_or_default();
    let is_theirs = covered.iter().zip(bases).all(|(extent, &base)| extent.base == base);
    match bases.last() {
        Some(&last) if is_theirs && covered.len() >= bases.len() => {
            Err(lost_after(last, &index_name(bases[0])))
        }
        _ => Ok(()),
    }
}

/// The segments after the last one have been lost: this index was written after they began.
pub(crate) fn lost_after(last: Position, index: &str) -> OpenError {
    let what = format!("segments after it are missing: {index} was written after they began");
    OpenError::Corrupt(Corruption { file: segment_name(last), offset: 0, what })
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
