//! Computes the net change between two versions from the ids that were written.

use super::{
    ChangeSet, CommittedChanges, NodeChange, PropertyChanges, RelationshipChange, Touches,
};
use crate::graph::{Graph, NodeRow, Properties, RelationshipRow, SchemaDefinition, property_of};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use std::sync::Arc;

fn property_changes(before: &Properties, after: &Properties) -> PropertyChanges {
    let is_kept =
        |key: Name, value| property_of(before, key).is_some_and(|old| old.is_identical(value));
    let set = after.iter().filter(|(key, value)| !is_kept(*key, value)).cloned().collect();
    let unset = before.iter().map(|(key, _)| *key);
    let unset = unset.filter(|key| property_of(after, *key).is_none()).collect();
    PropertyChanges { set, unset }
}

fn missing_in(names: &[Name], others: &[Name]) -> Vec<Name> {
    names.iter().copied().filter(|name| others.binary_search(name).is_err()).collect()
}

fn node_change(before: Option<&NodeRow>, after: Option<NodeRow>) -> NodeChange {
    match (before, after) {
        (_, None) => NodeChange::Deleted,
        (None, Some(NodeRow { labels, properties })) => NodeChange::Created { labels, properties },
        (Some(before), Some(after)) => NodeChange::Changed {
            label: missing_in(&after.labels, &before.labels),
            unlabel: missing_in(&before.labels, &after.labels),
            properties: property_changes(&before.properties, &after.properties),
        },
    }
}

fn relationship_change(
    before: Option<&RelationshipRow>,
    after: Option<RelationshipRow>,
) -> RelationshipChange {
    match (before, after) {
        (_, None) => RelationshipChange::Deleted,
        (None, Some(RelationshipRow { head, properties })) => {
            RelationshipChange::Created { head, properties }
        }
        (Some(before), Some(after)) => {
            RelationshipChange::Changed(property_changes(&before.properties, &after.properties))
        }
    }
}

/// The difference between two versions, limited to these entities.
pub(crate) fn difference(
    [base, graph]: [&Graph; 2],
    nodes: impl Iterator<Item = NodeId>,
    relationships: impl Iterator<Item = RelationshipId>,
    dropped_items: Vec<Arc<str>>,
    created_items: Vec<SchemaDefinition>,
) -> CommittedChanges {
    let mut touches = Touches::default();
    let mut changes = ChangeSet { dropped_items, created_items, ..ChangeSet::default() };
    if changes.has_schema() {
        touches.schema();
    }
    for id in nodes.filter(|id| base.node_row(*id) != graph.node_row(*id)) {
        let (before, after) = (base.node(id), graph.node(id));
        touches.node(id, before.as_ref(), after.as_ref());
        changes.nodes.push((id, node_change(before.as_ref(), after)));
    }
    let differs = |id: &RelationshipId| base.relationship_row(*id) != graph.relationship_row(*id);
    for id in relationships.filter(differs) {
        let (before, after) = (base.whole_relationship(id), graph.whole_relationship(id));
        touches.relationship(id, before.as_ref(), after.as_ref());
        changes.relationships.push((id, relationship_change(before.as_ref(), after)));
    }
    CommittedChanges { changes, touches }
}
