//! Why a connection failed, for the report: the kind that is counted, and words.

use crate::result::ErrorKind;
use rustix::io::Errno;

/// The first failure of a worker's connections.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) cause: Cause,
}

/// Who said what went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The operating system.
    System(Errno),
    /// TLS or HTTP, in words.
    Words(String),
}

impl Fault {
    pub(super) fn system(kind: ErrorKind, error: Errno) -> Self {
        Fault { kind, cause: Cause::System(error) }
    }

    pub(super) fn words(kind: ErrorKind, words: impl Into<String>) -> Self {
        Fault { kind, cause: Cause::Words(words.into()) }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cause {
            Cause::System(error) => std::io::Error::from(*error).fmt(f),
            Cause::Words(words) => f.write_str(words),
        }
    }
}
