//! The graph of a log as a view: one event per transaction, folded into versions; a commit is
//! decided against the changes since its base version.

mod awaited;
mod folded;
mod staged;
mod void_events;

use awaited::{AwaitedCommit, AwaitedCommits};
use folded::{FoldedGraph, RecentCommit, RecentCommits};
use staged::{CommitMark, StagedCommits};
use std::io;
use std::sync::Arc;
use wellspring_graph::event::{GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED};
use wellspring_graph::{
    Adoption, CommittedChanges, FoldStep, Graph, GraphFold, PreparedTransaction, Verdict,
    VersionStamp, Violation,
};
use wellspring_host::view::contract::{
    ConditionStart, Decision, LogEvent, SnapshotFault, Ticket, View,
};
use wellspring_types::{Event, Position, Query, QueryItem};

/// The types of a graph's events.
pub(crate) const EVENT_TYPES: &[&str] = &[GRAPH_CHANGED, GRAPH_SCHEMA_CHANGED];

/// The writing side.
pub(crate) struct GraphView {
    fold: GraphFold,
    /// Changes folded since the last version was published.
    unpublished: RecentCommits,
    folded: Arc<FoldedGraph>,
}

/// A transaction to commit, with its events.
pub(crate) struct CommitTransaction {
    pub(crate) prepared: PreparedTransaction,
    pub(crate) events: Vec<Event>,
    /// The number of failed staged commits when it began, if it began with a staged one: its basis
    /// may have failed since.
    pub(crate) setbacks: Option<u64>,
}

/// The outcome of a transaction.
#[derive(Debug, Clone)]
pub(crate) enum CommitOutcome {
    /// It changed nothing, and what it read is unchanged.
    Unchanged,
    /// It is the graph's next version.
    Committed {
        /// The version.
        graph: Graph,
        /// What changed.
        changes: Arc<CommittedChanges>,
        /// The version it was decided on.
        follows: VersionStamp,
        /// Where the fold finds it.
        awaited: Arc<AwaitedCommits>,
    },
}

/// Why a transaction is not committed.
#[derive(Debug)]
pub(crate) enum CommitRefusal {
    /// What it read has changed: it must be executed again.
    Overtaken,
    /// It breaks a rule of the graph.
    Violation(Violation),
}

impl GraphView {
    /// The view of a log, with its fold.
    fn of(log: &str, fold: GraphFold) -> GraphView {
        let folded = Arc::new(FoldedGraph::of(log, fold.clone()));
        GraphView { fold, unpublished: RecentCommits::default(), folded }
    }
}

impl View for GraphView {
    const NAME: &'static str = "graph";
    const VERSION: u32 = 3;
    const CONDITION_START: ConditionStart = ConditionStart::OwnLast;
    type Folded = FoldedGraph;
    type Staged = StagedCommits;
    type Command = CommitTransaction;
    /// The log's name.
    type Context = Box<str>;
    type Outcome = CommitOutcome;
    type Refusal = CommitRefusal;

    fn new() -> GraphView {
        GraphView::of("", GraphFold::new())
    }

    fn with_context(log: &Box<str>) -> GraphView {
        GraphView::of(log, GraphFold::new())
    }

    fn restore(log: &Box<str>, input: &mut impl io::Read) -> Result<GraphView, SnapshotFault> {
        use wellspring_graph::SnapshotFault as Fault;
        let fold = GraphFold::decode(input).map_err(|fault| match fault {
            Fault::Io(error) => SnapshotFault::Io(error),
            Fault::Malformed(what) => SnapshotFault::Malformed(what),
        })?;
        Ok(GraphView::of(log, fold))
    }

    fn query() -> Query {
        Query::item(EVENT_TYPES, &[])
    }

    fn folded(&self) -> &Arc<FoldedGraph> {
        &self.folded
    }

