//! Whether a log still reaches as far as in a backup: events that are gone from its end leave no
//! damage.

use crate::exit::Failure;
use std::path::Path;
use wellspring_backup::Manifest;
use wellspring_log::Corruption;
use wellspring_log::inspect::{self, Report};
use wellspring_log::segment::segment_name;

/// The evidence of lost events that a backup of the same history gives about the log in `dir`.
///
/// # Errors
/// Its first segment cannot be read.
pub(crate) fn lost_since(
    backup: &Manifest,
    name: &str,
    dir: &Path,
    report: &Report,
) -> Result<Option<Corruption>, Failure> {
    let Some(log) = backup.logs.iter().find(|log| log.name == name) else { return Ok(None) };
    if !report.is_sound() || report.head >= log.head {
        return Ok(None);
    }
    let history = inspect::history(dir)?.map(|history| history.to_string());
    if history.as_ref() != Some(&log.history) {
        let what = "of another history than in the backup, so their ends are not compared";
        crate::say(&format!("log {name}: {what}"))?;
        return Ok(None);
    }
    let what = format!(
        "the log ends at position {}, and the backup {} has events up to {}: segments after it are \
         missing",
        report.head, backup.name, log.head
    );
    Ok(Some(Corruption { file: segment_name(report.last_base), offset: 0, what }))
}
