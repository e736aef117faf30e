//! Writes the floor of a log again that lost it: the history is that of a backup, and the log
//! begins with its first segment, however much was removed since.

use super::segment_bases;
use crate::fault::{BackupError, BackupResult};
use crate::manifest::LogBackup;
use crate::new_history::of_opening;
use std::path::Path;
use wellspring_log::storage::DiskStorage;
use wellspring_log::{Floor, OpenError, inspect};

/// Whether the log in a folder may have lost its floor, or it is damaged. A log that has lost its
/// first segment looks the same, unless an index tells its history.
///
/// # Errors
/// A file cannot be read.
pub fn lacks_floor(dir: &Path) -> BackupResult<bool> {
    match Floor::of_folder(dir) {
        Ok(None) if segment_bases(dir, 1)?.first().is_some_and(|&base| base > 1) => {
            let history = inspect::history(dir).map_err(|error| of_opening(dir, error))?;
            Ok(history.is_none())
        }
        Ok(None) => Ok(false),
        Ok(Some(_)) => Ok(false),
        Err(OpenError::Corrupt(_)) => Ok(true),
        Err(error) => Err(of_opening(dir, error)),
    }
}

/// Writes the floor of the log in a folder again.
///
/// # Errors
/// [`BackupError::Unfit`] if the backup is of a log with its beginning, or lacks events between; or
/// a file cannot be read or written.
pub fn mend_floor(log: &LogBackup, dir: &Path) -> BackupResult<()> {
    let unfit = |what: &str| BackupError::Unfit(format!("the log {} {what}", log.name));
    let first = *segment_bases(dir, 1)?.first().ok_or_else(|| unfit("has no segments"))?;
    if log.removed_until_us.is_none() || first < log.first() {
        let what = "has lost the file floor, and the backup does not have it: name one that was \
                    taken since its beginning was removed (--backup), or restore it";
        return Err(unfit(what));
    }
    let history = log.history.parse().map_err(|_| unfit("has no history in the backup"))?;
    // Nothing before the first batch was recorded later than that.
    let mut removed_until_us = None;
    inspect::batches(dir, first, &mut |batch| {
        _ = removed_until_us.get_or_insert(batch.recorded_at_us)
    })
    .map_err(|error| of_opening(dir, error))?;
    let removed_until_us = removed_until_us.or(log.removed_until_us).unwrap_or_default();
    let writing = || BackupError::io(format!("writing to {}", dir.display()));
    let storage = DiskStorage::existing(dir).map_err(writing())?;
    Floor { history, first, removed_until_us }.write(&storage).map_err(writing())
}
