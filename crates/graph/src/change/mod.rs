//! Net changes: what of a transaction goes into its event, and what it touched, by which others
//! judge it.

mod apply;
mod difference;
mod touches;

pub use apply::Unsound;
pub(crate) use difference::difference;
pub use touches::Touches;

use crate::graph::{Relationship, SchemaDefinition};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::value::Value;
use std::sync::Arc;

/// What a transaction comes to, by id: what was created and deleted in it is not in here.
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

/// What becomes of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeChange {
    /// It is new.
    Created {
        /// Its labels.
        labels: Vec<Name>,
        /// Its properties.
        properties: Vec<(Name, Value)>,
    },
    /// It was there and stays.
    Changed {
        /// Labels it gets.
        label: Vec<Name>,
        /// Labels it loses.
        unlabel: Vec<Name>,
        /// What becomes of its properties.
        properties: PropertyChanges,
    },
    /// It is gone.
    Deleted,
}

/// What becomes of a relationship.
#[derive(Debug, Clone, PartialEq)]
pub enum RelationshipChange {
    /// It is new.
    Created {
        /// Its type and ends.
        head: Relationship,
        /// Its properties.
        properties: Vec<(Name, Value)>,
    },
    /// It was there and stays.
    Changed(PropertyChanges),
    /// It is gone.
    Deleted,
}

/// What becomes of the properties of what was there.
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

    /// How many entities and schema items change.
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

/// A change set together with what it touched in the version it was applied to: what the view keeps
/// of each commit until no transaction is older.
#[derive(Debug, Clone, Default)]
pub struct CommittedChanges {
    /// What changed.
    pub changes: ChangeSet,
    /// What that touched.
    pub touches: Touches,
}
