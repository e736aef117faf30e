//! Truncates a log before its first damage, for damage that no backup can mend.

use super::lost_end::mark_lost_end;
use super::{first_of, free_name, replace, segment_bases};
use crate::fault::{BackupError, BackupResult};
use crate::new_history::of_opening;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wellspring_format::segment::segment_name;
use wellspring_format::segment_copy::SegmentCopy;
use wellspring_format::segment_reader::{SegmentFault, SegmentReader};
use wellspring_log::OpenError;
use wellspring_log::inspect;
use wellspring_log::recover::Tail;
use wellspring_types::Position;

const BUFFER_BYTES: usize = 1 << 20;

/// A log that ends before its damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortenedLog {
    /// Its last position.
    pub head: Position,
    /// Where the damaged segment and those after it are kept.
    pub kept_as: Vec<PathBuf>,
}

/// Ends the log in the folder `dir`, which no process may have open, before its first damaged batch
/// or missing segment. Replaced and removed files are renamed, not deleted. Returns `None` if
/// nothing is damaged. Afterwards the log needs [another
/// history](crate::new_history::renew_history); no server starts before that.
///
/// # Errors
/// [`BackupError::Unfit`] if no event precedes the damage; [`BackupError::Io`].
pub fn shorten(dir: &Path) -> BackupResult<Option<ShortenedLog>> {
    let first = first_of(dir)?;
    let bases = segment_bases(dir, first)?;
    let mut expected = first;
    for (i, &base) in bases.iter().enumerate() {
        if base != expected {
            return cut(dir, first, &bases[i..], expected, CutPoint::Before).map(Some);
        }
        let is_last = i + 1 == bases.len();
        match inspect::scan_file(dir, &segment_name(base)) {
            Ok(found) if is_last || found.tail == Tail::Clean => expected = found.next,
            Ok(_) | Err(OpenError::Corrupt(_)) => {
                return cut(dir, first, &bases[i..], expected, CutPoint::Within).map(Some);
            }
            Err(error) => return Err(of_opening(dir, error)),
        }
    }
    Ok(None)
}

/// Where a log is cut.
enum CutPoint {
    /// Before the first of the segments.
    Before,
    /// Within it, after its intact batches.
    Within,
}

/// Renames segments of the log that begins at `first`: all of these, or all after the first of
/// them, which keeps its intact batches.
fn cut(
    dir: &Path,
    first: Position,
    bases: &[Position],
    expected: Position,
    cut: CutPoint,
) -> BackupResult<ShortenedLog> {
    let path = |base: Position| dir.join(segment_name(base));
    let damaged = path(bases[0]);
    let shortened = damaged.with_extension("seg.tmp");
    let intact = match cut {
        CutPoint::Before => None,
        CutPoint::Within => copy_intact(&damaged, &shortened, bases[0])?,
    };
    let next = intact.unwrap_or(expected);
    if next == first {
        let _ = fs::remove_file(&shortened);
        let what =
            format!("no event of {} comes before the damage: restore a backup", dir.display());
        return Err(BackupError::Unfit(what));
    }
    mark_lost_end(dir, next - 1)?;
    let mut kept_as = Vec::new();
    let mut moved = || -> io::Result<()> {
        // From the end: after a crash the log is still damaged and can be truncated again.
        for &base in bases[1..].iter().rev() {
            let kept = free_name(&path(base));
            fs::rename(path(base), &kept)?;
            kept_as.push(kept);
        }
        if intact.is_some() {
            kept_as.extend(replace(dir, &damaged, &shortened)?);
        } else {
            let kept = free_name(&damaged);
            fs::rename(&damaged, &kept)?;
            kept_as.push(kept);
        }
        File::open(dir)?.sync_all()
    };
    moved().map_err(BackupError::io(format!("moving segments of {}", dir.display())))?;
    kept_as.reverse();
    Ok(ShortenedLog { head: next - 1, kept_as })
}

/// Copies the batches of a segment before the first damaged one; returns the position after them,
/// or `None` without any.
fn copy_intact(from: &Path, to: &Path, base: Position) -> BackupResult<Option<Position>> {
    let shown = from.display().to_string();
    let reading = || BackupError::io(format!("reading {shown}"));
    let writing = || BackupError::io(format!("writing {}", to.display()));
    let source = File::open(from).map_err(reading())?;
    let bytes = source.metadata().map_err(reading())?.len();
    let source = BufReader::with_capacity(BUFFER_BYTES, source);
    let mut reader = match SegmentReader::begin(source, &shown, base, bytes) {
        Ok(reader) => reader,
        // Not even its header is intact.
        Err(fault) if is_damage(&fault) => return Ok(None),
        Err(fault) => return Err(BackupError::of_segment(&shown, fault)),
    };
    let mut options = File::options();
    options.create(true).truncate(true).write(true).mode(0o600);
    let out = BufWriter::with_capacity(BUFFER_BYTES, options.open(to).map_err(writing())?);
    let mut copy = SegmentCopy::begin(out, reader.header(), None).map_err(writing())?;
    let mut next = base;
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) if batch.records().all(|record| record.is_some()) => {
                copy.add(&batch).map_err(writing())?;
                next = batch.header.last() + 1;
            }
            Ok(_) => break,
            Err(fault) if is_damage(&fault) => break,
            Err(fault) => return Err(BackupError::of_segment(&shown, fault)),
        }
    }
    let (mut out, _) = copy.finish();
    if next == base {
        let _ = fs::remove_file(to);
        return Ok(None);
    }
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(writing())?;
    Ok(Some(next))
}

/// Whether the bytes are damaged or end too early.
fn is_damage(fault: &SegmentFault) -> bool {
    match fault {
        SegmentFault::Corrupt(_) => true,
        SegmentFault::Io(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        SegmentFault::UnknownVersion(_) => false,
    }
}
