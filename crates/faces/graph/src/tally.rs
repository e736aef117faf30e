//! Counters of statements and transactions, for `/metrics`.

use crate::GraphFace;
use crate::commit::folded_version;
use crate::open::NotOpen;
use crate::run::Statements;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wellspring_cypher::error::{Detail, Error, ErrorKind};
use wellspring_host::stats::family::{Family, Kind};

/// Counters of a face, from its start.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reading: AtomicU64,
    writing: AtomicU64,
    commits: AtomicU64,
    overtaken: AtomicU64,
    replayed: AtomicU64,
    outdated: AtomicU64,
    limits: [AtomicU64; LIMITS.len()],
}

/// A limit that ends a statement, or prevents opening a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Memory of a query, or of all open transactions together.
    Memory,
    /// Time of long work.
    Time,
    /// Size of a transaction's writes, or of a property.
    Size,
    /// Number of open transactions.
    OpenTransactions,
}

/// All of them, with their words.
const LIMITS: [(Limit, &str); 4] = [
    (Limit::Memory, "memory"),
    (Limit::Time, "time"),
    (Limit::Size, "size"),
    (Limit::OpenTransactions, "open_transactions"),
];

impl Tally {
    /// Statements are about to be executed.
    pub(crate) fn asked(&self, statements: &Statements) {
        let (reading, writing) = statements.count();
        self.reading.fetch_add(reading, Relaxed);
        self.writing.fetch_add(writing, Relaxed);
    }

    /// A transaction has changed a graph.
    pub(crate) fn committed(&self) {
        self.commits.fetch_add(1, Relaxed);
    }

    /// An execution was overtaken.
    pub(crate) fn overtaken(&self) {
        self.overtaken.fetch_add(1, Relaxed);
    }

    /// An overtaken open transaction was executed again, with the same results, and committed.
    pub(crate) fn replayed(&self) {
        self.replayed.fetch_add(1, Relaxed);
    }

    /// A fault is reported to a client.
    pub(crate) fn told(&self, fault: &Error) {
        match (fault.kind, fault.detail) {
            (ErrorKind::Outdated, _) => {
                self.outdated.fetch_add(1, Relaxed);
            }
            (ErrorKind::ResourceExhausted, _) => self.limited(Limit::Memory),
            (ErrorKind::Terminated, Detail::TimeLimit) => self.limited(Limit::Time),
            (ErrorKind::ArgumentError, Detail::LimitExceeded) => self.limited(Limit::Size),
            _ => {}
        }
    }

    /// A refused use of a transaction is reported to a client.
    pub(crate) fn refused(&self, why: NotOpen) {
        if why == NotOpen::TooMany {
            self.limited(Limit::OpenTransactions);
        }
    }

    fn limited(&self, by: Limit) {
        for ((limit, _), count) in LIMITS.iter().zip(&self.limits) {
            if *limit == by {
                count.fetch_add(1, Relaxed);
            }
        }
    }
}

/// All figures of the face.
pub(crate) fn families(face: &GraphFace) -> Vec<Family> {
    let mut families = counters(face);
    families.extend([
        Family::gauge(
            "wellspring_graph_open_transactions",
            "Open transactions of graphs.",
            face.open.count() as u64,
        ),
        Family::gauge(
            "wellspring_graph_open_transaction_bytes",
            "Approximate memory of idle open transactions in bytes, beyond the graphs.",
            face.open.held_bytes() as u64,
        ),
    ]);
    let opened = face.graphs.opened();
    let versions = || opened.iter().map(|(log, live)| (log.clone(), folded_version(live)));
    let of_each = |name, help, series| Family::of_each(Kind::Gauge, name, help, "log", series);
    let nodes: Vec<(String, u64)> =
        versions().map(|(log, graph)| (log, graph.node_count())).collect();
    let relationships = versions().map(|(log, graph)| (log, graph.relationship_count())).collect();
    families.push(of_each("wellspring_graph_nodes", "Nodes of a graph.", nodes));
    families.push(of_each(
        "wellspring_graph_relationships",
        "Relationships of a graph.",
        relationships,
    ));
    let void_events = opened.iter().filter_map(|(log, live)| {
        live.folded().map(|folded| (log.clone(), folded.void_events.count()))
    });
    families.push(Family::of_each(
        Kind::Counter,
        "wellspring_graph_void_events_total",
        "Events without effect since the graph was opened: malformed, or against its rules.",
        "log",
        void_events,
    ));
    families
}

fn counters(face: &GraphFace) -> Vec<Family> {
    let tally = &face.tally;
    let read = |counter: &AtomicU64| counter.load(Relaxed);
    let statements = [("read", &tally.reading), ("write", &tally.writing)]
        .map(|(access, count)| (access.to_owned(), read(count)));
    let limits = LIMITS.iter().zip(&tally.limits);
    let limited = limits.map(|((_, name), count)| ((*name).to_owned(), read(count)));
    vec![
        Family::of_each(
            Kind::Counter,
            "wellspring_graph_statements_total",
            "Statements admitted, by access mode.",
            "access",
            statements,
        ),
        Family::counter(
            "wellspring_graph_commits_total",
            "Transactions that changed a graph.",
            read(&tally.commits),
        ),
        Family::counter(
            "wellspring_graph_overtaken_total",
            "Executions of transactions that were restarted because of conflicts.",
            read(&tally.overtaken),
        ),
        Family::counter(
            "wellspring_graph_replayed_total",
            "Open transactions that were overtaken and committed all the same: executed again, their results stayed the same.",
            read(&tally.replayed),
        ),
        Family::counter(
            "wellspring_graph_outdated_total",
            "Transactions refused because of conflicts.",
            read(&tally.outdated),
        ),
        Family::of_each(
            Kind::Counter,
            "wellspring_graph_limited_total",
            "Statements and transactions refused by a limit.",
            "limit",
            limited,
        ),
        Family::counter(
            "wellspring_graph_expired_transactions_total",
            "Open transactions rolled back after their timeout.",
            face.open.expired(),
        ),
        Family::counter(
            "wellspring_graph_plan_hits_total",
            "Statements whose plan was cached.",
            face.plans.hits(),
        ),
        Family::counter(
            "wellspring_graph_plan_misses_total",
            "Statements that had to be parsed and planned.",
            face.plans.misses(),
        ),
    ]
}
