//! Faults of a cluster, classified by what the caller must do.

use std::fmt;

/// What a fault requires of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The cluster is unreachable or not ready. Nothing was delivered; a retry helps.
    Unavailable,
    /// It is unknown whether the records were delivered; the topic shows it.
    InDoubt,
    /// Another producer has taken this one's transactional id. A retry would fence it in turn.
    Fenced,
    /// A record or batch exceeds the limit of the topic or broker. A retry does not help.
    TooLarge,
    /// The credentials are wrong or lack a permission. A retry does not help.
    Forbidden,
    /// The topic does not exist.
    NoTopic,
    /// The topic was deleted and created again: known offsets are invalid.
    TopicRecreated,
    /// The requested offset is no longer in the partition, or not yet.
    OutOfRange,
    /// Settings are wrong, or the cluster violates the protocol. A retry does not help.
    Unusable,
}

/// A fault. Its text contains no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it requires of the caller.
    pub kind: FaultKind,
    /// What happened, as a sentence without its full stop.
    pub detail: String,
}

impl Fault {
    /// A fault.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Fault {
        Fault { kind, detail: detail.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Fault {}
