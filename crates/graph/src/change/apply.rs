//! Applies a change set to a version, completely or not at all.
//!
//! The order is fixed: schema, created nodes, created relationships, changes, deleted
//! relationships, deleted nodes. The result is deterministic, including refusals.

use super::{ChangeSet, NodeChange, PropertyChanges, RelationshipChange, Touches};
use crate::fault::Violation;
use crate::graph::{Graph, NodeRow, Properties, RelationshipRow, set_properties};
use crate::id::{Entity, NodeId, RelationshipId};
use crate::limits::{MAX_LABELS, MAX_PROPERTIES};
use crate::names::Name;
use crate::value::Value;
use std::fmt;

/// Why a change set cannot be applied to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeFault {
    /// It creates an entity that exists.
    Exists(Entity),
    /// It changes, deletes or connects to an entity that does not exist.
    Missing(Entity),
    /// A node would have too many labels.
    TooManyLabels(NodeId),
    /// An entity would have too many properties.
    TooManyProperties(Entity),
    /// The graph cannot take another name.
    OutOfNames,
    /// It creates or drops an index or constraint that it cannot.
    Schema(String),
    /// The result violates a rule of the graph.
    Violation(Violation),
}

impl fmt::Display for ChangeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeFault::Exists(entity) => write!(f, "{entity} is created but exists already"),
            ChangeFault::Missing(entity) => write!(f, "{entity} does not exist"),
            ChangeFault::TooManyLabels(id) => {
                write!(f, "{} would have more than {MAX_LABELS} labels", Entity::Node(*id))
            }
            ChangeFault::TooManyProperties(entity) => {
                write!(f, "{entity} would have more than {MAX_PROPERTIES} properties")
            }
            ChangeFault::OutOfNames => f.write_str("the graph cannot take another name"),
            ChangeFault::Schema(text) => f.write_str(text),
            ChangeFault::Violation(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for ChangeFault {}

impl From<Violation> for ChangeFault {
    fn from(violation: Violation) -> ChangeFault {
        ChangeFault::Violation(violation)
    }
}

fn change_properties(
    entity: Entity,
    properties: &mut Properties,
    changes: &PropertyChanges,
) -> Result<(), ChangeFault> {
    let set = changes.set.iter().map(|(key, value)| (*key, Some(value.clone())));
    set_properties(properties, set.chain(changes.unset.iter().map(|key| (*key, None))));
    bounded(entity, properties)
}

fn bounded(entity: Entity, properties: &Properties) -> Result<(), ChangeFault> {
    if properties.len() > MAX_PROPERTIES {
        Err(ChangeFault::TooManyProperties(entity))
    } else {
        Ok(())
    }
}

fn sorted(entity: Entity, properties: &[(Name, Value)]) -> Result<Properties, ChangeFault> {
    let mut row = Vec::with_capacity(properties.len());
    set_properties(&mut row, properties.iter().map(|(key, value)| (*key, Some(value.clone()))));
    bounded(entity, &row).map(|()| row)
}

impl Graph {
    /// Applies a change set. Leaves the version unchanged if it is refused.
    ///
    /// # Errors
    /// Why it does not apply to this version.
    pub fn apply(&mut self, changes: &ChangeSet) -> Result<Touches, ChangeFault> {
        if changes.has_schema() {
            // Schema changes are rare and expensive anyway; working on a clone makes undo
            // unnecessary.
            let mut next = self.clone();
            next.apply_schema(changes)?;
            let mut touches = next.apply_data(changes)?;
            touches.schema();
            *self = next;
            return Ok(touches);
        }
        self.apply_data(changes)
    }

    fn apply_schema(&mut self, changes: &ChangeSet) -> Result<(), ChangeFault> {
        for name in &changes.dropped_items {
            let missing =
                || ChangeFault::Schema(format!("no index or constraint is named {name:?}"));
            self.remove_schema_item(name).ok_or_else(missing)?;
        }
        for definition in &changes.created_items {
            let fault = self.check_definition(definition);
            fault.map_err(|fault| ChangeFault::Schema(fault.to_string()))?;
            let item = self.add_schema_item(definition.clone());
            self.check_item(&item)?;
        }
        Ok(())
    }

    /// Works in place, because pages not shared with another version need no copy.
    fn apply_data(&mut self, changes: &ChangeSet) -> Result<Touches, ChangeFault> {
        let mut application =
            Application { graph: self, touches: Touches::default(), undo: Vec::new() };
        if let Err(unsound) = application.run(changes) {
            application.undo();
            return Err(unsound);
        }
        let touches = application.touches;
        // Done last: a change set that was refused assigns no ids.
        self.pass_ids(changes);
        Ok(touches)
    }

    fn pass_ids(&self, changes: &ChangeSet) {
        for (id, change) in &changes.nodes {
            if matches!(change, NodeChange::Created { .. }) {
                self.pass_id(Entity::Node(*id));
            }
        }
        for (id, change) in &changes.relationships {
            if matches!(change, RelationshipChange::Created { .. }) {
                self.pass_id(Entity::Relationship(*id));
            }
        }
    }
}

/// A change set being applied.
struct Application<'a> {
    graph: &'a mut Graph,
    touches: Touches,
    /// The previous content, in the order of writing.
    undo: Vec<UndoEntry>,
}

