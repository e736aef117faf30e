//! Whether a mended log still has the events that were recorded after the backup.

use super::comparison::{SegmentNeed, holds_another};
use super::{first_of, segment_bases};
use crate::fault::{BackupError, BackupResult};
use crate::manifest::{LogBackup, SegmentBackup};
use crate::store::Store;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use wellspring_format::batch::{BATCH_HEADER_BYTES, BatchHeader};
use wellspring_format::segment::{index_name, segment_name};
use wellspring_format::segment_reader::SegmentReader;
use wellspring_log::LostEnd;
use wellspring_types::Position;

/// The state of the events recorded after a backup, once segments are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaterEvents {
    /// They are in the remaining files.
    Kept,
    /// The end of the log comes from the backup, and whether events followed is unknown. The log
    /// needs [another history](crate::new_history::renew_history), or it would assign positions
    /// twice.
    Unknown,
}

/// The state of later events once these segments are mended. `lost_end` is the evidence, if any,
/// that the log has lost its end.
///
/// # Errors
/// [`BackupError`]: the backup or the folder cannot be read, or the backup is damaged.
pub fn later_events(
    store: &mut dyn Store,
    log: &LogBackup,
    dir: &Path,
    needs: &BTreeMap<Position, SegmentNeed>,
    lost_end: Option<&LostEnd>,
) -> BackupResult<LaterEvents> {
    let bases = segment_bases(dir, first_of(dir)?)?;
    let last = bases.last().max(needs.keys().last());
    let Some((base, need)) = last.and_then(|last| needs.get_key_value(last)) else {
        return Ok(LaterEvents::Kept);
    };
    let segment = log.segments.iter().find(|segment| segment.base == *base);
    match (need, segment) {
        (SegmentNeed::Damaged, Some(segment)) if lost_end.is_none() => {
            later_in_file(store, &segment.file(&log.history), segment, dir)
        }
        _ => Ok(LaterEvents::Unknown),
    }
}

/// Searches the file of a damaged segment, the last of its log, for later events. Only an intact
/// batch shows that the damage ends before it. An end that reads as zeros shows nothing.
fn later_in_file(
    store: &mut dyn Store,
    file: &str,
    segment: &SegmentBackup,
    dir: &Path,
) -> BackupResult<LaterEvents> {
    let path = dir.join(segment_name(segment.base));
    let reading = || BackupError::io(format!("reading {}", path.display()));
    let mut own = File::open(&path).map_err(reading())?;
    let own_bytes = own.metadata().map_err(reading())?.len();
    if own_bytes < segment.bytes || holds_another(&own, segment.base) {
        return Ok(LaterEvents::Unknown);
    }
    own.seek(SeekFrom::Start(segment.bytes)).map_err(reading())?;
    let own_end = BufReader::new(&own);
    let composed = store.read(file)?.take(segment.bytes).chain(own_end);
    let of_segment = |fault| BackupError::of_segment(file, fault);
    let mut reader =
        SegmentReader::begin(composed, file, segment.base, own_bytes).map_err(of_segment)?;
    let mut last_in_backup = None;
    while reader.offset() < segment.bytes {
        let Some(batch) = reader.next_batch().map_err(of_segment)? else { break };
        last_in_backup = Some((batch.offset, batch.header));
    }
    if let Ok(Some(_)) = reader.next_batch() {
        return Ok(LaterEvents::Kept);
    }
    match last_in_backup {
        Some((offset, header)) if is_intact(&own, offset, &header, reader.header().salt) => {
            Ok(LaterEvents::Kept)
        }
        _ => Ok(LaterEvents::Unknown),
    }
}

/// Whether a file has this batch at this offset.
fn is_intact(file: &File, offset: u64, expected: &BatchHeader, salt: u64) -> bool {
    let mut bytes = vec![0; expected.total_bytes() as usize];
    if file.read_exact_at(&mut bytes, offset).is_err() {
        return false;
    }
    let (header, body) = bytes.split_at(BATCH_HEADER_BYTES);
    let header = header.try_into().ok().and_then(|header| BatchHeader::decode(header, salt));
    header.as_ref() == Some(expected) && crc32c::crc32c(body) == expected.body_crc
}

/// Marks the folder of a log that is about to end at `head` and may have had later events, by an
/// empty index. If the machine stops now, no server starts on the folder until the log has another
/// history.
///
/// # Errors
/// [`BackupError::Io`].
pub(super) fn mark_lost_end(dir: &Path, head: Position) -> BackupResult<()> {
    let path = dir.join(index_name(head + 1));
    let mut options = File::options();
    let marked = options
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mark| mark.sync_all())
        .and_then(|()| File::open(dir)?.sync_all());
    marked.map_err(BackupError::io(format!("writing {}", path.display())))
}

/// Whether the folder of a log that ends at `head` has the mark of mending: its end is mended, and
/// the log still needs another history.
#[must_use]
pub fn is_marked(dir: &Path, head: Position) -> bool {
    fs::symlink_metadata(dir.join(index_name(head + 1)))
        .is_ok_and(|mark| mark.is_file() && mark.len() == 0)
}
