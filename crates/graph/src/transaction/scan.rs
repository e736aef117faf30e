//! Going through nodes, relationships, and the relationships of a node.
//!
//! A scan borrows nothing: the transaction may write while one is open. A statement that reads and
//! then writes drains its scans first all the same, or it would meet what it wrote itself.

use super::Transaction;
use crate::footprint::Side;
use crate::graph::{AdjacencyRun, Adjacent, Progress, SchemaSubject, Source};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::value::{Canonical, Value};
use std::collections::VecDeque;

/// Which relationships of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Those that start there.
    Outgoing,
    /// Those that end there.
    Incoming,
    /// Both; a loop once.
    Both,
}

/// Nodes to go through.
#[derive(Debug, Clone)]
pub struct NodeScan(Source);

/// Relationships to go through.
#[derive(Debug, Clone)]
pub struct RelationshipScan(Source);

/// Relationships of a node to go through.
#[derive(Debug, Clone)]
pub struct AdjacencyScan(VecDeque<AdjacencyRun>);

impl NodeScan {
    /// Appends the next nodes to `out`, few or none. It goes on until [`Progress::is_finished`].
    pub fn fill(&mut self, transaction: &Transaction, out: &mut Vec<NodeId>) -> Progress {
        transaction.graph.advance_nodes(&mut self.0, out)
    }

    /// All that is left: for scans that are known to be short.
    pub fn collect(mut self, transaction: &Transaction) -> Vec<NodeId> {
        let mut all = Vec::new();
        while !self.fill(transaction, &mut all).is_finished {}
        all
    }
}

impl RelationshipScan {
    /// Appends the next relationships to `out`, few or none. It goes on until
    /// [`Progress::is_finished`].
    pub fn fill(&mut self, transaction: &Transaction, out: &mut Vec<RelationshipId>) -> Progress {
        transaction.graph.advance_relationships(&mut self.0, out)
    }

    /// All that is left: for scans that are known to be short.
    pub fn collect(mut self, transaction: &Transaction) -> Vec<RelationshipId> {
        let mut all = Vec::new();
        while !self.fill(transaction, &mut all).is_finished {}
        all
    }
}

impl AdjacencyScan {
    /// Appends the next relationships to `out`, few or none. It goes on until
    /// [`Progress::is_finished`].
    pub fn fill(&mut self, transaction: &Transaction, out: &mut Vec<Adjacent>) -> Progress {
        let Some(run) = self.0.front_mut() else {
            return Progress { examined: 0, is_finished: true };
        };
        let progress = transaction.graph.advance_adjacent(run, out);
        if progress.is_finished {
            self.0.pop_front();
        }
        Progress { is_finished: self.0.is_empty(), ..progress }
    }

    /// All that is left: for scans that are known to be short.
    pub fn collect(mut self, transaction: &Transaction) -> Vec<Adjacent> {
        let mut all = Vec::new();
        while !self.fill(transaction, &mut all).is_finished {}
        all
    }
}

impl Transaction {
    /// All nodes, in order of id.
    pub fn scan_nodes(&self) -> NodeScan {
        self.note(|footprint| footprint.all_nodes = true);
        NodeScan(Source::All(Some(0)))
    }

    /// The nodes with that label, in order of id.
    pub fn scan_label(&self, label: Name) -> NodeScan {
        self.note(|footprint| footprint.label(label));
        NodeScan(Source::members(label))
    }

    /// The nodes with that label whose property is equal to the value, and perhaps others that are
    /// nearly so: the predicate must be evaluated again. Looked up if there is an index; if not,
    /// all nodes of the label are gone through, but only this value is noted.
    pub fn seek_nodes(&self, label: Name, key: Name, value: &Value) -> NodeScan {
        let value = Canonical::new(value);
        self.note(|footprint| footprint.equal(label, key, value.hash()));
        NodeScan(self.graph.equality_source(SchemaSubject::Label(label), key, &value))
    }

    /// Whether [`seek_nodes`](Self::seek_nodes) looks up rather than goes through all nodes of the
    /// label.
    pub fn has_index(&self, label: Name, key: Name) -> bool {
        self.graph.schema_items().index(SchemaSubject::Label(label), key).is_some()
    }

