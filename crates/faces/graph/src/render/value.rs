//! A value of a row, and the `meta` beside it.

use super::{push_float, push_integer, push_joined, push_string};
use std::io::Write as _;
use std::sync::Arc;
use wellspring_cypher::temporal;
use wellspring_cypher::value::{NodeId, Path, Point, RelationshipId, Value, from_property};
use wellspring_graph::{Name, Transaction, Value as Property};

/// Where entities are looked up, and the database's name in their ids.
pub(crate) struct Place<'a> {
    pub(crate) transaction: &'a Transaction,
    pub(crate) database: &'a str,
    /// Size limit of the result. A shared value, or a node that is a million times in a list, is
    /// small in memory and large as text: longer results are not completed.
    pub(crate) most: usize,
}

impl Place<'_> {
    /// Whether the result is too long already.
    pub(crate) fn is_full(&self, out: &[u8]) -> bool {
        out.len() > self.most
    }

    /// Appends a value: the properties of nodes and relationships, those of a path's parts in
    /// order.
    pub(super) fn push(&self, out: &mut Vec<u8>, value: &Value) {
        if self.is_full(out) {
            return;
        }
        match value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Boolean(truth) => {
                out.extend_from_slice(if *truth { b"true" } else { b"false" });
            }
            Value::Integer(integer) => push_integer(out, integer),
            Value::Float(float) => push_float(out, *float),
            Value::String(text) => push_string(out, text),
            Value::List(items) => {
                out.push(b'[');
                push_joined(out, items.iter(), |out, item| self.push(out, item));
                out.push(b']');
            }
            Value::Map(entries) => {
                out.push(b'{');
                push_joined(out, entries.iter(), |out, (key, value)| {
                    push_string(out, key);
                    out.push(b':');
                    self.push(out, value);
                });
                out.push(b'}');
            }
            Value::Node(id) => self.push_node_properties(out, *id),
            Value::Relationship(id) => self.push_relationship_properties(out, *id),
            Value::Path(path) => {
                out.push(b'[');
                self.push_path(out, path, |out, part| self.push(out, part));
                out.push(b']');
            }
            Value::Point(point) => push_point(out, point),
            Value::Bytes(bytes) => {
                out.push(b'[');
                // Signed, as in Java.
                push_joined(out, bytes.iter(), |out, byte| push_integer(out, byte.cast_signed()));
                out.push(b']');
            }
            temporal => push_string(out, &temporal::text(temporal).unwrap_or_default()),
        }
    }

    /// Appends the `meta` of a value: the identity of entities, null for anything else. Those in
    /// lists and maps are written one after the other.
    pub(super) fn push_meta(&self, out: &mut Vec<u8>, value: &Value) {
        if self.is_full(out) {
            return;
        }
        match value {
            Value::Node(id) => {
                let is_gone = !self.transaction.has_node(*id);
                self.push_entity_meta(out, (4, id.number()), "node", is_gone);
            }
            Value::Relationship(id) => {
                let is_gone = !self.transaction.has_relationship(*id);
                self.push_entity_meta(out, (5, id.number()), "relationship", is_gone);
            }
            Value::Path(path) => {
                out.push(b'[');
                self.push_path(out, path, |out, part| self.push_meta(out, part));
                out.push(b']');
            }
            Value::List(items) if !items.is_empty() => {
                push_joined(out, items.iter(), |out, item| self.push_meta(out, item));
            }
            Value::Map(entries) if !entries.is_empty() => {
                push_joined(out, entries.values(), |out, value| self.push_meta(out, value));
            }
            _ => out.extend_from_slice(b"null"),
        }
    }

    /// Appends the nodes and relationships of a path in order, separated by commas.
    pub(super) fn push_path(
        &self,
        out: &mut Vec<u8>,
        path: &Path,
        push: impl FnMut(&mut Vec<u8>, &Value),
    ) {
        let steps = path.steps.iter().flat_map(|(relationship, node)| {
            [Value::Relationship(*relationship), Value::Node(*node)]
        });
        let parts: Vec<Value> = std::iter::once(Value::Node(path.start)).chain(steps).collect();
        push_joined(out, &parts, push);
    }

    fn push_entity_meta(&self, out: &mut Vec<u8>, id: (u8, u64), kind: &str, is_gone: bool) {
        let _ = write!(out, "{{\"id\":{},\"elementId\":", id.1);
        self.push_element_id(out, id.0, id.1);
        let _ = write!(out, ",\"type\":\"{kind}\",\"deleted\":{is_gone}}}");
    }

    /// Appends an entity's id for clients: `4:DATABASE:7` for a node, `5:…` for a relationship.
    pub(super) fn push_element_id(&self, out: &mut Vec<u8>, kind: u8, number: u64) {
        push_string(out, &format!("{kind}:{}:{number}", self.database));
    }

    /// Appends the properties of a node, none of a deleted one.
    pub(super) fn push_node_properties(&self, out: &mut Vec<u8>, id: NodeId) {
        self.push_properties(out, self.transaction.node_properties(id).unwrap_or_default());
    }

    /// Appends the properties of a relationship, none of a deleted one.
    pub(super) fn push_relationship_properties(&self, out: &mut Vec<u8>, id: RelationshipId) {
        self.push_properties(out, self.transaction.relationship_properties(id).unwrap_or_default());
    }

    /// Properties with the texts of their keys, in their order.
    pub(crate) fn sorted(&self, properties: Vec<(Name, Property)>) -> Vec<(Arc<str>, Property)> {
        let named = properties.into_iter().map(|(key, value)| (self.transaction.text(key), value));
        let mut named: Vec<(Arc<str>, Property)> = named.collect();
        named.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        named
    }

    fn push_properties(&self, out: &mut Vec<u8>, properties: Vec<(Name, Property)>) {
        out.push(b'{');
        push_joined(out, self.sorted(properties), |out, (key, value)| {
            push_string(out, &key);
            out.push(b':');
            self.push(out, &from_property(value));
        });
        out.push(b'}');
    }
}

fn push_point(out: &mut Vec<u8>, point: &Point) {
    let system = point.system;
    let (name, reference) = match (system.srid(), system.has_z()) {
        (4326, _) => ("wgs-84", "http://spatialreference.org/ref/epsg/4326/"),
        (4979, _) => ("wgs-84-3d", "http://spatialreference.org/ref/epsg/4979/"),
        (_, false) => ("cartesian", "https://spatialreference.org/ref/sr-org/7203/"),
        (_, true) => ("cartesian-3d", "https://spatialreference.org/ref/sr-org/9157/"),
    };
    out.extend_from_slice(b"{\"type\":\"Point\",\"coordinates\":[");
    let z = system.has_z().then_some(point.z);
    push_joined(out, [point.x, point.y].into_iter().chain(z), push_float);
    let _ = write!(
        out,
        "],\"crs\":{{\"srid\":{},\"name\":\"{name}\",\"type\":\"link\",\
         \"properties\":{{\"href\":\"{reference}ogcwkt/\",\"type\":\"ogcwkt\"}}}}}}",
        system.srid()
    );
}
