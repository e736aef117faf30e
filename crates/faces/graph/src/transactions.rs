//! What is done with transactions, whatever the wire: prepared, opened, continued, committed and
//! rolled back for a request.

use crate::GraphFace;
use crate::body::StatementText;
use crate::commit::{self, CommitResult, Exclusivity, ExecutedStatements};
use crate::fresh::{Purpose, fresh, live};
use crate::open::{BorrowedTransaction, NotOpen};
use crate::replay::{ReplayResult, Transcript, replay};
use crate::run::{
    self, Begin, BegunTransaction, Results, StatementContext, Statements, TransactionEnd,
};
use crate::server_facts::ServerFacts;
use std::sync::Arc;
use wellspring_cypher::context::StatementTime;
use wellspring_cypher::error::{Detail, Error, ErrorKind};
use wellspring_cypher::value::Value;
use wellspring_graph::{Graph, Transaction};
use wellspring_host::access::principal::Verdict;
use wellspring_host::http::Request;
use wellspring_host::http::work::{Cost, Job};
use wellspring_host::identity::Role;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::problem::{self, Problem};

/// Why nothing was done in a transaction.
pub(crate) enum TransactionRefusal {
    /// As for any route.
    Problem(Box<Problem>),
    /// There is no such transaction, or none can be opened.
    NotOpen(NotOpen),
}

impl From<Box<Problem>> for TransactionRefusal {
    fn from(problem: Box<Problem>) -> TransactionRefusal {
        TransactionRefusal::Problem(problem)
    }
}

impl From<NotOpen> for TransactionRefusal {
    fn from(why: NotOpen) -> TransactionRefusal {
        TransactionRefusal::NotOpen(why)
    }
}

/// What a transaction is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessMode {
    /// It may write, if its account may.
    Write,
    /// Statements that write are refused.
    Read,
}

impl AccessMode {
    /// The fault of statements that write although they must not.
    pub(crate) fn fault(self, statements: &Statements) -> Option<Error> {
        (self == AccessMode::Read && statements.write()).then(|| {
            let message = "Writing in read access mode is not allowed.";
            Error::runtime(ErrorKind::AccessMode, Detail::ReadOnly, message)
        })
    }
}

/// The results of statements in a transaction that stays open unless they have a fault.
pub(crate) struct ContinuedTransaction {
    pub(crate) results: Results,
    /// When it ends without another request, in µs since 1970 UTC; `None`: it has ended.
    pub(crate) ends_us: Option<u64>,
}

/// Prepares statements, and makes sure that the caller may execute them.
///
/// # Errors
/// 403: one of them writes, and the caller may only read. 429.
pub(crate) async fn admitted(
    face: &Arc<GraphFace>,
    request: &Request,
    texts: Vec<StatementText>,
) -> Result<Arc<Statements>, Box<Problem>> {
    let statements = prepared(face, request, texts).await?;
    check_role(request, &statements)?;
    Ok(statements)
}

/// Makes sure that the caller may execute statements now.
///
/// # Errors
/// 403: one of them writes, and the caller may only read.
pub(crate) fn check_role(request: &Request, statements: &Statements) -> Result<(), Box<Problem>> {
    if statements.write()
        && let Verdict::Denied { needs, .. } = may_write(request)
    {
        let detail = format!("one of the statements writes: the role {needs} is needed");
        return Err(problem::FORBIDDEN.because(detail));
    }
    Ok(())
}

/// Prepares statements, elsewhere if they are long.
///
/// # Errors
/// 429.
pub(crate) async fn prepared(
    face: &Arc<GraphFace>,
    request: &Request,
    texts: Vec<StatementText>,
) -> Result<Arc<Statements>, Box<Problem>> {
    let statements = if Statements::cost(&texts, &face.plans) == Cost::Cheap {
        Statements::prepare(texts, &face.plans)
    } else {
        let job = face.host.job(request)?;
        let face = Arc::clone(face);
        job.brief(Cost::Expensive, move || Statements::prepare(texts, &face.plans)).await?
    };
    face.tally.asked(&statements);
    Ok(Arc::new(statements))
}

fn may_write(request: &Request) -> Verdict {
    request.principal.may(Role::Writer, Some(&request.log_name))
}

