//! Commits that have a place in the log's order and are not folded yet: new transactions begin with
//! the newest.

use super::awaited::{AwaitedCommit, AwaitedCommits};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use wellspring_graph::{CommittedChanges, Graph, VersionStamp};
use wellspring_host::view::contract::Ticket;
use wellspring_types::Position;

/// Pending commits, oldest first.
#[derive(Debug, Default)]
pub(crate) struct StagedCommits {
    commits: VecDeque<StagedCommit>,
    setbacks: u64,
}

/// One pending commit.
#[derive(Debug)]
pub(crate) struct StagedCommit {
    ticket: Ticket,
    /// The position of its last event; none before the log has assigned one.
    last: Option<Position>,
    /// The resulting version.
    pub(crate) graph: Graph,
    /// What it changes.
    pub(crate) changes: Arc<CommittedChanges>,
    awaited: CommitMark,
}

/// How the fold recognises a commit.
#[derive(Debug)]
pub(crate) struct CommitMark {
    pub(crate) by: Arc<AwaitedCommits>,
    /// The version it was decided on.
    pub(crate) follows: VersionStamp,
    /// The data of its event, if it has only one.
    pub(crate) data: Option<Vec<u8>>,
}

impl StagedCommit {
    /// Whether it comes after a version. One without a place comes after all that have one.
    pub(crate) fn is_after(&self, position: Position) -> bool {
        self.last.is_none_or(|last| last > position)
    }
}

impl StagedCommits {
    /// Number of failed commits that had a place.
    pub(crate) fn setbacks(&self) -> u64 {
        self.setbacks
    }

    /// Those after a version, oldest first: positions ascend.
    pub(crate) fn after(&self, position: Position) -> impl Iterator<Item = &StagedCommit> {
        self.commits.range(self.commits.partition_point(|commit| !commit.is_after(position))..)
    }

    /// The newest, if it is after `position`.
    pub(crate) fn newest(&self, position: Position) -> Option<&StagedCommit> {
        self.commits.back().filter(|commit| commit.is_after(position))
    }

    /// The version that the newest leads to, if it is after `position` and has a place.
    pub(crate) fn head(&self, position: Position) -> Option<&Graph> {
        let newest = self.newest(position)?;
        newest.last.map(|_| &newest.graph)
    }

    /// The range of a ticket: tickets ascend, too. A hundred may be pending, so they are not
    /// searched one by one.
    fn of_ticket(&self, ticket: Ticket) -> Range<usize> {
        let begin = self.commits.partition_point(|commit| commit.ticket < ticket);
        let count =
            self.commits.range(begin..).take_while(|commit| commit.ticket == ticket).count();
        begin..begin + count
    }

    pub(crate) fn push(
        &mut self,
        ticket: Ticket,
        graph: Graph,
        changes: Arc<CommittedChanges>,
        awaited: CommitMark,
    ) {
        let newest = self.commits.back().map(|newest| newest.ticket);
        debug_assert!(newest <= Some(ticket), "tickets ascend");
        self.commits.push_back(StagedCommit { ticket, last: None, graph, changes, awaited });
    }

    pub(crate) fn place(&mut self, ticket: Ticket, last: Position) {
        let those = self.of_ticket(ticket);
        debug_assert!(
            self.commits.range(..those.start).all(|commit| commit.last < Some(last)),
            "positions ascend with tickets"
        );
        for commit in self.commits.range_mut(those) {
            commit.last = Some(last);
            commit.graph.set_position(last);
            let Some(data) = commit.awaited.data.take() else { continue };
            commit.awaited.by.push(AwaitedCommit {
                position: last,
                data,
                follows: commit.awaited.follows,
                graph: commit.graph.clone(),
                changes: Arc::clone(&commit.changes),
            });
        }
    }

    pub(crate) fn forget(&mut self, ticket: Ticket) {
        let those = self.of_ticket(ticket);
        self.commits.drain(those);
    }

    /// Drops it, with everything decided on top of it.
    pub(crate) fn set_back(&mut self, ticket: Ticket) {
        self.setbacks += 1;
        if let Some(at) = self.commits.iter().position(|commit| commit.ticket == ticket) {
            if let StagedCommit { last: Some(last), awaited, .. } = &self.commits[at] {
                awaited.by.forget_from(*last);
            }
            self.commits.truncate(at);
        }
    }

    pub(crate) fn without_commits(&self) -> StagedCommits {
        StagedCommits { commits: VecDeque::new(), setbacks: self.setbacks }
    }
}
