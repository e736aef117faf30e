//! Decides whether a transaction can become the graph's next version, by checking it in memory
//! against everything committed since it began.

use crate::change::{ChangeFault, CommittedChanges, difference};
use crate::event::encode;
use crate::fault::Violation;
use crate::footprint::Footprint;
use crate::graph::{Graph, VersionStamp};
use crate::names::{Name, PrivateNames};
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
    /// The names that its base does not have.
    private: Vec<(Name, Arc<str>)>,
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
    /// The version after it, for use as the only transaction.
    #[must_use]
    pub fn into_graph(self) -> Graph {
        let base = self.base.clone();
        match self.prepare().decide(&base, &[]) {
            Verdict::Committed(commit) => commit.graph,
            _ => base,
        }
    }

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
        let private = graph.private_names().map(PrivateNames::all).unwrap_or_default();
        // Its events name what it introduces.
        let base = base.with_names_of(&graph);
        PreparedTransaction { base, graph, footprint, changes: Arc::new(changes), private }
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

    /// Its base, with the names that it introduces.
    #[cfg(test)]
    pub(crate) fn base(&self) -> &Graph {
        &self.base
    }

    /// The net change.
    #[must_use]
    pub fn changes(&self) -> &CommittedChanges {
        &self.changes
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
        if is_ahead || !self.graph.is_kin(head) || self.is_concerned_by(head, since) {
            return Verdict::Overtaken;
        }
        let (graph, changes) = match self.next_version(head, since) {
            Ok(next) => next,
            Err(verdict) => return verdict,
        };
        let mut graph = graph.without_private_names();
        graph.set_position(head.position());
        graph.stamp_anew();
        Verdict::Committed(Box::new(Commit { graph, changes, follows: head.stamp() }))
    }

    /// Whether these changes, which led to `head`, touched what it read.
    fn is_concerned_by(&self, head: &Graph, since: &[&CommittedChanges]) -> bool {
        let settled = match since {
            [] => return false,
            _ => self.footprint.settled(head, &self.private),
        };
        let footprint = settled.as_ref().unwrap_or(&self.footprint);
        since.iter().any(|changes| changes.touches.concerns(footprint))
    }

    /// The version after `head`. All ways lead to the same one, because neither touches what the
    /// other read or wrote.
    fn next_version(
        &self,
        head: &Graph,
        since: &[&CommittedChanges],
    ) -> Result<(Graph, Arc<CommittedChanges>), Verdict> {
        let changes = &self.changes.changes;
        let has_new_names = !self.private.is_empty() && changes.has_private_names();
        let theirs: usize = since.iter().map(|changes| changes.changes.len()).sum();
        // Refilling an index always costs more than replaying concurrent changes.
        if !changes.has_schema() && (has_new_names || theirs > changes.len()) {
            let mut graph = head.clone();
            return match graph.apply_decoded(changes.clone(), &self.private) {
                Ok(committed) => Ok((graph, Arc::new(committed))),
                Err(ChangeFault::Violation(violation)) => Err(Verdict::Refused(violation)),
                Err(_) => Err(Verdict::Overtaken),
            };
        }
        let (mut graph, mut committed) = (self.graph.clone(), Arc::clone(&self.changes));
        if has_new_names {
            // No row has them, only definitions.
            let mut named = head.clone();
            let CommittedChanges { changes, .. } = Arc::make_mut(&mut committed);
            changes.settle(&mut named, &self.private).map_err(|_| Verdict::Overtaken)?;
            graph.redefine(&changes.created_items);
            graph.set_names(named.names().clone());
        } else if graph.names().len() < head.names().len() {
            graph.set_names(head.names().clone());
        }
        let is_applied = since.iter().all(|theirs| graph.apply(&theirs.changes).is_ok());
        if is_applied { Ok((graph, committed)) } else { Err(Verdict::Overtaken) }
    }
}
