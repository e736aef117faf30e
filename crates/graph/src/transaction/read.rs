//! Reading in a transaction. What is read is noted, so that nobody changes it unnoticed.

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
    /// Whether there is such a node.
    pub fn has_node(&self, id: NodeId) -> bool {
        let is_there = self.graph.has_node(id);
        self.note(|footprint| match is_there {
            true => footprint.node(id),
            false => footprint.absent_node(id),
        });
        is_there
    }

    /// Whether there is such a relationship.
    pub fn has_relationship(&self, id: RelationshipId) -> bool {
        let is_there = self.graph.has_relationship(id);
        self.note(|footprint| match is_there {
            true => footprint.relationship(id),
            false => footprint.absent_relationship(id),
        });
        is_there
    }

    /// A node's labels, in no order that means anything.
    ///
    /// # Errors
    /// [`GraphError::Deleted`], as of all reads of one entity.
    pub fn labels(&self, id: NodeId) -> Result<Vec<Name>, GraphError> {
        self.note(|footprint| footprint.node(id));
        no_node(id, self.graph.labels(id))
    }

    /// Whether a node has that label.
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

    /// A node's properties, in no order that means anything.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn node_properties(&self, id: NodeId) -> Result<Vec<(Name, Value)>, GraphError> {
        self.note(|footprint| footprint.node(id));
        no_node(id, self.graph.node_properties(id))
    }

    /// A relationship's type and ends, also of one that this transaction has deleted.
    ///
    /// # Errors
    /// [`GraphError::Deleted`] if there never was one.
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

    /// A relationship's properties, in no order that means anything.
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

    /// How many nodes there are, without counting.
    pub fn node_count(&self) -> u64 {
        self.note(|footprint| footprint.all_nodes = true);
        self.graph.node_count()
    }

    /// How many nodes have that label, without counting.
    pub fn label_count(&self, label: Name) -> u64 {
        self.note(|footprint| footprint.label(label));
        self.graph.label_count(label)
    }

    /// How many relationships there are, without counting.
    pub fn relationship_count(&self) -> u64 {
        self.note(|footprint| footprint.all_relationships = true);
        self.graph.relationship_count()
    }

    /// How many relationships are of that type, without counting.
    pub fn type_count(&self, relationship_type: Name) -> u64 {
        self.note(|footprint| footprint.relationship_type(relationship_type));
        self.graph.type_count(relationship_type)
    }

    /// The labels that nodes have, sorted. What comes to be in use meanwhile is no conflict; nor of
    /// the next two.
    pub fn labels_in_use(&self) -> Vec<Arc<str>> {
        self.graph.labels_in_use()
    }

    /// The types that relationships are of, sorted.
    pub fn types_in_use(&self) -> Vec<Arc<str>> {
        self.graph.types_in_use()
    }

    /// The keys that properties have, sorted.
    pub fn keys_in_use(&self) -> Vec<Arc<str>> {
        self.graph.keys_in_use()
    }

    /// All indexes and constraints, in order of name.
    pub fn schema(&self) -> impl Iterator<Item = &SchemaDefinition> {
        self.graph.schema()
    }
}
