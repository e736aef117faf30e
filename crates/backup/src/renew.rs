//! A new history for a log whose folder was put back by a snapshot of its file system: nothing in
//! it tells that events were lost, so whoever put it back has to say so.

use crate::fault::{BackupError, Outcome};
use crate::mend::keep_owner;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wellspring_log::segment::{draw_salt, segment_name};
use wellspring_log::segment_copy::SegmentCopy;
use wellspring_log::segment_reader::SegmentReader;
use wellspring_log::{Log, OpenError, Options, history_of_salt};
use wellspring_types::Position;

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
/// segment is written anew with another salt, verified on the way, and gets its place with one
/// rename. The next opening builds the index of that segment anew.
///
/// # Errors
/// [`BackupError::Unfit`] if a process has the log open or it is a copy of a shared log;
/// [`BackupError::Damaged`] if its first segment is damaged. The log is unchanged then.
pub fn renew_history(dir: &Path) -> Outcome<RenewedLog> {
    let shown = dir.display();
    // The opening removes what a crash has left at the end.
    let log = Log::open(dir, Options::default()).map_err(|error| of_opening(dir, error))?;
    let extent = log.extent_now();
    let (Some(before), Some(first)) = (extent.history, extent.segments.first()) else {
        return Err(BackupError::Unfit(format!("the log in {shown} has no history")));
    };
    let name = segment_name(first.base());
    let path = dir.join(&name);
    let renewed = path.with_extension("seg.tmp");
    let reading = |error| BackupError::Io { doing: format!("reading {}", path.display()), error };
    let writing = || BackupError::io(format!("writing {}", renewed.display()));
    let of_segment = |fault| BackupError::of_segment(&name, fault);
    let source =
        first.read_from(0).map_err(|error| reading(io::Error::other(error.to_string())))?;
    let bytes = source.remaining();
    let source = BufReader::with_capacity(BUFFER_BYTES, source);
    let mut reader =
        SegmentReader::begin(source, &name, first.base(), bytes).map_err(of_segment)?;
    let salt = draw_salt();
    let mut options = File::options();
    options.create(true).truncate(true).write(true).mode(0o600);
    let out = options.open(&renewed).map_err(writing())?;
    let out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let mut copy = SegmentCopy::begin(out, reader.header(), Some(salt)).map_err(writing())?;
    while let Some(batch) = reader.next_batch().map_err(of_segment)? {
        copy.add(&batch).map_err(writing())?;
    }
    let (mut out, _) = copy.finish();
    let mut placed = || -> io::Result<()> {
        out.flush()?;
        keep_owner(&path, &renewed)?;
        out.get_ref().sync_all()?;
        fs::rename(&renewed, &path)?;
        // It names the salt before; left where it is, the next opening would call it damaged.
        match fs::remove_file(path.with_extension("idx")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        File::open(dir)?.sync_all()
    };
    placed().map_err(BackupError::io(format!("replacing {}", path.display())))?;
    Ok(RenewedLog {
        head: extent.head,
        history_before: before.to_string(),
        history: history_of_salt(salt).to_string(),
    })
}

fn of_opening(dir: &Path, error: OpenError) -> BackupError {
    match error {
        OpenError::Locked { .. } => {
            BackupError::Unfit(format!("a server has {} open: stop it first", dir.display()))
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
