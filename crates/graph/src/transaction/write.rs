//! Writes in a transaction.

use super::{EntityScan, Transaction};
use crate::fault::GraphError;
use crate::graph::{
    Graph, NodeRow, Progress, Properties, Relationship, RelationshipRow, set_properties,
};
use crate::id::{Entity, NodeId, RelationshipId};
use crate::limits::{MAX_LABELS, MAX_PROPERTIES};
use crate::names::Name;
use crate::transaction::Direction;
use crate::value::Value;
use std::collections::BTreeSet;

/// A change of a property: its new value, or `None` to remove it.
pub type PropertyChange = (Name, Option<Value>);

fn check_name(graph: &Graph, name: Name) -> Result<(), GraphError> {
    if name == Name::UNKNOWN { Err(graph.refused_name()) } else { Ok(()) }
}

/// Applies changes to properties; returns their number.
fn change_properties(
    graph: &Graph,
    properties: &mut Properties,
    changes: impl IntoIterator<Item = PropertyChange>,
) -> Result<u64, GraphError> {
    let mut verdict = Ok(());
    // Stops at the first value that cannot be stored; the row with the earlier changes is then
    // dropped.
    let sound = changes.into_iter().map_while(|(key, value)| {
        verdict = value.as_ref().map_or(Ok(()), |value| check_property(graph, key, value));
        verdict.is_ok().then_some((key, value))
    });
    let count = set_properties(properties, sound);
    verdict?;
    if properties.len() > MAX_PROPERTIES {
        return Err(GraphError::TooManyProperties);
    }
    Ok(count)
}

fn check_property(graph: &Graph, key: Name, value: &Value) -> Result<(), GraphError> {
    check_name(graph, key)?;
    if value.is_storable() { Ok(()) } else { Err(GraphError::NotStorable) }
}

/// The changes that turn `properties` into exactly `wanted`.
fn replacement(properties: &Properties, wanted: Vec<(Name, Value)>) -> Vec<PropertyChange> {
    let kept: BTreeSet<Name> = wanted.iter().map(|(key, _)| *key).collect();
    let gone = properties.iter().map(|(key, _)| *key).filter(|key| !kept.contains(key));
    let mut changes: Vec<PropertyChange> = gone.map(|key| (key, None)).collect();
    changes.extend(wanted.into_iter().map(|(key, value)| (key, Some(value))));
    changes
}

/// Records an id to be checked against the constraints, without repeating one that is written again
/// and again.
fn push_unchecked<Id: Ord>(unchecked: &mut Vec<Id>, id: Id, written: usize) {
    unchecked.push(id);
    if unchecked.len() > 2 * written + 1_000 {
        unchecked.sort_unstable();
        unchecked.dedup();
    }
}

impl Transaction {
    fn node_to_write(&self, id: NodeId) -> Result<NodeRow, GraphError> {
        self.writable()?;
        self.note(|footprint| footprint.node(id));
        self.walk(self.graph.node_row(id));
        self.graph.node(id).ok_or(GraphError::Deleted(Entity::Node(id)))
    }

    fn put_node(
        &mut self,
        id: NodeId,
        before: Option<&NodeRow>,
        after: Option<&NodeRow>,
    ) -> Result<(), GraphError> {
        let growth = self.graph.put_node(id, before, after);
        self.writes.nodes.insert(id);
        if self.graph.has_schema() {
            push_unchecked(&mut self.writes.unchecked_nodes, id, self.writes.nodes.len());
        }
        self.grow(growth)
    }

    /// Creates a node. Repeated labels and keys count once; the last value of a key is kept.
    ///
    /// # Errors
    /// Values that cannot be stored, or ids are used up.
    pub fn create_node(
        &mut self,
        labels: &[Name],
        properties: impl IntoIterator<Item = (Name, Value)>,
    ) -> Result<NodeId, GraphError> {
        self.writable()?;
        let mut row = NodeRow { labels: labels.to_vec(), properties: Vec::new() };
        row.labels.sort_unstable();
        row.labels.dedup();
        row.labels.iter().try_for_each(|label| check_name(&self.graph, *label))?;
        if row.labels.len() > MAX_LABELS {
            return Err(GraphError::TooManyLabels);
        }
        let changes = properties.into_iter().map(|(key, value)| (key, Some(value)));
        let set = change_properties(&self.graph, &mut row.properties, changes)?;
        let id = self.draw_node_id()?;
        self.put_node(id, None, Some(&row))?;
        self.statistics.nodes_created += 1;
        self.statistics.labels_added += row.labels.len() as u64;
        self.statistics.properties_set += set;
        Ok(id)
    }

