//! Paths.

use super::{NodeId, RelationshipId};

/// A path in the graph: a node and any number of steps from it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Its first node.
    pub start: NodeId,
    /// The relationships in order, each with the node it leads to.
    pub steps: Vec<(RelationshipId, NodeId)>,
}

impl Path {
    /// Number of relationships.
    pub fn length(&self) -> usize {
        self.steps.len()
    }

    /// Its last node.
    pub fn end(&self) -> NodeId {
        self.steps.last().map_or(self.start, |step| step.1)
    }

    /// Its nodes in order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::once(self.start).chain(self.steps.iter().map(|step| step.1))
    }

    /// Its relationships in order.
    pub fn relationships(&self) -> impl Iterator<Item = RelationshipId> + '_ {
        self.steps.iter().map(|step| step.0)
    }
}
