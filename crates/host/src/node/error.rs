//! Why a log could not be created, opened or dropped.

use crate::foreign_files::remedy;
use crate::setup::SetupError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellspring_log::{AppendError, OpenError};

/// Attempts to open a folder that another process holds, and the time between them.
pub(super) const LOCKED_TRIES: u32 = 30;
pub(super) const LOCKED_PAUSE: Duration = Duration::from_millis(100);

/// Why a log could not be created, opened or dropped.
#[derive(Debug)]
pub enum NodeError {
    /// No log has this name.
    NotFound,
    /// The limit of logs is reached.
    TooMany(usize),
    /// The log could not be opened.
    Open {
        /// Its name.
        log: String,
        /// Its folder.
        dir: PathBuf,
        /// The cause.
        error: OpenError,
    },
    /// A view of the log could not be opened.
    View(SetupError),
    /// The log `system`, which lists all logs, refused the change.
    NotRecorded(AppendError),
    /// The shared journal did not deliver the log in time. A retry may help.
    Unavailable {
        /// The log's name.
        log: String,
        /// The known cause.
        reason: String,
    },
    /// The file system refused.
    Io {
        /// The operation.
        doing: String,
        /// The file system's error.
        error: std::io::Error,
    },
}

/// Why a log has no batcher.
#[derive(Debug)]
pub enum NoBatcher {
    /// No log has this name.
    NoLog,
    /// It is being closed, perhaps to be emptied. A retry may help.
    Closing,
    /// The system provides no thread. A retry may help.
    NoThread(std::io::Error),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::NotFound => write!(f, "no such log"),
            NodeError::TooMany(limit) => {
                write!(f, "there are {limit} logs, the maximum that max_logs allows")
            }
            NodeError::Open { log, error: OpenError::Locked { dir }, .. } => {
                let data = Path::new(dir).ancestors().nth(2).unwrap_or(Path::new(dir)).display();
                write!(
                    f,
                    "the data folder {data} is in use: another process holds the log {log} in \
                     it and did not release it within {} s; stop that process, or choose \
                     another folder (--data)",
                    LOCKED_TRIES * LOCKED_PAUSE.as_millis() as u32 / 1_000
                )
            }
            NodeError::Open { log, dir, error: error @ OpenError::Corrupt(_) } => {
                let data = dir.ancestors().nth(2).unwrap_or(dir);
                write!(
                    f,
                    "cannot open the log {log}: in {}, {error}. Nothing was changed; \
                     `wellspring verify --data {} --log {log}` lists all damage, and \
                     `wellspring mend --from BACKUP --data {} --log {log}` mends it from a \
                     backup and keeps what was recorded later",
                    dir.display(),
                    data.display(),
                    data.display()
                )
            }
            NodeError::Open { log, dir, error: OpenError::EndLost(lost) } => {
                let data = dir.ancestors().nth(2).unwrap_or(dir).display();
                write!(
                    f,
                    "cannot open the log {log}: log {log} {lost}. Nothing was changed. Put them \
                     back with a backup: `wellspring mend --from BACKUP --data {data} --log {log}`. \
                     If a snapshot of the disk was put back, or to go on without them: `wellspring \
                     restore --rolled-back --data {data} --log {log}`"
                )
            }
            NodeError::Open { log, dir, error } => {
                write!(f, "cannot open the log {log} in {}: {error}", dir.display())?;
                let OpenError::Io { error, .. } = error else { return Ok(()) };
                f.write_str(&remedy(dir.ancestors().nth(2).unwrap_or(dir), error))
            }
            NodeError::View(reason) => reason.fmt(f),
            NodeError::NotRecorded(error) => {
                write!(f, "the log system, which lists all logs, refused the change: {error}")
            }
            NodeError::Unavailable { log, reason } => {
                write!(f, "the log {log} is not on this node yet: {reason}")
            }
            NodeError::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}
