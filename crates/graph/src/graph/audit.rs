//! Checks that derived structures agree with the rows; tests check every version.

use super::keys::{adjacency, index_entry, index_prefix, member};
use super::write::form;
use super::{Graph, Properties, SchemaItem};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::store::{PAGE_ROWS, Paged, RowPage, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

fn numbers(pages: &Paged<RowPage>) -> impl Iterator<Item = u64> {
    pages.iter().flat_map(|(number, page)| {
        page.iter().map(move |(at, _)| number * PAGE_ROWS as u64 + at as u64)
    })
}

fn keys<const N: usize>(tree: &Tree<N>) -> BTreeSet<[u8; N]> {
    let mut keys = BTreeSet::new();
    tree.walk(&[0; N], |key| {
        keys.insert(*key);
        ControlFlow::Continue(())
    });
    keys
}

/// The expected derived structures.
#[derive(Default)]
struct DerivedStructures {
    labels: BTreeSet<[u8; 10]>,
    types: BTreeSet<[u8; 10]>,
    outgoing: BTreeSet<[u8; 21]>,
    incoming: BTreeSet<[u8; 21]>,
    index: BTreeSet<[u8; 34]>,
    keys: BTreeMap<Name, u64>,
}

impl DerivedStructures {
    fn properties(&mut self, properties: &Properties) {
        for (key, _) in properties {
            *self.keys.entry(*key).or_default() += 1;
        }
    }

    fn entries(&mut self, item: &SchemaItem, entity: [u8; 6], properties: &Properties) {
        let form = form(properties, &item.definition.keys);
        let form = form.filter(|_| item.definition.kind.is_indexed());
        let entry = form.map(|form| index_entry(&index_prefix(item.number, &form), entity));
        self.index.extend(entry);
    }
}

impl Graph {
    /// All nodes by id.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> {
        numbers(&self.content.nodes).filter_map(NodeId::new)
    }

    /// All relationships by id.
    pub fn relationship_ids(&self) -> impl Iterator<Item = RelationshipId> {
        numbers(&self.content.relationships).filter_map(RelationshipId::new)
    }

    /// Compares all derived structures with the rows. Slow: it scans the whole graph.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<(), &'static str> {
        let mut expected = DerivedStructures::default();
        for id in self.node_ids() {
            let row = self.node(id).ok_or("an unreadable node")?;
            expected.labels.extend(row.labels.iter().map(|label| member(*label, id.bytes())));
            expected.properties(&row.properties);
            for item in self.schema_items().of_labels(&row.labels) {
                expected.entries(item, id.bytes(), &row.properties);
            }
        }
        for id in self.relationship_ids() {
            let row = self.whole_relationship(id).ok_or("an unreadable relationship")?;
            let (kind, from, to) = (row.head.relationship_type, row.head.from, row.head.to);
            if !self.has_node(from) || !self.has_node(to) {
                return Err("a relationship without an end");
            }
            expected.types.insert(member(kind, id.bytes()));
            expected.outgoing.insert(adjacency(from, kind, to, id));
            expected.incoming.insert(adjacency(to, kind, from, id));
            expected.properties(&row.properties);
            for item in self.schema_items().of_type(kind) {
                expected.entries(item, id.bytes(), &row.properties);
            }
        }
        self.compare(&expected)
    }

    fn compare(&self, expected: &DerivedStructures) -> Result<(), &'static str> {
        let count = |keys: &BTreeSet<[u8; 10]>, name: Name| {
            keys.iter().filter(|key| key[..4] == name.bytes()).count() as u64
        };
        let names: Vec<Name> = (0..self.names().len() as u32).map(Name::new).collect();
        let verdicts = [
            (keys(&self.content.labels) == expected.labels, "labels"),
            (keys(&self.content.types) == expected.types, "types"),
            (keys(&self.content.outgoing) == expected.outgoing, "outgoing"),
            (keys(&self.content.incoming) == expected.incoming, "incoming"),
            (keys(&self.content.index) == expected.index, "index"),
            (self.node_ids().count() as u64 == self.content.node_count, "the count of nodes"),
            (
                expected.types.len() as u64 == self.content.relationship_count,
                "the count of relationships",
            ),
            (
                names.iter().all(|name| count(&expected.labels, *name) == self.label_count(*name)),
                "the counts of labels",
            ),
            (
                names.iter().all(|name| count(&expected.types, *name) == self.type_count(*name)),
                "the counts of types",
            ),
            (
                names.iter().all(|name| {
                    self.content.key_counts.get(*name)
                        == expected.keys.get(name).copied().unwrap_or(0)
                }),
                "the counts of keys",
            ),
        ];
        let wrong = verdicts.into_iter().find(|(agrees, _)| !agrees);
        wrong.map_or(Ok(()), |(_, what)| Err(what))
    }
}
