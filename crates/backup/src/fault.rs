//! Errors of backups, with what to do about them.

use std::fmt;
use std::io;
use wellspring_format::segment_reader::SegmentFault;

/// A result with a [`BackupError`].
pub type BackupResult<T> = Result<T, BackupError>;

/// Why an operation on backups failed.
#[derive(Debug)]
pub enum BackupError {
    /// A file system, a socket or an object store failed. A retry may help.
    Io {
        /// The operation.
        doing: String,
        /// The error.
        error: io::Error,
    },
    /// The server refused. Its detail says whether a retry helps.
    Refused {
        /// The detail of its answer.
        detail: String,
        /// The HTTP status, if there was one.
        status: Option<u16>,
    },
    /// A log was deleted after the backup was planned. The backup continues without it.
    LogDeleted {
        /// Its name.
        log: String,
    },
    /// A segment of the plan was removed with the beginning of its log. The backup continues
    /// without it.
    BeginningRemoved {
        /// The log's name.
        log: String,
    },
    /// The backed-up server has a damaged segment. Repair it with `wellspring mend` and an earlier
    /// backup.
    DamagedSource {
        /// What is damaged, and how.
        detail: String,
    },
    /// Bytes are damaged, in the backup or in transit. `wellspring verify` shows the extent.
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
    /// The backup does not exist.
    NotFound {
        /// What was looked for, and where.
        what: String,
    },
    /// Nothing was removed: some manifests cannot be read, so the segments that they need are
    /// unknown.
    UnreadableManifests {
        /// Where the backups are.
        place: String,
        /// The manifests.
        manifests: Vec<UnreadableManifest>,
    },
    /// Another process has it open. Stop that process, or wait for it.
    InUse(String),
    /// Another process works on the same store. A retry helps once it has ended.
    Busy(String),
    /// A newer version of Wellspring wrote it.
    UnknownVersion {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The request cannot be fulfilled: a position that the backup does not have, a folder in use.
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
            BackupError::BeginningRemoved { log } => write!(
                f,
                "all that the backup was to hold of the log {log} was removed while it was taken; \
                 take another one"
            ),
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

/// A finished backup whose manifest cannot be read. Other backups are not affected.
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
    /// The store cannot read it now; a retry may help.
    Unavailable,
}

impl UnreadableManifest {
    /// The manifest of the backup `name`, which cannot be read because of `error`.
    #[must_use]
    pub fn new(name: &str, error: &BackupError) -> UnreadableManifest {
        let fault = match error {
            BackupError::Io { .. } | BackupError::Refused { .. } => ManifestFault::Unavailable,
            BackupError::UnknownVersion { .. } => ManifestFault::Newer,
            _ => ManifestFault::Damaged,
        };
        UnreadableManifest { name: name.to_owned(), detail: error.to_string(), fault }
    }

    /// What to do about it; `place` is the location of the store.
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
