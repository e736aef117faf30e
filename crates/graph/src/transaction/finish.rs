//! Finishing a transaction.

use super::{Transaction, Writes};
use crate::fault::Violation;
use crate::footprint::Footprint;
use crate::graph::Graph;

/// A finished transaction that is valid within its own version.
#[derive(Debug)]
pub struct FinishedTransaction {
    pub(crate) base: Graph,
    pub(crate) graph: Graph,
    pub(crate) footprint: Footprint,
    pub(crate) writes: Writes,
}

impl Transaction {
    /// Finishes the transaction: checks the constraints, and that no deleted node has
    /// relationships.
    ///
    /// # Errors
    /// The violation. The transaction is discarded.
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
    /// The position of its base version.
    #[must_use]
    pub fn base_position(&self) -> u64 {
        self.base.position()
    }
}
