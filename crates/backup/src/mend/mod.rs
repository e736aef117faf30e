//! Mending: damaged segments of a data folder are replaced from a backup.
//!
//! No history may have two events at one position. So the log's history is determined first, from
//! the header of its first segment or from the salt in the index of that segment. Of the backups
//! of that history the one with the highest position is used, and each segment that both have is
//! compared: an intact one by position and last checksum, a damaged or shorter one batch by batch.
//! Only then are missing, short and damaged segments written, and in further passes those whose
//! damage only then becomes visible.
//!
//! Whether events followed the backup is known only if the file has an intact end. Otherwise the
//! end comes from the backup and the log gets [another history](crate::new_history). An empty index
//! after the end marks this state. It is removed after every other index that contains later
//! events, so an interrupted run can be repeated. `--cut` ([`shorten`](shorten())) is for damage
//! that no backup can mend: the log is truncated before it, under another history.

mod comparison;
mod floor;
mod lost_end;
mod shorten;

pub use comparison::{SegmentNeed, check_same_history, segment_needs};
pub use floor::{lacks_floor, mend_floor};
pub use lost_end::{LaterEvents, is_marked, later_events};
pub use shorten::{ShortenedLog, shorten};
pub use wellspring_log::FLOOR_FILE;

use crate::fault::{BackupError, BackupResult};
use crate::manifest::{LogBackup, SegmentBackup};
use crate::new_history::resalt;
use crate::store::Store;
use crate::verify::check_end;
use comparison::{check_same_events, holds_another};
use lost_end::mark_lost_end;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wellspring_format::segment::{parse_segment_name, segment_name};
use wellspring_format::segment_reader::SegmentReader;
use wellspring_log::inspect::scan_file;
use wellspring_log::{Floor, OpenError};
use wellspring_types::Position;

/// The salt of a mended first segment. The log's history is derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstSalt {
    /// That of the backup: the log is known to have the backup's history.
    OfBackup,
    /// A new one: the log's history is unknown.
    New,
}

/// What mending assumes about a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MendPlan {
    /// The salt of its first segment, if that is mended.
    pub first_salt: FirstSalt,
    /// The state of the events after the backup. If it is unknown, the folder is marked before the
    /// last segment is replaced: if the machine stops then, no server starts until the log has
    /// another history.
    pub later: LaterEvents,
}

/// A segment that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MendedSegment {
    /// Its file.
    pub file: PathBuf,
    /// Where the damaged file is kept; `None` if the file was missing.
    pub kept_as: Option<PathBuf>,
    /// Bytes from the backup.
    pub from_backup_bytes: u64,
    /// Bytes that were recorded after the backup, from the file itself.
    pub own_bytes: u64,
}

/// Replaces the segment with this base in the folder of a log, which no process may have open: its
/// bytes up to the end of the backup come from the backup, later ones from the file. The result is
/// verified before it replaces the file.
///
/// # Errors
/// [`BackupError::Unfit`] if the backup has another history or different events, or lacks the
/// segment; [`BackupError::Damaged`] if the result would be damaged as well, because the damage
/// follows the backup. The folder is unchanged then.
pub fn mend(
    store: &mut dyn Store,
    log: &LogBackup,
    dir: &Path,
    base: Position,
    plan: MendPlan,
) -> BackupResult<MendedSegment> {
    let Some(segment) = log.segments.iter().find(|segment| segment.base == base) else {
        let (name, head) = (&log.name, log.head);
        return Err(BackupError::Unfit(format!(
            "the backup has no segment of the log {name} that begins at position {base}; it \
             reaches position {head}. Mend from a newer backup, restore it to another folder, or \
             end the log before the damage with --cut"
        )));
    };
    check_same_history(log, dir)?;
    let path = dir.join(segment_name(base));
    let mended = path.with_extension("seg.tmp");
    let composed = compose(store, log, segment, &path, &mended).and_then(|own_bytes| {
        let recorded_later_bytes = check(dir, &mended, segment, own_bytes)?;
        if let (1, FirstSalt::New) = (base, plan.first_salt) {
            let source = path.with_extension("seg.unsalted");
            fs::rename(&mended, &source)
                .map_err(BackupError::io(format!("renaming {}", mended.display())))?;
            let salted = resalt(&source, &mended);
            let _ = fs::remove_file(&source);
            salted?;
        }
        let is_last = log.segments.last().is_some_and(|last| last.base == base);
        if is_last && plan.later == LaterEvents::Unknown {
            mark_lost_end(dir, log.head)?;
        }
        Ok(recorded_later_bytes)
    });
    let own_bytes = match composed {
        Ok(recorded_later_bytes) => recorded_later_bytes,
        Err(error) => {
            let _ = fs::remove_file(&mended);
            return Err(error);
        }
    };
    let kept_as = replace(dir, &path, &mended)
        .map_err(BackupError::io(format!("replacing {}", path.display())))?;
    Ok(MendedSegment { file: path, kept_as, from_backup_bytes: segment.bytes, own_bytes })
}

