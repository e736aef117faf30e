//! Events as read from a log, and what happened in a step: the input of invariants.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use wellspring_log::{AppendError, Appended, NotConfirmed, RecordView, Role};
use wellspring_types::Position;

/// Identifies a client's operation, however often it is attempted.
pub type OpId = u64;
/// Identifies one attempt at an operation, at one node.
pub type AttemptId = usize;

/// Metadata of every simulated event: op, attempt, index, number of events, piece or grant.
pub const FACTS: &str = "facts";
/// Tag prefix of events that must be unique.
pub const UNIQUE: &str = "unique:";
/// Tag prefix of the events of a source.
pub const SOURCE: &str = "source:";

/// Tag prefix of an event and of one that depends on it.
pub const BASE: &str = "base:";
/// Tag prefix of events appended under a lease.
pub const LEASE: &str = "lease:";

/// An event as read at a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its position.
    pub position: Position,
    /// The operation.
    pub op: OpId,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its index in the request.
    pub index: u64,
    /// The request's number of events.
    pub of: u64,
    /// Its unique tag, if any.
    pub unique: Option<String>,
    /// The source and the number of this piece.
    pub piece: Option<(String, u64)>,
    /// The lease and the grant.
    pub grant: Option<(String, u64)>,
    /// When it was recorded, µs since 1970 UTC.
    pub recorded_at_us: u64,
    /// Hash of all its bytes.
    pub hash: u64,
}

impl Fact {
    /// Parses an event; `None` if no simulated client wrote it.
    #[must_use]
    pub fn read(record: &RecordView<'_>) -> Option<Fact> {
        let facts = record.metadata().find(|(key, _)| *key == FACTS)?.1;
        let numbers: Vec<u64> = facts.split(' ').map_while(|word| word.parse().ok()).collect();
        let &[op, attempt, index, of, offset] = &numbers[..] else { return None };
        let tag = |prefix: &str| record.tags().find(|tag| tag.starts_with(prefix));
        let mut hasher = DefaultHasher::new();
        record.position().hash(&mut hasher);
        record.recorded_at_us().hash(&mut hasher);
        record.event_type().hash(&mut hasher);
        record.tags().for_each(|tag| tag.hash(&mut hasher));
        record.metadata().for_each(|entry| entry.hash(&mut hasher));
        record.data().hash(&mut hasher);
        record.id().map(|id| id.0).hash(&mut hasher);
        record.request_key().hash(&mut hasher);
        Some(Fact {
            position: record.position(),
            op,
            attempt: attempt as AttemptId,
            index,
            of,
            unique: tag(UNIQUE).map(str::to_owned),
            piece: tag(SOURCE).map(|tag| (tag.to_owned(), offset)),
            grant: tag(LEASE).map(|tag| (tag.to_owned(), offset)),
            recorded_at_us: record.recorded_at_us(),
            hash: hasher.finish(),
        })
    }
}

/// Something that happened in a step.
#[derive(Debug)]
pub enum News {
    /// A node shows an event.
    Seen {
        /// The node.
        node: usize,
        /// The event.
        fact: Fact,
    },
    /// A node shows an event that no client wrote, or cannot read its events.
    Unreadable {
        /// The node.
        node: usize,
        /// The problem.
        what: String,
    },
    /// A subscriber to all events received another event than the next one.
    Told {
        /// The node.
        node: usize,
        /// The position received; 0 for none although there is one.
        position: Position,
        /// The expected position.
        expected: Position,
    },
    /// An attempt was answered.
    Answered {
        /// The node.
        node: usize,
        /// The attempt.
        attempt: AttemptId,
        /// The answer.
        answer: Result<Appended, AppendError>,
        /// The node's head at that time.
        head: Position,
    },
    /// A process ended regularly and left an attempt or a read unanswered.
    Unanswered {
        /// The node.
        node: usize,
        /// The attempt or read.
        what: String,
    },
    /// A read was confirmed, or could not be.
    Confirmed {
        /// The node.
        node: usize,
        /// The last position reported as durable to any client when the read was started.
        floor: Position,
        /// The answer.
        answer: Result<Position, NotConfirmed>,
    },
    /// A link was followed at a node.
    Followed {
        /// The node.
        node: usize,
        /// The link.
        alias: String,
        /// Whether it led anywhere.
        led: bool,
        /// How far the node's view was folded.
        folded: Position,
    },
    /// A node's role and progress.
    Stands {
        /// The node.
        node: usize,
        /// Its process.
        life: u64,
        /// Its role.
        role: Role,
        /// Its head.
        head: Position,
        /// The place up to which it has applied entries.
        place: u64,
    },
    /// The state of a node's view at a position.
    Folded {
        /// The node.
        node: usize,
        /// How far it is folded.
        position: Position,
        /// Hash of the whole view.
        hash: u64,
    },
    /// A node failed to open its copy.
    NotOpened {
        /// The node.
        node: usize,
        /// The error.
        why: String,
    },
}
