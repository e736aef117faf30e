//! The graph as plain maps: slow and obviously correct.

use crate::event::{put_json, put_text};
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Properties = BTreeMap<String, Value>;

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) nodes: BTreeMap<u64, (BTreeSet<String>, Properties)>,
    pub(super) relationships: BTreeMap<u64, (String, u64, u64, Properties)>,
}

fn put_properties(line: &mut String, properties: &Properties) {
    for (key, value) in properties {
        line.push(' ');
        put_text(line, key);
        line.push('=');
        put_json(line, value);
    }
}

impl Model {
    pub(super) fn set(properties: &mut Properties, key: &str, value: Option<Value>) {
        match value {
            Some(value) => _ = properties.insert(key.to_owned(), value),
            None => _ = properties.remove(key),
        }
    }

    pub(super) fn detach_delete(&mut self, id: u64) {
        self.relationships.retain(|_, (_, from, to, _)| *from != id && *to != id);
        self.nodes.remove(&id);
    }

    /// As `Graph::dump`, without the schema.
    pub(super) fn dump(&self) -> Vec<String> {
        let nodes = self.nodes.iter().map(|(id, (labels, properties))| {
            let mut line = format!("node {id}");
            for label in labels {
                line.push_str(" :");
                put_text(&mut line, label);
            }
            put_properties(&mut line, properties);
            line
        });
        let relationships = self.relationships.iter().map(|(id, (kind, from, to, properties))| {
            let mut line = format!("rel {id} {from} -> {to} :");
            put_text(&mut line, kind);
            put_properties(&mut line, properties);
            line
        });
        nodes.chain(relationships).collect()
    }
}
