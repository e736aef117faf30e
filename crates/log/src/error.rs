//! Errors, and whether a retry helps.

use crate::fence::FenceRefusal;
use crate::role::Leader;
use crate::work::Stopped;
use std::fmt;
use std::io;
pub use wellspring_format::Corruption;
use wellspring_types::{Conflict, Invalid, Position};

/// Evidence that the last segments of a log are gone. The segments that are there are intact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostEnd {
    /// Position of the last event that is there.
    pub head: Position,
    /// Base of the last segment that is there.
    pub last_base: Position,
    /// What knows of more: a file, relative to the log's folder, or a backup.
    pub known_from: String,
    /// Up to which position it knows of events, if it tells.
    pub known_end: Option<Position>,
}

impl fmt::Display for LostEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LostEnd { head, known_from, known_end, .. } = self;
        write!(f, "ends at position {head}, and the events after it are missing (known from ")?;
        match known_end {
            Some(end) => write!(f, "{known_from}, which knows of events up to {end})"),
            None => write!(f, "{known_from})"),
        }
    }
}

/// Why a log could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has locked the folder. Retry once it has stopped.
    Locked {
        /// The folder.
        dir: String,
    },
    /// Acknowledged bytes are damaged. Retrying does not help.
    Corrupt(Corruption),
    /// The last segments are gone. Going on would give their positions to other events.
    EndLost(LostEnd),
    /// A file was written by a newer version.
    UnknownVersion {
        /// The file, relative to the log's folder.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The folder belongs to another kind of log, or to another log. A retry does not help.
    OtherJournal {
        /// The folder.
        dir: String,
        /// What it holds.
        what: String,
    },
    /// The file system refused. A retry helps once the cause is gone.
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        error: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Locked { dir } => {
                write!(f, "{dir} is in use by another process; stop it or choose another folder")
            }
            OpenError::Corrupt(corruption) => corruption.fmt(f),
            OpenError::EndLost(lost) => write!(f, "the log {lost}"),
            OpenError::UnknownVersion { file, version } => write!(
                f,
                "{file} has format version {version}, which this version does not support; use the version that wrote it or a newer one"
            ),
            OpenError::OtherJournal { dir, what } => write!(f, "{dir} does not fit: {what}"),
            OpenError::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a read ended without an answer. A partial answer is never returned instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// Stored bytes are damaged. A retry does not help.
    Corrupt(Corruption),
    /// The file system refused. A retry may help.
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        error: String,
    },
    /// The caller's [`Work`](crate::Work) stopped before the answer was found. A retry with more
    /// time or steps may help; a cursor continues from where it stopped.
    Stopped(Stopped),
    /// The answer needs events from before the log's beginning, which was cut off. A retry does not
    /// help: ask for what is after the position before `first`.
    Trimmed {
        /// Position of the log's first event.
        first: Position,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Corrupt(corruption) => corruption.fmt(f),
            ReadError::Io { doing, error } => write!(f, "{doing}: {error}"),
            ReadError::Stopped(stopped) => write!(f, "the read was stopped: {stopped}"),
            ReadError::Trimmed { first } => write!(
                f,
                "events before position {first} were removed from the log, and the answer depends \
                 on them: ask for what comes after {}",
                first - 1
            ),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<Corruption> for ReadError {
    fn from(corruption: Corruption) -> ReadError {
        ReadError::Corrupt(corruption)
    }
}

impl ReadError {
    /// An I/O error of the operation `doing`.
    pub(crate) fn io(doing: impl Into<String>, error: &io::Error) -> ReadError {
        ReadError::Io { doing: doing.into(), error: error.to_string() }
    }
}

/// Why the beginning of a log was not cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrimError {
    /// The log is a copy of a shared log, whose beginning stays. A retry does not help.
    Copy,
    /// The log cannot be read.
    Read(ReadError),
    /// The file system refused. The log is as before; a retry may help.
    Io {
        /// Whether the device is full.
        is_full: bool,
        /// What was done, and the system's error.
        error: String,
    },
}

impl fmt::Display for TrimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrimError::Copy => f.write_str("the beginning of a shared log cannot be cut off"),
            TrimError::Read(error) => error.fmt(f),
            TrimError::Io { error, .. } => f.write_str(error),
        }
    }
}

impl std::error::Error for TrimError {}

