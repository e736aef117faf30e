//! The form `graph`: the nodes and relationships of a row, each once.

use super::push_joined;
use super::value::Place;
use std::collections::BTreeSet;
use wellspring_cypher::value::{NodeId, RelationshipId, Value};

use super::push_string;

/// The entities of a row, with the ends of its relationships.
#[derive(Default)]
struct Entities {
    nodes: BTreeSet<NodeId>,
    relationships: BTreeSet<RelationshipId>,
}

impl Entities {
    fn add(&mut self, value: &Value, place: &Place<'_>) {
        match value {
            Value::Node(id) => {
                self.nodes.insert(*id);
            }
            Value::Relationship(id) => {
                self.relationships.insert(*id);
                if let Ok(relationship) = place.transaction.relationship(*id) {
                    self.nodes.extend([relationship.from, relationship.to]);
                }
            }
            Value::Path(path) => {
                self.nodes.extend(path.nodes());
                self.relationships.extend(path.relationships());
            }
            Value::List(items) => items.iter().for_each(|item| self.add(item, place)),
            Value::Map(entries) => entries.values().for_each(|value| self.add(value, place)),
            _ => {}
        }
    }
}

/// Appends the nodes and relationships of a row.
pub(super) fn push(out: &mut Vec<u8>, row: &[Value], place: &Place<'_>) {
    let mut entities = Entities::default();
    row.iter().for_each(|value| entities.add(value, place));
    out.extend_from_slice(b"{\"nodes\":[");
    push_joined(out, entities.nodes, |out, id| push_node(out, id, place));
    out.extend_from_slice(b"],\"relationships\":[");
    push_joined(out, entities.relationships, |out, id| push_relationship(out, id, place));
    out.extend_from_slice(b"]}");
}

fn push_ids(out: &mut Vec<u8>, names: [&str; 2], id: (u8, u64), place: &Place<'_>) {
    push_string(out, names[0]);
    out.push(b':');
    push_string(out, &id.1.to_string());
    out.push(b',');
    push_string(out, names[1]);
    out.push(b':');
    place.push_element_id(out, id.0, id.1);
}

fn push_node(out: &mut Vec<u8>, id: NodeId, place: &Place<'_>) {
    if place.is_full(out) {
        return;
    }
    out.push(b'{');
    push_ids(out, ["id", "elementId"], (4, id.number()), place);
    out.extend_from_slice(b",\"labels\":[");
    let labels = place.transaction.labels(id).unwrap_or_default();
    push_joined(out, labels, |out, label| push_string(out, &place.transaction.text(label)));
    out.extend_from_slice(b"],\"properties\":");
    place.push_node_properties(out, id);
    out.push(b'}');
}

fn push_relationship(out: &mut Vec<u8>, id: RelationshipId, place: &Place<'_>) {
    if place.is_full(out) {
        return;
    }
    out.push(b'{');
    push_ids(out, ["id", "elementId"], (5, id.number()), place);
    // One deleted in its own transaction has neither type nor ends any more.
    if let Ok(relationship) = place.transaction.relationship(id) {
        out.extend_from_slice(b",\"type\":");
        push_string(out, &place.transaction.text(relationship.relationship_type));
        for (names, end) in [
            (["startNode", "startNodeElementId"], relationship.from),
            (["endNode", "endNodeElementId"], relationship.to),
        ] {
            out.push(b',');
            push_ids(out, names, (4, end.number()), place);
        }
    }
    out.extend_from_slice(b",\"properties\":");
    place.push_relationship_properties(out, id);
    out.push(b'}');
}
