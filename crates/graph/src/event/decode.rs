//! Decodes events into change sets. Any client may append such events, so everything that does not
//! need the graph is checked here; the rest when the change set is applied.

use super::json::{Json, Kind};
use super::parts::{Part, PartPlace};
use super::value::read_value;
use super::{EventFault, fault};
use crate::change::{ChangeSet, NodeChange, PropertyChanges, RelationshipChange};
use crate::graph::{Graph, Relationship};
use crate::id::{NodeId, RelationshipId};
use crate::limits::MAX_LABELS;
use crate::names::{Name, is_name};
use crate::value::Value;
use std::collections::BTreeSet;

/// An event's statements about an entity, not checked for consistency yet.
#[derive(Default)]
struct Entry {
    id: Option<u64>,
    /// Labels of a created node.
    new_labels: Option<Vec<Name>>,
    /// Type of a created relationship.
    new_type: Option<Name>,
    from: Option<u64>,
    to: Option<u64>,
    label: Option<Vec<Name>>,
    unlabel: Option<Vec<Name>>,
    set: Option<Vec<(Name, Value)>>,
    unset: Option<Vec<Name>>,
    gone: Option<bool>,
}

pub(super) fn read_name(names: &Graph, json: &mut Json<'_>) -> Result<Name, EventFault> {
    new_name(names, &json.text()?)
}

fn new_name(names: &Graph, text: &str) -> Result<Name, EventFault> {
    match names.intern(text) {
        Some(name) => Ok(name),
        None if is_name(text) => fault(format!("{text:?}: the graph cannot take another name")),
        None => fault(format!("{text:?} is not a valid name")),
    }
}

pub(super) fn read_names(names: &Graph, json: &mut Json<'_>) -> Result<Vec<Name>, EventFault> {
    let mut list = Vec::new();
    json.list(|json| {
        list.push(read_name(names, json)?);
        Ok(())
    })?;
    Ok(list)
}

fn read_labels(names: &Graph, json: &mut Json<'_>) -> Result<Vec<Name>, EventFault> {
    let mut labels = read_names(names, json)?;
    labels.sort_unstable();
    labels.dedup();
    if labels.len() > MAX_LABELS { fault("too many labels") } else { Ok(labels) }
}

fn read_properties(names: &Graph, json: &mut Json<'_>) -> Result<Vec<(Name, Value)>, EventFault> {
    let mut properties = Vec::new();
    json.object(|json, key| {
        properties.push((new_name(names, key)?, read_value(json)?));
        Ok(())
    })?;
    Ok(properties)
}

/// Stores a field's value; a field must not be repeated.
pub(super) fn once<T>(place: &mut Option<T>, field: &str, value: T) -> Result<(), EventFault> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => fault(format!("{field}: repeated field")),
    }
}

impl Entry {
    fn read(names: &Graph, json: &mut Json<'_>) -> Result<Entry, EventFault> {
        let mut entry = Entry::default();
        json.object(|json, field| match field {
            "id" => once(&mut entry.id, field, json.natural()?),
            "new" if json.kind()? == Kind::List => {
                once(&mut entry.new_labels, field, read_labels(names, json)?)
            }
            "new" => once(&mut entry.new_type, field, read_name(names, json)?),
            "from" => once(&mut entry.from, field, json.natural()?),
            "to" => once(&mut entry.to, field, json.natural()?),
            "label" => once(&mut entry.label, field, read_labels(names, json)?),
            "unlabel" => once(&mut entry.unlabel, field, read_labels(names, json)?),
            "set" => once(&mut entry.set, field, read_properties(names, json)?),
            "unset" => once(&mut entry.unset, field, read_names(names, json)?),
            "gone" => once(&mut entry.gone, field, json.boolean()?),
            _ => fault(format!("unknown field {field:?} of an entity")),
        })?;
        Ok(entry)
    }