enum UndoEntry {
    Node(NodeId, Option<NodeRow>),
    Relationship(RelationshipId, Option<RelationshipRow>),
}

impl Application<'_> {
    fn run(&mut self, changes: &ChangeSet) -> Result<(), ChangeFault> {
        self.create_nodes(changes)?;
        self.create_relationships(changes)?;
        self.change(changes)?;
        self.delete(changes)?;
        for (id, change) in &changes.nodes {
            match change {
                NodeChange::Deleted if self.graph.is_connected(*id) => {
                    return Err(Violation::StillConnected(*id).into());
                }
                _ => self.graph.check_node(*id)?,
            }
        }
        for (id, _) in &changes.relationships {
            self.graph.check_relationship(*id)?;
        }
        Ok(())
    }

    fn undo(&mut self) {
        while let Some(replaced) = self.undo.pop() {
            match replaced {
                UndoEntry::Node(id, before) => {
                    let now = self.graph.node(id);
                    self.graph.put_node(id, now.as_ref(), before.as_ref());
                }
                UndoEntry::Relationship(id, before) => {
                    let now = self.graph.whole_relationship(id);
                    self.graph.put_relationship(id, now.as_ref(), before.as_ref());
                }
            }
        }
    }

    fn put_node(&mut self, id: NodeId, before: Option<NodeRow>, after: Option<&NodeRow>) {
        self.graph.put_node(id, before.as_ref(), after);
        self.touches.node(id, before.as_ref(), after);
        self.undo.push(UndoEntry::Node(id, before));
    }

    fn put_relationship(
        &mut self,
        id: RelationshipId,
        before: Option<RelationshipRow>,
        after: Option<&RelationshipRow>,
    ) {
        self.graph.put_relationship(id, before.as_ref(), after);
        self.touches.relationship(id, before.as_ref(), after);
        self.undo.push(UndoEntry::Relationship(id, before));
    }

    fn node(&self, id: NodeId) -> Result<NodeRow, ChangeFault> {
        self.graph.node(id).ok_or(ChangeFault::Missing(Entity::Node(id)))
    }

    fn relationship(&self, id: RelationshipId) -> Result<RelationshipRow, ChangeFault> {
        let row = self.graph.whole_relationship(id);
        row.ok_or(ChangeFault::Missing(Entity::Relationship(id)))
    }

    fn create_nodes(&mut self, changes: &ChangeSet) -> Result<(), ChangeFault> {
        for (id, change) in &changes.nodes {
            let NodeChange::Created { labels, properties } = change else { continue };
            if self.graph.has_node(*id) {
                return Err(ChangeFault::Exists(Entity::Node(*id)));
            }
            let properties = sorted(Entity::Node(*id), properties)?;
            let mut row = NodeRow { labels: labels.clone(), properties };
            tidy_labels(*id, &mut row)?;
            self.put_node(*id, None, Some(&row));
        }
        Ok(())
    }

    fn create_relationships(&mut self, changes: &ChangeSet) -> Result<(), ChangeFault> {
        for (id, change) in &changes.relationships {
            let RelationshipChange::Created { head, properties } = change else { continue };
            if self.graph.has_relationship(*id) {
                return Err(ChangeFault::Exists(Entity::Relationship(*id)));
            }
            let missing = [head.from, head.to].into_iter().find(|end| !self.graph.has_node(*end));
            if let Some(end) = missing {
                return Err(ChangeFault::Missing(Entity::Node(end)));
            }
            let properties = sorted(Entity::Relationship(*id), properties)?;
            let row = RelationshipRow { head: *head, properties };
            self.put_relationship(*id, None, Some(&row));
        }
        Ok(())
    }

    fn change(&mut self, changes: &ChangeSet) -> Result<(), ChangeFault> {
        for (id, change) in &changes.nodes {
            let NodeChange::Changed { label, unlabel, properties } = change else { continue };
            let before = self.node(*id)?;
            let mut after = before.clone();
            after.labels.retain(|name| !unlabel.contains(name));
            after.labels.extend(label);
            tidy_labels(*id, &mut after)?;
            change_properties(Entity::Node(*id), &mut after.properties, properties)?;
            self.put_node(*id, Some(before), Some(&after));
        }
        for (id, change) in &changes.relationships {
            let RelationshipChange::Changed(properties) = change else { continue };
            let before = self.relationship(*id)?;
            let mut after = before.clone();
            change_properties(Entity::Relationship(*id), &mut after.properties, properties)?;
            self.put_relationship(*id, Some(before), Some(&after));
        }
        Ok(())
    }

    fn delete(&mut self, changes: &ChangeSet) -> Result<(), ChangeFault> {
        for (id, change) in &changes.relationships {
            if matches!(change, RelationshipChange::Deleted) {
                let before = self.relationship(*id)?;
                self.put_relationship(*id, Some(before), None);
            }
        }
        for (id, change) in &changes.nodes {
            if matches!(change, NodeChange::Deleted) {
                let before = self.node(*id)?;
                self.put_node(*id, Some(before), None);
            }
        }
        Ok(())
    }
}

fn tidy_labels(id: NodeId, row: &mut NodeRow) -> Result<(), ChangeFault> {
    row.labels.sort_unstable();
    row.labels.dedup();
    if row.labels.len() > MAX_LABELS { Err(ChangeFault::TooManyLabels(id)) } else { Ok(()) }
}
