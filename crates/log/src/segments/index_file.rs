//! The index of some segments and its file: read from the segments into memory, opened, replaced.

use super::open_segment::OpenSegment;
use crate::error::{Corruption, OpenError};
use crate::index::{ActiveIndex, ActiveWriter, IndexError, ReadAt, SealedIndex, WriteAt};
use crate::recover;
use crate::segment::index_name;
use crate::storage::{Storage, StorageFile, write_under};
use std::io;
use std::sync::Arc;
use wellspring_types::Position;

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
