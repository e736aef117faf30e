//! What a graph refuses.

use crate::id::{Entity, NodeId};
use crate::limits;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a read or a write within a transaction is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphError {
    /// The entity was deleted, or never was, in this transaction's version.
    Deleted(Entity),
    /// A label, type or key is empty, too long or has control characters.
    NotAName,
    /// A statement brings a new name, and the graph has seen too many.
    OutOfNames,
    /// A node would have too many labels.
    TooManyLabels,
    /// A node or relationship would have too many properties.
    TooManyProperties,
    /// A list within a list cannot be stored, nor what is temporal and beyond what text can say.
    NotStorable,
    /// Ids are used up.
    OutOfIds,
    /// The transaction only reads.
    ReadOnly,
    /// There is an index or constraint of that name.
    NameTaken(Arc<str>),
    /// There is an index or constraint that does the same, of this name.
    Equivalent(Arc<str>),
    /// There is no index or constraint of that name.
    NoSuchItem(Arc<str>),
    /// A schema item has no keys, too many or one twice; or there are too many items.
    BadSchemaItem,
    /// A constraint is broken.
    Violation(Violation),
}

/// What keeps a version from being the graph's next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A node was deleted that still has relationships.
    StillConnected(NodeId),
    /// Two entities have the same values where a constraint allows one.
    Duplicate {
        /// The constraint's name.
        constraint: Arc<str>,
        /// The one that was written.
        entity: Entity,
        /// The one that has the values already.
        other: Entity,
        /// Label or type, keys and values, for people.
        what: Arc<str>,
    },
    /// An entity lacks a property that a constraint demands.
    Missing {
        /// The constraint's name.
        constraint: Arc<str>,
        /// The one that was written.
        entity: Entity,
        /// The key.
        key: Arc<str>,
    },
    /// The schema and data were changed in one transaction.
    SchemaWithData,
    /// The transaction is too large for one append.
    TransactionTooLarge {
        /// Bytes of its events.
        bytes: usize,
    },
    /// A property is too large for an event.
    PropertyTooLarge {
        /// Where it is.
        entity: Entity,
        /// Its key.
        key: Arc<str>,
    },
}

impl From<Violation> for GraphError {
    fn from(violation: Violation) -> GraphError {
        GraphError::Violation(violation)
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entity::Node(id) => write!(f, "node {}", id.number()),
            Entity::Relationship(id) => write!(f, "relationship {}", id.number()),
        }
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::Deleted(entity) => {
                write!(f, "{entity} has been deleted in this transaction")
            }
            GraphError::NotAName => write!(
                f,
                "labels, relationship types and property keys have 1 to {} bytes and no control characters",
                limits::MAX_NAME_BYTES
            ),
            GraphError::OutOfNames => write!(
                f,
                "the graph has seen {} labels, relationship types and property keys, and takes no new ones from statements; names of statements that came to nothing count until the server starts again",
                limits::MAX_NAMES
            ),
            GraphError::TooManyLabels => {
                write!(f, "a node has at most {} labels", limits::MAX_LABELS)
            }
            GraphError::TooManyProperties => {
                write!(
                    f,
                    "a node or relationship has at most {} properties",
                    limits::MAX_PROPERTIES
                )
            }
            GraphError::NotStorable => {
                write!(f, "a property cannot be a list that has lists in it")
            }
            GraphError::OutOfIds => write!(f, "all ids are given"),
            GraphError::ReadOnly => write!(f, "the transaction only reads"),
            GraphError::NameTaken(name) => {
                write!(f, "there already exists an index or constraint named '{name}'")
            }
            GraphError::Equivalent(name) => {
                write!(f, "an equivalent index or constraint already exists: '{name}'")
            }
            GraphError::NoSuchItem(name) => {
                write!(f, "there is no index or constraint named '{name}'")
            }
            GraphError::BadSchemaItem => write!(
                f,
                "an index or constraint has 1 to {} different keys, and a graph at most {} of them",
                limits::MAX_INDEX_KEYS,
                limits::MAX_SCHEMA_ITEMS
            ),
            GraphError::Violation(violation) => violation.fmt(f),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::StillConnected(id) => write!(
                f,
                "cannot delete node {}, because it still has relationships: delete them first, or use DETACH DELETE",
                id.number()
            ),
            Violation::Duplicate { constraint, entity, other, what } => {
                write!(
                    f,
                    "{entity} has the same values as {other}, against constraint '{constraint}': {what}"
                )
            }
            Violation::Missing { constraint, entity, key } => {
                write!(f, "{entity} must have the property '{key}' by constraint '{constraint}'")
            }
            Violation::SchemaWithData => {
                write!(f, "the schema cannot be changed in a transaction that changes data")
            }
            Violation::TransactionTooLarge { bytes } => {
                write!(f, "the transaction is too large to be committed at once: {bytes} bytes")
            }
            Violation::PropertyTooLarge { entity, key } => {
                write!(f, "the property '{key}' of {entity} is too large for one event")
            }
        }
    }
}

impl std::error::Error for GraphError {}
impl std::error::Error for Violation {}

/// Why a snapshot cannot be read.
#[derive(Debug)]
pub enum SnapshotFault {
    /// It ends early, or could not be read.
    Io(io::Error),
    /// It holds something that no snapshot of this form holds.
    Malformed(&'static str),
}

impl From<io::Error> for SnapshotFault {
    fn from(error: io::Error) -> SnapshotFault {
        SnapshotFault::Io(error)
    }
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotFault::Io(error) => write!(f, "{error}"),
            SnapshotFault::Malformed(what) => write!(f, "not sound: {what}"),
        }
    }
}

impl std::error::Error for SnapshotFault {}