    /// Whether no two nodes with that label have the same value of this property, and values are
    /// looked up.
    pub fn has_unique_index(&self, label: Name, key: Name) -> bool {
        let item = self.graph.schema_items().index(SchemaSubject::Label(label), key);
        item.is_some_and(|item| item.definition.kind.is_unique())
    }

    /// The keys, at least two, of an index of nodes with that label that
    /// [`seek_nodes_by_all`](Self::seek_nodes_by_all) takes: the widest whose keys are all among
    /// these.
    pub fn composite_index(&self, label: Name, keys: &[Name]) -> Option<&[Name]> {
        let item = self.graph.schema_items().composite(SchemaSubject::Label(label), keys)?;
        Some(&item.definition.keys)
    }

    /// The nodes with that label that have these values of the keys of
    /// [`composite_index`](Self::composite_index), in its order, and perhaps others: the predicate
    /// must be evaluated again. Nothing if there is no such index.
    pub fn seek_nodes_by_all(&self, label: Name, wanted: &[(Name, Value)]) -> Option<NodeScan> {
        let keys: Vec<Name> = wanted.iter().map(|(key, _)| *key).collect();
        let value = Canonical::of_all(wanted.iter().map(|(_, value)| value));
        let source = self.graph.composite_source(SchemaSubject::Label(label), &keys, &value)?;
        // Who comes to have all of them comes to have one of them.
        for (key, value) in wanted {
            let hash = Canonical::new(value).hash();
            self.note(|footprint| footprint.equal(label, *key, hash));
        }
        Some(NodeScan(source))
    }

    /// All relationships, in order of id.
    pub fn scan_relationships(&self) -> RelationshipScan {
        self.note(|footprint| footprint.all_relationships = true);
        RelationshipScan(Source::All(Some(0)))
    }

    /// The relationships of that type, in order of id.
    pub fn scan_type(&self, relationship_type: Name) -> RelationshipScan {
        self.note(|footprint| footprint.relationship_type(relationship_type));
        RelationshipScan(Source::members(relationship_type))
    }

    /// The relationships of that type whose property is equal to the value, as
    /// [`seek_nodes`](Self::seek_nodes).
    pub fn seek_relationships(&self, name: Name, key: Name, value: &Value) -> RelationshipScan {
        let value = Canonical::new(value);
        self.note(|footprint| footprint.equal(name, key, value.hash()));
        RelationshipScan(self.graph.equality_source(SchemaSubject::Type(name), key, &value))
    }

    /// The relationships of a node: of some types, or of any if `types` is empty; to or from one
    /// other node, or any. Nothing for a node that is not there.
    pub fn adjacent(
        &self,
        node: NodeId,
        direction: Direction,
        types: &[Name],
        other: Option<NodeId>,
    ) -> AdjacencyScan {
        let mut kinds: Vec<Option<Name>> = types.iter().copied().map(Some).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.is_empty() {
            kinds.push(None);
        }
        let sides: &[Side] = match direction {
            Direction::Outgoing => &[Side::Outgoing],
            Direction::Incoming => &[Side::Incoming],
            Direction::Both => &[Side::Outgoing, Side::Incoming],
        };
        let mut runs = VecDeque::with_capacity(kinds.len() * sides.len());
        for (&side, &kind) in
            sides.iter().flat_map(|side| kinds.iter().map(move |kind| (side, kind)))
        {
            self.note(|footprint| match (side, other) {
                (_, None) => footprint.adjacent(node, side, kind),
                (Side::Outgoing, Some(other)) => footprint.pair(node, other, kind),
                (Side::Incoming, Some(other)) => footprint.pair(other, node, kind),
            });
            let is_outgoing = side == Side::Outgoing;
            let skips_loops = direction == Direction::Both && !is_outgoing;
            runs.push_back(AdjacencyRun::new(node, is_outgoing, kind, other, skips_loops));
        }
        AdjacencyScan(runs)
    }
}
