//! Decides whether a transaction can become the graph's next version, by checking it in memory
//! against everything committed since it began.

use crate::change::{ChangeFault, CommittedChanges, difference};
use crate::event::encode;
use crate::fault::Violation;
use crate::footprint::Footprint;
use crate::graph::{Graph, VersionStamp};
use crate::transaction::FinishedTransaction;
use std::sync::Arc;
use wellspring_types::Event;

/// A finished transaction with its net change, computed before the commit lock is taken.
#[derive(Debug)]
pub struct PreparedTransaction {
    base: Graph,
    graph: Graph,
    footprint: Footprint,
    changes: Arc<CommittedChanges>,
}

/// The verdict on a transaction.
#[derive(Debug)]
pub enum Verdict {
    /// The transaction becomes the graph's next version.
    Committed(Box<Commit>),
    /// The transaction changed nothing. Its results can be returned once its base is durable.
    Unchanged,
    /// A commit touched what it read: it must be executed again.
    Overtaken,
    /// It violates a rule of the current graph; executing it again does not help.
    Refused(Violation),
}

/// A version and the change that leads to it.
#[derive(Debug)]
pub struct Commit {
    /// The version. Its position is that of the head it was checked against, until the caller sets
    /// it.
    pub graph: Graph,
    /// The change, for later checks.
    pub changes: Arc<CommittedChanges>,
    /// The head it was checked against.
    pub follows: VersionStamp,
}

impl FinishedTransaction {
    /// Computes the net change.
    #[must_use]
    pub fn prepare(self) -> PreparedTransaction {
        let FinishedTransaction { base, graph, footprint, writes } = self;
        let changes = difference(
            [&base, &graph],
            writes.nodes.into_iter(),
            writes.relationships.into_iter(),
            writes.dropped_items,
            writes.created_items,
        );
        PreparedTransaction { base, graph, footprint, changes: Arc::new(changes) }
    }
}

impl PreparedTransaction {
    /// The position of its base version.
    #[must_use]
    pub fn base_position(&self) -> u64 {
        self.base.position()
    }

    /// The events that record it; none without changes. `transaction` identifies the parts of a
    /// large transaction and must be unique, for example random.
    ///
    /// # Errors
    /// [`Violation::PropertyTooLarge`] and [`Violation::TransactionTooLarge`]
    pub fn events(&self, transaction: u128) -> Result<Vec<Event>, Violation> {
        encode(&self.base, &self.changes.changes, transaction)
    }

    /// The net change.
    #[must_use]
    pub fn changes(&self) -> &CommittedChanges {
        &self.changes
    }

    /// Whether these changes touched what it read.
    #[must_use]
    pub fn is_concerned_by(&self, changes: &CommittedChanges) -> bool {
        changes.touches.concerns(&self.footprint)
    }

    /// Decides the transaction. `head` is the newest version, `since` everything committed after
    /// the transaction's base, in order, up to `head`.
    #[must_use]
    pub fn decide(&self, head: &Graph, since: &[&CommittedChanges]) -> Verdict {
        if self.changes.changes.is_empty() {
            // Its reads are consistent with its base.
            return Verdict::Unchanged;
        }
        // A head older than the base means that the base has been discarded.
        let is_ahead = self.base.position() > head.position();
        if is_ahead
            || !self.graph.is_kin(head)
            || since.iter().any(|changes| self.is_concerned_by(changes))
        {
            return Verdict::Overtaken;
        }
        let (mut graph, changes) = (self.graph.clone(), Arc::clone(&self.changes));
        let theirs: usize = since.iter().map(|changes| changes.changes.len()).sum();
        // Both ways lead to the same version, because neither touches what the other read or wrote.
        // Refilling an index always costs more than replaying concurrent changes.
        if theirs > changes.changes.len() && !changes.changes.has_schema() {
            graph = head.clone();
            match graph.apply(&changes.changes) {
                Ok(_) => {}
                Err(ChangeFault::Violation(violation)) => return Verdict::Refused(violation),
                Err(_) => return Verdict::Overtaken,
            }
        } else if since.iter().any(|changes| graph.apply(&changes.changes).is_err()) {
            return Verdict::Overtaken;
        }
        graph.set_position(head.position());
        graph.stamp_anew();
        Verdict::Committed(Box::new(Commit { graph, changes, follows: head.stamp() }))
    }
}
