//! What goes wrong with backups, and what to do.

use std::fmt;
use std::io;
use wellspring_format::segment_reader::SegmentFault;

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
    /// Nothing was removed: manifests of backups cannot be read, so it is unknown which segments
    /// they need.
    UnreadableManifests {
        /// Where the backups are.
        place: String,
        /// The manifests.
        manifests: Vec<UnreadableManifest>,
    },
    /// A process has it open. Stop that one, or wait for it.
    InUse(String),
    /// Another process works on the same place of backups. A retry helps, once that one has ended.
    Busy(String),
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
            BackupError::UnreadableManifests { place, manifests } => {
                f.write_str(
                    "no backup and no segment was removed, because not every manifest can \
                     be read, so it is unknown which segments are needed",
                )?;
                manifests.iter().try_for_each(|manifest| {
                    write!(f, ": {}; {}", manifest.detail, manifest.remedy(place))
                })
            }
            BackupError::InUse(what) | BackupError::Busy(what) => f.write_str(what),
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

/// A finished backup whose manifest cannot be read. It concerns that backup only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableManifest {
    /// The backup's name.
    pub name: String,
    /// What is wrong with which file.
    pub detail: String,
    /// Why it cannot be read.
    pub fault: ManifestFault,
}

/// Why a manifest cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFault {
    /// Its bytes are damaged.
    Damaged,
    /// A newer version wrote it.
    Newer,
    /// The place does not give it; it may later.
    Unavailable,
}

impl UnreadableManifest {
    /// That of the backup `name`, which `error` keeps from being read.
    #[must_use]
    pub fn new(name: &str, error: &BackupError) -> UnreadableManifest {
        let fault = match error {
            BackupError::Io { .. } | BackupError::Refused { .. } => ManifestFault::Unavailable,
            BackupError::UnknownVersion { .. } => ManifestFault::Newer,
            _ => ManifestFault::Damaged,
        };
        UnreadableManifest { name: name.to_owned(), detail: error.to_string(), fault }
    }

    /// What to do about it, in the place of this name.
    #[must_use]
    pub fn remedy(&self, place: &str) -> String {
        let remove = format!("`wellspring backup remove --from {place} {}`", self.name);
        match self.fault {
            ManifestFault::Damaged => format!(
                "nothing can be restored from that backup: if the logs have lost nothing, take \
                 another one and remove this one, with the segments that only it needs: {remove}"
            ),
            ManifestFault::Newer => "or remove that backup by its name".to_owned(),
            ManifestFault::Unavailable => {
                format!("try again; if it stays so, take another backup, then {remove}")
            }
        }
    }
}
