//! Gives a log that has lost its last events another history: a snapshot of its file system was
//! restored, which the folder does not show, or its last segments are missing.
//!
//! The first segment is rewritten with another salt, from which the history is derived. The log is
//! opened first, because a restored snapshot of a disk is like a power failure and may have a torn
//! end. A damaged log is refused: under another history no backup could mend it.

use crate::fault::{BackupError, BackupResult};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wellspring_format::history_of_salt;
use wellspring_format::segment::{draw_salt, index_name, segment_name};
use wellspring_format::segment_copy::SegmentCopy;
use wellspring_format::segment_reader::SegmentReader;
use wellspring_log::storage::{DiskStorage, Storage as _};
use wellspring_log::{Floor, Log, OpenError, Options, inspect};
use wellspring_types::{HistoryId, Position};

const BUFFER_BYTES: usize = 1 << 20;

/// A log with another history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewedLog {
    /// Its last position.
    pub head: Position,
    /// The id of its history before.
    pub history_before: String,
    /// The id of its history now.
    pub history: String,
}

/// Gives the log in the folder `dir`, which no process may have open, another history. Its first
/// segment is rewritten with another salt, verified at the same time, and replaced with one rename.
/// The next opening rebuilds the index of that segment.
///
/// If the log has lost its end, it continues without the missing segments. Indexes that contain
/// them are removed once the log has another history; snapshots of views are up to the caller.
///
/// # Errors
/// [`BackupError::InUse`] if a process has the log open; [`BackupError::Unfit`] if it is a copy of
/// a shared log; [`BackupError::Damaged`] if the log is damaged. The log is unchanged then.
pub fn renew_history(dir: &Path) -> BackupResult<RenewedLog> {
    // Opening the log removes a torn end.
    let end = match Log::open(dir, Options::default()) {
        Ok(log) => {
            log.close();
            End::There
        }
        Err(OpenError::EndLost(_)) => End::Lost,
        Err(error) => return Err(of_opening(dir, error)),
    };
    // Under another history no earlier backup can mend it, and the index of the first segment,
    // which is removed, may cover other segments.
    let head = sound_head(dir)?;
    let storage = DiskStorage::existing(dir)
        .map_err(BackupError::io(format!("opening {}", dir.display())))?;
    storage.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => in_use(dir),
        _ => BackupError::Io { doing: format!("locking {}", dir.display()), error },
    })?;
    let floor = Floor::read(&storage).map_err(|error| of_opening(dir, error))?;
    let (before, history) = match floor {
        Some(floor) => renew_floor(dir, &storage, floor)?,
        None => renew_first(dir)?,
    };
    storage.unlock();
    if let End::Lost = end {
        forget_lost_end(dir, head)?;
    }
    Ok(RenewedLog { head, history_before: before.to_string(), history: history.to_string() })
}

/// Whether a log still has its last segments.
enum End {
    There,
    Lost,
}

/// The last position of an intact log, whether or not it has lost its end.
fn sound_head(dir: &Path) -> BackupResult<Position> {
    let report = inspect::verify(dir, &mut |_, _| ()).map_err(|error| of_opening(dir, error))?;
    match report.damage.into_iter().next() {
        Some(damage) => Err(of_opening(dir, OpenError::Corrupt(damage))),
        None => Ok(report.head),
    }
}

/// Writes another history into the floor of a log whose beginning was removed; returns the old and
/// the new one.
fn renew_floor(
    dir: &Path,
    storage: &DiskStorage,
    floor: Floor,
) -> BackupResult<(HistoryId, HistoryId)> {
    let history = history_of_salt(draw_salt());
    let written = Floor { history, ..floor }.write(storage);
    written.map_err(BackupError::io(format!("writing to {}", dir.display())))?;
    Ok((floor.history, history))
}