    /// Sets and removes properties of a node.
    ///
    /// # Errors
    /// [`GraphError::Deleted`], or values that cannot be stored; nothing is changed then.
    pub fn change_node(
        &mut self,
        id: NodeId,
        changes: impl IntoIterator<Item = PropertyChange>,
    ) -> Result<(), GraphError> {
        let before = self.node_to_write(id)?;
        let mut after = before.clone();
        let set = change_properties(&self.graph, &mut after.properties, changes)?;
        if set > 0 {
            self.put_node(id, Some(&before), Some(&after))?;
            self.statistics.properties_set += set;
        }
        Ok(())
    }

    /// Sets a property of a node, or removes it.
    ///
    /// # Errors
    /// As for [`change_node`](Self::change_node).
    pub fn set_node_property(
        &mut self,
        id: NodeId,
        key: Name,
        value: Option<Value>,
    ) -> Result<(), GraphError> {
        self.change_node(id, [(key, value)])
    }

    /// Replaces all properties of a node.
    ///
    /// # Errors
    /// As for [`change_node`](Self::change_node).
    pub fn replace_node_properties(
        &mut self,
        id: NodeId,
        properties: Vec<(Name, Value)>,
    ) -> Result<(), GraphError> {
        let before = self.node_to_write(id)?;
        self.change_node(id, replacement(&before.properties, properties))
    }

    /// Adds labels to a node.
    ///
    /// # Errors
    /// [`GraphError::Deleted`], invalid names, too many labels.
    pub fn add_labels(&mut self, id: NodeId, labels: &[Name]) -> Result<(), GraphError> {
        let before = self.node_to_write(id)?;
        let mut after = before.clone();
        for label in labels {
            check_name(&self.graph, *label)?;
            if let Err(at) = after.labels.binary_search(label) {
                after.labels.insert(at, *label);
            }
            if after.labels.len() > MAX_LABELS {
                return Err(GraphError::TooManyLabels);
            }
        }
        let added = after.labels.len() - before.labels.len();
        if added > 0 {
            self.put_node(id, Some(&before), Some(&after))?;
            self.statistics.labels_added += added as u64;
        }
        Ok(())
    }

    /// Removes labels from a node; ignores labels that it does not have.
    ///
    /// # Errors
    /// [`GraphError::Deleted`]
    pub fn remove_labels(&mut self, id: NodeId, labels: &[Name]) -> Result<(), GraphError> {
        let before = self.node_to_write(id)?;
        let mut after = before.clone();
        after.labels.retain(|label| !labels.contains(label));
        let removed = before.labels.len() - after.labels.len();
        if removed > 0 {
            self.put_node(id, Some(&before), Some(&after))?;
            self.statistics.labels_removed += removed as u64;
        }
        Ok(())
    }

    /// Deletes a node. Relationships that it still has are detected when the transaction finishes.
    /// Does nothing if this transaction has deleted the node already.
    ///
    /// # Errors
    /// [`GraphError::Deleted`] if it never existed.
    pub fn delete_node(&mut self, id: NodeId) -> Result<(), GraphError> {
        if self.writes.nodes.contains(&id) && !self.graph.has_node(id) {
            return Ok(());
        }
        let before = self.node_to_write(id)?;
        // Concurrent attachments to the node are conflicts.
        let _ = self.adjacent(id, Direction::Both, &[], None);
        self.put_node(id, Some(&before), None)?;
        self.statistics.nodes_deleted += 1;
        Ok(())
    }

    /// Deletes some of a node's relationships and, when none are left, the node; to be called until
    /// [`Progress::is_finished`]. A node may have millions of relationships, and a budget is
    /// charged between calls.
    ///
    /// # Errors
    /// [`GraphError::Deleted`] if it never existed.
    pub fn detach_some(&mut self, id: NodeId) -> Result<Progress, GraphError> {
        let mut connected = Vec::new();
        let mut scan = self.adjacent(id, Direction::Both, &[], None);
        while connected.is_empty() && !scan.fill(self, &mut connected).is_finished {}
        for adjacent in &connected {
            self.delete_relationship(adjacent.relationship)?;
        }
        let is_finished = connected.is_empty();
        if is_finished {
            self.delete_node(id)?;
        }
        Ok(Progress { examined: connected.len(), is_finished })
    }