/// Why an append was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError {
    /// The append condition failed. Read again and decide again before retrying.
    Conflict(Conflict),
    /// The input violates a rule. A retry does not help.
    Invalid(Invalid),
    /// The request key was used before with another body. A retry does not help.
    KeyReused {
        /// First position of the request that used the key.
        first: Position,
    },
    /// An event id is already in the log, from another request. A retry does not help.
    IdReused {
        /// Index of the event in the request.
        event: usize,
        /// Position of the event that has the id.
        position: Position,
    },
    /// What the append is fenced by ([`Append::fence`](crate::Append::fence)) refuses it. The
    /// append had no effect.
    Fenced(FenceRefusal),
    /// Too much is staged, or new events arrive faster than the condition can be judged. The append
    /// had no effect; retry shortly.
    Overloaded,
    /// The device is full. The append had no effect; retry once there is room.
    StorageFull,
    /// The system refused a resource that the journal needs (descriptors, memory, a read) before
    /// anything was written. The append had no effect; retry shortly.
    Unavailable {
        /// The system's error.
        reason: String,
    },
    /// The staged events that the append was decided on were discarded before it was staged
    /// ([`Basis`](crate::Basis)). The append had no effect; read again and decide again before
    /// retrying.
    SetBack,
    /// The journal failed while this append was in progress: recovery may or may not keep it. Retry
    /// with the same request key or event ids.
    Unknown {
        /// What failed.
        reason: String,
    },
    /// This node does not lead the log. The append had no effect; retry at the leader, or later if
    /// none is known.
    NotLeading {
        /// The leader, as far as this node knows.
        leader: Option<Leader>,
    },
    /// The log no longer accepts appends (the journal failed earlier, or the log is closed). The
    /// append had no effect.
    Closed {
        /// Why.
        reason: String,
    },
    /// An index or segment could not be read while judging the condition. The append had no effect.
    Read(ReadError),
    /// The caller's [`Work`](crate::Work) stopped before the condition was judged. The append had
    /// no effect. A retry with more time or steps may help, as does a smaller condition.
    Stopped(Stopped),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Conflict(c) => write!(
                f,
                "append condition failed: the event at position {} matches item {} of {}",
                c.position,
                c.item,
                c.clause.name()
            ),
            AppendError::Invalid(invalid) => invalid.fmt(f),
            AppendError::KeyReused { first } => {
                write!(f, "the idempotency key was used at position {first} with another body")
            }
            AppendError::IdReused { event, position } => {
                write!(
                    f,
                    "the id of event {event} is already used by the event at position {position}"
                )
            }
            AppendError::Fenced(refusal) => refusal.fmt(f),
            AppendError::Overloaded => write!(f, "too many appends are waiting to become durable"),
            AppendError::StorageFull => write!(f, "no space left on the device"),
            AppendError::Unavailable { reason } => {
                write!(f, "the journal is temporarily unavailable: {reason}")
            }
            AppendError::SetBack => {
                write!(f, "the events that the append was decided on were discarded; decide again")
            }
            AppendError::Unknown { reason } => {
                write!(f, "the outcome is unknown: {reason}")
            }
            AppendError::NotLeading { leader: Some(leader) } => {
                write!(f, "this node does not lead the log; {leader} does")
            }
            AppendError::NotLeading { leader: None } => {
                write!(f, "this node does not lead the log, and no leader is known")
            }
            AppendError::Closed { reason } => write!(f, "the log accepts no appends: {reason}"),
            AppendError::Read(error) => error.fmt(f),
            AppendError::Stopped(stopped) => write!(f, "judging was stopped: {stopped}"),
        }
    }
}

impl std::error::Error for AppendError {}

/// Why the end of a log cannot be confirmed: other processes may have appended events that this one
/// does not know. Known events can still be read. A retry helps once the cause is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotConfirmed {
    /// The log accepts no appends: its journal has failed, perhaps with an append in doubt, or it
    /// is closed.
    Closed {
        /// Why.
        reason: String,
    },
    /// The end of the shared log could not be determined: the engine did not respond, or not in
    /// time.
    Unreachable {
        /// The engine's error.
        reason: String,
    },
    /// The copy and the shared log have different histories, or the shared log is no longer usable.
    Detached {
        /// The finding.
        reason: String,
    },
    /// The folder no longer belongs to this process: it was removed, renamed or replaced.
    FolderLost {
        /// The system's error.
        reason: String,
    },
}

impl fmt::Display for NotConfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotConfirmed::Closed { reason } => write!(f, "the log accepts no appends: {reason}"),
            NotConfirmed::Unreachable { reason } => {
                write!(f, "the end of the shared log could not be determined: {reason}")
            }
            NotConfirmed::Detached { reason } => {
                write!(f, "this copy is detached from the shared log: {reason}")
            }
            NotConfirmed::FolderLost { reason } => {
                write!(f, "the folder of the log has been moved or removed: {reason}")
            }
        }
    }
}

impl std::error::Error for NotConfirmed {}

impl From<ReadError> for AppendError {
    fn from(error: ReadError) -> AppendError {
        match error {
            ReadError::Stopped(stopped) => AppendError::Stopped(stopped),
            error => AppendError::Read(error),
        }
    }
}

impl From<Invalid> for AppendError {
    fn from(invalid: Invalid) -> AppendError {
        AppendError::Invalid(invalid)
    }
}
