//! Takes a backup: copies everything that is durable at one moment from a source to a store, and
//! verifies it batch by batch.

use crate::catalog::{Catalog, Manifests};
use crate::fault::{BackupError, BackupResult, UnreadableManifest};
use crate::known_ends::{KnownEnds, LogEnd};
use crate::manifest::{
    FORMAT, LogBackup, Manifest, SegmentBackup, begun_file, manifest_file, segment_file,
};
use crate::plan::{BackupPlan, PlannedLog, PlannedSegment};
use crate::rate_limit::{RateLimit, RateLimitedReader};
use crate::source::Source;
use crate::store::{PendingFile, Store, put};
use crate::writer_marks::{begin_backup, check_begun};
use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use wellspring_format::segment_reader::{SegmentFault, SegmentReader};
use wellspring_log::{Corruption, LostEnd};
use wellspring_types::moment::push_rfc3339;

const BUFFER_BYTES: usize = 1 << 20;

/// The result of taking a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBackup {
    /// Its manifest.
    pub manifest: Manifest,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// Bytes reused from earlier backups in the store.
    pub reused_bytes: u64,
    /// Logs of the plan that were deleted before all of their bytes were copied. The backup does
    /// not contain them.
    pub deleted_logs: Vec<String>,
    /// Logs, by name, that end before their end in an earlier backup of the same history. The
    /// backup is complete: it contains them as they are now.
    pub lost_ends: Vec<(String, LostEnd)>,
    /// Earlier backups in the store whose manifests cannot be read.
    pub unreadable: Vec<UnreadableManifest>,
}

/// Receives the progress: bytes done, and bytes in total.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Takes a backup. `rate_limit` bounds the rate of reads from the source.
///
/// # Errors
/// [`BackupError`]. The store then has an unfinished backup, which cannot be restored; a retry
/// reuses its segments. Several backups may be taken to one store at the same time.
pub fn take(
    source: &mut dyn Source,
    store: &mut dyn Store,
    rate_limit: &mut RateLimit,
    progress: Progress<'_>,
) -> BackupResult<TakenBackup> {
    let plan = source.plan()?;
    plan.check()?;
    let (name, earlier) = begin_backup(store, &|earlier| name_of(&plan, earlier))?;
    let EarlierBackups { segments, mut ends, unreadable } =
        earlier_backups(store, &earlier, plan.taken_at_us);
    let stored: HashMap<String, u64> = store.list("segments/")?.into_iter().collect();
    if store.shared().is_none() {
        // Without other writers, no segment can be later than the plan.
        let unnamed = stored.keys().filter(|file| !segments.contains_key(*file));
        unnamed.for_each(|file| ends.note_file(file));
    }
    let manifest = Manifest {
        format: FORMAT,
        name: name.clone(),
        version: plan.version.clone(),
        taken_at_us: plan.taken_at_us,
        has_accounts: plan.has_accounts,
        logs: Vec::new(),
    };
    let taken = TakenBackup {
        manifest,
        copied_bytes: 0,
        reused_bytes: 0,
        deleted_logs: Vec::new(),
        lost_ends: lost_ends(&plan, &ends),
        unreadable,
    };
    let all_bytes = plan.bytes();
    let mut taking = Taking {
        source,
        store,
        rate_limit,
        progress,
        segments,
        stored,
        taken,
        done_bytes: 0,
        all_bytes,
    };
    plan.logs.iter().try_for_each(|log| taking.add(log))?;
    let Taking { store, taken, .. } = taking;
    check_begun(store, &taken.manifest)?;
    put(store, &manifest_file(&name), &taken.manifest.encode())?;
    store.remove(&begun_file(&name))?;
    store.close()?;
    Ok(taken)
}

/// A backup in progress.
struct Taking<'a> {
    source: &'a mut dyn Source,
    store: &'a mut dyn Store,
    rate_limit: &'a mut RateLimit,
    progress: Progress<'a>,
    /// The segments of finished backups, by file.
    segments: HashMap<String, SegmentBackup>,
    /// The segment files in the store, with their lengths.
    stored: HashMap<String, u64>,
    taken: TakenBackup,
    done_bytes: u64,
    all_bytes: u64,
}

