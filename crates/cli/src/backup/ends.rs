//! The end of a log: whether it still reaches its end in a backup, and continuing without the lost
//! events.

use crate::exit::{Failure, say};
use std::fs;
use std::path::Path;
use wellspring_backup::new_history::{RenewedLog, renew_history};
use wellspring_backup::{KnownEnds, LogEnd};
use wellspring_host::view::snapshot_ahead;
use wellspring_log::LostEnd;
use wellspring_log::inspect::{self, Report};

/// The evidence of lost events that backups of the same history give about the log in `dir`.
///
/// # Errors
/// Its files cannot be read.
pub(crate) fn lost_since(
    known: &KnownEnds,
    name: &str,
    dir: &Path,
    report: &Report,
) -> Result<Option<LostEnd>, Failure> {
    let Some(history) = inspect::history(dir)?.map(|history| history.to_string()) else {
        return Ok(None);
    };
    if !known.has(&history) {
        let what = "of a history that no backup has, so their ends are not compared";
        say(&format!("log {name}: {what}"))?;
    }
    let Report { head, last_base, last_bytes, .. } = *report;
    Ok(known.lost_end(&history, LogEnd { head, last_base, last_bytes }))
}

/// Gives the log in `dir` another history, and removes the snapshots of views that know of more
/// events than it has.
///
/// # Errors
/// Those of [`renew_history`], or of the file system.
pub(super) fn renew(dir: &Path) -> Result<RenewedLog, Failure> {
    let renewed = renew_history(dir)?;
    while let Some(ahead) = snapshot_ahead(dir, renewed.head) {
        let path = dir.join(&ahead.file);
        fs::remove_file(&path)
            .map_err(|error| Failure::output(&path.display().to_string(), &error))?;
    }
    Ok(renewed)
}
