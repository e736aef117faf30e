//! Who appends: asks again where that helps, elsewhere if another leads, and wants to know what
//! became of it.

use super::Nodes;
use super::nodes::Deadline;
use crate::append::{Append, Appended};
use crate::error::AppendError;

/// A client of the log, whichever node leads.
pub struct Client<'a> {
    nodes: &'a Nodes,
    node: usize,
}

impl<'a> Client<'a> {
    pub(crate) fn at(nodes: &'a Nodes, node: usize) -> Client<'a> {
        Client { nodes, node }
    }

    /// Appends. Asks again, or another node, when told that nothing was done and that this helps;
    /// so it is safe whatever the append is.
    ///
    /// # Errors
    /// Those of an append that stay.
    ///
    /// # Panics
    /// If it cannot be done in time.
    pub fn append(&mut self, append: Append) -> Result<Appended, AppendError> {
        let mut deadline = Deadline::new("an append finds a node that takes it");
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
