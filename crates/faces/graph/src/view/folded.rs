//! The fold: the newest version of the graph, and the changes that led to it, against which
//! transactions with earlier base versions are judged.

use super::awaited::AwaitedCommits;
use super::void_events::VoidEvents;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use wellspring_graph::{CommittedChanges, Graph, GraphFold};

/// Most effects (nodes and relationships changed) kept of past commits: about 64 MiB. A transaction
/// that began before the oldest of them counts as overtaken.
const MOST_EFFECTS: usize = 400_000;

/// What readers share.
#[derive(Debug, Default)]
pub(crate) struct FoldedGraph {
    published: Mutex<PublishedGraph>,
    /// Held by all committing requests together; exclusively by one that was overtaken too often.
    commits: RwLock<()>,
    /// Commits to be folded without computing them again.
    pub(crate) awaited: Arc<AwaitedCommits>,
    /// Folded events without effect.
    pub(crate) void_events: VoidEvents,
    /// The queue of requests that were overtaken often.
    turn: tokio::sync::Mutex<()>,
}

/// The newest version visible to readers.
#[derive(Debug, Default)]
pub(crate) struct PublishedGraph {
    /// The version, with the parts of a transaction whose last part is not folded.
    pub(crate) fold: GraphFold,
    recent: RecentCommits,
}

/// The newest commits, oldest first: as many as fit.
#[derive(Debug, Default)]
pub(crate) struct RecentCommits {
    commits: VecDeque<RecentCommit>,
    /// Effects of all of them.
    effects: usize,
    /// The position of the newest commit that was dropped.
    forgotten: u64,
}

/// A past commit.
#[derive(Debug, Clone)]
pub(crate) struct RecentCommit {
    /// Its last position.
    pub(crate) position: u64,
    /// What changed.
    pub(crate) changes: Arc<CommittedChanges>,
}

impl FoldedGraph {
    /// The fold of a log with this version and no known commits.
    pub(crate) fn of(log: &str, fold: GraphFold) -> FoldedGraph {
        let forgotten = fold.graph().position();
        let recent = RecentCommits { forgotten, ..RecentCommits::default() };
        let published = PublishedGraph { fold, recent };
        FoldedGraph {
            published: Mutex::new(published),
            void_events: VoidEvents::of(log),
            ..FoldedGraph::default()
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PublishedGraph> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock shared by all committing requests.
    pub(crate) async fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.commits.read().await
    }

    /// Waits for the turn of a request that was overtaken often.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// While this is held no one else commits. Pending commits finish first.
    pub(crate) async fn exclusive(&self) -> RwLockWriteGuard<'_, ()> {
        self.commits.write().await
    }

    /// The newest version.
    pub(crate) fn version(&self) -> Graph {
        self.lock().fold.graph().clone()
    }
}

impl PublishedGraph {
    /// Publishes the next version, to which these commits led.
    pub(crate) fn advance(&mut self, fold: GraphFold, commits: &mut RecentCommits) {
        assert!(fold.graph().position() >= self.fold.graph().position(), "versions ascend");
        self.fold = fold;
        self.recent.append(commits);
    }

    /// The changes committed after a version, or `None` if some were dropped.
    pub(crate) fn since(&self, position: u64) -> Option<impl Iterator<Item = &CommittedChanges>> {
        self.recent.since(position)
    }
}

impl RecentCommits {
    /// Adds the next.
    pub(crate) fn push(&mut self, commit: RecentCommit) {
        let newest = self.commits.back().map(|newest| newest.position);
        debug_assert!(newest < Some(commit.position), "commits ascend");
        self.effects += commit.changes.changes.len();
        self.commits.push_back(commit);
        while self.effects > MOST_EFFECTS {
            let Some(oldest) = self.commits.pop_front() else { break };
            self.effects -= oldest.changes.changes.len();
            self.forgotten = oldest.position;
        }
    }

    /// Appends the next ones, leaving `more` empty.
    fn append(&mut self, next: &mut RecentCommits) {
        let next = std::mem::take(next);
        if next.forgotten > 0 {
            // Some in between were dropped.
            *self = next;
        } else {
            next.commits.into_iter().for_each(|commit| self.push(commit));
        }
    }

    fn since(&self, position: u64) -> Option<impl Iterator<Item = &CommittedChanges>> {
        if position < self.forgotten {
            return None;
        }
        let from = self.commits.partition_point(|commit| commit.position <= position);
        Some(self.commits.range(from..).map(|commit| &*commit.changes))
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
    fn forgotten_versions_judge_no_transaction() {
        let mut published = PublishedGraph::default();
        let count =
            |published: &PublishedGraph, position| published.since(position).map(Iterator::count);
        let of = |commits: Vec<RecentCommit>| {
            let mut recent = RecentCommits::default();
            commits.into_iter().for_each(|commit| recent.push(commit));
            recent
        };
        let mut next = of((1..=4).map(|position| commit(position, 100_000)).collect());
        published.advance(GraphFold::new(), &mut next);
        assert_eq!(
            [0, 2, 4, 9].map(|from| count(&published, from)),
            [Some(4), Some(2), Some(0), Some(0)]
        );
        published.advance(GraphFold::new(), &mut of(vec![commit(7, 150_000)]));
        assert_eq!(
            [0, 1, 2, 4].map(|from| count(&published, from)),
            [None, None, Some(3), Some(1)]
        );
        // A rebuild folds more between two versions than is kept.
        let mut next = of((11..=20).map(|position| commit(position, 100_000)).collect());
        assert_eq!(next.commits.len(), 4);
        published.advance(GraphFold::new(), &mut next);
        assert_eq!(
            [7, 15, 16, 19].map(|from| count(&published, from)),
            [None, None, Some(4), Some(1)]
        );
        assert!(next.commits.is_empty());
    }
}
