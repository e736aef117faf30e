//! Reads in a transaction. Each read is recorded, so that conflicting changes are detected.

use super::Transaction;
use crate::fault::GraphError;
use crate::graph::{Relationship, SchemaDefinition, node_property, relationship_property};
use crate::id::{Entity, NodeId, RelationshipId};
use crate::names::Name;
use crate::value::Value;
use std::sync::Arc;

fn no_node<T>(id: NodeId, found: Option<T>) -> Result<T, GraphError> {
    found.ok_or(GraphError::Deleted(Entity::Node(id)))
}

fn no_relationship<T>(id: RelationshipId, found: Option<T>) -> Result<T, GraphError> {
    found.ok_or(GraphError::Deleted(Entity::Relationship(id)))
}

impl Transaction {
    /// Whether the node exists.
    pub fn has_node(&self, id: NodeId) -> bool {
        let is_there = self.graph.has_node(id);
        self.note(
            |footprint| if is_there { footprint.node(id) } else { footprint.absent_node(id) },
        );
        is_there
    }

    /// Whether the relationship exists.
    pub fn has_relationship(&self, id: RelationshipId) -> bool {
        let is_there = self.graph.has_relationship(id);
        self.note(|footprint| {
            if is_there { footprint.relationship(id) } else { footprint.absent_relationship(id) }
        });
        is_there
    }

    /// A node's labels in unspecified order.
    ///
    /// # Errors
    /// [`GraphError::Deleted`], as for all reads of one entity.
    pub fn labels(&self, id: NodeId) -> Result<Vec<Name>, GraphError> {
        self.note(|footprint| footprint.node(id));
        no_node(id, self.graph.labels(id))
    }

    /// Whether a node has this label.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn has_label(&self, id: NodeId, label: Name) -> Result<bool, GraphError> {
        self.note(|footprint| footprint.node(id));
        no_node(id, self.graph.has_label(id, label))
    }

    /// A node's property.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn node_property(&self, id: NodeId, key: Name) -> Result<Option<Value>, GraphError> {
        self.note(|footprint| footprint.node(id));
        let row = no_node(id, self.graph.node_row(id))?;
        self.walk(Some(row));
        Ok(node_property(row, key))
    }

    /// The same, for a table that answers lookups; each of them records what it asks for.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn node_property_for_lookups(
        &self,
        id: NodeId,
        key: Name,
    ) -> Result<Option<Value>, GraphError> {
        let row = no_node(id, self.graph.node_row(id))?;
        self.walk(Some(row));
        Ok(node_property(row, key))
    }

    /// A node's properties in unspecified order.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn node_properties(&self, id: NodeId) -> Result<Vec<(Name, Value)>, GraphError> {
        self.note(|footprint| footprint.node(id));
        no_node(id, self.graph.node_properties(id))
    }

    /// A relationship's type and end nodes, even if this transaction has deleted it.
    ///
    /// # Errors
    /// [`GraphError::Deleted`] if it never existed.
    pub fn relationship(&self, id: RelationshipId) -> Result<Relationship, GraphError> {
        self.note(|footprint| footprint.relationship(id));
        let deleted = || self.writes.deleted.get(&id).copied();
        no_relationship(id, self.graph.relationship(id).or_else(deleted))
    }

    /// A relationship's property.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn relationship_property(
        &self,
        id: RelationshipId,
        key: Name,
    ) -> Result<Option<Value>, GraphError> {
        self.note(|footprint| footprint.relationship(id));
        let row = no_relationship(id, self.graph.relationship_row(id))?;
        self.walk(Some(row));
        Ok(relationship_property(row, key))
    }

    /// A relationship's properties in unspecified order.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn relationship_properties(
        &self,
        id: RelationshipId,
    ) -> Result<Vec<(Name, Value)>, GraphError> {
        self.note(|footprint| footprint.relationship(id));
        no_relationship(id, self.graph.relationship_properties(id))
    }

    /// Number of nodes, in constant time.
    pub fn node_count(&self) -> u64 {
        self.note(|footprint| footprint.all_nodes = true);
        self.graph.node_count()
    }

    /// Number of nodes with this label, in constant time.
    pub fn label_count(&self, label: Name) -> u64 {
        self.note(|footprint| footprint.label(label));
        self.graph.label_count(label)
    }

    /// Number of relationships, in constant time.
    pub fn relationship_count(&self) -> u64 {
        self.note(|footprint| footprint.all_relationships = true);
        self.graph.relationship_count()
    }

    /// Number of relationships of this type, in constant time.
    pub fn type_count(&self, relationship_type: Name) -> u64 {
        self.note(|footprint| footprint.relationship_type(relationship_type));
        self.graph.type_count(relationship_type)
    }

    /// The labels in use, sorted. Labels that come into use concurrently are no conflict; the same
    /// holds for the next two methods.
    pub fn labels_in_use(&self) -> Vec<Arc<str>> {
        self.graph.labels_in_use()
    }

    /// The relationship types in use, sorted.
    pub fn types_in_use(&self) -> Vec<Arc<str>> {
        self.graph.types_in_use()
    }

    /// The property keys in use, sorted.
    pub fn keys_in_use(&self) -> Vec<Arc<str>> {
        self.graph.keys_in_use()
    }

    /// All indexes and constraints by name.
    pub fn schema(&self) -> impl Iterator<Item = &SchemaDefinition> {
        self.graph.schema()
    }
}
