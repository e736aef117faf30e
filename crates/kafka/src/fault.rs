//! What can go wrong between us and a cluster, by what its caller has to do.

use std::fmt;

/// What a fault asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The cluster is not reachable, or not ready now. Nothing was delivered; a retry helps.
    Unavailable,
    /// Nobody knows whether it was delivered. Whoever needs to know looks into the topic.
    InDoubt,
    /// Another producer has taken this one's transactional id. A retry fights with it.
    Fenced,
    /// A record, or a batch, is larger than the topic or the broker takes. A retry does not help.
    TooLarge,
    /// The credentials are wrong, or may not do this. A retry does not help.
    Forbidden,
    /// There is no such topic.
    NoTopic,
    /// The topic was deleted and made again: what was known of its offsets means nothing.
    TopicRecreated,
    /// The offset asked for is not in the partition any more, or not yet.
    OutOfRange,
    /// Settings are wrong, or the cluster answers what it must not. A retry does not help.
    Unusable,
}

/// Something that went wrong. Its words name no credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it asks of the caller.
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