/// Rewrites the first segment with another salt; returns the old and the new history.
fn renew_first(dir: &Path) -> BackupResult<(HistoryId, HistoryId)> {
    let path = dir.join(segment_name(1));
    let renewed = path.with_extension("seg.tmp");
    let histories = resalt(&path, &renewed)?;
    let placed = || -> io::Result<()> {
        fs::rename(&renewed, &path)?;
        // The index names the old salt, so the next opening would report it as damaged.
        match fs::remove_file(path.with_extension("idx")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        File::open(dir)?.sync_all()
    };
    placed().map_err(BackupError::io(format!("replacing {}", path.display())))?;
    Ok(histories)
}

/// Copies the first segment of a log, up to the end of its last batch, with another salt; returns
/// the old and the new history.
pub(crate) fn resalt(from: &Path, to: &Path) -> BackupResult<(HistoryId, HistoryId)> {
    let dir = from.parent().unwrap_or(from);
    let name = from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let writing = || BackupError::io(format!("writing {}", to.display()));
    let of_segment = |fault| BackupError::of_segment(name, fault);
    let scanned = inspect::scan_file(dir, name).map_err(|error| of_opening(dir, error))?;
    let before = scanned.header;
    if before.source.is_some() {
        let what = format!("{} holds a copy of a shared log", dir.display());
        return Err(BackupError::Unfit(what));
    }
    let source =
        File::open(from).map_err(BackupError::io(format!("reading {}", from.display())))?;
    let source = BufReader::with_capacity(BUFFER_BYTES, source.take(scanned.end));
    let mut reader = SegmentReader::begin(source, name, 1, scanned.end).map_err(of_segment)?;
    let salt = draw_salt();
    let mut options = File::options();
    options.create(true).truncate(true).write(true).mode(0o600);
    let out = options.open(to).map_err(writing())?;
    let out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let mut copy = SegmentCopy::begin(out, reader.header(), Some(salt)).map_err(writing())?;
    while let Some(batch) = reader.next_batch().map_err(of_segment)? {
        copy.add(&batch).map_err(writing())?;
    }
    let (mut out, _) = copy.finish();
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(writing())?;
    Ok((history_of_salt(before.salt), history_of_salt(salt)))
}

/// Removes the indexes that contain segments after the last one, and finally the
/// [mark](crate::mend::is_marked) of a mended end: an interrupted run is repeated only while the
/// mark exists. Opening the log rebuilds the other indexes.
fn forget_lost_end(dir: &Path, head: Position) -> BackupResult<()> {
    let evidence = inspect::evidence_of_lost_end(dir).map_err(|error| of_opening(dir, error))?;
    for name in mark_last(evidence, head) {
        let path = dir.join(name);
        fs::remove_file(&path)
            .and_then(|()| File::open(dir)?.sync_all())
            .map_err(BackupError::io(format!("removing {}", path.display())))?;
    }
    let log = Log::open(dir, Options::default()).map_err(|error| of_opening(dir, error))?;
    log.close();
    Ok(())
}

/// The order in which these indexes are removed, for a log that ends at `head`.
fn mark_last(mut indexes: Vec<String>, head: Position) -> Vec<String> {
    let mark = index_name(head + 1);
    indexes.sort_by_key(|name| *name == mark);
    indexes
}

fn in_use(dir: &Path) -> BackupError {
    BackupError::InUse(format!("a server has {} open: stop it first", dir.display()))
}

pub(crate) fn of_opening(dir: &Path, error: OpenError) -> BackupError {
    match error {
        OpenError::Locked { .. } => in_use(dir),
        OpenError::EndLost(lost) => {
            BackupError::Unfit(format!("the log in {} {lost}", dir.display()))
        }
        OpenError::Corrupt(corruption) => {
            let what = format!("at byte {}: {}", corruption.offset, corruption.what);
            BackupError::Damaged { file: corruption.file, what }
        }
        OpenError::UnknownVersion { file, version } => {
            BackupError::UnknownVersion { file, version }
        }
        OpenError::OtherJournal { dir, what } => BackupError::Unfit(format!(
            "{dir} holds {what}: its history is that of the shared log, whose database has to be \
             put back instead"
        )),
        OpenError::Io { doing, error } => BackupError::Io { doing, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the mark, a repeated run would find a log without its end, and nothing to mend.
    #[test]
    fn the_mark_is_the_last_index_that_is_removed() {
        let [mark, later, earlier] = [101, 500, 1].map(index_name);
        let evidence = vec![later.clone(), mark.clone(), earlier.clone()];
        assert_eq!(mark_last(evidence, 100), [later.clone(), earlier.clone(), mark]);
        assert_eq!(mark_last(vec![later.clone(), earlier.clone()], 100), [later, earlier]);
    }
}
