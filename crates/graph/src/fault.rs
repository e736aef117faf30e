//! Errors of a graph.

use crate::id::{Entity, NodeId};
use crate::limits;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a transaction refuses a read or a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphError {
    /// The entity was deleted or never existed in this transaction's version.
    Deleted(Entity),
    /// A label, type or key is empty, too long or contains control characters.
    NotAName,
    /// A statement uses a new name, and the graph's limit of names is reached.
    OutOfNames,
    /// A node would have too many labels.
    TooManyLabels,
    /// A node or relationship would have too many properties.
    TooManyProperties,
    /// The value cannot be stored: a list within a list, or a temporal value out of range.
    NotStorable,
    /// All ids are in use.
    OutOfIds,
    /// The transaction is read-only.
    ReadOnly,
    /// An index or constraint with this name exists.
    NameTaken(Arc<str>),
    /// An equivalent index or constraint with this name exists.
    Equivalent(Arc<str>),
    /// No index or constraint has this name.
    NoSuchItem(Arc<str>),
    /// A schema item has no keys, too many keys or a repeated key; or there are too many items.
    BadSchemaItem,
    /// A constraint is violated.
    Violation(Violation),
}

/// Why a version cannot become the graph's next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A deleted node still has relationships.
    StillConnected(NodeId),
    /// Two entities have the same values, against a constraint.
    Duplicate {
        /// The constraint's name.
        constraint: Arc<str>,
        /// The entity that was written.
        entity: Entity,
        /// The entity that has the values already.
        other: Entity,
        /// Label or type, keys and values, for display.
        what: Arc<str>,
    },
    /// An entity lacks a property that a constraint requires.
    Missing {
        /// The constraint's name.
        constraint: Arc<str>,
        /// The entity that was written.
        entity: Entity,
        /// The key.
        key: Arc<str>,
    },
    /// The transaction changed both schema and data.
    SchemaWithData,
    /// The transaction is too large for one append.
    TransactionTooLarge {
        /// Bytes of its events.
        bytes: usize,
    },
    /// A property is too large for an event.
    PropertyTooLarge {
        /// The entity.
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
                "the graph has used {} labels, relationship types and property keys and accepts no new ones from statements",
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
                write!(f, "a property cannot be a list that contains lists")
            }
            GraphError::OutOfIds => write!(f, "all ids are in use"),
            GraphError::ReadOnly => write!(f, "the transaction is read-only"),
            GraphError::NameTaken(name) => {
                write!(f, "there already exists an index or constraint named '{name}'")
            }
            GraphError::Equivalent(name) => {
                write!(f, "an equivalent index or constraint already exists: '{name}'")
            }
            GraphError::NoSuchItem(name) => {
                write!(f, "no index or constraint is named '{name}'")
            }
            GraphError::BadSchemaItem => write!(
                f,
                "an index or constraint must have 1 to {} different keys, and a graph at most {} indexes and constraints",
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
                // Neo4j's words, by which clients know a duplicate.
                let (kind, number) = match other {
                    Entity::Node(id) => ("Node", id.number()),
                    Entity::Relationship(id) => ("Relationship", id.number()),
                };
                write!(
                    f,
                    "{kind}({number}) already exists with {what}: {entity} would violate constraint '{constraint}'"
                )
            }
            Violation::Missing { constraint, entity, key } => {
                write!(
                    f,
                    "{entity} must have the property '{key}' according to constraint '{constraint}'"
                )
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
    /// The snapshot ends early or could not be read.
    Io(io::Error),
    /// Its content is not valid for this format.
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
            SnapshotFault::Malformed(what) => write!(f, "damaged: {what}"),
        }
    }
}

impl std::error::Error for SnapshotFault {}
