//! The end of a transaction that is not dropped.

use super::{Transaction, Writes};
use crate::fault::Violation;
use crate::footprint::Footprint;
use crate::graph::Graph;

/// A transaction that has ended well, as far as its own version can tell.
#[derive(Debug)]
pub struct FinishedTransaction {
    pub(crate) base: Graph,
    pub(crate) graph: Graph,
    pub(crate) footprint: Footprint,
    pub(crate) writes: Writes,
}

impl Transaction {
    /// Ends the transaction: constraints are judged, and that no deleted node has relationships.
    ///
    /// # Errors
    /// What is broken. Nothing of the transaction stays.
    pub fn finish(mut self) -> Result<FinishedTransaction, Violation> {
        self.check()?;
        for &id in &self.writes.nodes {
            if !self.graph.has_node(id) && self.graph.is_connected(id) {
                return Err(Violation::StillConnected(id));
            }
        }
        let writes = self.writes;
        let has_schema = !writes.created_items.is_empty() || !writes.dropped_items.is_empty();
        if has_schema && !(writes.nodes.is_empty() && writes.relationships.is_empty()) {
            return Err(Violation::SchemaWithData);
        }
        let footprint = self.footprint.into_inner();
        Ok(FinishedTransaction { base: self.base, graph: self.graph, footprint, writes })
    }
}

impl FinishedTransaction {
    /// The version it came to, if it is the only transaction there is.
    #[must_use]
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// The position of the version it began with.
    #[must_use]
    pub fn base_position(&self) -> u64 {
        self.base.position()
    }
}