    /// Deletes a node and its relationships.
    ///
    /// # Errors
    /// [`GraphError::Deleted`] if it never existed.
    pub fn detach_delete_node(&mut self, id: NodeId) -> Result<(), GraphError> {
        while !self.detach_some(id)?.is_finished {}
        Ok(())
    }

    /// Creates a relationship.
    ///
    /// # Errors
    /// [`GraphError::Deleted`] if an end node does not exist; values that cannot be stored; ids are
    /// used up.
    pub fn create_relationship(
        &mut self,
        relationship_type: Name,
        from: NodeId,
        to: NodeId,
        properties: impl IntoIterator<Item = (Name, Value)>,
    ) -> Result<RelationshipId, GraphError> {
        self.writable()?;
        check_name(&self.graph, relationship_type)?;
        for end in [from, to] {
            self.note(|footprint| footprint.end(end));
            if !self.graph.has_node(end) {
                return Err(GraphError::Deleted(Entity::Node(end)));
            }
        }
        let head = Relationship { relationship_type, from, to };
        let mut row = RelationshipRow { head, properties: Vec::new() };
        let changes = properties.into_iter().map(|(key, value)| (key, Some(value)));
        let set = change_properties(&self.graph, &mut row.properties, changes)?;
        let id = self.draw_relationship_id()?;
        self.put_relationship(id, None, Some(&row))?;
        self.statistics.relationships_created += 1;
        self.statistics.properties_set += set;
        Ok(id)
    }

    fn relationship_to_write(&self, id: RelationshipId) -> Result<RelationshipRow, GraphError> {
        self.writable()?;
        self.note(|footprint| footprint.relationship(id));
        self.walk(self.graph.relationship_row(id));
        let row = self.graph.whole_relationship(id);
        row.ok_or(GraphError::Deleted(Entity::Relationship(id)))
    }

    fn put_relationship(
        &mut self,
        id: RelationshipId,
        before: Option<&RelationshipRow>,
        after: Option<&RelationshipRow>,
    ) -> Result<(), GraphError> {
        let growth = self.graph.put_relationship(id, before, after);
        self.writes.relationships.insert(id);
        if self.graph.has_schema() {
            let written = self.writes.relationships.len();
            push_unchecked(&mut self.writes.unchecked_relationships, id, written);
        }
        self.grow(growth)
    }

    /// Sets and removes properties of a relationship.
    ///
    /// # Errors
    /// [`GraphError::Deleted`], or values that cannot be stored; nothing is changed then.
    pub fn change_relationship(
        &mut self,
        id: RelationshipId,
        changes: impl IntoIterator<Item = PropertyChange>,
    ) -> Result<(), GraphError> {
        let before = self.relationship_to_write(id)?;
        let mut after = before.clone();
        let set = change_properties(&self.graph, &mut after.properties, changes)?;
        if set > 0 {
            self.put_relationship(id, Some(&before), Some(&after))?;
            self.statistics.properties_set += set;
        }
        Ok(())
    }

    /// Sets a property of a relationship, or removes it.
    ///
    /// # Errors
    /// As for [`change_relationship`](Self::change_relationship).
    pub fn set_relationship_property(
        &mut self,
        id: RelationshipId,
        key: Name,
        value: Option<Value>,
    ) -> Result<(), GraphError> {
        self.change_relationship(id, [(key, value)])
    }

    /// Replaces all properties of a relationship.
    ///
    /// # Errors
    /// As for [`change_relationship`](Self::change_relationship).
    pub fn replace_relationship_properties(
        &mut self,
        id: RelationshipId,
        properties: Vec<(Name, Value)>,
    ) -> Result<(), GraphError> {
        let before = self.relationship_to_write(id)?;
        self.change_relationship(id, replacement(&before.properties, properties))
    }

    /// Deletes a relationship. Does nothing if this transaction has deleted it already.
    ///
    /// # Errors
    /// [`GraphError::Deleted`] if it never existed.
    pub fn delete_relationship(&mut self, id: RelationshipId) -> Result<(), GraphError> {
        if self.writes.deleted.contains_key(&id) {
            return Ok(());
        }
        let before = self.relationship_to_write(id)?;
        self.put_relationship(id, Some(&before), None)?;
        self.writes.deleted.insert(id, before.head);
        self.statistics.relationships_deleted += 1;
        Ok(())
    }
}