/// The external inputs of statements that begin now, in a transaction with this metadata.
pub(crate) fn context(
    face: &GraphFace,
    request: &Request,
    metadata: Vec<(Arc<str>, Value)>,
) -> StatementContext {
    let now_us = face.host.wall_us();
    let seconds = i64::try_from(now_us / 1_000_000).unwrap_or(i64::MAX);
    let nanoseconds = u32::try_from(now_us % 1_000_000).unwrap_or(0) * 1_000;
    StatementContext {
        database: request.log_name.as_str().into(),
        time: StatementTime { seconds, nanoseconds },
        seed: face.next_seed(),
        server: Arc::new(ServerFacts {
            host: Arc::clone(&face.host),
            principal: Arc::clone(&request.principal),
            csv_folder: face.csv_folder.clone(),
            metadata,
        }),
        deadline_us: None,
    }
}

/// The work of statements.
///
/// # Errors
/// 429; 503: no memory for their parameters.
pub(crate) fn job_of(
    face: &GraphFace,
    request: &Request,
    statements: &Statements,
    context: &StatementContext,
) -> Result<Job, Box<Problem>> {
    let mut job = face.host.job(request)?;
    job.hold(statements.parameter_bytes())?;
    if let Some(deadline_us) = context.deadline_us {
        job.end_at(deadline_us);
    }
    Ok(job)
}

/// Opens a transaction on the newest folded version.
///
/// # Errors
/// As of [`fresh`]; too many are open.
pub(crate) async fn open(
    face: &GraphFace,
    request: &Request,
    mode: AccessMode,
) -> Result<BorrowedTransaction, TransactionRefusal> {
    let live = fresh(face, request, Purpose::Reading).await?;
    let version = commit::folded_version(&live);
    // A read-only transaction records nothing and generates no ids.
    let transaction = match (mode, may_write(request)) {
        (AccessMode::Write, Verdict::Allowed) => Transaction::writing(version),
        _ => Transaction::reading(version),
    };
    let id = face.next_id();
    let opened = face.open.open(id, &request.log_name, &request.principal, transaction);
    Ok(opened.inspect_err(|why| face.tally.refused(*why))?)
}

/// Opens a transaction on an empty graph, for statements about the server.
///
/// # Errors
/// Too many are open.
pub(crate) fn open_empty(
    face: &GraphFace,
    request: &Request,
) -> Result<BorrowedTransaction, TransactionRefusal> {
    let (id, transaction) = (face.next_id(), Transaction::reading(Graph::new()));
    let opened = face.open.open(id, &request.log_name, &request.principal, transaction);
    Ok(opened.inspect_err(|why| face.tally.refused(*why))?)
}

/// Executes statements about the server, which need no graph.
///
/// # Errors
/// Refusals of the work room.
pub(crate) async fn about_the_server(
    face: &GraphFace,
    request: &Request,
    statements: &Arc<Statements>,
    context: &StatementContext,
) -> Result<Results, Box<Problem>> {
    let mut job = job_of(face, request, statements, context)?;
    let mut begin = || BegunTransaction {
        transaction: Transaction::reading(Graph::new()),
        end: TransactionEnd::KeepOpen,
    };
    let begin = Begin::Anew(&mut begin);
    Ok(run::execute(&mut job, statements, begin, context, &face.memory).await?.results)
}

/// Keeps a transaction open that was just opened; its id.
///
/// # Errors
/// The open ones would exceed their memory.
pub(crate) fn keep(
    face: &GraphFace,
    mut lent: BorrowedTransaction,
) -> Result<String, TransactionRefusal> {
    let id = lent.id.to_string();
    let transaction = lent.take().ok_or(NotOpen::Unknown)?;
    put_back(face, lent, transaction).map_err(|_| NotOpen::TooMany)?;
    Ok(id)
}

/// Borrows an open transaction. That of a deleted log ends with it, even if another log has its
/// name now.
///
/// # Errors
/// 404, 503; it is not open.
pub(crate) async fn lend(
    face: &GraphFace,
    request: &Request,
    id: &str,
) -> Result<BorrowedTransaction, TransactionRefusal> {
    let lent = face.open.lend(id, &request.log_name, &request.principal)?;
    if request.log_name == SYSTEM_LOG {
        // It is on no log.
        return Ok(lent);
    }
    let live = live(face, &request.log_name).await?;
    let is_of_this = lent.is_of(&commit::folded_version(&live));
    if is_of_this { Ok(lent) } else { Err(NotOpen::Unknown.into()) }
}

