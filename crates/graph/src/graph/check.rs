//! Checks a version against its constraints.

use super::{
    Duplicate, Graph, Properties, SchemaDefinition, SchemaItem, SchemaKind, SchemaSubject,
    property_of,
};
use crate::fault::{GraphError, Violation};
use crate::id::{Entity, NodeId, RelationshipId};
use crate::limits::{MAX_DIMENSIONS, MAX_INDEX_KEYS, MAX_SCHEMA_ITEMS};
use crate::names::{Name, is_name};
use crate::value::{Value, text};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A value for display, truncated if long.
fn told_value(value: &Value) -> String {
    const MOST_SHOWN: usize = 60;
    match value {
        Value::Boolean(truth) => truth.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Float(float) if float.is_finite() => format!("{float:?}"),
        Value::String(text) => {
            let shown: String = text.chars().take(MOST_SHOWN).collect();
            let dots = if shown.len() < text.len() { "…" } else { "" };
            format!("'{}'{dots}", shown.escape_debug())
        }
        Value::List(items) => format!("a list of {}", items.len()),
        other => text::typed(other).map_or_else(String::new, |(_, text)| text),
    }
}

impl Graph {
    /// Whether there is any index or constraint.
    pub(crate) fn has_schema(&self) -> bool {
        !self.schema_items().items().is_empty()
    }

    /// Checks a node against the constraints. A missing node violates none.
    pub(crate) fn check_node(&self, id: NodeId) -> Result<(), Violation> {
        if !self.has_schema() {
            return Ok(());
        }
        let Some(row) = self.node(id) else { return Ok(()) };
        let items = self.schema_items().of_labels(&row.labels);
        self.check_entity(items, Entity::Node(id), &row.properties)
    }

    /// Checks a relationship against the constraints. A missing relationship violates none.
    pub(crate) fn check_relationship(&self, id: RelationshipId) -> Result<(), Violation> {
        if !self.has_schema() {
            return Ok(());
        }
        let Some(row) = self.whole_relationship(id) else { return Ok(()) };
        let items = self.schema_items().of_type(row.head.relationship_type);
        self.check_entity(items, Entity::Relationship(id), &row.properties)
    }

    fn check_entity<'a>(
        &self,
        items: impl Iterator<Item = &'a SchemaItem>,
        entity: Entity,
        properties: &Properties,
    ) -> Result<(), Violation> {
        for item in items {
            let (kind, keys) = (item.definition.kind, &item.definition.keys);
            let constraint = || item.definition.name.clone();
            let missing = keys.iter().find(|key| property_of(properties, **key).is_none());
            if let Some(key) = missing.filter(|_| kind.is_required()) {
                let key = self.text(*key);
                return Err(Violation::Missing { constraint: constraint(), entity, key });
            }
            if !kind.is_unique() {
                continue;
            }
            if let Some(Duplicate { entity, other }) = self.duplicate(item, entity, properties) {
                let what = self.told(&item.definition, properties);
                return Err(Violation::Duplicate { constraint: constraint(), entity, other, what });
            }
        }
        Ok(())
    }

    /// The constrained part of an entity, in Neo4j's words: ``label `Person` and property `name` =
    /// 'Ada'``.
    fn told(&self, definition: &SchemaDefinition, properties: &Properties) -> Arc<str> {
        let (kind, subject) = match definition.subject {
            SchemaSubject::Label(label) => ("label", label),
            SchemaSubject::Type(name) => ("type", name),
        };
        let entries = definition.keys.iter().filter_map(|key| {
            let value = property_of(properties, *key)?;
            Some(format!("`{}` = {}", self.text(*key), told_value(value)))
        });
        let entries: Vec<String> = entries.collect();
        let noun = if entries.len() == 1 { "property" } else { "properties" };
        format!("{kind} `{}` and {noun} {}", self.text(subject), entries.join(", ")).into()
    }

    /// Checks everything that an item applies to.
    pub(crate) fn check_item(&self, item: &SchemaItem) -> Result<(), Violation> {
        let mut verdict = Ok(());
        if !item.definition.kind.is_constraint() {
            return verdict;
        }
        self.for_each_subject(item.definition.subject, |graph, entity| {
            let properties = match entity {
                Entity::Node(id) => graph.node_properties(id),
                Entity::Relationship(id) => graph.relationship_properties(id),
            };
            let of_item = std::iter::once(item);
            verdict = graph.check_entity(of_item, entity, &properties.unwrap_or_default());
            if verdict.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        verdict
    }

    /// Whether an item can be added.
    pub(crate) fn check_definition(&self, definition: &SchemaDefinition) -> Result<(), GraphError> {
        let different = |names: &mut Vec<Name>| {
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            names.len() == count
        };
        let (mut subjects, mut keys) =
            (definition.subjects().collect::<Vec<_>>(), definition.keys.clone());
        let are_different = different(&mut subjects) && different(&mut keys);
        let is_unknown = |names: &[Name]| names.contains(&Name::UNKNOWN);
        if !is_name(&definition.name) || is_unknown(&subjects) || is_unknown(&keys) {
            return Err(self.refused_name());
        }
        let items = self.schema_items().items();
        let fits = match definition.kind {
            SchemaKind::Fulltext => subjects.len() <= MAX_INDEX_KEYS,
            SchemaKind::Vector(settings) => {
                subjects.len() == 1 && keys.len() == 1 && settings.dimensions <= MAX_DIMENSIONS
            }
            _ => subjects.len() == 1,
        };
        let is_sensible = fits
            && are_different
            && (1..=MAX_INDEX_KEYS).contains(&keys.len())
            && items.len() < MAX_SCHEMA_ITEMS;
        if !is_sensible {
            return Err(GraphError::BadSchemaItem);
        }
        for known in items.iter().map(|item| &item.definition) {
            if known.is_equivalent(definition) {
                return Err(GraphError::Equivalent(known.name.clone()));
            }
            if known.name == definition.name {
                return Err(GraphError::NameTaken(known.name.clone()));
            }
        }
        Ok(())
    }
}
