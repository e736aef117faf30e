//! A version as text: equal graphs give equal text, whatever their history.

use crate::event::{put_json, put_text};
use crate::graph::{Graph, Properties, SchemaKind, SchemaSubject};
use crate::id::{NodeId, RelationshipId};
use std::fmt::Write;

impl Graph {
    /// The graph as lines: nodes by id, relationships by id, indexes and constraints by name.
    /// Labels and keys are sorted by text.
    pub fn dump(&self) -> impl Iterator<Item = String> {
        let nodes = self.node_ids().filter_map(|id| self.node_line(id));
        let relationships = self.relationship_ids().filter_map(|id| self.relationship_line(id));
        nodes.chain(relationships).chain(self.schema_lines())
    }

    fn node_line(&self, id: NodeId) -> Option<String> {
        let row = self.node(id)?;
        let mut line = format!("node {}", id.number());
        let mut labels: Vec<_> = row.labels.iter().map(|label| self.text(*label)).collect();
        labels.sort_unstable();
        for label in labels {
            line.push_str(" :");
            put_text(&mut line, &label);
        }
        self.put_properties(&mut line, &row.properties);
        Some(line)
    }

    fn relationship_line(&self, id: RelationshipId) -> Option<String> {
        let row = self.whole_relationship(id)?;
        let (from, to) = (row.head.from.number(), row.head.to.number());
        let mut line = format!("rel {} {from} -> {to} :", id.number());
        put_text(&mut line, &self.text(row.head.relationship_type));
        self.put_properties(&mut line, &row.properties);
        Some(line)
    }

    fn put_properties(&self, line: &mut String, properties: &Properties) {
        let mut sorted: Vec<_> =
            properties.iter().map(|(key, value)| (self.text(*key), value)).collect();
        sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (key, value) in sorted {
            line.push(' ');
            put_text(line, &key);
            line.push('=');
            put_json(line, value);
        }
    }

    pub(crate) fn schema_lines(&self) -> impl Iterator<Item = String> {
        self.schema().map(|item| {
            let kind = match item.kind {
                SchemaKind::Range => "range".to_owned(),
                SchemaKind::Unique => "unique".to_owned(),
                SchemaKind::Exists => "exists".to_owned(),
                SchemaKind::Key => "key".to_owned(),
                SchemaKind::Vector(settings) => format!("{settings:?}"),
                SchemaKind::Fulltext => "fulltext".to_owned(),
            };
            let on = match item.subject {
                SchemaSubject::Label(_) => "node",
                SchemaSubject::Type(_) => "rel",
            };
            let mut line = format!("schema {:?} {kind} {on}", item.name);
            for name in item.subjects() {
                line.push_str(" :");
                put_text(&mut line, &self.text(name));
            }
            for key in &item.keys {
                _ = write!(line, " {:?}", self.text(*key));
            }
            line
        })
    }
}
