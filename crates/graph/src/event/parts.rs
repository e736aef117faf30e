//! Parts of a transaction that was too large for one event.

use super::{EventFault, MAX_PARTS, fault};
use crate::change::{ChangeSet, NodeChange, PropertyChanges, RelationshipChange};
use crate::graph::Properties;
use crate::id::Entity;
use std::collections::BTreeMap;

/// The content of one event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Its place in its transaction; `None` if it is a whole one.
    pub(crate) place: Option<PartPlace>,
    pub(crate) changes: ChangeSet,
}

/// The place of a part in its transaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartPlace {
    pub(crate) transaction: String,
    /// Its number, from 1.
    pub(crate) number: u64,
    /// Number of parts.
    pub(crate) of: u64,
}

impl Part {
    pub(super) fn new(place: Option<PartPlace>, changes: ChangeSet) -> Result<Part, EventFault> {
        if let Some(PartPlace { number, of, .. }) = place
            && (!(1..=MAX_PARTS as u64).contains(&of) || !(1..=of).contains(&number))
        {
            return fault(format!("part {number} of {of} is impossible"));
        }
        Ok(Part { place, changes })
    }
}

/// Merges the fields of entities that occur several times, whether in one event or in several.
pub(crate) fn merge(changes: ChangeSet) -> Result<ChangeSet, EventFault> {
    let mut nodes = EntityMerger::new(changes.nodes.len());
    for (id, change) in changes.nodes {
        nodes.put(id, Entity::Node(id), change, merge_node)?;
    }
    let mut relationships = EntityMerger::new(changes.relationships.len());
    for (id, change) in changes.relationships {
        relationships.put(id, Entity::Relationship(id), change, merge_relationship)?;
    }
    Ok(ChangeSet { nodes: nodes.list, relationships: relationships.list, ..changes })
}

/// Entities in the order of their first occurrence.
struct EntityMerger<K, C> {
    list: Vec<(K, C)>,
    places: BTreeMap<K, usize>,
}

impl<K: Ord + Copy, C> EntityMerger<K, C> {
    fn new(capacity: usize) -> EntityMerger<K, C> {
        EntityMerger { list: Vec::with_capacity(capacity), places: BTreeMap::new() }
    }

    fn put(
        &mut self,
        id: K,
        entity: Entity,
        change: C,
        merge: fn(&mut C, C) -> Option<()>,
    ) -> Result<(), EventFault> {
        // Most events have one entity, and others have them in order.
        let is_new = self.list.last().is_none_or(|(last, _)| *last < id) && self.places.is_empty();
        if !is_new && self.places.is_empty() {
            self.places = self.list.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        }
        if let Some(&at) = self.places.get(&id) {
            let merged = merge(&mut self.list[at].1, change);
            return merged.map_or_else(|| fault(format!("{entity} occurs twice")), Ok);
        }
        if !is_new {
            self.places.insert(id, self.list.len());
        }
        self.list.push((id, change));
        Ok(())
    }
}

fn merge_properties(properties: &mut Properties, more: PropertyChanges) -> Option<()> {
    properties.extend(more.set);
    more.unset.is_empty().then_some(())
}

fn merge_changes(changes: &mut PropertyChanges, more: PropertyChanges) {
    changes.set.extend(more.set);
    changes.unset.extend(more.unset);
}

fn merge_node(first: &mut NodeChange, second: NodeChange) -> Option<()> {
    match (first, second) {
        (
            NodeChange::Created { properties, .. },
            NodeChange::Changed { label, unlabel, properties: more },
        ) if label.is_empty() && unlabel.is_empty() => merge_properties(properties, more),
        (
            NodeChange::Changed { label, unlabel, properties },
            NodeChange::Changed { label: labels, unlabel: unlabels, properties: more },
        ) => {
            label.extend(labels);
            unlabel.extend(unlabels);
            merge_changes(properties, more);
            Some(())
        }
        _ => None,
    }
}

fn merge_relationship(first: &mut RelationshipChange, second: RelationshipChange) -> Option<()> {
    match (first, second) {
        (RelationshipChange::Created { properties, .. }, RelationshipChange::Changed(more)) => {
            merge_properties(properties, more)
        }
        (RelationshipChange::Changed(changes), RelationshipChange::Changed(more)) => {
            merge_changes(changes, more);
            Some(())
        }
        _ => None,
    }
}
