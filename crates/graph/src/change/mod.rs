//! Net changes: the part of a transaction that its event records, and what it touched, which later
//! transactions are checked against.

mod apply;
mod difference;
mod settle;
mod touches;

pub use apply::ChangeFault;
pub(crate) use difference::difference;
pub use touches::Touches;

use crate::graph::{Relationship, SchemaDefinition};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::value::Value;
use std::sync::Arc;

/// The net effect of a transaction, by id; entities both created and deleted in it are omitted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChangeSet {
    /// Nodes, each once.
    pub nodes: Vec<(NodeId, NodeChange)>,
    /// Relationships, each once.
    pub relationships: Vec<(RelationshipId, RelationshipChange)>,
    /// Indexes and constraints to drop, before others are created.
    pub dropped_items: Vec<Arc<str>>,
    /// Indexes and constraints to create.
    pub created_items: Vec<SchemaDefinition>,
}

/// The change of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeChange {
    /// The node is created.
    Created {
        /// Its labels.
        labels: Vec<Name>,
        /// Its properties.
        properties: Vec<(Name, Value)>,
    },
    /// The node is changed.
    Changed {
        /// Added labels.
        label: Vec<Name>,
        /// Removed labels.
        unlabel: Vec<Name>,
        /// The change of its properties.
        properties: PropertyChanges,
    },
    /// The node is deleted.
    Deleted,
}

/// The change of a relationship.
#[derive(Debug, Clone, PartialEq)]
pub enum RelationshipChange {
    /// The relationship is created.
    Created {
        /// Its type and ends.
        head: Relationship,
        /// Its properties.
        properties: Vec<(Name, Value)>,
    },
    /// The relationship is changed.
    Changed(PropertyChanges),
    /// The relationship is deleted.
    Deleted,
}

/// The change of an existing entity's properties.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PropertyChanges {
    /// Keys with their new values.
    pub set: Vec<(Name, Value)>,
    /// Keys that are removed.
    pub unset: Vec<Name>,
}

impl ChangeSet {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of changed entities and schema items.
    #[must_use]
    pub fn len(&self) -> usize {
        let items = self.dropped_items.len() + self.created_items.len();
        self.nodes.len() + self.relationships.len() + items
    }

    /// Whether the schema changes.
    #[must_use]
    pub fn has_schema(&self) -> bool {
        !(self.dropped_items.is_empty() && self.created_items.is_empty())
    }
}

/// A change set and what it touched in the version it was applied to. The view keeps it until no
/// older transaction is running.
#[derive(Debug, Clone, Default)]
pub struct CommittedChanges {
    /// The change set.
    pub changes: ChangeSet,
    /// What it touched.
    pub touches: Touches,
}
