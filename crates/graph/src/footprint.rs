//! The footprint of a transaction: its reads as predicates. No other transaction may touch them
//! before this one commits.

use crate::id::{NodeId, RelationshipId};
use crate::limits::MAX_FOOTPRINT;
use crate::names::Name;
use std::collections::BTreeSet;

/// A side of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Relationships that start at the node.
    Outgoing,
    /// Relationships that end at the node.
    Incoming,
}

/// The reads of a transaction. If a kind has too many entries, a coarser one replaces them.
#[derive(Debug, Clone)]
pub(crate) struct Footprint {
    /// Maximum number of entries of each kind.
    limit: usize,
    /// Nodes that were written, or whose labels or properties were read.
    pub(crate) nodes: BTreeSet<NodeId>,
    /// Nodes that must continue to exist, because a relationship was attached to them.
    pub(crate) ends: BTreeSet<NodeId>,
    /// Nodes that were looked up and do not exist.
    pub(crate) absent_nodes: BTreeSet<NodeId>,
    /// Relationships that were looked up and do not exist.
    pub(crate) absent_relationships: BTreeSet<RelationshipId>,
    /// Relationships that were read or written.
    pub(crate) relationships: BTreeSet<RelationshipId>,
    /// Sides of nodes, for one type or any.
    pub(crate) adjacent: BTreeSet<(NodeId, Side, Option<Name>)>,
    /// Relationships from one node to another, for one type or any.
    pub(crate) pairs: BTreeSet<(NodeId, NodeId, Option<Name>)>,
    /// Labels whose nodes were all scanned or counted.
    pub(crate) labels: BTreeSet<Name>,
    /// Label or type, key and value hash of each lookup.
    pub(crate) equal: BTreeSet<(Name, Name, u64)>,
    /// Label or type and key whose values were all read.
    pub(crate) ranges: BTreeSet<(Name, Name)>,
    /// Types whose relationships were all scanned or counted.
    pub(crate) types: BTreeSet<Name>,
    /// Any change of a node, except new nodes.
    pub(crate) every_node: bool,
    /// Any change of a relationship, except new relationships.
    pub(crate) every_relationship: bool,
    /// The set of all nodes.
    pub(crate) all_nodes: bool,
    /// The set of all relationships.
    pub(crate) all_relationships: bool,
}

/// Whether a set has reached its limit.
fn is_full<T>(set: &BTreeSet<T>, limit: usize) -> bool {
    set.len() > limit
}

impl Default for Footprint {
    fn default() -> Footprint {
        Footprint::with_limit(MAX_FOOTPRINT)
    }
}

impl Footprint {
    /// Number of entries of all kinds.
    pub(crate) fn entries(&self) -> usize {
        let nodes = self.nodes.len() + self.ends.len() + self.absent_nodes.len();
        let relationships = self.relationships.len() + self.absent_relationships.len();
        let around = self.adjacent.len() + self.pairs.len();
        let values = self.equal.len() + self.ranges.len();
        nodes + relationships + around + values + self.labels.len() + self.types.len()
    }

    /// An empty footprint; kinds with more than `limit` entries become coarser.
    pub(crate) fn with_limit(limit: usize) -> Footprint {
        Footprint {
            limit,
            nodes: BTreeSet::new(),
            ends: BTreeSet::new(),
            absent_nodes: BTreeSet::new(),
            absent_relationships: BTreeSet::new(),
            relationships: BTreeSet::new(),
            adjacent: BTreeSet::new(),
            pairs: BTreeSet::new(),
            labels: BTreeSet::new(),
            equal: BTreeSet::new(),
            ranges: BTreeSet::new(),
            types: BTreeSet::new(),
            every_node: false,
            every_relationship: false,
            all_nodes: false,
            all_relationships: false,
        }
    }

