//! From statements to an answer: executes them on a version, commits if no one has touched what
//! they read, and executes them again otherwise.

use crate::GraphFace;
use crate::fresh::{Purpose, fresh};
use crate::run::{
    self, Begin, BegunTransaction, Results, StatementContext, Statements, TransactionEnd,
};
use crate::transactions::job_of;
use crate::view::{CommitRefusal, CommitTransaction, GraphView};
use std::sync::Arc;
use tokio::sync::{MutexGuard, RwLockWriteGuard};
use wellspring_cypher::error::{Detail, Error, ErrorKind};
use wellspring_graph::{Graph, Transaction};
use wellspring_host::http::Request;
use wellspring_host::http::work::Job;
use wellspring_host::view::Live;
use wellspring_host::wire::problem::Problem;
use wellspring_types::Position;

/// Attempts after which a request that keeps being overtaken queues with others like it.
const ATTEMPTS_AMONG_OTHERS: u32 = 16;
/// Attempts after which it is executed while no one else commits, if that does not delay others for
/// long.
const ATTEMPTS_BESIDE_OTHERS: u32 = 32;
/// How long others may be kept from committing, judged by the quickest attempt so far, in µs.
const MOST_ALONE_US: u64 = 250_000;
/// Attempts after which the client is told to retry.
const MOST_ATTEMPTS: u32 = 1_000;

/// A base version.
#[derive(Clone)]
pub(crate) struct BaseVersion {
    pub(crate) graph: Graph,
    /// The number of failed staged commits.
    setbacks: u64,
    /// Whether it is folded, so that answers based on it are final.
    is_folded: bool,
}

impl BaseVersion {
    /// The setbacks that matter with this base: folded versions stay.
    pub(crate) fn setbacks(&self) -> Option<u64> {
        (!self.is_folded).then_some(self.setbacks)
    }
}

/// The result of statements.
pub(crate) struct ExecutedStatements {
    /// Their results; after a fault the graph is unchanged.
    pub(crate) results: Results,
    /// A position that includes the change.
    pub(crate) position: Position,
}

/// The newest folded version, which is durable.
pub(crate) fn folded_version(live: &Live<GraphView>) -> Graph {
    live.folded().map(|folded| folded.version()).unwrap_or_default()
}

/// The newest version with a place in the log's order, durable or not.
pub(crate) fn newest_version(live: &Live<GraphView>) -> BaseVersion {
    let newest = live.peek(|folded, staged| {
        let published = folded.lock();
        let graph = published.fold.graph();
        let setbacks = staged.setbacks();
        match staged.head(graph.position()) {
            Some(head) => BaseVersion { graph: head.clone(), setbacks, is_folded: false },
            None => BaseVersion { graph: graph.clone(), setbacks, is_folded: true },
        }
    });
    newest.unwrap_or_else(|| BaseVersion {
        graph: folded_version(live),
        setbacks: 0,
        is_folded: true,
    })
}

/// Executes statements as a transaction of their own, again for as long as other commits overtake
/// it. The number of attempts decides how: first beside all others; from `ATTEMPTS_AMONG_OTHERS` on
/// one such transaction after another; from `ATTEMPTS_BESIDE_OTHERS` on alone, with all other
/// commits held up, if an attempt took at most `MOST_ALONE_US`. After `MOST_ATTEMPTS` the client is
/// told that it was overtaken (0028).
///
/// # Errors
/// Refusals of the log or the work room; faults of the statements are results.
pub(crate) async fn at_once(
    face: &GraphFace,
    request: &Request,
    statements: Arc<Statements>,
    context: &StatementContext,
) -> Result<ExecutedStatements, Box<Problem>> {
    let purpose = if statements.write() { Purpose::Writing } else { Purpose::Reading };
    let live = fresh(face, request, purpose).await?;
    let mut job = job_of(face, request, &statements, context)?;
    if !statements.write() {
        return read(face, &live, &mut job, statements, context).await;
    }
    let mut attempts = Attempts::new(&live);
    while let Some(exclusivity) = attempts.next(face, request).await? {
        let attempt =
            attempt_at_once(face, request, &live, &mut job, &statements, context, &exclusivity);
        if let Some(executed) = attempt.await? {
            return Ok(executed);
        }
    }
    let results = Results::of(Some(outdated()));
    Ok(ExecutedStatements { results, position: live.position() })
}

/// The attempts to execute and commit a transaction that others overtake.
pub(crate) struct Attempts<'a> {
    live: &'a Live<GraphView>,
    number: u32,
    begun_us: u64,
    quickest_us: u64,
    /// Held from `ATTEMPTS_AMONG_OTHERS` on.
    turn: Option<MutexGuard<'a, ()>>,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(live: &'a Live<GraphView>) -> Attempts<'a> {
        Attempts { live, number: 0, begun_us: 0, quickest_us: u64::MAX, turn: None }
    }

    /// Waits until the next attempt may begin, which commits with this exclusivity. `None` after
    /// `MOST_ATTEMPTS`.
    ///
    /// # Errors
    /// 401, 403: the caller may not any more.
    pub(crate) async fn next(
        &mut self,
        face: &GraphFace,
        request: &Request,
    ) -> Result<Option<Exclusivity<'a>>, Box<Problem>> {
        if self.number > 0 {
            let took_us = face.now_us().saturating_sub(self.begun_us);
            self.quickest_us = self.quickest_us.min(took_us);
            face.tally.overtaken();
            request.still_may()?;
        }
        let attempt = self.number;
        if attempt == MOST_ATTEMPTS {
            return Ok(None);
        }
        self.number += 1;
        if attempt >= ATTEMPTS_AMONG_OTHERS && self.turn.is_none() {
            self.turn = match self.live.folded() {
                Some(folded) => Some(folded.turn().await),
                None => None,
            };
        }
        let is_alone = attempt >= ATTEMPTS_BESIDE_OTHERS && self.quickest_us <= MOST_ALONE_US;
        let exclusivity =
            if is_alone { Exclusivity::exclusive(self.live).await } else { Exclusivity::Shared };
        self.begun_us = face.now_us();
        Ok(Some(exclusivity))
    }
}

