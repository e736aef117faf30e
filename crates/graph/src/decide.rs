//! Whether a transaction may be the graph's next: judged by what was committed since it began, in
//! memory and at once.

use crate::change::{CommittedChanges, Unsound, difference};
use crate::event::encode;
use crate::fault::Violation;
use crate::footprint::Footprint;
use crate::graph::{Graph, VersionStamp};
use crate::transaction::FinishedTransaction;
use std::sync::Arc;
use wellspring_types::Event;

/// A finished transaction with its net change: what can be computed before it is anybody's turn.
#[derive(Debug)]
pub struct PreparedTransaction {
    base: Graph,
    graph: Graph,
    footprint: Footprint,
    changes: Arc<CommittedChanges>,
}

/// What becomes of a transaction.
#[derive(Debug)]
pub enum Verdict {
    /// It is the graph's next version.
    Committed(Box<Commit>),
    /// It came to no change: what it read is to be told once its base is durable.
    Unchanged,
    /// Somebody touched what it read: it must be executed again.
    Overtaken,
    /// It breaks a rule of the graph as it is now; executing it again does not help.
    Refused(Violation),
}

/// A version and what leads to it.
#[derive(Debug)]
pub struct Commit {
    /// The version. Its position is that of the head it was judged on, until the caller sets it.
    pub graph: Graph,
    /// What changed, for those that are judged after it.
    pub changes: Arc<CommittedChanges>,
    /// The head that it was judged on.
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
    /// The position of the version it began with.
    #[must_use]
    pub fn base_position(&self) -> u64 {
        self.base.position()
    }

    /// The events that tell it: none if it came to no change. `transaction` is what the parts of a
    /// large one know each other by: random, or anything that no other has.
    ///
    /// # Errors
    /// [`Violation::PropertyTooLarge`] and [`Violation::TransactionTooLarge`]
    pub fn events(&self, transaction: u128) -> Result<Vec<Event>, Violation> {
        encode(&self.base, &self.changes.changes, transaction)
    }

    /// The net change, to be encoded.
    #[must_use]
    pub fn changes(&self) -> &CommittedChanges {
        &self.changes
    }

    /// Whether what it read is touched by these changes.
    #[must_use]
    pub fn is_concerned_by(&self, changes: &CommittedChanges) -> bool {
        changes.touches.concerns(&self.footprint)
    }

    /// Judges it: `head` is the newest version, `since` everything that was committed after the
    /// version it began with, in order, up to `head`.
    #[must_use]
    pub fn decide(&self, head: &Graph, since: &[&CommittedChanges]) -> Verdict {
        if self.changes.changes.is_empty() {
            // As of its base, which was a version like any other.
            return Verdict::Unchanged;
        }
        // A head older than the base: what it began with has come to nothing.
        let is_ahead = self.base.position() > head.position();
        if is_ahead
            || !self.graph.is_kin(head)
            || since.iter().any(|changes| self.is_concerned_by(changes))
        {
            return Verdict::Overtaken;
        }
        let (mut graph, changes) = (self.graph.clone(), Arc::clone(&self.changes));
        let theirs: usize = since.iter().map(|changes| changes.changes.len()).sum();
        // Both ways lead to the same version, as neither touches what the other read or wrote. To
        // fill an index again is always more than what others did meanwhile.
        if theirs > changes.changes.len() && !changes.changes.has_schema() {
            graph = head.clone();
            match graph.apply(&changes.changes) {
                Ok(_) => {}
                Err(Unsound::Violation(violation)) => return Verdict::Refused(violation),
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