impl Taking<'_> {
    /// Adds a log, unless it was deleted meanwhile, and without what was removed of its beginning.
    fn add(&mut self, log: &PlannedLog) -> BackupResult<()> {
        let log_begins = self.done_bytes;
        let log_bytes: u64 = log.segments.iter().map(|segment| segment.bytes).sum();
        let segments: BackupResult<Vec<_>> =
            log.segments.iter().map(|planned| self.segment(log, planned)).collect();
        match segments {
            Ok(segments) => self.taken.manifest.logs.push(log_backup(log, segments)?),
            Err(BackupError::BeginningRemoved { .. }) => {
                let left = self.without_beginning(log)?;
                let left_bytes: u64 = left.segments.iter().map(|segment| segment.bytes).sum();
                self.done_bytes = log_begins + log_bytes - left_bytes;
                self.add(&left)?;
            }
            Err(BackupError::LogDeleted { log }) => {
                self.taken.deleted_logs.push(log);
                self.done_bytes = log_begins + log_bytes;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What is left of a planned log, up to the same head.
    fn without_beginning(&mut self, log: &PlannedLog) -> BackupResult<PlannedLog> {
        let now = self.source.plan()?;
        let is_same = |now: &&PlannedLog| (&now.name, &now.history) == (&log.name, &log.history);
        let now = now.logs.iter().find(is_same);
        let first = now.and_then(|now| now.segments.first()).map_or(1, |segment| segment.base);
        let mut left = log.clone();
        left.segments.retain(|segment| segment.base >= first);
        // Fewer each time, so this ends.
        if left.segments.is_empty() || left.segments.len() == log.segments.len() {
            return Err(BackupError::BeginningRemoved { log: log.name.clone() });
        }
        left.removed_until_us = now.and_then(|now| now.removed_until_us);
        Ok(left)
    }

    /// Reuses a segment of the store, or copies it.
    fn segment(
        &mut self,
        log: &PlannedLog,
        planned: &PlannedSegment,
    ) -> BackupResult<SegmentBackup> {
        let file = segment_file(&log.history, planned.base, planned.bytes, planned.anchor);
        let is_stored = self.stored.get(&file) == Some(&planned.bytes);
        let segment = match self.segments.get(&file).filter(|_| is_stored) {
            Some(segment) => Some(segment.clone()),
            // Left by an unfinished backup.
            None if is_stored => reread(self.store, &file, planned).ok(),
            None => None,
        };
        let segment = match segment {
            Some(segment) => {
                self.taken.reused_bytes += planned.bytes;
                segment
            }
            None => {
                let segment = self.copy(&file, log, planned)?;
                self.taken.copied_bytes += planned.bytes;
                segment
            }
        };
        check_planned(&file, planned, &segment)?;
        self.done_bytes += planned.bytes;
        (self.progress)(self.done_bytes, self.all_bytes);
        Ok(segment)
    }

    /// Copies one segment from the source to the store.
    fn copy(
        &mut self,
        name: &str,
        log: &PlannedLog,
        planned: &PlannedSegment,
    ) -> BackupResult<SegmentBackup> {
        let shown = format!("{}/{:020}.seg", log.name, planned.base);
        // The source first: an archive cannot take back the header of a file.
        let bytes = self.source.open(log, planned)?;
        let mut file = self.store.create(name, planned.bytes)?;
        let mut failed = None;
        let (done_bytes, all_bytes) = (self.done_bytes, self.all_bytes);
        let tee = Tee {
            source: RateLimitedReader { source: bytes, limit: self.rate_limit },
            file: &mut *file,
            failed: &mut failed,
            read: 0,
            progress: &mut |bytes| (self.progress)(done_bytes + bytes, all_bytes),
        };
        // Without this limit, bytes past the segment would be read ahead.
        let ahead = BufReader::with_capacity(BUFFER_BYTES, tee.take(planned.bytes));
        let read = read_segment(ahead, &shown, planned);
        match failed {
            None => {}
            Some(CopyFault::Write(error)) => {
                return Err(BackupError::Io { doing: format!("writing {name}"), error });
            }
            Some(CopyFault::Transfer(error)) => {
                let detail = format!(
                    "the server stopped sending {shown} ({error}); take the backup again: it copies \
                 only what is missing"
                );
                return Err(BackupError::Refused { detail, status: None });
            }
        }
        let segment = read.map_err(|fault| match fault {
            SegmentFault::Corrupt(Corruption { offset, what, .. }) => {
                let detail = format!("{shown} is damaged at byte {offset}: {what}");
                BackupError::DamagedSource { detail }
            }
            other => BackupError::of_segment(&shown, other),
        })?;
        file.finish()?;
        Ok(segment)
    }
}

/// The name of a new backup: its moment, as in `20261125T214438Z`, and a number if another backup
/// has that name.
fn name_of(plan: &BackupPlan, earlier: &Catalog) -> String {
    let mut text = Vec::new();
    push_rfc3339(&mut text, plan.taken_at_us);
    let text = String::from_utf8_lossy(&text);
    let seconds = text.split('.').next().unwrap_or(&text).replace(['-', ':'], "");
    let name = format!("{}Z", seconds.trim_end_matches('Z'));
    // Names sort like backups, even if a clock was wrong: a new name is greater than all earlier
    // ones.
    let greatest = earlier.finished.iter().chain(&earlier.unfinished).max();
    let name = match greatest {
        Some(greatest) if *greatest >= name => {
            greatest.split('-').next().unwrap_or(&name).to_owned()
        }
        _ => name,
    };
    let is_taken = |name: &String| greatest.is_some_and(|greatest| name <= greatest);
    let numbered = (2..).map(|n| format!("{name}-{n:03}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
}

/// The contents of the finished backups.
#[derive(Default)]
struct EarlierBackups {
    /// Their segments, by file.
    segments: HashMap<String, SegmentBackup>,
    /// The ends of logs in those of an earlier moment than the plan.
    ends: KnownEnds,
    unreadable: Vec<UnreadableManifest>,
}

fn earlier_backups(store: &mut dyn Store, earlier: &Catalog, planned_at_us: u64) -> EarlierBackups {
    let Manifests { read, unreadable } = Manifests::of(store, &earlier.finished);
    let mut known = EarlierBackups { unreadable, ..EarlierBackups::default() };
    for manifest in read {
        // Another process may have planned a backup after this one, and finished it before.
        if manifest.taken_at_us < planned_at_us {
            known.ends.note(&manifest);
        }
        for log in &manifest.logs {
            for segment in &log.segments {
                known.segments.insert(segment.file(&log.history), segment.clone());
            }
        }
    }
    known
}

/// The logs of a plan that have lost events since an earlier backup.
fn lost_ends(plan: &BackupPlan, known: &KnownEnds) -> Vec<(String, LostEnd)> {
    let lost = |log: &PlannedLog| {
        let last = log.segments.last().map(|segment| (segment.base, segment.bytes));
        let end = LogEnd::of(log.head, last);
        Some((log.name.clone(), known.lost_end(&log.history, end)?))
    };
    plan.logs.iter().filter_map(lost).collect()
}

/// A failure while a segment was copied, other than damage.
enum CopyFault {
    /// The store.
    Write(io::Error),
    /// The connection to the source ended before the segment did.
    Transfer(io::Error),
}

/// A reader that also writes the bytes to a file of the store.
struct Tee<'a, R> {
    source: R,
    file: &'a mut dyn PendingFile,
    failed: &'a mut Option<CopyFault>,
    read: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = match self.source.read(buf) {
            Err(error) if is_cut_off(error.kind()) => {
                let kind = error.kind();
                *self.failed = Some(CopyFault::Transfer(error));
                return Err(kind.into());
            }
            got => got?,
        };
        if let Err(error) = self.file.write_all(&buf[..got]) {
            let kind = error.kind();
            *self.failed = Some(CopyFault::Write(error));
            return Err(kind.into());
        }
        self.read += got as u64;
        (self.progress)(self.read);
        Ok(got)
    }
}

/// Whether a connection ended too early, as when a server is killed.
fn is_cut_off(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    matches!(kind, UnexpectedEof | ConnectionReset | ConnectionAborted | TimedOut)
}

/// Reads and verifies a segment in the store.
fn reread(
    store: &mut dyn Store,
    file: &str,
    planned: &PlannedSegment,
) -> BackupResult<SegmentBackup> {
    let bytes = store.read(file)?;
    read_segment(bytes, file, planned).map_err(|fault| BackupError::of_segment(file, fault))
}

fn read_segment(
    source: impl Read,
    shown: &str,
    planned: &PlannedSegment,
) -> Result<SegmentBackup, SegmentFault> {
    let mut reader = SegmentReader::begin(source, shown, planned.base, planned.bytes)?;
    reader.read_to_end()?;
    Ok(SegmentBackup {
        base: planned.base,
        next: reader.next_position(),
        bytes: planned.bytes,
        anchor: reader.last_record_checksum(),
        crc32c: reader.crc(),
        recorded_at_us: reader.last_recorded_at_us(),
    })
}

/// An intact segment may still be a different one than planned.
fn check_planned(file: &str, planned: &PlannedSegment, found: &SegmentBackup) -> BackupResult<()> {
    if (found.next, found.anchor) == (planned.next, planned.anchor) {
        return Ok(());
    }
    let what = format!(
        "it ends before position {}, not {}, or with another event",
        found.next, planned.next
    );
    Err(BackupError::Damaged { file: file.to_owned(), what })
}

fn log_backup(log: &PlannedLog, segments: Vec<SegmentBackup>) -> BackupResult<LogBackup> {
    let recorded_at_us = segments.iter().map(|segment| segment.recorded_at_us).max().unwrap_or(0);
    let backup = LogBackup {
        name: log.name.clone(),
        history: log.history.clone(),
        head: log.head,
        recorded_at_us,
        removed_until_us: log.removed_until_us,
        segments,
    };
    backup.check()?;
    Ok(backup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_like_backups_however_many_a_second_has() {
        let plan = BackupPlan {
            version: String::new(),
            taken_at_us: 1_764_107_078_000_000,
            has_accounts: false,
            logs: Vec::new(),
        };
        let mut catalog = Catalog::default();
        for _ in 0..120 {
            catalog.finished.push(name_of(&plan, &catalog));
        }
        assert_eq!(catalog.finished[..2], ["20251125T214438Z", "20251125T214438Z-002"]);
        assert!(catalog.finished.is_sorted());
    }
}
