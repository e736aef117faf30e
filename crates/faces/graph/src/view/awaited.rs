//! Commits whose events are on their way to the fold, which takes their versions instead of
//! computing them again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wellspring_graph::event::{GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED};
use wellspring_graph::{CommittedChanges, Graph, VersionStamp};
use wellspring_host::view::contract::LogEvent;
use wellspring_types::Position;

/// Most of them that are kept: beyond that the fold reads events as usual.
const MOST: usize = 1_024;

/// Those of one graph, by position.
#[derive(Debug, Default)]
pub(crate) struct AwaitedCommits(Mutex<VecDeque<AwaitedCommit>>);

/// A commit that is one event.
#[derive(Debug)]
pub(crate) struct AwaitedCommit {
    /// Position of the event in the log.
    pub(crate) position: Position,
    /// Data of the event.
    pub(crate) data: Vec<u8>,
    /// The version it was decided on.
    pub(crate) follows: VersionStamp,
    /// The resulting version.
    pub(crate) graph: Graph,
    /// What it changes.
    pub(crate) changes: Arc<CommittedChanges>,
}

impl AwaitedCommit {
    fn is(&self, event: &impl LogEvent) -> bool {
        let event_type =
            if self.changes.changes.has_schema() { GRAPH_SCHEMA_CHANGED } else { GRAPH_CHANGED };
        self.position == event.position()
            && event_type == event.event_type()
            && self.data == event.data()
    }
}

impl AwaitedCommits {
    fn lock(&self) -> MutexGuard<'_, VecDeque<AwaitedCommit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, in order.
    pub(crate) fn push(&self, commit: AwaitedCommit) {
        let mut commits = self.lock();
        let dropped = (commits.len() >= MOST).then(|| commits.pop_front());
        commits.push_back(commit);
        // Versions are freed outside the lock.
        drop(commits);
        drop(dropped);
    }

    /// The commit of this event, if known. Earlier ones are dropped.
    pub(crate) fn take(&self, event: &impl LogEvent) -> Option<AwaitedCommit> {
        let mut commits = self.lock();
        let until = commits.partition_point(|commit| commit.position <= event.position());
        let mut passed: Vec<AwaitedCommit> = commits.drain(..until).collect();
        drop(commits);
        passed.pop().filter(|commit| commit.is(event))
    }

    /// Drops those from a position on: they failed.
    pub(crate) fn forget_from(&self, position: Position) {
        let mut commits = self.lock();
        let from = commits.partition_point(|commit| commit.position < position);
        let dead = commits.split_off(from);
        drop(commits);
        drop(dead);
    }
}
