//! Compares a damaged log with a backup: whether both have the same events, and which segments of
//! the log lack some. A log that was rolled back and appended to again has the same history id and
//! different events.

use super::{first_of, segment_bases};
use crate::fault::{BackupError, BackupResult};
use crate::manifest::{LogBackup, SegmentBackup};
use crate::new_history::of_opening;
use crate::store::Store;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use wellspring_format::batch::{BATCH_HEADER_BYTES, BatchHeader};
use wellspring_format::segment::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use wellspring_format::segment_reader::SegmentReader;
use wellspring_log::{OpenError, inspect};
use wellspring_types::Position;

/// Why a segment must be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentNeed {
    /// Its file is missing.
    Missing,
    /// It ends before where it ends in the backup.
    Short,
    /// It is damaged within the part that the backup has.
    Damaged,
}

/// The segments of a log, by base, that lack bytes of the backup. Reads the whole part of the log
/// that the backup covers.
///
/// # Errors
/// [`BackupError::Unfit`] if an intact part of the log differs from the backup; or another.
pub fn segment_needs(
    store: &mut dyn Store,
    log: &LogBackup,
    dir: &Path,
) -> BackupResult<BTreeMap<Position, SegmentNeed>> {
    check_same_history(log, dir)?;
    let first = first_of(dir)?;
    for base in segment_bases(dir, first)? {
        let is_known = log.segments.iter().any(|segment| segment.base == base);
        if (log.first()..=log.head).contains(&base) && !is_known {
            return Err(different_events(&dir.join(segment_name(base)), base));
        }
    }
    let mut needs = BTreeMap::new();
    for segment in log.segments.iter().filter(|segment| segment.base >= first) {
        if let Some(need) = need_of(store, log, segment, dir)? {
            needs.insert(segment.base, need);
        }
    }
    Ok(needs)
}

fn need_of(
    store: &mut dyn Store,
    log: &LogBackup,
    segment: &SegmentBackup,
    dir: &Path,
) -> BackupResult<Option<SegmentNeed>> {
    let path = dir.join(segment_name(segment.base));
    let own = match File::open(&path) {
        Ok(own) => own,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Some(SegmentNeed::Missing));
        }
        Err(error) => {
            return Err(BackupError::Io { doing: format!("reading {}", path.display()), error });
        }
    };
    let part = BufReader::with_capacity(1 << 20, own.take(segment.bytes));
    let read = SegmentReader::begin(part, "own", segment.base, segment.bytes)
        .and_then(|mut reader| reader.read_to_end().map(|()| reader));
    let is_whole = |reader: SegmentReader<_>| {
        (reader.next_position(), reader.last_record_checksum()) == (segment.next, segment.anchor)
    };
    if read.is_ok_and(is_whole) {
        return Ok(None);
    }
    check_same_events(store, &segment.file(&log.history), segment, &path)?;
    match inspect::batches(dir, segment.base, &mut |_| ()) {
        Ok(found) if found.next < segment.next => Ok(Some(SegmentNeed::Short)),
        Ok(_) | Err(OpenError::Corrupt(_)) => Ok(Some(SegmentNeed::Damaged)),
        Err(error) => Err(of_opening(dir, error)),
    }
}

/// Checks that the log in the folder has the history of the backup, if its history can still be
/// read.
///
/// # Errors
/// [`BackupError::Unfit`] if the histories differ.
pub fn check_same_history(log: &LogBackup, dir: &Path) -> BackupResult<()> {
    let known = inspect::history(dir).map_err(|error| of_opening(dir, error))?;
    match known.map(|history| history.to_string()) {
        Some(history) if history != log.history => Err(BackupError::Unfit(format!(
            "the log {} has the history {history}, the backup has {}: it is a backup of another \
             log, or of this one before it was restored",
            log.name, log.history
        ))),
        _ => Ok(()),
    }
}

/// Checks that every intact batch of the file is the backup's.
pub(super) fn check_same_events(
    store: &mut dyn Store,
    file: &str,
    segment: &SegmentBackup,
    path: &Path,
) -> BackupResult<()> {
    let Ok(own) = File::open(path) else { return Ok(()) };
    let of_segment = |fault| BackupError::of_segment(file, fault);
    let mut reader = SegmentReader::begin(store.read(file)?, file, segment.base, segment.bytes)
        .map_err(of_segment)?;
    let salt = reader.header().salt;
    match header_of(&own) {
        // Another segment under this name is damage, whichever events it has.
        Some(header) if header.base != segment.base => return Ok(()),
        Some(header) if header.salt != salt => return Err(different_events(path, segment.base)),
        _ => {}
    }
    while let Some(batch) = reader.next_batch().map_err(of_segment)? {
        let mut bytes = [0; BATCH_HEADER_BYTES];
        let is_read = own.read_exact_at(&mut bytes, batch.offset).is_ok();
        let is_other = |header: BatchHeader| header != batch.header;
        if is_read && BatchHeader::decode(&bytes, salt).is_some_and(is_other) {
            return Err(different_events(path, batch.header.first));
        }
    }
    Ok(())
}

/// The header of a segment's file; `None` if it is damaged.
fn header_of(file: &File) -> Option<SegmentHeader> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    SegmentHeader::decode(&bytes).ok()
}

/// Whether the file named after the segment with this base holds another segment.
pub(super) fn holds_another(file: &File, base: Position) -> bool {
    header_of(file).is_some_and(|header| header.base != base)
}

fn different_events(path: &Path, position: Position) -> BackupError {
    BackupError::Unfit(format!(
        "{} and the backup have different events at position {position}: it is a backup of another \
         log, or the log was rolled back after the backup, or before it",
        path.display()
    ))
}
