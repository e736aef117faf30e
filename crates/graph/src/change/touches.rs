//! What a change set touched, and whether another transaction read any of it.

use crate::footprint::{Footprint, Side};
use crate::graph::{NodeRow, Properties, Relationship, RelationshipRow, property_of};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::value::{Canonical, Value};

/// What a change set touched. The lists may contain duplicates.
#[derive(Debug, Clone, Default)]
pub struct Touches {
    nodes: Vec<(NodeId, Fate)>,
    relationships: Vec<(RelationshipId, Fate)>,
    /// Created and deleted relationships.
    heads: Vec<Relationship>,
    /// Added and removed labels.
    labels: Vec<Name>,
    /// Label or type, key and hash of each added or removed value.
    equal: Vec<(Name, Name, u64)>,
    schema: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Created,
    Changed,
    Deleted,
}

fn fate(was_there: bool, is_there: bool) -> Fate {
    match (was_there, is_there) {
        (false, _) => Fate::Created,
        (true, true) => Fate::Changed,
        (true, false) => Fate::Deleted,
    }
}

impl Touches {
    pub(crate) fn schema(&mut self) {
        self.schema = true;
    }

    pub(crate) fn node(&mut self, id: NodeId, before: Option<&NodeRow>, after: Option<&NodeRow>) {
        self.nodes.push((id, fate(before.is_some(), after.is_some())));
        let none = NodeRow::default();
        let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
        let (old, new) = (&before.properties, &after.properties);
        let differing = differing_values(old, new);
        for label in &before.labels {
            if after.labels.binary_search(label).is_ok() {
                self.values(*label, differing.iter().copied());
            } else {
                self.labels.push(*label);
                self.values(*label, old.iter().map(|(key, value)| (*key, value)));
            }
        }
        for label in after.labels.iter().filter(|label| !before.labels.contains(label)) {
            self.labels.push(*label);
            self.values(*label, new.iter().map(|(key, value)| (*key, value)));
        }
    }

    fn values<'a>(&mut self, name: Name, values: impl Iterator<Item = (Name, &'a Value)>) {
        self.equal.extend(values.map(|(key, value)| (name, key, Canonical::new(value).hash())));
    }

    pub(crate) fn relationship(
        &mut self,
        id: RelationshipId,
        before: Option<&RelationshipRow>,
        after: Option<&RelationshipRow>,
    ) {
        self.relationships.push((id, fate(before.is_some(), after.is_some())));
        let Some(head) = before.or(after).map(|row| row.head) else { return };
        if before.is_some() != after.is_some() {
            self.heads.push(head);
        }
        let none = Properties::new();
        let [old, new] = [before, after].map(|row| row.map_or(&none, |row| &row.properties));
        self.values(head.relationship_type, differing_values(old, new).into_iter());
    }

    /// Whether it touched anything in the footprint. If so, the transaction must not commit after
    /// this change set.
    pub(crate) fn concerns(&self, footprint: &Footprint) -> bool {
        self.schema
            || self.nodes.iter().any(|(id, fate)| concerns_node(footprint, *id, *fate))
            || self
                .relationships
                .iter()
                .any(|(id, fate)| concerns_relationship(footprint, *id, *fate))
            || self.heads.iter().any(|head| concerns_head(footprint, head))
            || self.labels.iter().any(|label| footprint.labels.contains(label))
            || self.equal.iter().any(|(label, key, hash)| {
                footprint.equal.contains(&(*label, *key, *hash))
                    || footprint.ranges.contains(&(*label, *key))
            })
    }
}

/// The values that only one of the two has.
fn differing_values<'a>(old: &'a Properties, new: &'a Properties) -> Vec<(Name, &'a Value)> {
    let is_kept = |others: &Properties, key: Name, value: &Value| {
        property_of(others, key).is_some_and(|other| other.is_identical(value))
    };
    let gone = old.iter().filter(|(key, value)| !is_kept(new, *key, value));
    let came = new.iter().filter(|(key, value)| !is_kept(old, *key, value));
    gone.chain(came).map(|(key, value)| (*key, value)).collect()
}

fn concerns_node(footprint: &Footprint, id: NodeId, fate: Fate) -> bool {
    let of_membership = footprint.all_nodes && fate != Fate::Changed;
    let of_content = footprint.every_node && fate != Fate::Created;
    let of_end = fate == Fate::Deleted && footprint.ends.contains(&id);
    let of_absence = fate == Fate::Created && footprint.absent_nodes.contains(&id);
    of_membership || of_content || of_end || of_absence || footprint.nodes.contains(&id)
}

fn concerns_relationship(footprint: &Footprint, id: RelationshipId, fate: Fate) -> bool {
    let of_content = footprint.every_relationship && fate != Fate::Created;
    let of_absence = fate == Fate::Created && footprint.absent_relationships.contains(&id);
    of_content || of_absence || footprint.relationships.contains(&id)
}

fn concerns_head(footprint: &Footprint, head: &Relationship) -> bool {
    let Relationship { relationship_type, from, to } = *head;
    let types = [None, Some(relationship_type)];
    footprint.all_relationships
        || footprint.types.contains(&relationship_type)
        || types.into_iter().any(|kind| {
            footprint.adjacent.contains(&(from, Side::Outgoing, kind))
                || footprint.adjacent.contains(&(to, Side::Incoming, kind))
                || footprint.pairs.contains(&(from, to, kind))
        })
}