    fn changes(&mut self) -> Result<PropertyChanges, EventFault> {
        let set = self.set.take().unwrap_or_default();
        let unset = self.unset.take().unwrap_or_default();
        let is_set: BTreeSet<Name> = set.iter().map(|(key, _)| *key).collect();
        if unset.iter().any(|key| is_set.contains(key)) {
            fault("unset: the key is also set")
        } else {
            Ok(PropertyChanges { set, unset })
        }
    }

    /// Checks that every statement was used.
    fn finish(self) -> Result<(), EventFault> {
        let is_empty = self.new_labels.is_none()
            && self.new_type.is_none()
            && self.from.is_none()
            && self.to.is_none()
            && self.label.is_none()
            && self.unlabel.is_none()
            && self.set.is_none()
            && self.unset.is_none()
            && self.gone.is_none();
        if is_empty { Ok(()) } else { fault("an entity with contradictory fields") }
    }

    fn node(mut self) -> Result<(NodeId, NodeChange), EventFault> {
        let id = node_id(self.id)?;
        let change = if let Some(labels) = self.new_labels.take() {
            let properties = self.set.take().unwrap_or_default();
            NodeChange::Created { labels, properties }
        } else if self.gone.take_if(|gone| *gone).is_some() {
            NodeChange::Deleted
        } else {
            NodeChange::Changed {
                label: self.label.take().unwrap_or_default(),
                unlabel: self.unlabel.take().unwrap_or_default(),
                properties: self.changes()?,
            }
        };
        self.finish().map(|()| (id, change))
    }

    fn relationship(mut self) -> Result<(RelationshipId, RelationshipChange), EventFault> {
        let Some(id) = self.id.and_then(RelationshipId::new) else {
            return fault("id: not a valid id");
        };
        let change = if let Some(relationship_type) = self.new_type.take() {
            let (from, to) = (node_id(self.from.take())?, node_id(self.to.take())?);
            let head = Relationship { relationship_type, from, to };
            let properties = self.set.take().unwrap_or_default();
            RelationshipChange::Created { head, properties }
        } else if self.gone.take_if(|gone| *gone).is_some() {
            RelationshipChange::Deleted
        } else {
            RelationshipChange::Changed(self.changes()?)
        };
        self.finish().map(|()| (id, change))
    }
}

fn node_id(number: Option<u64>) -> Result<NodeId, EventFault> {
    number.and_then(NodeId::new).map_or_else(|| fault("a node without an id below 2^48"), Ok)
}

/// Decodes a [`GRAPH_CHANGED`](super::GRAPH_CHANGED) event. `names` is the version
/// that it changes, with private names for those that it introduces.
pub(crate) fn decode_changes(names: &Graph, data: &[u8]) -> Result<Part, EventFault> {
    let mut json = Json::new(data);
    let (mut transaction, mut part, mut of) = (None, None, None);
    let (mut nodes, mut relationships) = (None, None);
    json.object(|json, field| match field {
        "tx" => once(&mut transaction, field, json.text()?.into_owned()),
        "part" => once(&mut part, field, json.natural()?),
        "of" => once(&mut of, field, json.natural()?),
        "nodes" => {
            let mut list = Vec::new();
            json.list(|json| {
                list.push(Entry::read(names, json)?.node()?);
                Ok(())
            })?;
            once(&mut nodes, field, list)
        }
        "rels" => {
            let mut list = Vec::new();
            json.list(|json| {
                list.push(Entry::read(names, json)?.relationship()?);
                Ok(())
            })?;
            once(&mut relationships, field, list)
        }
        _ => fault(format!("unknown field {field:?}")),
    })?;
    json.end()?;
    let place = match (transaction, part, of) {
        (None, None, None) => None,
        (Some(transaction), Some(number), Some(of)) if (1..=64).contains(&transaction.len()) => {
            Some(PartPlace { transaction, number, of })
        }
        _ => return fault("give all of tx, part and of, or none"),
    };
    let changes = ChangeSet {
        nodes: nodes.unwrap_or_default(),
        relationships: relationships.unwrap_or_default(),
        ..ChangeSet::default()
    };
    Part::new(place, changes)
}
