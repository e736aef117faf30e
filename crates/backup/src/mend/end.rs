//! The end of a log that is mended, and what was recorded after the backup.

use super::course::SegmentNeed;
use super::segment_bases;
use crate::fault::{BackupError, Outcome};
use crate::manifest::LogBackup;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wellspring_log::LostEnd;
use wellspring_log::segment::{index_name, segment_name};
use wellspring_types::Position;

/// What has become of the events that were recorded after a backup, once segments are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaterEvents {
    /// They are in the files that are there.
    Kept,
    /// The end of the log comes from the backup, and whether events followed is unknown. The log
    /// has to get [another history](crate::renew::renew_history), or it would give positions twice.
    Unknown,
}

/// What will have become of later events when segments with these needs are mended, in the folder
/// of a log whose end is lost as this evidence says.
///
/// # Errors
/// [`BackupError::Io`].
pub fn later_events(
    log: &LogBackup,
    dir: &Path,
    needs: &BTreeMap<Position, SegmentNeed>,
    lost_end: Option<&LostEnd>,
) -> Outcome<LaterEvents> {
    let last = segment_bases(dir)?.last().copied().max(needs.keys().last().copied());
    let Some((base, need)) = last.and_then(|last| needs.get_key_value(&last)) else {
        return Ok(LaterEvents::Kept);
    };
    let backup_bytes = log.segments.iter().find(|segment| segment.base == *base);
    let backup_bytes = backup_bytes.map_or(0, |segment| segment.bytes);
    let file_bytes = fs::metadata(dir.join(segment_name(*base))).map_or(0, |file| file.len());
    match need {
        SegmentNeed::Damaged if file_bytes >= backup_bytes && lost_end.is_none() => {
            Ok(LaterEvents::Kept)
        }
        SegmentNeed::Damaged | SegmentNeed::Missing | SegmentNeed::Short => {
            Ok(LaterEvents::Unknown)
        }
    }
}

/// Leaves evidence in the folder that the log may have had events after `head`, where it is going
/// to end: an empty index. No server starts until the log has another history, should the machine
/// stop on the way.
///
/// # Errors
/// [`BackupError::Io`].
pub fn mark_lost_end(dir: &Path, head: Position) -> Outcome<()> {
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

/// Whether the folder of a log that ends at `head` has the [mark](mark_lost_end): its end is
/// mended, and it lacks another history.
#[must_use]
pub fn is_marked(dir: &Path, head: Position) -> bool {
    fs::symlink_metadata(dir.join(index_name(head + 1)))
        .is_ok_and(|mark| mark.is_file() && mark.len() == 0)
}