    /// The same reads with other numbers of names.
    pub(crate) fn renamed(&self, renamed: impl Fn(Name) -> Name) -> Footprint {
        Footprint {
            adjacent: self
                .adjacent
                .iter()
                .map(|(a, side, kind)| (*a, *side, kind.map(&renamed)))
                .collect(),
            pairs: self.pairs.iter().map(|(a, b, kind)| (*a, *b, kind.map(&renamed))).collect(),
            labels: self.labels.iter().copied().map(&renamed).collect(),
            equal: self
                .equal
                .iter()
                .map(|(on, key, hash)| (renamed(*on), renamed(*key), *hash))
                .collect(),
            ranges: self.ranges.iter().map(|(on, key)| (renamed(*on), renamed(*key))).collect(),
            types: self.types.iter().copied().map(&renamed).collect(),
            ..self.clone()
        }
    }

    pub(crate) fn node(&mut self, id: NodeId) {
        if !self.every_node && self.nodes.insert(id) && is_full(&self.nodes, self.limit) {
            self.nodes.clear();
            self.every_node = true;
        }
    }

    pub(crate) fn end(&mut self, id: NodeId) {
        if !self.every_node && self.ends.insert(id) && is_full(&self.ends, self.limit) {
            self.ends.clear();
            self.every_node = true;
        }
    }

    pub(crate) fn absent_node(&mut self, id: NodeId) {
        let noted = !self.all_nodes && self.absent_nodes.insert(id);
        if noted && is_full(&self.absent_nodes, self.limit) {
            self.absent_nodes.clear();
            self.all_nodes = true;
        }
    }

    pub(crate) fn absent_relationship(&mut self, id: RelationshipId) {
        let noted = !self.all_relationships && self.absent_relationships.insert(id);
        if noted && is_full(&self.absent_relationships, self.limit) {
            self.absent_relationships.clear();
            self.all_relationships = true;
        }
    }

    pub(crate) fn relationship(&mut self, id: RelationshipId) {
        let noted = !self.every_relationship && self.relationships.insert(id);
        if noted && is_full(&self.relationships, self.limit) {
            self.relationships.clear();
            self.every_relationship = true;
        }
    }

    pub(crate) fn adjacent(&mut self, node: NodeId, side: Side, relationship_type: Option<Name>) {
        let noted =
            !self.all_relationships && self.adjacent.insert((node, side, relationship_type));
        if noted && is_full(&self.adjacent, self.limit) {
            self.adjacent.clear();
            self.all_relationships = true;
        }
    }

    pub(crate) fn pair(&mut self, from: NodeId, to: NodeId, relationship_type: Option<Name>) {
        let noted = !self.all_relationships && self.pairs.insert((from, to, relationship_type));
        if noted && is_full(&self.pairs, self.limit) {
            self.pairs.clear();
            self.all_relationships = true;
        }
    }

    pub(crate) fn label(&mut self, label: Name) {
        // A scan of all nodes does not cover changes of their labels.
        if !self.is_everything() && self.labels.insert(label) && is_full(&self.labels, self.limit) {
            self.labels.clear();
            self.everything();
        }
    }

    pub(crate) fn equal(&mut self, label: Name, key: Name, hash: u64) {
        if self.ranges.contains(&(label, key)) {
            return;
        }
        if self.equal.insert((label, key, hash)) && is_full(&self.equal, self.limit) {
            for (label, key, _) in std::mem::take(&mut self.equal) {
                self.range(label, key);
            }
        }
    }

    fn range(&mut self, label: Name, key: Name) {
        if !self.is_everything()
            && self.ranges.insert((label, key))
            && is_full(&self.ranges, self.limit)
        {
            self.ranges.clear();
            self.everything();
        }
    }

    fn everything(&mut self) {
        (self.all_nodes, self.every_node) = (true, true);
        (self.all_relationships, self.every_relationship) = (true, true);
    }

    fn is_everything(&self) -> bool {
        self.all_nodes && self.every_node && self.all_relationships && self.every_relationship
    }

    pub(crate) fn relationship_type(&mut self, name: Name) {
        if !self.all_relationships && self.types.insert(name) && is_full(&self.types, self.limit) {
            self.types.clear();
            self.all_relationships = true;
        }
    }
}
