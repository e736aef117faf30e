//! What is folded: the newest version of the graph, and the changes that led to it from versions before, against
//! which transactions that began with these are judged.

use crate::awaited::AwaitedCommits;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use wellspring_graph::{CommittedChanges, Graph, GraphFold};

/// Most effects (nodes and relationships changed) that are kept of commits gone by: about 64 MiB. A transaction that
/// began before the oldest of them is overtaken.
const MOST_EFFECTS: usize = 400_000;

/// What readers share.
#[derive(Debug, Default)]
pub(crate) struct FoldedGraph {
    published: Mutex<PublishedGraph>,
    /// Held by all who commit, together; by one who was overtaken too often, alone.
    lane: RwLock<()>,
    /// What is to be folded without being worked out again.
    pub(crate) awaited: Arc<AwaitedCommits>,
    /// Whose turn it is among those that were overtaken often.
    turn: tokio::sync::Mutex<()>,
}

/// The newest version that readers see.
#[derive(Debug, Default)]
pub(crate) struct PublishedGraph {
    /// The version, with the parts of a transaction whose last part is not folded.
    pub(crate) fold: GraphFold,
    recent: VecDeque<RecentCommit>,
    /// Effects of all of `recent`.
    effects: usize,
    /// The position of the newest commit that is not among `recent` any more.
    forgotten: u64,
}

/// A commit gone by.
#[derive(Debug, Clone)]
pub(crate) struct RecentCommit {
    /// Its last position.
    pub(crate) position: u64,
    /// What changed.
    pub(crate) changes: Arc<CommittedChanges>,
}

impl FoldedGraph {
    /// With this version, of which nothing is known but itself.
    pub(crate) fn of(fold: GraphFold) -> FoldedGraph {
        let forgotten = fold.graph().position();
        let published = PublishedGraph { fold, forgotten, ..PublishedGraph::default() };
        FoldedGraph { published: Mutex::new(published), ..FoldedGraph::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PublishedGraph> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What everybody holds while a transaction is committed.
    pub(crate) async fn among_others(&self) -> RwLockReadGuard<'_, ()> {
        self.lane.read().await
    }

    /// Waits until nobody else who was overtaken often goes on.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// As long as this is held nobody else commits. What is on its way is committed before.
    pub(crate) async fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.lane.write().await
    }

    /// The newest version.
    pub(crate) fn version(&self) -> Graph {
        self.lock().fold.graph().clone()
    }
}

impl PublishedGraph {
    /// Shows the next version, to which these commits led.
    pub(crate) fn advance(&mut self, fold: GraphFold, commits: impl Iterator<Item = RecentCommit>) {
        self.fold = fold;
        for commit in commits {
            self.effects += commit.changes.changes.len();
            self.recent.push_back(commit);
        }
        while self.effects > MOST_EFFECTS {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.effects -= oldest.changes.changes.len();
            self.forgotten = oldest.position;
        }
    }

    /// The changes committed after a version, or nothing if they are not all known any more.
    pub(crate) fn since(&self, position: u64) -> Option<impl Iterator<Item = &CommittedChanges>> {
        if position < self.forgotten {
            return None;
        }
        let from = self.recent.partition_point(|commit| commit.position <= position);
        Some(self.recent.range(from..).map(|commit| &*commit.changes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_graph::{ChangeSet, NodeChange, NodeId};

    fn commit(position: u64, effects: u64) -> RecentCommit {
        let gone = |id| (NodeId::new(id).expect("an id"), NodeChange::Deleted);
        let nodes = (0..effects).map(gone).collect();
        let changes = ChangeSet { nodes, ..ChangeSet::default() };
        let changes = Arc::new(CommittedChanges { changes, ..CommittedChanges::default() });
        RecentCommit { position, changes }
    }

    #[test]
    fn what_was_forgotten_judges_nobody() {
        let mut published = PublishedGraph::default();
        let count =
            |published: &PublishedGraph, position| published.since(position).map(Iterator::count);
        published.advance(GraphFold::new(), (1..=4).map(|position| commit(position, 100_000)));
        assert_eq!(
            [0, 2, 4, 9].map(|from| count(&published, from)),
            [Some(4), Some(2), Some(0), Some(0)]
        );
        published.advance(GraphFold::new(), [commit(7, 150_000)].into_iter());
        assert_eq!(
            [0, 1, 2, 4].map(|from| count(&published, from)),
            [None, None, Some(3), Some(1)]
        );
    }
}
