//! Mending: damaged segments of a data folder are replaced from a backup.

use crate::fault::{BackupError, Outcome};
use crate::manifest::{LogBackup, SegmentBackup};
use crate::store::Store;
use crate::verify::check_end;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wellspring_log::batch::{BATCH_HEADER_BYTES, BatchHeader};
use wellspring_log::segment::{index_name, parse_segment_name, segment_name};
use wellspring_log::segment_reader::SegmentReader;
use wellspring_log::{LostEnd, history_of_salt};
use wellspring_types::Position;

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

/// What has become of the events that were recorded after a backup, once segments are mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaterEvents {
    /// They are in the files that are there.
    Kept,
    /// The end of the log is put back from the backup, so nobody knows. The log has to get
    /// [another history](crate::renew::renew_history), or it would give positions twice.
    Unknown,
}

/// What will have become of later events when the segments with these bases are mended, in the
/// folder of a log whose end is lost as this evidence says.
///
/// # Errors
/// [`BackupError::Io`].
pub fn later_events(
    log: &LogBackup,
    dir: &Path,
    bases: &[Position],
    lost_end: Option<&LostEnd>,
) -> Outcome<LaterEvents> {
    let reading = || BackupError::io(format!("reading {}", dir.display()));
    let mut last = bases.iter().copied().max();
    for entry in fs::read_dir(dir).map_err(reading())? {
        let name = entry.map_err(reading())?.file_name();
        last = last.max(name.to_str().and_then(parse_segment_name));
    }
    let mended = log
        .segments
        .iter()
        .find(|segment| Some(segment.base) == last && bases.contains(&segment.base));
    let Some(mended) = mended else { return Ok(LaterEvents::Kept) };
    let file_bytes = fs::metadata(dir.join(segment_name(mended.base))).map(|file| file.len());
    match file_bytes {
        Ok(bytes) if bytes >= mended.bytes && lost_end.is_none() => Ok(LaterEvents::Kept),
        _ => Ok(LaterEvents::Unknown),
    }
}

/// Leaves evidence in the folder that the log may have had more events than the backup: an empty
/// index. No server starts until the log has another history, should the machine stop on the way.
///
/// # Errors
/// [`BackupError::Io`].
pub fn mark_lost_end(log: &LogBackup, dir: &Path) -> Outcome<()> {
    let path = dir.join(index_name(log.head + 1));
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

/// Replaces the segment with this base in the folder of a log, which no process may have open: its
/// bytes up to where the backup ends come from the backup, those recorded later from the file. The
/// result is verified before it takes the file's place.
///
/// # Errors
/// [`BackupError::Unfit`] if the backup is one of another history or course, or lacks the segment;
/// [`BackupError::Damaged`] if the result would be damaged, too: the damage is later than the
/// backup. The folder is unchanged then.
pub fn mend(
    store: &mut dyn Store,
    log: &LogBackup,
    dir: &Path,
    base: Position,
) -> Outcome<MendedSegment> {
    let Some(segment) = log.segments.iter().find(|segment| segment.base == base) else {
        let (name, head) = (&log.name, log.head);
        return Err(BackupError::Unfit(format!(
            "the backup has no segment of the log {name} that begins at position {base}; it \
             reaches position {head}. Restore it to another folder, or mend from a newer backup"
        )));
    };
    check_same_history(log, dir)?;
    let path = dir.join(segment_name(base));
    let mended = path.with_extension("seg.tmp");
    let own_bytes = compose(store, log, segment, &path, &mended);
    let own_bytes = match own_bytes.and_then(|own| check(&mended, segment, own).map(|()| own)) {
        Ok(own_bytes) => own_bytes,
        Err(error) => {
            let _ = fs::remove_file(&mended);
            return Err(error);
        }
    };
    let kept_as = path.exists().then(|| free_name(&path));
    let replaced = || -> io::Result<()> {
        // A second name, so that one rename decides: a crash leaves the old file or the new one.
        if let Some(kept_as) = &kept_as {
            fs::hard_link(&path, kept_as)?;
        }
        fs::rename(&mended, &path)?;
        File::open(dir)?.sync_all()
    };
    replaced().map_err(BackupError::io(format!("replacing {}", path.display())))?;
    Ok(MendedSegment { file: path, kept_as, from_backup_bytes: segment.bytes, own_bytes })
}

/// A name for the damaged file that no earlier one has.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..).map(|n| path.with_extension(format!("seg.damaged-{n}")));
    let mut names = std::iter::once(path.with_extension("seg.damaged")).chain(numbered);
    names.find(|name| !name.exists()).expect("there are endless numbers")
}

