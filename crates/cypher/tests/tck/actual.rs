//! Actual results as the kit's values, with entities read from the graph.

use crate::value::{TckNode, TckRelationship, TckValue};
use std::collections::{BTreeMap, BTreeSet};
use wellspring_cypher::temporal;
use wellspring_cypher::value::{NodeId, Path, RelationshipId, Value, from_property};
use wellspring_graph::{EntityScan, Graph, Name, Transaction, Value as Property};

/// A value in the kit's form, with entities as this transaction sees them.
pub(crate) fn actual(value: &Value, transaction: &Transaction) -> TckValue {
    match value {
        Value::Null => TckValue::Null,
        Value::Boolean(truth) => TckValue::Boolean(*truth),
        Value::Integer(integer) => TckValue::Integer(*integer),
        Value::Float(float) => TckValue::Float(*float),
        Value::String(text) => TckValue::String(text.to_string()),
        Value::List(items) => {
            TckValue::List(items.iter().map(|item| actual(item, transaction)).collect())
        }
        Value::Map(entries) => {
            let entries =
                entries.iter().map(|(key, value)| (key.to_string(), actual(value, transaction)));
            TckValue::Map(entries.collect())
        }
        Value::Node(id) => TckValue::Node(node(*id, transaction)),
        Value::Relationship(id) => TckValue::Relationship(relationship(*id, transaction)),
        Value::Path(walk) => path(walk, transaction),
        other => TckValue::String(temporal::text(other).unwrap_or_else(|| format!("{other:?}"))),
    }
}

fn properties(
    stored: impl IntoIterator<Item = (Name, Property)>,
    transaction: &Transaction,
) -> BTreeMap<String, TckValue> {
    let stored = stored.into_iter();
    stored
        .map(|(key, value)| {
            (transaction.text(key).to_string(), actual(&from_property(value), transaction))
        })
        .collect()
}

fn node(id: NodeId, transaction: &Transaction) -> TckNode {
    let labels = transaction.labels(id).unwrap_or_default();
    let mut labels: Vec<String> =
        labels.into_iter().map(|label| transaction.text(label).to_string()).collect();
    labels.sort();
    let stored = transaction.node_properties(id).unwrap_or_default();
    TckNode { labels, properties: properties(stored, transaction) }
}

fn relationship(id: RelationshipId, transaction: &Transaction) -> TckRelationship {
    let name = transaction
        .relationship(id)
        .map(|found| transaction.text(found.relationship_type).to_string());
    let stored = transaction.relationship_properties(id).unwrap_or_default();
    TckRelationship { name: name.unwrap_or_default(), properties: properties(stored, transaction) }
}

fn path(walk: &Path, transaction: &Transaction) -> TckValue {
    let mut from = walk.start;
    let mut steps = Vec::new();
    for &(id, to) in &walk.steps {
        let forward = transaction.relationship(id).is_ok_and(|found| found.from == from);
        steps.push((forward, relationship(id, transaction), node(to, transaction)));
        from = to;
    }
    TckValue::Path(node(walk.start, transaction), steps)
}

/// Everything whose creation or deletion the kit counts as a side effect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    nodes: BTreeSet<u64>,
    relationships: BTreeSet<u64>,
    labels: BTreeSet<String>,
    /// Entity, key and value.
    properties: BTreeSet<String>,
}

/// The contents of a graph.
pub(crate) fn census(graph: &Graph) -> Census {
    let transaction = Transaction::reading(graph.clone());
    let mut census = Census::default();
    for id in transaction.scan_nodes().collect(&transaction) {
        census.nodes.insert(id.number());
        let labels = transaction.labels(id).unwrap_or_default();
        census.labels.extend(labels.into_iter().map(|label| transaction.text(label).to_string()));
        for (key, value) in transaction.node_properties(id).unwrap_or_default() {
            census.properties.insert(format!("{id:?} {} {value:?}", transaction.text(key)));
        }
    }
    for id in transaction.scan_relationships().collect(&transaction) {
        census.relationships.insert(id.number());
        for (key, value) in transaction.relationship_properties(id).unwrap_or_default() {
            census.properties.insert(format!("{id:?} {} {value:?}", transaction.text(key)));
        }
    }
    census
}

impl Census {
    /// What was created and deleted since `before`, by the kit's names; omits names without
    /// changes.
    pub(crate) fn since(&self, before: &Self) -> BTreeMap<String, usize> {
        fn differences<T: Ord>(before: &BTreeSet<T>, after: &BTreeSet<T>) -> (usize, usize) {
            (after.difference(before).count(), before.difference(after).count())
        }
        let all = [
            ("nodes", differences(&before.nodes, &self.nodes)),
            ("relationships", differences(&before.relationships, &self.relationships)),
            ("labels", differences(&before.labels, &self.labels)),
            ("properties", differences(&before.properties, &self.properties)),
        ];
        let signed = all.into_iter().flat_map(|(name, (came, went))| {
            [(format!("+{name}"), came), (format!("-{name}"), went)]
        });
        signed.filter(|(_, number)| *number > 0).collect()
    }
}