/// Executes statements in a transaction that stays open, unless one of them fails, which rolls it
/// back.
///
/// # Errors
/// Refusals of the work room.
pub(crate) async fn go_on(
    face: &GraphFace,
    request: &Request,
    statements: Arc<Statements>,
    context: &StatementContext,
    mut lent: BorrowedTransaction,
) -> Result<ContinuedTransaction, TransactionRefusal> {
    let transaction = lent.take().ok_or(NotOpen::Unknown)?;
    let mode = if transaction.is_writing() { AccessMode::Write } else { AccessMode::Read };
    if let Some(fault) = mode.fault(&statements) {
        return Ok(ContinuedTransaction { results: Results::of(Some(fault)), ends_us: None });
    }
    let (mut results, transaction) = if statements.is_empty() {
        (Results::of(None), Some(transaction))
    } else {
        let mut job = job_of(face, request, &statements, context)?;
        let end = TransactionEnd::KeepOpen;
        let begin = Begin::Open(BegunTransaction { transaction, end });
        let attempt = run::execute(&mut job, &statements, begin, context, &face.memory).await?;
        if let (None, true) = (&attempt.results.fault, mode == AccessMode::Write) {
            lent.transcript.note(&face.digests, &statements, context, &attempt.results);
        }
        (attempt.results, attempt.transaction)
    };
    let ends_us = match transaction.map(|transaction| put_back(face, lent, transaction)) {
        Some(Ok(ends_us)) => Some(ends_us),
        Some(Err(fault)) => {
            results.fault = Some(fault);
            None
        }
        None => None,
    };
    Ok(ContinuedTransaction { results, ends_us })
}

/// Returns a transaction; when it will end, in µs since 1970 UTC.
///
/// # Errors
/// As of [`BorrowedTransaction::put_back`]: it is rolled back.
fn put_back(
    face: &GraphFace,
    lent: BorrowedTransaction,
    transaction: Transaction,
) -> Result<u64, Error> {
    Ok(face.host.wall_us() + lent.put_back(transaction, face.now_us())?)
}

/// Executes statements in an open transaction, and commits it.
///
/// # Errors
/// 403: it has written, and the caller may not any more; it stays open. Refusals of the log and the
/// work room.
pub(crate) async fn commit(
    face: &GraphFace,
    request: &Request,
    statements: Arc<Statements>,
    context: &StatementContext,
    mut lent: BorrowedTransaction,
) -> Result<ExecutedStatements, TransactionRefusal> {
    let transaction = lent.take().ok_or(NotOpen::Unknown)?;
    if transaction.has_written()
        && let Verdict::Denied { needs, .. } = may_write(request)
    {
        // Its account has lost the role, or uses a token with fewer rights. If its room has been
        // taken meanwhile, it is rolled back.
        _ = put_back(face, lent, transaction);
        let detail =
            format!("the transaction has written: the role {needs} is needed to commit it");
        return Err(problem::FORBIDDEN.because(detail).into());
    }
    let live = live(face, &request.log_name).await?;
    let mut job = job_of(face, request, &statements, context)?;
    // It began with a folded version, so nothing it depends on can fail.
    let end = TransactionEnd::Commit { setbacks: None, number: face.next_number() };
    let ids = transaction.drawn_ids().clone();
    let begin = Begin::Open(BegunTransaction { transaction, end });
    let attempt = run::execute(&mut job, &statements, begin, context, &face.memory).await?;
    let mut results = attempt.results;
    let mut position = live.position();
    if let Some(finished) = attempt.commit {
        let commit = commit::commit_of(face, request, &live, finished, &Exclusivity::Shared);
        match commit.await? {
            CommitResult::Shown(shown) => position = shown,
            CommitResult::Overtaken => {
                face.tally.overtaken();
                let mut transcript = std::mem::replace(&mut lent.transcript, Transcript::new());
                if !statements.is_empty() {
                    transcript.note(&face.digests, &statements, context, &results);
                }
                match replay(face, request, &live, &mut job, &transcript, &ids).await? {
                    ReplayResult::Shown(shown) => position = shown,
                    ReplayResult::Overtaken => results.fault = Some(commit::outdated()),
                    ReplayResult::Refused(fault) => results.fault = Some(fault),
                }
            }
            CommitResult::Refused(fault) => results.fault = Some(fault),
        }
    }
    Ok(ExecutedStatements { results, position })
}

/// Rolls an open transaction back.
///
/// # Errors
/// It is not open.
pub(crate) fn roll_back(face: &GraphFace, request: &Request, id: &str) -> Result<(), NotOpen> {
    face.open.lend(id, &request.log_name, &request.principal).map(drop)
}
