//! Events as change sets. Anyone may append events of these types, so everything is checked here that can be without
//! the graph; the rest when the change set is applied.

use super::parts::Part;
use super::value::from_json;
use super::{EventFault, fault};
use crate::change::{ChangeSet, NodeChange, PropertyChanges, RelationshipChange};
use crate::graph::{Graph, Relationship};
use crate::id::{NodeId, RelationshipId};
use crate::limits::MAX_LABELS;
use crate::names::Name;
use crate::value::Value;
use serde_json::{Map, Value as Json};

/// The fields of an object, to be taken one by one; what is left is nonsense.
pub(super) struct Fields(Map<String, Json>);

impl Fields {
    pub(super) fn new(json: Json) -> Result<Fields, EventFault> {
        match json {
            Json::Object(fields) => Ok(Fields(fields)),
            _ => fault("an object was expected"),
        }
    }

    pub(super) fn parse(data: &[u8]) -> Result<Fields, EventFault> {
        let json = serde_json::from_slice(data);
        Fields::new(json.map_err(|error| EventFault(error.to_string()))?)
    }

    pub(super) fn take(&mut self, field: &str) -> Option<Json> {
        self.0.remove(field)
    }

    pub(super) fn list(&mut self, field: &str) -> Result<Vec<Json>, EventFault> {
        match self.take(field) {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => Ok(items),
            Some(_) => fault(format!("{field}: a list was expected")),
        }
    }

    pub(super) fn text(&mut self, field: &str) -> Result<String, EventFault> {
        match self.take(field) {
            Some(Json::String(text)) => Ok(text),
            _ => fault(format!("{field}: a string was expected")),
        }
    }

    pub(super) fn number(&mut self, field: &str) -> Result<u64, EventFault> {
        let number = self.take(field).and_then(|number| number.as_u64());
        number.map_or_else(|| fault(format!("{field}: a number was expected")), Ok)
    }

    pub(super) fn finish(self) -> Result<(), EventFault> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(field) => fault(format!("{field}: not expected here")),
        }
    }

    fn is_gone(&mut self) -> Result<bool, EventFault> {
        match self.take("gone") {
            None => Ok(false),
            Some(Json::Bool(true)) => Ok(true),
            Some(_) => fault("gone: must be true"),
        }
    }

    fn node_id(&mut self, field: &str) -> Result<NodeId, EventFault> {
        let number = self.number(field)?;
        NodeId::new(number).map_or_else(|| fault(format!("{field}: too large")), Ok)
    }

    fn properties(&mut self, names: &Graph) -> Result<Vec<(Name, Value)>, EventFault> {
        let Some(set) = self.take("set") else { return Ok(Vec::new()) };
        let properties = Fields::new(set)?.0.into_iter();
        properties.map(|(key, value)| Ok((name_of(names, &key)?, from_json(value)?))).collect()
    }

    fn changes(&mut self, names: &Graph) -> Result<PropertyChanges, EventFault> {
        let set = self.properties(names)?;
        let unset = names_of(names, self.list("unset")?)?;
        match unset.iter().any(|key| set.iter().any(|(other, _)| other == key)) {
            true => fault("unset: a key is set as well"),
            false => Ok(PropertyChanges { set, unset }),
        }
    }
}

pub(super) fn name_of(names: &Graph, text: &str) -> Result<Name, EventFault> {
    names.names().intern(text).map_or_else(|| fault(format!("{text:?} is no name")), Ok)
}

pub(super) fn names_of(names: &Graph, texts: Vec<Json>) -> Result<Vec<Name>, EventFault> {
    let name = |text: Json| match text {
        Json::String(text) => name_of(names, &text),
        _ => fault("a name is a string"),
    };
    texts.into_iter().map(name).collect()
}

fn labels_of(names: &Graph, texts: Vec<Json>) -> Result<Vec<Name>, EventFault> {
    let mut labels = names_of(names, texts)?;
    labels.sort_unstable();
    labels.dedup();
    match labels.len() > MAX_LABELS {
        true => fault("too many labels"),
        false => Ok(labels),
    }
}

/// Reads a [`GRAPH_CHANGED`](super::GRAPH_CHANGED) event. `names` is any version of the graph it is for.
pub(crate) fn decode_changes(names: &Graph, data: &[u8]) -> Result<Part, EventFault> {
    let mut fields = Fields::parse(data)?;
    let place = match fields.take("tx") {
        None => None,
        Some(Json::String(transaction)) if (1..=64).contains(&transaction.len()) => {
            let (part, of) = (fields.number("part")?, fields.number("of")?);
            Some((transaction, part, of))
        }
        Some(_) => return fault("tx: a string of 1 to 64 bytes was expected"),
    };
    let mut changes = ChangeSet::default();
    for node in fields.list("nodes")? {
        changes.nodes.push(node_change(names, Fields::new(node)?)?);
    }
    for relationship in fields.list("rels")? {
        changes.relationships.push(relationship_change(names, Fields::new(relationship)?)?);
    }
    fields.finish()?;
    Part::new(place, changes)
}

fn node_change(names: &Graph, mut fields: Fields) -> Result<(NodeId, NodeChange), EventFault> {
    let id = fields.node_id("id")?;
    let change = match fields.take("new") {
        Some(Json::Array(labels)) => NodeChange::Created {
            labels: labels_of(names, labels)?,
            properties: fields.properties(names)?,
        },
        Some(_) => return fault("new: a list of labels was expected"),
        None if fields.is_gone()? => NodeChange::Deleted,
        None => NodeChange::Changed {
            label: labels_of(names, fields.list("label")?)?,
            unlabel: labels_of(names, fields.list("unlabel")?)?,
            properties: fields.changes(names)?,
        },
    };
    fields.finish()?;
    Ok((id, change))
}

fn relationship_change(
    names: &Graph,
    mut fields: Fields,
) -> Result<(RelationshipId, RelationshipChange), EventFault> {
    let id = RelationshipId::new(fields.number("id")?);
    let Some(id) = id else { return fault("id: too large") };
    let change = match fields.take("new") {
        Some(Json::String(name)) => RelationshipChange::Created {
            head: Relationship {
                relationship_type: name_of(names, &name)?,
                from: fields.node_id("from")?,
                to: fields.node_id("to")?,
            },
            properties: fields.properties(names)?,
        },
        Some(_) => return fault("new: a type was expected"),
        None if fields.is_gone()? => RelationshipChange::Deleted,
        None => RelationshipChange::Changed(fields.changes(names)?),
    };
    fields.finish()?;
    Ok((id, change))
}
