//! A client that appends: retries where that helps, at another node if the lead has moved, until
//! the outcome is known.

use crate::Nodes;
use crate::nodes::Deadline;
use wellspring_log::{Append, AppendError, Appended};

/// A client of the log, regardless of the leader.
pub struct Client<'a> {
    nodes: &'a Nodes,
    node: usize,
}

impl Nodes {
    /// A client that appends first at this node, then wherever the lead is.
    #[must_use]
    pub fn client(&self, node: usize) -> Client<'_> {
        Client { nodes: self, node }
    }
}

impl Client<'_> {
    /// Appends. Retries, also at another node, whenever the answer says that nothing happened and a
    /// retry helps; so it is safe for any append.
    ///
    /// # Errors
    /// The final error of an append.
    ///
    /// # Panics
    /// If it does not succeed in time.
    pub fn append(&mut self, append: Append) -> Result<Appended, AppendError> {
        let mut deadline = Deadline::new(self.nodes, "an append finds a node that takes it");
        loop {
            let Some(log) = self.nodes.log(self.node) else {
                self.node = self.nodes.next_node();
                continue;
            };
            match log.append(append.clone()) {
                Ok(appended) => {
                    self.nodes.was_acknowledged(appended.last);
                    return Ok(appended);
                }
                Err(AppendError::NotLeading { leader }) => {
                    self.nodes.nudge();
                    let named = leader.and_then(|leader| self.nodes.named(&leader.node));
                    self.node = named.unwrap_or_else(|| self.nodes.next_node());
                }
                Err(AppendError::Unavailable { .. } | AppendError::SetBack) => {}
                Err(stays) => return Err(stays),
            }
            deadline.glance();
        }
    }
}
