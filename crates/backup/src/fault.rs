//! What goes wrong with backups, and what to do.

use std::fmt;
use std::io;
use wellspring_log::segment_reader::SegmentFault;

/// The result of anything here.
pub type Outcome<T> = Result<T, BackupError>;

/// Why something could not be done.
#[derive(Debug)]
pub enum BackupError {
    /// A file system, a socket or an object store failed. A retry may help.
    Io {
        /// The operation.
        doing: String,
        /// The error.
        error: io::Error,
    },
    /// The server refused. What it says tells whether a retry helps.
    Refused {
        /// What it says.
        detail: String,
        /// The HTTP status, if it came over HTTP.
        status: Option<u16>,
    },
    /// A log was deleted after the backup was planned. The backup goes on without it.
    LogDeleted {
        /// Its name.
        log: String,
    },
    /// The server that a backup is taken of has a damaged segment. `wellspring mend` with an
    /// earlier backup is the remedy.
    DamagedSource {
        /// What is damaged, and how.
        detail: String,
    },
    /// Bytes are damaged, in the backup or on the way. `wellspring verify` tells the extent.
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The backup was begun and never finished, so it cannot be used. Take another one.
    Unfinished {
        /// Its name.
        name: String,
    },
    /// There is no such backup.
    NotFound {
        /// What was looked for, and where.
        what: String,
    },
    /// A newer version wrote it.
    UnknownVersion {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The request makes no sense: a position that the backup does not hold, a folder in use.
    Unfit(String),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Io { doing, error } => write!(f, "{doing}: {error}"),
            BackupError::Refused { detail, .. } => f.write_str(detail),
            BackupError::LogDeleted { log } => {
                write!(f, "the log {log} was deleted while the backup was taken")
            }
            BackupError::DamagedSource { detail } => write!(
                f,
                "on the server, {detail}; stop it, run `wellspring mend` with an earlier backup, and \
                 take this one then"
            ),
            BackupError::Damaged { file, what } => write!(f, "{file} is damaged: {what}"),
            BackupError::Unfinished { name } => write!(
                f,
                "the backup {name} was begun and not finished, so it cannot be used; take another one"
            ),
            BackupError::NotFound { what } => f.write_str(what),
            BackupError::UnknownVersion { file, version } => write!(
                f,
                "{file} has format version {version}, which this version does not support; use the version that wrote it or a newer one"
            ),
            BackupError::Unfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for BackupError {}

impl BackupError {
    /// An error of the operation `doing`.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> BackupError {
        let doing = doing.into();
        move |error| BackupError::Io { doing, error }
    }

    /// A fault of the segment in `file`.
    pub(crate) fn of_segment(file: &str, fault: SegmentFault) -> BackupError {
        match fault {
            SegmentFault::Corrupt(corruption) => BackupError::Damaged {
                file: file.to_owned(),
                what: format!("at byte {}: {}", corruption.offset, corruption.what),
            },
            SegmentFault::UnknownVersion(version) => {
                BackupError::UnknownVersion { file: file.to_owned(), version }
            }
            SegmentFault::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                BackupError::Damaged { file: file.to_owned(), what: "it ends too early".into() }
            }
            SegmentFault::Io(error) => BackupError::Io { doing: format!("reading {file}"), error },
        }
    }
}
