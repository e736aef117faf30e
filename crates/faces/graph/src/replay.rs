//! An open transaction that was overtaken, executed again on the newest version.
//!
//! Its client has decided by the results that it saw. If every statement gives the same results on
//! the newest version, the client would have decided the same, and the transaction can be committed
//! there (decision 0048). If any differs, the client is told that it was overtaken.

use crate::GraphFace;
use crate::commit::{self, Attempts, CommitResult, Exclusivity};
use crate::run::{
    self, Begin, BegunTransaction, Results, StatementContext, Statements, TransactionEnd,
};
use crate::view::GraphView;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use wellspring_cypher::error::Error;
use wellspring_graph::{DrawnIds, Transaction};
use wellspring_host::http::Request;
use wellspring_host::http::work::Job;
use wellspring_host::view::Live;
use wellspring_host::wire::problem::Problem;
use wellspring_types::Position;

/// Most statements of a transaction that are kept, and their size in bytes.
const MOST_STATEMENTS: usize = 100;
const MOST_BYTES: usize = 1 << 20;
/// Memory of a statement apart from its text and its parameters, in bytes.
const STATEMENT_BYTES: usize = 512;

/// Makes digests of results, under keys that no client knows.
#[derive(Default)]
pub(crate) struct DigestKeys([RandomState; 2]);

/// 128 bits that are the same for the same results, and differ for others but with negligible
/// probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResultDigest([u64; 2]);

impl DigestKeys {
    /// The digest of what a client is told: rows, columns and what was changed.
    fn digest(&self, results: &Results) -> ResultDigest {
        let told = results
            .summary
            .as_ref()
            .map(|summary| (summary.plan.columns(), summary.rows, summary.statistics));
        ResultDigest(self.0.each_ref().map(|key| key.hash_one((&results.bytes, &told))))
    }
}

/// What a client has executed in an open transaction.
pub(crate) struct Transcript {
    executions: Vec<Execution>,
    bytes: usize,
    is_whole: bool,
}

struct Execution {
    statements: Arc<Statements>,
    context: StatementContext,
    digest: ResultDigest,
}

impl Transcript {
    pub(crate) fn new() -> Transcript {
        Transcript { executions: Vec::new(), bytes: 0, is_whole: true }
    }

    /// That of a transaction that is too large to be executed again.
    pub(crate) fn incomplete() -> Transcript {
        Transcript { is_whole: false, ..Transcript::new() }
    }

    /// Its memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an execution that had no fault, as long as the transaction is small.
    pub(crate) fn note(
        &mut self,
        keys: &DigestKeys,
        statements: &Arc<Statements>,
        context: &StatementContext,
        results: &Results,
    ) {
        let bytes = STATEMENT_BYTES + statements.bytes();
        let fits = self.executions.len() < MOST_STATEMENTS && self.bytes + bytes <= MOST_BYTES;
        if !self.is_whole || !fits {
            *self = Transcript::incomplete();
            return;
        }
        self.bytes += bytes;
        self.executions.push(Execution {
            statements: Arc::clone(statements),
            context: context.clone(),
            digest: keys.digest(results),
        });
    }
}

/// What came of a replay.
pub(crate) enum ReplayResult {
    /// It is committed, durable and folded; this position includes it.
    Shown(Position),
    /// A result differs, or the transaction is too large to be executed again.
    Overtaken,
    /// It breaks a rule of the graph now.
    Refused(Error),
}

/// Executes an overtaken transaction again, for as long as others overtake it and its results stay
/// the same, and commits it.
///
/// # Errors
/// Refusals of the log and the work room.
pub(crate) async fn replay(
    face: &GraphFace,
    request: &Request,
    live: &Live<GraphView>,
    job: &mut Job,
    transcript: &Transcript,
    ids: &DrawnIds,
) -> Result<ReplayResult, Box<Problem>> {
    if !transcript.is_whole {
        return Ok(ReplayResult::Overtaken);
    }
    let mut attempts = Attempts::new(live);
    while let Some(exclusivity) = attempts.next(face, request).await? {
        let replayed = attempt(face, request, live, job, transcript, ids, &exclusivity).await?;
        if let Some(result) = replayed {
            if let ReplayResult::Shown(_) = result {
                face.tally.replayed();
            }
            return Ok(result);
        }
    }
    Ok(ReplayResult::Overtaken)
}

/// One attempt. `None` if it was overtaken as well.
async fn attempt(
    face: &GraphFace,
    request: &Request,
    live: &Live<GraphView>,
    job: &mut Job,
    transcript: &Transcript,
    ids: &DrawnIds,
    exclusivity: &Exclusivity<'_>,
) -> Result<Option<ReplayResult>, Box<Problem>> {
    let base = commit::newest_version(live);
    let setbacks = base.setbacks();
    let mut transaction = Transaction::writing_again(base.graph, ids.clone());
    for Execution { statements, context, digest } in &transcript.executions {
        let begun = BegunTransaction { transaction, end: TransactionEnd::KeepOpen };
        let begin = Begin::Open(begun);
        let attempt = run::execute(job, statements, begin, context, &face.memory).await?;
        let is_same = face.digests.digest(&attempt.results) == *digest;
        match attempt.transaction {
            Some(executed) if is_same => transaction = executed,
            // Also if a fault or a difference came of a commit that is not settled yet: the client
            // may always begin anew.
            _ => return Ok(Some(ReplayResult::Overtaken)),
        }
    }
    let Some(last) = transcript.executions.last() else {
        return Ok(Some(ReplayResult::Overtaken));
    };
    let end = TransactionEnd::Commit { setbacks, number: face.next_number() };
    let begin = Begin::Open(BegunTransaction { transaction, end });
    let nothing = Arc::new(Statements::none());
    let attempt = run::execute(job, &nothing, begin, &last.context, &face.memory).await?;
    let Some(finished) = attempt.commit else { return Ok(Some(ReplayResult::Overtaken)) };
    Ok(match commit::commit_of(face, request, live, finished, exclusivity).await? {
        CommitResult::Shown(position) => Some(ReplayResult::Shown(position)),
        CommitResult::Overtaken => None,
        CommitResult::Refused(fault) => Some(ReplayResult::Refused(fault)),
    })
}
