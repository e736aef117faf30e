//! Scans of nodes, of relationships, and of a node's relationships.
//!
//! A scan borrows nothing: the transaction may write while one is open. A statement that reads and
//! then writes must still drain its scans first, or it would encounter its own writes.

use super::Transaction;
use crate::footprint::Side;
use crate::graph::{AdjacencyRun, Adjacent, Progress, SchemaSubject, Source};
use crate::id::{NodeId, RelationshipId};
use crate::names::Name;
use crate::value::{Canonical, Value};
use std::collections::VecDeque;

/// The direction of a node's relationships.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Relationships that start at the node.
    Outgoing,
    /// Relationships that end at the node.
    Incoming,
    /// Both; a loop once.
    Both,
}

/// A scan of nodes.
#[derive(Debug, Clone)]
pub struct NodeScan(Source);

/// A scan of relationships.
#[derive(Debug, Clone)]
pub struct RelationshipScan(Source);

/// A scan of a node's relationships.
#[derive(Debug, Clone)]
pub struct AdjacencyScan(VecDeque<AdjacencyRun>);

/// A position among entities that a transaction sees.
pub trait EntityScan: Sized {
    /// What it finds.
    type Item;

    /// Appends the next ones to `out`, possibly none. The scan continues until
    /// [`Progress::is_finished`].
    fn fill(&mut self, transaction: &Transaction, out: &mut Vec<Self::Item>) -> Progress;

    /// Collects all remaining ones; for scans that are known to be short.
    fn collect(mut self, transaction: &Transaction) -> Vec<Self::Item> {
        let mut all = Vec::new();
        while !self.fill(transaction, &mut all).is_finished {}
        all
    }
}

impl EntityScan for NodeScan {
    type Item = NodeId;

    fn fill(&mut self, transaction: &Transaction, out: &mut Vec<NodeId>) -> Progress {
        transaction.graph.advance_nodes(&mut self.0, out)
    }
}

impl EntityScan for RelationshipScan {
    type Item = RelationshipId;

    fn fill(&mut self, transaction: &Transaction, out: &mut Vec<RelationshipId>) -> Progress {
        transaction.graph.advance_relationships(&mut self.0, out)
    }
}

impl EntityScan for AdjacencyScan {
    type Item = Adjacent;

    fn fill(&mut self, transaction: &Transaction, out: &mut Vec<Adjacent>) -> Progress {
        let Some(run) = self.0.front_mut() else {
            return Progress { examined: 0, is_finished: true };
        };
        let progress = transaction.graph.advance_adjacent(run, out);
        if progress.is_finished {
            self.0.pop_front();
        }
        Progress { is_finished: self.0.is_empty(), ..progress }
    }
}

impl Transaction {
    /// All nodes by id.
    pub fn scan_nodes(&self) -> NodeScan {
        self.note(|footprint| footprint.all_nodes = true);
        NodeScan(Source::All(Some(0)))
    }

    /// The nodes with this label, by id.
    pub fn scan_label(&self, label: Name) -> NodeScan {
        self.note(|footprint| footprint.label(label));
        NodeScan(Source::members(label))
    }

    /// The nodes with this label whose property equals the value, and possibly a few more: the
    /// predicate must be evaluated again. Uses an index if there is one; otherwise it scans all
    /// nodes with the label but records only this value in the footprint.
    pub fn seek_nodes(&self, label: Name, key: Name, value: &Value) -> NodeScan {
        let value = Canonical::new(value);
        self.note(|footprint| footprint.equal(label, key, value.hash()));
        NodeScan(self.graph.equality_source(SchemaSubject::Label(label), key, &value))
    }

    /// The same nodes, for a table of a property's values that answers many such lookups. It
    /// records nothing: each lookup does, by [`note_lookup`](Self::note_lookup).
    pub fn scan_label_for_lookups(&self, label: Name) -> NodeScan {
        NodeScan(Source::members(label))
    }

    /// Records a lookup that a table answers, as [`seek_nodes`](Self::seek_nodes) does.
    pub fn note_lookup(&self, label: Name, key: Name, value: &Value) {
        self.note(|footprint| footprint.equal(label, key, Canonical::new(value).hash()));
    }

    /// Whether [`seek_nodes`](Self::seek_nodes) uses an index instead of scanning all nodes with
    /// the label.
    pub fn has_index(&self, label: Name, key: Name) -> bool {
        self.graph.schema_items().index(SchemaSubject::Label(label), key).is_some()
    }

    /// Whether values of this property are unique among nodes with this label, and indexed.
    pub fn has_unique_index(&self, label: Name, key: Name) -> bool {
        let item = self.graph.schema_items().index(SchemaSubject::Label(label), key);
        item.is_some_and(|item| item.definition.kind.is_unique())
    }

    /// The keys, at least two, of the index that [`seek_nodes_by_all`](Self::seek_nodes_by_all)
    /// uses: the widest index on this label whose keys are all among these.
    pub fn composite_index(&self, label: Name, keys: &[Name]) -> Option<&[Name]> {
        let item = self.graph.schema_items().composite(SchemaSubject::Label(label), keys)?;
        Some(&item.definition.keys)
    }

    /// The nodes with this label that have these values for the keys of
    /// [`composite_index`](Self::composite_index), in its order, and possibly a few more: the
    /// predicate must be evaluated again. Empty if there is no such index.
    pub fn seek_nodes_by_all(&self, label: Name, wanted: &[(Name, Value)]) -> Option<NodeScan> {
        let keys: Vec<Name> = wanted.iter().map(|(key, _)| *key).collect();
        let value = Canonical::of_all(wanted.iter().map(|(_, value)| value));
        let source = self.graph.composite_source(SchemaSubject::Label(label), &keys, &value)?;
        // A node that gains all values also gains one of them.
        for (key, value) in wanted {
            let hash = Canonical::new(value).hash();
            self.note(|footprint| footprint.equal(label, *key, hash));
        }
        Some(NodeScan(source))
    }

    /// All relationships by id.
    pub fn scan_relationships(&self) -> RelationshipScan {
        self.note(|footprint| footprint.all_relationships = true);
        RelationshipScan(Source::All(Some(0)))
    }

    /// The relationships of this type, by id.
    pub fn scan_type(&self, relationship_type: Name) -> RelationshipScan {
        self.note(|footprint| footprint.relationship_type(relationship_type));
        RelationshipScan(Source::members(relationship_type))
    }

    /// The relationships of this type whose property equals the value, as in
    /// [`seek_nodes`](Self::seek_nodes).
    pub fn seek_relationships(&self, name: Name, key: Name, value: &Value) -> RelationshipScan {
        let value = Canonical::new(value);
        self.note(|footprint| footprint.equal(name, key, value.hash()));
        RelationshipScan(self.graph.equality_source(SchemaSubject::Type(name), key, &value))
    }

    /// The relationships of a node: of some types, or of any if `types` is empty; to or from one
    /// other node, or any. Empty if the node does not exist.
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