    fn apply(&mut self, event: &impl LogEvent) {
        let position = event.position();
        if let Some(AwaitedCommit { graph, changes, follows, .. }) = self.folded.awaited.take(event)
            && self.fold.adopt(&graph, follows) == Adoption::Adopted
        {
            return self.unpublished.push(RecentCommit { position, changes });
        }
        match self.fold.apply(position, event.event_type(), event.data()) {
            FoldStep::Applied(changes) => {
                self.unpublished.push(RecentCommit { position, changes: Arc::new(changes) });
            }
            FoldStep::Void(why) => self.folded.void_events.add(position, &why),
            FoldStep::Passed | FoldStep::Pending => {}
        }
    }

    fn publish(&mut self, _position: Position) {
        self.folded.lock().advance(self.fold.clone(), &mut self.unpublished);
    }

    fn outcome(_: &impl LogEvent) -> Option<CommitOutcome> {
        None
    }

    fn decide(
        folded: &FoldedGraph,
        staged: &StagedCommits,
        _: &Box<str>,
        commit: &CommitTransaction,
    ) -> Result<Decision<CommitOutcome>, CommitRefusal> {
        if commit.setbacks.is_some_and(|setbacks| setbacks != staged.setbacks()) {
            return Err(CommitRefusal::Overtaken);
        }
        let published = folded.lock();
        let graph = published.fold.graph();
        let head = staged.newest(graph.position()).map_or(graph, |newest| &newest.graph);
        let base = commit.prepared.base_position();
        if base > head.position() {
            return Err(CommitRefusal::Overtaken);
        }
        let Some(since) = published.since(base) else { return Err(CommitRefusal::Overtaken) };
        let staged_since = staged.after(base.max(graph.position()));
        let since: Vec<&CommittedChanges> =
            since.chain(staged_since.map(|staged| &*staged.changes)).collect();
        match commit.prepared.decide(head, &since) {
            Verdict::Committed(committed) => Ok(Decision {
                events: commit.events.clone(),
                unless: vec![QueryItem::new(EVENT_TYPES, &[])],
                outcome: CommitOutcome::Committed {
                    graph: committed.graph,
                    changes: committed.changes,
                    follows: committed.follows,
                    awaited: Arc::clone(&folded.awaited),
                },
            }),
            Verdict::Unchanged => Ok(Decision {
                events: Vec::new(),
                unless: Vec::new(),
                outcome: CommitOutcome::Unchanged,
            }),
            Verdict::Overtaken => Err(CommitRefusal::Overtaken),
            Verdict::Refused(violation) => Err(CommitRefusal::Violation(violation)),
        }
    }

    fn stage(staged: &mut StagedCommits, decision: &Decision<CommitOutcome>, ticket: Ticket) {
        if let CommitOutcome::Committed { graph, changes, follows, awaited } = &decision.outcome {
            let data = match &decision.events[..] {
                [event] => Some(event.data.clone()),
                _ => None,
            };
            let awaited = CommitMark { by: Arc::clone(awaited), follows: *follows, data };
            staged.push(ticket, graph.clone(), Arc::clone(changes), awaited);
        }
    }

    fn placed(staged: &mut StagedCommits, ticket: Ticket, last: Position) {
        staged.place(ticket, last);
    }

    fn settle(staged: &mut StagedCommits, ticket: Ticket) {
        staged.forget(ticket);
    }

    fn discarded(staged: &mut StagedCommits, ticket: Ticket) {
        staged.set_back(ticket);
    }

    fn without_pending(staged: &StagedCommits) -> StagedCommits {
        staged.without_commits()
    }

    fn is_final(refusal: &CommitRefusal) -> bool {
        !matches!(refusal, CommitRefusal::Overtaken)
    }

    fn encode(folded: &FoldedGraph, out: &mut impl io::Write) -> io::Result<()> {
        // One version: later changes are not in it.
        let fold = folded.lock().fold.clone();
        fold.encode(out)
    }

    fn decode(input: &mut impl io::Read) -> Result<GraphView, SnapshotFault> {
        GraphView::restore(&Box::default(), input)
    }
}
