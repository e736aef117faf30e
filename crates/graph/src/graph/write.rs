//! Writes rows and their derived structures to a version. Other modules check what may be written.

use super::counts::NameCounts;
use super::keys::{adjacency, index_entity, index_entry, index_prefix, member};
use super::{
    Graph, NodeRow, Properties, RelationshipRow, SchemaDefinition, SchemaItem, SchemaSubject,
    place, property_of,
};
use crate::id::{Entity, NodeId, RelationshipId};
use crate::names::Name;
use crate::store::Tree;
use crate::value::{Canonical, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Two entities with the same values, against a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duplicate {
    pub(crate) entity: Entity,
    pub(crate) other: Entity,
}

/// The canonical form of the values of all `keys`; `None` if one is missing.
pub(super) fn form(properties: &Properties, keys: &[Name]) -> Option<Canonical> {
    Some(Canonical::of_all(values(properties, keys)?))
}

fn values<'a>(properties: &'a Properties, keys: &[Name]) -> Option<Vec<&'a Value>> {
    keys.iter().map(|key| property_of(properties, *key)).collect()
}

fn are_equal(some: &[&Value], others: &[&Value]) -> bool {
    some.iter().zip(others).all(|(one, other)| one.equals(other))
}

fn count_keys(counts: &mut NameCounts, before: &Properties, after: &Properties) {
    if before.iter().map(|(key, _)| key).eq(after.iter().map(|(key, _)| key)) {
        return;
    }
    after.iter().for_each(|(key, _)| counts.increment(*key));
    before.iter().for_each(|(key, _)| counts.decrement(*key));
}

/// Updates the entries of an entity that differ before and after a write.
fn replace_entries<'a>(
    tree: &mut Tree<34>,
    entity: [u8; 6],
    before: impl Iterator<Item = &'a SchemaItem>,
    after: impl Iterator<Item = &'a SchemaItem>,
    [old, new]: [&Properties; 2],
) {
    let entries = |items: &mut dyn Iterator<Item = &'a SchemaItem>, properties: &Properties| {
        items
            .filter(|item| item.definition.kind.is_indexed())
            .filter_map(|item| {
                let form = form(properties, &item.definition.keys)?;
                Some(index_entry(&index_prefix(item.number, &form), entity))
            })
            .collect::<Vec<_>>()
    };
    let (mut before, mut after) = (before, after);
    let (before, after) = (entries(&mut before, old), entries(&mut after, new));
    for key in before.iter().filter(|key| !after.contains(key)) {
        tree.remove(key);
    }
    for key in after.into_iter().filter(|key| !before.contains(key)) {
        tree.insert(key);
    }
}

impl Graph {
    /// Replaces a node; `None` stands for no node. Returns by how many bytes its row grew.
    pub(crate) fn put_node(
        &mut self,
        id: NodeId,
        before: Option<&NodeRow>,
        after: Option<&NodeRow>,
    ) -> i64 {
        let (page, at) = place(id.number());
        let bytes = after.map(NodeRow::encode).unwrap_or_default();
        let content = self.content_mut();
        let growth = content.nodes.get_mut(page).set(at, &bytes);
        match (before.is_some(), after.is_some()) {
            (false, true) => content.node_count += 1,
            (true, false) => content.node_count = content.node_count.saturating_sub(1),
            _ => {}
        }
        let none = NodeRow::default();
        let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
        for label in before.labels.iter().filter(|label| !after.labels.contains(label)) {
            content.labels.remove(&member(*label, id.bytes()));
            content.label_counts.decrement(*label);
        }
        for label in after.labels.iter().filter(|label| !before.labels.contains(label)) {
            content.labels.insert(member(*label, id.bytes()));
            content.label_counts.increment(*label);
        }
        count_keys(&mut content.key_counts, &before.properties, &after.properties);
        if !content.schema.items().is_empty() {
            let schema = content.schema.clone();
            let items = [&before.labels, &after.labels].map(|labels| schema.of_labels(labels));
            let [old, new] = items;
            let properties = [&before.properties, &after.properties];
            replace_entries(&mut content.index, id.bytes(), old, new, properties);
        }
        growth
    }

