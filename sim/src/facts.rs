//! What was seen in a log, and what happened in a step: all that invariants are told.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use wellspring_log::{AppendError, Appended, NotConfirmed, RecordView, Role};
use wellspring_types::Position;

/// Names what a client wants, however often it is tried.
pub type OpId = u64;
/// Names one attempt at it, at one node.
pub type AttemptId = usize;

/// Metadata that every event of the simulation carries: op, attempt, index, number of events, which
/// piece or grant.
pub const FACTS: &str = "facts";
/// Tag of the events of which there may be one only.
pub const UNIQUE: &str = "unique:";
/// Tag of the events of a source.
pub const SOURCE: &str = "source:";

/// Tag of an event, and of the one that rests on it.
pub const BASE: &str = "base:";
/// Tag of the events that were appended under a lease.
pub const LEASE: &str = "lease:";

/// An event as it was read at a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Where.
    pub position: Position,
    /// What was wanted.
    pub op: OpId,
    /// By which attempt.
    pub attempt: AttemptId,
    /// Which of the request's events it is.
    pub index: u64,
    /// How many the request has.
    pub of: u64,
    /// The tag there may be one of.
    pub unique: Option<String>,
    /// The source, and which of its pieces this is.
    pub piece: Option<(String, u64)>,
    /// The lease that was held, and by which grant.
    pub grant: Option<(String, u64)>,
    /// When it was recorded, µs since 1970 UTC.
    pub recorded_at_us: u64,
    /// Over every byte of it.
    pub hash: u64,
}

impl Fact {
    /// What an event says; `None` if no client of the simulation wrote it.
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
        /// Which node.
        node: usize,
        /// The event.
        fact: Fact,
    },
    /// A node shows an event that no client wrote, or cannot read what it shows.
    Unreadable {
        /// Which node.
        node: usize,
        /// What was found.
        what: String,
    },
    /// Somebody who subscribed to everything was told of another event than the next.
    Told {
        /// At which node.
        node: usize,
        /// Which; 0 if of none, although there is one.
        position: Position,
        /// Which one is next.
        expected: Position,
    },
    /// An attempt was answered.
    Answered {
        /// At which node.
        node: usize,
        /// Which attempt.
        attempt: AttemptId,
        /// With what.
        answer: Result<Appended, AppendError>,
        /// The node's head then.
        head: Position,
    },
    /// A process ended as it should, and left an attempt or a read without an answer.
    Unanswered {
        /// At which node.
        node: usize,
        /// What.
        what: String,
    },
    /// A read was confirmed, or could not be.
    Confirmed {
        /// At which node.
        node: usize,
        /// The last position anybody had been told was durable when it was asked for.
        floor: Position,
        /// The answer.
        answer: Result<Position, NotConfirmed>,
    },
    /// A link was followed at a node.
    Followed {
        /// At which node.
        node: usize,
        /// Which link.
        alias: String,
        /// Whether it led anywhere.
        led: bool,
        /// Up to where the node's view had been folded.
        folded: Position,
    },
    /// What a node is to the log.
    Stands {
        /// Which node.
        node: usize,
        /// Which of its processes.
        life: u64,
        /// Its role.
        role: Role,
        /// Its head.
        head: Position,
        /// The place up to which it has applied.
        place: u64,
    },
    /// What a node's view had come to at a position.
    Folded {
        /// Which node.
        node: usize,
        /// Up to where.
        position: Position,
        /// Over the whole of it.
        hash: u64,
    },
    /// A node that should have opened its copy did not.
    NotOpened {
        /// Which node.
        node: usize,
        /// What was said.
        why: String,
    },
}
