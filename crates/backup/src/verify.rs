//! Verifies a backup: reads and checks every byte, down to each record.

use crate::fault::{BackupError, BackupResult};
use crate::manifest::{LogBackup, Manifest, SegmentBackup};
use crate::store::Store;
use crate::take::Progress;
use wellspring_format::history_of_salt;
use wellspring_format::segment_reader::SegmentReader;

/// The result of verifying a backup.
#[derive(Debug, Default)]
pub struct Report {
    /// Segments read.
    pub segments: u64,
    /// Events read.
    pub events: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Damaged and missing files.
    pub damage: Vec<BackupError>,
}

/// Verifies a backup.
///
/// # Errors
/// [`BackupError::Io`] if a file cannot be read. Damage is in the report.
pub fn verify(
    store: &mut dyn Store,
    manifest: &Manifest,
    progress: Progress<'_>,
) -> BackupResult<Report> {
    let mut report = Report::default();
    let all_bytes = manifest.bytes();
    for log in &manifest.logs {
        for segment in &log.segments {
            match verify_segment(store, log, segment) {
                Ok(events) => report.events += events,
                Err(error @ BackupError::Io { .. }) => return Err(error),
                Err(damage) => report.damage.push(damage),
            }
            report.segments += 1;
            report.bytes += segment.bytes;
            progress(report.bytes, all_bytes);
        }
    }
    Ok(report)
}

fn verify_segment(
    store: &mut dyn Store,
    log: &LogBackup,
    segment: &SegmentBackup,
) -> BackupResult<u64> {
    let file = segment.file(&log.history);
    let failed = |fault| BackupError::of_segment(&file, fault);
    let damaged = |what: String| BackupError::Damaged { file: file.clone(), what };
    let source = store.read(&file)?;
    let mut reader =
        SegmentReader::begin(source, &file, segment.base, segment.bytes).map_err(failed)?;
    if segment.base == 1 {
        check_history(log, reader.header().salt).map_err(damaged)?;
    }
    let mut events = 0;
    while let Some(batch) = reader.next_batch().map_err(failed)? {
        for record in batch.records() {
            record.ok_or_else(|| {
                damaged(format!("a record of the batch at byte {}", batch.offset))
            })?;
            events += 1;
        }
    }
    check_end(&reader, segment).map_err(damaged)?;
    Ok(events)
}

/// Checks a segment that was read to its end against the manifest.
///
/// # Errors
/// What differs.
pub(crate) fn check_end<R: std::io::Read>(
    reader: &SegmentReader<R>,
    segment: &SegmentBackup,
) -> Result<(), String> {
    if reader.next_position() != segment.next {
        let (found, expected) = (reader.next_position(), segment.next);
        return Err(format!("it ends before position {found}, not {expected}"));
    }
    if reader.crc() != segment.crc32c || reader.last_record_checksum() != segment.anchor {
        return Err("its checksum differs from the manifest's".into());
    }
    Ok(())
}

/// Checks that the history derived from the first segment's salt is the manifest's.
pub(crate) fn check_history(log: &LogBackup, salt: u64) -> Result<(), String> {
    let found = history_of_salt(salt).to_string();
    if found == log.history {
        return Ok(());
    }
    Err(format!("it belongs to the history {found}, not {}", log.history))
}