async fn read(
    face: &GraphFace,
    live: &Live<GraphView>,
    job: &mut Job,
    statements: Arc<Statements>,
    context: &StatementContext,
) -> Result<ExecutedStatements, Box<Problem>> {
    let position = live.position();
    let graph = folded_version(live);
    let mut begin = || BegunTransaction {
        transaction: Transaction::reading(graph.clone()),
        end: TransactionEnd::KeepOpen,
    };
    let begin = Begin::Anew(&mut begin);
    let attempt = run::execute(job, &statements, begin, context, &face.memory).await?;
    Ok(ExecutedStatements { results: attempt.results, position })
}

/// One attempt. `None` if it was overtaken.
async fn attempt_at_once(
    face: &GraphFace,
    request: &Request,
    live: &Live<GraphView>,
    job: &mut Job,
    statements: &Arc<Statements>,
    context: &StatementContext,
    exclusivity: &Exclusivity<'_>,
) -> Result<Option<ExecutedStatements>, Box<Problem>> {
    let mut begun_with = None;
    let number = face.next_number();
    let mut begin = || {
        let base = begun_with.insert(newest_version(live));
        let end = TransactionEnd::Commit { setbacks: base.setbacks(), number };
        BegunTransaction { transaction: Transaction::writing(base.graph.clone()), end }
    };
    let begin = Begin::Anew(&mut begin);
    let attempt = run::execute(job, statements, begin, context, &face.memory).await?;
    let mut results = attempt.results;
    let commit = match attempt.commit {
        Some(commit) => commit,
        // A failure based on a pending commit is reported once that is settled: by a transaction
        // that changes nothing.
        None => match begun_with.filter(|base| !base.is_folded) {
            Some(base) => {
                let setbacks = base.setbacks();
                run::finish(Transaction::writing(base.graph), setbacks, number)
                    .map_err(|violation| defect(&violation))?
            }
            None => return Ok(Some(ExecutedStatements { results, position: live.position() })),
        },
    };
    match commit_of(face, request, live, commit, exclusivity).await? {
        CommitResult::Shown(position) => Ok(Some(ExecutedStatements { results, position })),
        CommitResult::Overtaken => Ok(None),
        CommitResult::Refused(fault) => {
            results.fault = results.fault.or(Some(fault));
            Ok(Some(ExecutedStatements { results, position: live.position() }))
        }
    }
}

/// Whether other transactions may commit during this commit.
pub(crate) enum Exclusivity<'a> {
    /// They may.
    Shared,
    /// They wait until this is dropped.
    Exclusive { _guard: RwLockWriteGuard<'a, ()> },
}

impl Exclusivity<'_> {
    /// Waits for pending commits.
    async fn exclusive(live: &Live<GraphView>) -> Exclusivity<'_> {
        match live.folded() {
            Some(folded) => Exclusivity::Exclusive { _guard: folded.exclusive().await },
            None => Exclusivity::Shared,
        }
    }
}

/// The result of a commit.
pub(crate) enum CommitResult {
    /// It is durable and folded; this position includes it.
    Shown(Position),
    /// What it read has changed.
    Overtaken,
    /// It breaks a rule of the graph.
    Refused(Error),
}

/// Commits a transaction.
///
/// # Errors
/// Refusals of the log.
pub(crate) async fn commit_of(
    face: &GraphFace,
    request: &Request,
    live: &Live<GraphView>,
    commit: CommitTransaction,
    exclusivity: &Exclusivity<'_>,
) -> Result<CommitResult, Box<Problem>> {
    let _shared = match (exclusivity, live.folded()) {
        (Exclusivity::Shared, Some(folded)) => Some(folded.shared().await),
        _ => None,
    };
    let on = face.host.commit_on(request);
    let _at_log = request.effects.go_to_log();
    let executed = live.execute(&request.effects, &[commit], None, on).await?;
    Ok(match executed.refused {
        None => {
            if executed.appended.is_some() {
                face.tally.committed();
            }
            let appended = executed.appended.map_or(0, |appended| appended.last);
            CommitResult::Shown(appended.max(live.position()))
        }
        Some(CommitRefusal::Overtaken) => CommitResult::Overtaken,
        Some(CommitRefusal::Violation(violation)) => {
            CommitResult::Refused(run::of_violation(violation))
        }
    })
}

/// The fault of a transaction that others keep overtaking.
pub(crate) fn outdated() -> Error {
    let message = "What the transaction read has been changed by another. Try again.";
    Error::runtime(ErrorKind::Outdated, Detail::Overtaken, message)
}

fn defect(what: &dyn std::fmt::Display) -> Box<Problem> {
    wellspring_host::wire::problem::INTERNAL.because(format!("an empty transaction: {what}"))
}
