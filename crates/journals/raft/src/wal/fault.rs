//! What can go wrong with the write-ahead log.

use std::{fmt, io};
use wellspring_log::Corruption;

/// What to do with a node that must not vote any more.
pub(crate) const REPLACE: &str = "Move the node's whole data folder away, start it on an empty \
                                  one, and run `wellspring cluster join URL --replace`, with its \
                                  URL, and with --url that of another node";

/// Why the WAL cannot do what it was asked for. Except for [`WalFault::Io`], a retry does not help.
#[derive(Debug)]
pub enum WalFault {
    /// Rot: bytes that a barrier had covered have changed, or a file is missing. Acknowledged
    /// entries or votes may be lost, so the node must not vote or order again under its id.
    Damaged(Corruption),
    /// A newer version wrote this file.
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The disk refused before anything was changed that counts, for example because it is full. A
    /// retry helps once the cause is gone.
    Io {
        /// What was being done.
        doing: &'static str,
        /// The error.
        error: io::Error,
    },
    /// A write or a barrier failed, so its outcome is unknown until the next opening. The WAL takes
    /// nothing more.
    Failed {
        /// What was being done.
        doing: &'static str,
        /// The error.
        error: io::Error,
    },
    /// The WAL takes nothing more since an earlier [`WalFault::Failed`].
    Ended,
    /// The folder has this file of a node whose identity is gone.
    Orphaned {
        /// The file.
        file: String,
    },
    /// The folder has an identity already.
    HasIdentity,
    /// The node's name is empty, longer than 255 bytes or has a control character.
    NodeName,
    /// The body of an entry has more bytes than [`MAX_ENTRY_BYTES`](super::MAX_ENTRY_BYTES), or
    /// than fit into a file.
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl WalFault {
    pub(super) fn io(doing: &'static str) -> impl Fn(io::Error) -> WalFault + Copy {
        move |error| WalFault::Io { doing, error }
    }

    pub(super) fn damaged(file: &str, offset: u64, what: impl Into<String>) -> WalFault {
        WalFault::Damaged(Corruption { file: file.to_owned(), offset, what: what.into() })
    }
}

impl fmt::Display for WalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalFault::Damaged(corruption) => write!(
                f,
                "{corruption}; entries or votes that this node acknowledged may be lost, so it \
                 must not vote. {REPLACE}"
            ),
            WalFault::Version { file, version } => write!(
                f,
                "{file} has format version {version}, which this version does not support"
            ),
            WalFault::Io { doing, error } => write!(f, "{doing}: {error}"),
            WalFault::Failed { doing, error } => write!(
                f,
                "{doing}: {error}; what was being written may be lost or not, and the WAL takes \
                 nothing more until it is opened again"
            ),
            WalFault::Ended => f.write_str(
                "the WAL takes nothing more since a write failed, until it is opened again",
            ),
            WalFault::Orphaned { file } => write!(
                f,
                "there is {file} and no file identity: put the identity back. If it is lost: \
                 {REPLACE}"
            ),
            WalFault::HasIdentity => f.write_str("the folder has the identity of a node already"),
            WalFault::NodeName => {
                f.write_str("the node's name must have 1 to 255 bytes and no control character")
            }
            WalFault::TooLong { bytes } => {
                write!(f, "an entry of {bytes} bytes does not fit into a file of the WAL")
            }
        }
    }
}

impl std::error::Error for WalFault {}
