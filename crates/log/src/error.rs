//! What can go wrong, and whether a retry helps.

use crate::role::Leader;
use crate::work::Stopped;
use std::fmt;
use std::io;
use wellspring_types::{Conflict, Invalid, Position};

/// Damage found in stored bytes. Retrying does not help; `wellspring verify` tells more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The file, relative to the log's folder.
    pub file: String,
    /// Byte offset in it.
    pub offset: u64,
    /// What was expected there.
    pub what: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at byte {}: {}", self.file, self.offset, self.what)
    }
}

/// Why a log could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process holds the folder. Retry when it has stopped.
    Locked {
        /// The folder.
        dir: String,
    },
    /// Acknowledged bytes are damaged. Retrying does not help.
    Corrupt(Corruption),
    /// A file was written by a newer version.
    UnknownVersion {
        /// The file, relative to the log's folder.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The folder belongs to another kind of log, or to another one. Retrying does not help.
    OtherJournal {
        /// The folder.
        dir: String,
        /// What it holds.
        what: String,
    },
    /// The file system refused. A retry helps if its cause has gone.
    Io {
        /// What was being done.
        doing: String,
        /// What the file system said.
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
            OpenError::UnknownVersion { file, version } => write!(
                f,
                "{file} has format version {version}, which this program does not know; use the version that wrote it or a newer one"
            ),
            OpenError::OtherJournal { dir, what } => write!(f, "{dir} does not fit: {what}"),
            OpenError::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a read gave no (further) events. Never is a short answer given instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// Stored bytes are damaged. Retrying does not help.
    Corrupt(Corruption),
    /// The file system refused. A retry may help.
    Io {
        /// What was being done.
        doing: String,
        /// What the file system said.
        error: String,
    },
    /// The caller's [`Work`](crate::Work) ended before the answer was found. Retrying with more
    /// time or steps may help; a cursor goes on from where it stopped.
    Stopped(Stopped),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Corrupt(corruption) => corruption.fmt(f),
            ReadError::Io { doing, error } => write!(f, "{doing}: {error}"),
            ReadError::Stopped(stopped) => write!(f, "the read was stopped: {stopped}"),
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
    /// An I/O failure while `doing` something.
    pub(crate) fn io(doing: impl Into<String>, error: &io::Error) -> ReadError {
        ReadError::Io { doing: doing.into(), error: error.to_string() }
    }
}

/// Why an append was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError {
    /// The append condition failed. Read again, decide again, then retry.
    Conflict(Conflict),
    /// The input breaks a rule. Retrying does not help.
    Invalid(Invalid),
    /// The request key was used before with another body. Retrying does not help.
    KeyReused {
        /// First position of the request that used the key.
        first: Position,
    },
    /// An event id is already in the log, but not as part of this same request. Retrying does not
    /// help.
    IdReused {
        /// Index of the event in the request.
        event: usize,
        /// Position of the event that has the id.
        position: Position,
    },
    /// The lease of the fence has expired or has another holder. Take the lease again, read again.
    LeaseLost,
    /// Too much is staged already, or more comes in than the condition can be judged against.
    /// Nothing was done; retry after a short while.
    Overloaded,
    /// No room on the device. Nothing was done; retry when there is room.
    StorageFull,
    /// The system refused what the journal needs (descriptors, memory, a read of the device) before
    /// anything was written. Nothing was done; retry after a short while.
    Unavailable {
        /// What the system said.
        reason: String,
    },
    /// What the append was decided on came to nothing before it was staged
    /// ([`Basis`](crate::Basis)). Nothing was done; read again, decide again, then retry.
    SetBack,
    /// The journal failed while this append was under way: it may or may not be
    /// in the log after recovery. Retry with the same request key or event ids.
    Unknown {
        /// What failed.
        reason: String,
    },
    /// This node does not lead the log. Nothing was done; retry at the node that does, or after a
    /// while if none is known.
    NotLeading {
        /// Who leads, as far as this node knows.
        leader: Option<Leader>,
    },
    /// The log no longer takes appends (journal failed earlier, or closed). Nothing was done.
    Closed {
        /// Why.
        reason: String,
    },
    /// An index or segment could not be read while judging the condition. Nothing was done.
    Read(ReadError),
    /// The caller's [`Work`](crate::Work) ended before the condition was judged. Nothing was done.
    /// Retrying with more time or steps may help; a smaller condition does.
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
            AppendError::LeaseLost => write!(f, "the lease has expired or has another holder"),
            AppendError::Overloaded => write!(f, "too many appends are waiting to become durable"),
            AppendError::StorageFull => write!(f, "no space left on the device"),
            AppendError::Unavailable { reason } => {
                write!(f, "the journal could not accept the append now: {reason}")
            }
            AppendError::SetBack => {
                write!(f, "the append was based on events that were not stored; decide again")
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

/// Why the end of a log is not confirmed: this process cannot tell that nobody has appended what it
/// does not know. What it has can be read all the same. A retry helps once its cause has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotConfirmed {
    /// The log takes no appends: its journal has failed, perhaps with an append in doubt, or it is
    /// closed.
    Closed {
        /// Why.
        reason: String,
    },
    /// The end of the shared log could not be found out: the engine did not answer, or not in time.
    Unreachable {
        /// What was said.
        reason: String,
    },
    /// The copy and the shared log have different pasts, or the shared log cannot be used any more.
    Detached {
        /// What was found.
        reason: String,
    },
    /// The folder is not this process' any more: it was removed, renamed or replaced.
    FolderLost {
        /// What the system said.
        reason: String,
    },
}

impl fmt::Display for NotConfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotConfirmed::Closed { reason } => write!(f, "the log accepts no appends: {reason}"),
            NotConfirmed::Unreachable { reason } => {
                write!(f, "the end of the shared log could not be found out: {reason}")
            }
            NotConfirmed::Detached { reason } => {
                write!(f, "this copy is detached from the shared log: {reason}")
            }
            NotConfirmed::FolderLost { reason } => {
                write!(f, "the folder of the log is not where it was: {reason}")
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
