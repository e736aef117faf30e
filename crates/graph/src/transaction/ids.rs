//! The ids that a transaction draws for what it creates, and draws again when it is executed again.

use super::Transaction;
use crate::fault::GraphError;
use crate::graph::Graph;
use crate::id::{NodeId, RelationshipId};

/// Ids in the order in which a transaction drew them.
#[derive(Debug, Clone, Default)]
pub struct DrawnIds {
    nodes: Vec<NodeId>,
    relationships: Vec<RelationshipId>,
}

impl DrawnIds {
    /// Memory that they take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.nodes.len() + self.relationships.len()) * size_of::<NodeId>()
    }

    /// The same from the last to the first, to be taken from the end.
    fn reversed(mut self) -> DrawnIds {
        self.nodes.reverse();
        self.relationships.reverse();
        self
    }
}

impl Transaction {
    /// A transaction that may write, and draws these ids first: those of an execution that came to
    /// nothing. No other transaction has them.
    #[must_use]
    pub fn writing_again(graph: Graph, ids: DrawnIds) -> Transaction {
        Transaction { reserved: ids.reversed(), ..Transaction::writing(graph) }
    }

    /// The ids that it has drawn.
    #[must_use]
    pub fn drawn_ids(&self) -> &DrawnIds {
        &self.drawn
    }

    pub(super) fn draw_node_id(&mut self) -> Result<NodeId, GraphError> {
        // An event of another client may name any id.
        let reserved = self.reserved.nodes.pop().filter(|id| !self.graph.has_node(*id));
        let id = reserved.or_else(|| self.graph.new_node_id()).ok_or(GraphError::OutOfIds)?;
        self.drawn.nodes.push(id);
        Ok(id)
    }

    pub(super) fn draw_relationship_id(&mut self) -> Result<RelationshipId, GraphError> {
        let reserved = self.reserved.relationships.pop();
        let reserved = reserved.filter(|id| !self.graph.has_relationship(*id));
        let drawn = reserved.or_else(|| self.graph.new_relationship_id());
        let id = drawn.ok_or(GraphError::OutOfIds)?;
        self.drawn.relationships.push(id);
        Ok(id)
    }
}
