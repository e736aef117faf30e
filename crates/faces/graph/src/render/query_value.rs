//! Values as the Query API writes them, plain or typed: <https://neo4j.com/docs/query-api/current>.
//!
//! | value | plain | typed `_value` |
//! |---|---|---|
//! | integer, float | a number; `NaN` and infinities as text | text |
//! | dates, times, durations | ISO 8601 | the same |
//! | point | `SRID=4326;POINT (1.0 2.0)` | the same |
//! | bytes | Base64 | the same |
//! | node | `elementId`, `labels`, `properties` | `_element_id`, `_labels`, `_properties` |
//! | relationship | the same with `type` and the ids of both ends | the same with `_` |
//! | path | list of node, relationship, node, … | the same |

use super::value::Place;
use super::{ValueForm, push_float, push_integer, push_joined, push_string};
use std::sync::Arc;
use wellspring_cypher::temporal;
use wellspring_cypher::value::{
    NodeId, Path, RelationshipId, Value, float_text, from_property, to_property,
};
use wellspring_graph::value::text::typed;
use wellspring_graph::{Name, Value as Property};

/// Names of the members of nodes and relationships.
struct MemberNames {
    element_id: &'static str,
    labels: &'static str,
    properties: &'static str,
    start: &'static str,
    end: &'static str,
    relationship_type: &'static str,
}

static PLAIN: MemberNames = MemberNames {
    element_id: "elementId",
    labels: "labels",
    properties: "properties",
    start: "startNodeElementId",
    end: "endNodeElementId",
    relationship_type: "type",
};
static TYPED: MemberNames = MemberNames {
    element_id: "_element_id",
    labels: "_labels",
    properties: "_properties",
    start: "_start_node_element_id",
    end: "_end_node_element_id",
    relationship_type: "_type",
};

impl ValueForm {
    fn names(self) -> &'static MemberNames {
        match self {
            ValueForm::Plain => &PLAIN,
            ValueForm::Typed => &TYPED,
        }
    }

    /// Appends a value of this type, in the envelope of a typed value if that is the form.
    fn wrap(self, out: &mut Vec<u8>, name: &str, push: impl FnOnce(&mut Vec<u8>)) {
        if self == ValueForm::Plain {
            return push(out);
        }
        out.extend_from_slice(b"{\"$type\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",\"_value\":");
        push(out);
        out.push(b'}');
    }
}

impl Place<'_> {
    /// Appends a value in a form of the Query API.
    pub(super) fn push_query(&self, out: &mut Vec<u8>, value: &Value, form: ValueForm) {
        if self.is_full(out) {
            return;
        }
        let is_typed = form == ValueForm::Typed;
        match value {
            Value::Null => form.wrap(out, "Null", |out| out.extend_from_slice(b"null")),
            Value::Boolean(truth) => {
                let text: &[u8] = if *truth { b"true" } else { b"false" };
                form.wrap(out, "Boolean", |out| out.extend_from_slice(text));
            }
            Value::Integer(integer) if is_typed => {
                form.wrap(out, "Integer", |out| push_string(out, &integer.to_string()));
            }
            Value::Integer(integer) => push_integer(out, integer),
            Value::Float(float) if is_typed => {
                form.wrap(out, "Float", |out| push_string(out, &float_text(*float)));
            }
            Value::Float(float) => push_float(out, *float),
            Value::String(text) => form.wrap(out, "String", |out| push_string(out, text)),
            Value::List(items) => form.wrap(out, "List", |out| {
                out.push(b'[');
                push_joined(out, items.iter(), |out, item| self.push_query(out, item, form));
                out.push(b']');
            }),
            Value::Map(entries) => form.wrap(out, "Map", |out| {
                out.push(b'{');
                push_joined(out, entries.iter(), |out, (key, value)| {
                    push_string(out, key);
                    out.push(b':');
                    self.push_query(out, value, form);
                });
                out.push(b'}');
            }),
            Value::Node(id) => form.wrap(out, "Node", |out| self.push_query_node(out, *id, form)),
            Value::Relationship(id) => form.wrap(out, "Relationship", |out| {
                self.push_query_relationship(out, *id, form);
            }),
            Value::Path(path) => {
                form.wrap(out, "Path", |out| self.push_query_path(out, path, form));
            }
            scalar => push_scalar(out, scalar, form),
        }
    }

    fn push_query_path(&self, out: &mut Vec<u8>, path: &Path, form: ValueForm) {
        out.push(b'[');
        self.push_path(out, path, |out, part| self.push_query(out, part, form));
        out.push(b']');
    }

    fn push_query_node(&self, out: &mut Vec<u8>, id: NodeId, form: ValueForm) {
        let names = form.names();
        out.push(b'{');
        self.push_member_id(out, names.element_id, 4, id.number());
        push_name(out, names.labels);
        out.push(b'[');
        let labels = self.transaction.labels(id).unwrap_or_default();
        push_joined(out, labels, |out, label| push_string(out, &self.transaction.text(label)));
        out.push(b']');
        push_name(out, names.properties);
        let properties = self.transaction.node_properties(id).unwrap_or_default();
        self.push_query_properties(out, properties, form);
        out.push(b'}');
    }

    /// One that was deleted in its own transaction has neither type nor ends any more: empty text
    /// stands for them, because drivers require these members.
    fn push_query_relationship(&self, out: &mut Vec<u8>, id: RelationshipId, form: ValueForm) {
        let names = form.names();
        let relationship = self.transaction.relationship(id).ok();
        out.push(b'{');
        self.push_member_id(out, names.element_id, 5, id.number());
        for (name, end) in [
            (names.start, relationship.as_ref().map(|found| found.from)),
            (names.end, relationship.as_ref().map(|found| found.to)),
        ] {
            push_name(out, name);
            match end {
                Some(end) => self.push_element_id(out, 4, end.number()),
                None => push_string(out, ""),
            }
        }
        push_name(out, names.relationship_type);
        let found = relationship.map(|found| self.transaction.text(found.relationship_type));
        push_string(out, &found.unwrap_or_default());
        push_name(out, names.properties);
        let properties = self.transaction.relationship_properties(id).unwrap_or_default();
        self.push_query_properties(out, properties, form);
        out.push(b'}');
    }

    fn push_member_id(&self, out: &mut Vec<u8>, name: &str, kind: u8, number: u64) {
        push_string(out, name);
        out.push(b':');
        self.push_element_id(out, kind, number);
    }

    fn push_query_properties(
        &self,
        out: &mut Vec<u8>,
        properties: Vec<(Name, Property)>,
        form: ValueForm,
    ) {
        out.push(b'{');
        push_joined(out, self.sorted(properties), |out, (key, value): (Arc<str>, Property)| {
            push_string(out, &key);
            out.push(b':');
            self.push_query(out, &from_property(value), form);
        });
        out.push(b'}');
    }
}

/// Appends the name of a member after another.
fn push_name(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    push_string(out, name);
    out.push(b':');
}

/// Appends a value that JSON has no form for.
fn push_scalar(out: &mut Vec<u8>, scalar: &Value, form: ValueForm) {
    let property = to_property(scalar).ok().flatten();
    let Some((name, text)) = property.as_ref().and_then(typed) else {
        debug_assert!(false, "{} has no text", scalar.type_name());
        return out.extend_from_slice(b"null");
    };
    // Neo4j's own text of dates and times is shorter than that of events.
    let text = temporal::text(scalar).unwrap_or(text);
    form.wrap(out, name, |out| push_string(out, &text));
}