    /// Replaces a relationship; `None` stands for no relationship. Type and ends never change.
    /// Returns by how many bytes its row grew.
    pub(crate) fn put_relationship(
        &mut self,
        id: RelationshipId,
        before: Option<&RelationshipRow>,
        after: Option<&RelationshipRow>,
    ) -> i64 {
        let (page, at) = place(id.number());
        let bytes = after.map(RelationshipRow::encode).unwrap_or_default();
        let content = self.content_mut();
        let growth = content.relationships.get_mut(page).set(at, &bytes);
        let Some(head) = before.or(after).map(|row| row.head) else { return growth };
        let kind = head.relationship_type;
        let outgoing = adjacency(head.from, kind, head.to, id);
        let incoming = adjacency(head.to, kind, head.from, id);
        match (before.is_some(), after.is_some()) {
            (false, true) => {
                content.relationship_count += 1;
                content.type_counts.increment(kind);
                content.outgoing.insert(outgoing);
                content.incoming.insert(incoming);
                content.types.insert(member(kind, id.bytes()));
            }
            (true, false) => {
                content.relationship_count = content.relationship_count.saturating_sub(1);
                content.type_counts.decrement(kind);
                content.outgoing.remove(&outgoing);
                content.incoming.remove(&incoming);
                content.types.remove(&member(kind, id.bytes()));
            }
            _ => {}
        }
        let none = Vec::new();
        let old = before.map_or(&none, |row| &row.properties);
        let new = after.map_or(&none, |row| &row.properties);
        count_keys(&mut content.key_counts, old, new);
        if !content.schema.items().is_empty() {
            let schema = content.schema.clone();
            let items = || schema.of_type(kind);
            replace_entries(&mut content.index, id.bytes(), items(), items(), [old, new]);
        }
        growth
    }

    /// Adds an index or constraint and fills it from the existing data.
    pub(crate) fn add_schema_item(&mut self, definition: SchemaDefinition) -> SchemaItem {
        let item = Arc::make_mut(&mut self.content_mut().schema).add(definition);
        if !item.definition.kind.is_indexed() {
            return item;
        }
        let mut entries = Vec::new();
        self.for_each_subject(item.definition.subject, |graph, entity| {
            let (properties, bytes) = match entity {
                Entity::Node(id) => (graph.node_properties(id), id.bytes()),
                Entity::Relationship(id) => (graph.relationship_properties(id), id.bytes()),
            };
            let form = properties.and_then(|all| form(&all, &item.definition.keys));
            entries.extend(form.map(|form| index_entry(&index_prefix(item.number, &form), bytes)));
            ControlFlow::Continue(())
        });
        entries.sort_unstable();
        entries.into_iter().for_each(|entry| {
            self.content_mut().index.insert(entry);
        });
        item
    }

    /// Replaces definitions by those with the same names; their entries must be the same.
    pub(crate) fn redefine(&mut self, definitions: &[SchemaDefinition]) {
        Arc::make_mut(&mut self.content_mut().schema).redefine(definitions);
    }

    /// Removes an index or constraint with its entries.
    pub(crate) fn remove_schema_item(&mut self, name: &str) -> Option<SchemaItem> {
        let item = Arc::make_mut(&mut self.content_mut().schema).remove(name)?;
        let mut entries = Vec::new();
        self.content.index.walk_prefix(&item.number.to_be_bytes(), |key| {
            entries.push(*key);
            ControlFlow::Continue(())
        });
        for entry in entries {
            self.content_mut().index.remove(&entry);
        }
        Some(item)
    }

    /// Passes everything that a definition applies to to `visit`, until it breaks.
    pub(crate) fn for_each_subject(
        &self,
        subject: SchemaSubject,
        mut visit: impl FnMut(&Graph, Entity) -> ControlFlow<()>,
    ) {
        match subject {
            SchemaSubject::Label(label) => self.content.labels.walk_prefix(&label.bytes(), |key| {
                visit(self, Entity::Node(NodeId::from_bytes(super::keys::member_entity(key))))
            }),
            SchemaSubject::Type(name) => self.content.types.walk_prefix(&name.bytes(), |key| {
                let id = RelationshipId::from_bytes(super::keys::member_entity(key));
                visit(self, Entity::Relationship(id))
            }),
        }
    }

    /// Another entity with the same values of the item's keys.
    pub(crate) fn duplicate(
        &self,
        item: &SchemaItem,
        entity: Entity,
        properties: &Properties,
    ) -> Option<Duplicate> {
        let keys = &item.definition.keys;
        let wanted = values(properties, keys)?;
        if !are_equal(&wanted, &wanted) {
            // NaN: there may be very many, and none equals it.
            return None;
        }
        let form = Canonical::of_all(wanted.iter().copied());
        let mut duplicate = None;
        self.content.index.walk_prefix(&index_prefix(item.number, &form), |key| {
            let bytes = index_entity(key);
            let other = match entity {
                Entity::Node(_) => Entity::Node(NodeId::from_bytes(bytes)),
                Entity::Relationship(_) => Entity::Relationship(RelationshipId::from_bytes(bytes)),
            };
            let properties = match other {
                Entity::Node(id) => self.node_properties(id),
                Entity::Relationship(id) => self.relationship_properties(id),
            };
            let properties = properties.unwrap_or_default();
            let is_equal = |others: Vec<&Value>| are_equal(&wanted, &others);
            // Values with the same canonical form are not always equal.
            if other == entity || !values(&properties, keys).is_some_and(is_equal) {
                return ControlFlow::Continue(());
            }
            duplicate = Some(Duplicate { entity, other });
            ControlFlow::Break(())
        });
        duplicate
    }
}