/// Replaces a damaged file, which is renamed; returns its new name.
fn replace(dir: &Path, path: &Path, mended: &Path) -> io::Result<Option<PathBuf>> {
    let kept_as = path.exists().then(|| free_name(path));
    // A second name, so that one rename decides: a crash leaves the old file or the new one.
    if let Some(kept_as) = &kept_as {
        fs::hard_link(path, kept_as)?;
    }
    fs::rename(mended, path)?;
    File::open(dir)?.sync_all()?;
    Ok(kept_as)
}

/// Position of the first event of the log in a folder: what a cut has removed is not missing.
fn first_of(dir: &Path) -> BackupResult<Position> {
    let floor =
        Floor::of_folder(dir).map_err(|error| crate::new_history::of_opening(dir, error))?;
    Ok(floor.map_or(1, |floor| floor.first))
}

/// The bases of the segments in a folder that do not begin before `first`, in order.
fn segment_bases(dir: &Path, first: Position) -> BackupResult<Vec<Position>> {
    let reading = || BackupError::io(format!("reading {}", dir.display()));
    let mut bases = Vec::new();
    for entry in fs::read_dir(dir).map_err(reading())? {
        let name = entry.map_err(reading())?.file_name();
        let base = name.to_str().and_then(parse_segment_name);
        bases.extend(base.filter(|&base| base >= first));
    }
    bases.sort_unstable();
    Ok(bases)
}

/// An unused name for a damaged file.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..).map(|n| path.with_extension(format!("seg.damaged-{n}")));
    let mut names = std::iter::once(path.with_extension("seg.damaged")).chain(numbered);
    names.find(|name| !name.exists()).expect("there are endless numbers")
}

/// Writes the backup's bytes, then the later ones of the file; returns the number of the latter.
fn compose(
    store: &mut dyn Store,
    log: &LogBackup,
    segment: &SegmentBackup,
    path: &Path,
    mended: &Path,
) -> BackupResult<u64> {
    let file = segment.file(&log.history);
    let writing = || BackupError::io(format!("writing {}", mended.display()));
    check_same_events(store, &file, segment, path)?;
    let mut options = File::options();
    options.create(true).truncate(true).write(true).mode(0o600);
    let mut out = options.open(mended).map_err(writing())?;
    let mut source = store.read(&file)?;
    let copied = io::copy(&mut source, &mut out).map_err(writing())?;
    if copied != segment.bytes {
        let what = format!("it has {copied} bytes, not {}", segment.bytes);
        return Err(BackupError::Damaged { file, what });
    }
    let mut own_bytes = 0;
    match File::open(path) {
        // Bytes past the end of another segment do not belong to this one.
        Ok(own) if holds_another(&own, segment.base) => {}
        Ok(mut own) => {
            own.seek(SeekFrom::Start(segment.bytes)).map_err(writing())?;
            own_bytes = io::copy(&mut own, &mut out).map_err(writing())?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(BackupError::Io { doing: format!("reading {}", path.display()), error });
        }
    }
    out.flush().and_then(|()| out.sync_all()).map_err(writing())?;
    Ok(own_bytes)
}

/// Verifies the composed file: the backup's part against the manifest, the rest by its batches. As
/// in every log, the last segment may end with a torn write. Returns the bytes of the batches after
/// the backup's part.
fn check(dir: &Path, mended: &Path, segment: &SegmentBackup, own_bytes: u64) -> BackupResult<u64> {
    let shown = mended.display().to_string();
    let failed = |fault| BackupError::of_segment(&shown, fault);
    let open = || File::open(mended).map_err(BackupError::io(format!("reading {shown}")));
    let part = BufReader::new(open()?).take(segment.bytes);
    let mut reader =
        SegmentReader::begin(part, &shown, segment.base, segment.bytes).map_err(failed)?;
    reader.read_to_end().map_err(failed)?;
    check_end(&reader, segment)
        .map_err(|what| BackupError::Damaged { file: shown.clone(), what })?;
    if own_bytes == 0 {
        return Ok(0);
    }
    let name = mended.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match scan_file(dir, name) {
        Ok(found) => Ok(found.end.saturating_sub(segment.bytes)),
        Err(OpenError::Corrupt(corruption)) => Err(BackupError::Damaged {
            file: segment_name(segment.base),
            what: format!(
                "at byte {}: {}; this was recorded after the backup, which cannot mend it: take a \
                 newer backup if there is one, or end the log before the damage with --cut",
                corruption.offset, corruption.what
            ),
        }),
        Err(error) => Err(crate::new_history::of_opening(dir, error)),
    }
}