/// Writes the backup's bytes, then what the file has beyond them; returns the number of the latter.
fn compose(
    store: &mut dyn Store,
    log: &LogBackup,
    segment: &SegmentBackup,
    path: &Path,
    mended: &Path,
) -> Outcome<u64> {
    let file = segment.file(&log.history);
    let writing = || BackupError::io(format!("writing {}", mended.display()));
    check_same_course(store, &file, segment, path)?;
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

/// Checks that the log in the folder has the history of the backup, if its first segment can be
/// read.
///
/// # Errors
/// [`BackupError::Unfit`] if it has another one.
pub fn check_same_history(log: &LogBackup, dir: &Path) -> Outcome<()> {
    let first = dir.join(segment_name(1));
    let Ok(file) = File::open(&first) else { return Ok(()) };
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let Ok(reader) = SegmentReader::begin(BufReader::new(file), "first", 1, bytes) else {
        return Ok(());
    };
    let history = history_of_salt(reader.header().salt).to_string();
    if history == log.history {
        return Ok(());
    }
    Err(BackupError::Unfit(format!(
        "the log {} has the history {history}, the backup has {}: it is a backup of another log, or \
         of this one before it was restored",
        log.name, log.history
    )))
}

/// Checks that every intact batch of the file is the backup's: a log that was rolled back to an
/// earlier state and went on has the same history and other events.
fn check_same_course(
    store: &mut dyn Store,
    file: &str,
    segment: &SegmentBackup,
    path: &Path,
) -> Outcome<()> {
    let Ok(own) = File::open(path) else { return Ok(()) };
    let of_segment = |fault| BackupError::of_segment(file, fault);
    let mut reader = SegmentReader::begin(store.read(file)?, file, segment.base, segment.bytes)
        .map_err(of_segment)?;
    let salt = reader.header().salt;
    while let Some(batch) = reader.next_batch().map_err(of_segment)? {
        let mut bytes = [0; BATCH_HEADER_BYTES];
        let is_read = own.read_exact_at(&mut bytes, batch.offset).is_ok();
        let is_other = |header: BatchHeader| header != batch.header;
        if is_read && BatchHeader::decode(&bytes, salt).is_some_and(is_other) {
            return Err(BackupError::Unfit(format!(
                "{} and the backup have different events at position {}: the log was rolled back \
                 after the backup, or before it",
                path.display(),
                batch.header.first
            )));
        }
    }
    Ok(())
}

/// Verifies the composed file: the backup's part as the manifest says, the rest by its batches.
fn check(mended: &Path, segment: &SegmentBackup, own_bytes: u64) -> Outcome<()> {
    let shown = mended.display().to_string();
    let failed = |fault| BackupError::of_segment(&shown, fault);
    let open = || File::open(mended).map_err(BackupError::io(format!("reading {shown}")));
    let part = BufReader::new(open()?).take(segment.bytes);
    let mut reader =
        SegmentReader::begin(part, &shown, segment.base, segment.bytes).map_err(failed)?;
    reader.read_to_end().map_err(failed)?;
    check_end(&reader, segment)
        .map_err(|what| BackupError::Damaged { file: shown.clone(), what })?;
    let bytes = segment.bytes + own_bytes;
    let mut reader = SegmentReader::begin(BufReader::new(open()?), &shown, segment.base, bytes)
        .map_err(failed)?;
    reader.read_to_end().map_err(|fault| match BackupError::of_segment(&shown, fault) {
        BackupError::Damaged { what, .. } => BackupError::Damaged {
            file: segment_name(segment.base),
            what: format!(
                "{what}; this was recorded after the backup, which cannot mend it: take a newer backup \
                 if there is one, or keep this folder aside and restore the backup"
            ),
        },
        other => other,
    })
}
