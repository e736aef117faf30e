//! The handlers of the routes.

use crate::GraphFace;
use crate::body::{self, RefusedBody, StatementText};
use crate::commit::{self, CommitResult, Exclusivity};
use crate::envelope::{
    self, INVALID_FORMAT, Members, OUT_OF_MEMORY, TOO_MANY_TRANSACTIONS, TRANSACTION_BUSY,
    TRANSACTION_NOT_FOUND,
};
use crate::fresh::{Purpose, fresh, live};
use crate::open::{BorrowedTransaction, NotOpen};
use crate::run::{
    self, Begin, BegunTransaction, Results, StatementContext, Statements, TransactionEnd,
};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use wellspring_cypher::context::StatementTime;
use wellspring_cypher::error::Error;
use wellspring_graph::Transaction;
use wellspring_host::access::principal::Verdict;
use wellspring_host::http::content::{expect_identity, expect_json};
use wellspring_host::http::contract::Segment;
use wellspring_host::http::work::Cost;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::identity::Role;
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_types::limits::MAX_REQUEST_BYTES;

/// The id of an open transaction.
pub(crate) static TRANSACTION: Segment<String> = Segment {
    name: "transaction",
    what: "Id of an open transaction.",
    values: Values::Text(None),
    read: |text| Ok(text.to_owned()),
};

/// The statements of a request that its sender may execute; or the answer to refuse with.
enum RequestedStatements {
    Statements(Arc<Statements>),
    Refused(Box<Response>),
}

/// Reads a body: elsewhere, if it is long.
async fn read(
    face: &GraphFace,
    request: &Request,
    body: impl AsRef<[u8]> + Send + 'static,
) -> Result<Result<Vec<StatementText>, RefusedBody>, Box<Problem>> {
    let most_bytes = face.memory.query_bytes;
    match Cost::of_bytes(body.as_ref().len()) {
        Cost::Cheap => Ok(body::read(body.as_ref(), most_bytes)),
        cost => {
            face.host.job(request)?.brief(cost, move || body::read(body.as_ref(), most_bytes)).await
        }
    }
}

/// Prepares statements: elsewhere, if they are long.
async fn prepared(
    face: &Arc<GraphFace>,
    request: &Request,
    texts: Vec<StatementText>,
) -> Result<Statements, Box<Problem>> {
    if Statements::cost(&texts, &face.plans) == Cost::Cheap {
        return Ok(Statements::prepare(texts, &face.plans));
    }
    let job = face.host.job(request)?;
    let face = Arc::clone(face);
    job.brief(Cost::Expensive, move || Statements::prepare(texts, &face.plans)).await
}

async fn requested(
    face: &Arc<GraphFace>,
    request: &mut Request,
) -> Result<RequestedStatements, Box<Problem>> {
    expect_identity(request)?;
    let body = request.content(MAX_REQUEST_BYTES).await?;
    if !body.is_empty() {
        expect_json(request)?;
    }
    let texts = match read(face, request, body).await? {
        Ok(texts) => texts,
        Err(refused) => {
            let code = match refused {
                RefusedBody::Invalid(_) => INVALID_FORMAT,
                RefusedBody::TooLarge(_) => OUT_OF_MEMORY,
            };
            let response = envelope::refusal(200, code, refused.message());
            return Ok(RequestedStatements::Refused(Box::new(response)));
        }
    };
    let statements = prepared(face, request, texts).await?;
    if statements.write()
        && let Verdict::Denied { needs, .. } = may_write(request)
    {
        let detail = format!("one of the statements writes: the role {needs} is needed");
        return Err(problem::FORBIDDEN.because(detail));
    }
    face.tally.asked(&statements);
    Ok(RequestedStatements::Statements(Arc::new(statements)))
}

fn may_write(request: &Request) -> Verdict {
    request.principal.may(Role::Writer, Some(&request.log_name))
}

impl GraphFace {
    fn context(&self, request: &Request) -> StatementContext {
        let now_us = self.host.wall_us();
        let seconds = i64::try_from(now_us / 1_000_000).unwrap_or(i64::MAX);
        let nanoseconds = u32::try_from(now_us % 1_000_000).unwrap_or(0) * 1_000;
        StatementContext {
            database: request.log_name.as_str().into(),
            time: StatementTime { seconds, nanoseconds },
            seed: self.next_seed(),
        }
    }

    /// The URL of the transactions of a request's database, as the client spelled it.
    fn transactions_url(&self, request: &Request) -> String {
        let database = request.uri.path().split('/').nth(2).unwrap_or_default();
        format!("{}/db/{database}/tx", self.host.base_url(request))
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.host.clock.monotonic_us()
    }

    /// Returns a transaction; the date on which it will end.
    ///
    /// # Errors
    /// As of [`BorrowedTransaction::put_back`]: it is rolled back.
    fn put_back(
        &self,
        lent: BorrowedTransaction,
        transaction: Transaction,
    ) -> Result<String, Error> {
        let ends_us = self.host.wall_us() + lent.put_back(transaction, self.now_us())?;
        Ok(httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_micros(ends_us)))
    }

    /// An answer with results; a fault among them is counted.
    fn answer(&self, results: &Results, members: &Members) -> Response {
        if let Some(fault) = &results.fault {
            self.tally.told(fault);
        }
        Response::json(200, envelope::content(results, members))
    }

    fn refused(&self, why: NotOpen) -> Response {
        self.tally.refused(why);
        refused(why)
    }

    fn bookmark(request: &Request, position: u64) -> String {
        format!("FB:{}:{position}", request.log_name)
    }
}

/// `POST /db/{log}/tx/commit`: statements as a transaction of their own.
pub(crate) async fn commit_at_once(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    let context = face.context(&request);
    let executed = commit::at_once(&face, &request, statements, &context).await?;
    let done = executed.results.fault.is_none();
    let bookmark = done.then(|| GraphFace::bookmark(&request, executed.position));
    let members = Members { bookmark, ..Members::default() };
    Ok(face.answer(&executed.results, &members).at(executed.position))
}

/// `POST /db/{log}/tx`: opens a transaction, and executes statements in it.
pub(crate) async fn begin(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    let live = fresh(&face, &request, Purpose::Reading).await?;
    let version = commit::folded_version(&live);
    // A read-only transaction records nothing and generates no ids.
    let transaction = match may_write(&request) {
        Verdict::Allowed => Transaction::writing(version),
        Verdict::Denied { .. } => Transaction::reading(version),
    };
    let id = face.next_id();
    let opened = face.open.open(id, &request.log_name, &request.principal, transaction);
    let lent = match opened {
        Ok(lent) => lent,
        Err(why) => return Ok(face.refused(why)),
    };
    let response = go_on_with(&face, &request, statements, lent).await?;
    let url = format!("{}/{id}", face.transactions_url(&request));
    Ok(response.with_status(201).with("location", url))
}

/// `POST /db/{log}/tx/{transaction}`: executes statements in an open transaction, or just keeps it
/// open.
pub(crate) async fn go_on(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    match lend(&face, &request).await? {
        Ok(lent) => go_on_with(&face, &request, statements, lent).await,
        Err(why) => Ok(refused(why)),
    }
}

/// `POST /db/{log}/tx/{transaction}/commit`: executes statements in an open transaction, and
/// commits it.
pub(crate) async fn commit(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    let mut lent = match lend(&face, &request).await? {
        Ok(lent) => lent,
        Err(why) => return Ok(refused(why)),
    };
    let url = format!("{}/{}/commit", face.transactions_url(&request), lent.id);
    let Some(transaction) = lent.take() else { return Ok(refused(NotOpen::Unknown)) };
    if transaction.has_written()
        && let Verdict::Denied { needs, .. } = may_write(&request)
    {
        // Its account has lost the role, or uses a token with fewer rights. If its room has been
        // taken meanwhile, it is rolled back.
        _ = face.put_back(lent, transaction);
        let detail =
            format!("the transaction has written: the role {needs} is needed to commit it");
        return Err(problem::FORBIDDEN.because(detail));
    }
    let live = live(&face, &request.log_name).await?;
    let context = face.context(&request);
    let mut job = face.host.job(&request)?;
    job.hold(statements.parameter_bytes())?;
    // It began with a folded version, so nothing it depends on can fail.
    let end = TransactionEnd::Commit { setbacks: None, number: face.next_number() };
    let begin = Begin::Open(BegunTransaction { transaction, end });
    let attempt = run::execute(&mut job, &statements, begin, &context, &face.memory).await?;
    let mut results = attempt.results;
    let mut position = live.position();
    if let Some(finished) = attempt.commit {
        let commit = commit::commit_of(&face, &request, &live, finished, &Exclusivity::Shared);
        match commit.await? {
            CommitResult::Shown(shown) => position = shown,
            CommitResult::Overtaken => results.fault = Some(commit::outdated()),
            CommitResult::Refused(fault) => results.fault = Some(fault),
        }
    }
    let done = results.fault.is_none();
    let bookmark = done.then(|| GraphFace::bookmark(&request, position));
    let members = Members { commit: Some(url), bookmark, ..Members::default() };
    Ok(face.answer(&results, &members).at(position))
}

/// `DELETE /db/{log}/tx/{transaction}`: rolls an open transaction back.
pub(crate) async fn rollback(face: Arc<GraphFace>, request: Box<Request>) -> Answer {
    let id = request.segment(&TRANSACTION)?;
    match face.open.lend(&id, &request.log_name, &request.principal) {
        Ok(lent) => drop(lent),
        Err(why) => return Ok(refused(why)),
    }
    let nothing = Results::of(None);
    Ok(face.answer(&nothing, &Members::default()))
}

/// Borrows the transaction that a request names. That of a deleted log ends with it, even if
/// another log has its name now.
async fn lend(
    face: &GraphFace,
    request: &Request,
) -> Result<Result<BorrowedTransaction, NotOpen>, Box<Problem>> {
    let id = request.segment(&TRANSACTION)?;
    let lent = match face.open.lend(&id, &request.log_name, &request.principal) {
        Ok(lent) => lent,
        Err(why) => return Ok(Err(why)),
    };
    let live = live(face, &request.log_name).await?;
    let is_of_this = lent.is_of(&commit::folded_version(&live));
    Ok(if is_of_this { Ok(lent) } else { Err(NotOpen::Unknown) })
}

/// Executes statements in a transaction that stays open, unless one of them fails, which rolls it
/// back.
async fn go_on_with(
    face: &GraphFace,
    request: &Request,
    statements: Arc<Statements>,
    mut lent: BorrowedTransaction,
) -> Result<Response, Box<Problem>> {
    let url = format!("{}/{}/commit", face.transactions_url(request), lent.id);
    let Some(transaction) = lent.take() else { return Ok(refused(NotOpen::Unknown)) };
    let (mut results, transaction) = if statements.is_empty() {
        (Results::of(None), Some(transaction))
    } else {
        let context = face.context(request);
        let mut job = face.host.job(request)?;
        job.hold(statements.parameter_bytes())?;
        let end = TransactionEnd::KeepOpen;
        let begin = Begin::Open(BegunTransaction { transaction, end });
        let attempt = run::execute(&mut job, &statements, begin, &context, &face.memory).await?;
        (attempt.results, attempt.transaction)
    };
    let expires = match transaction.map(|transaction| face.put_back(lent, transaction)) {
        Some(Ok(expires)) => Some(expires),
        Some(Err(fault)) => {
            results.fault = Some(fault);
            None
        }
        None => None,
    };
    let members = Members { commit: Some(url), expires, bookmark: None };
    Ok(face.answer(&results, &members))
}

fn refused(why: NotOpen) -> Response {
    match why {
        NotOpen::Unknown => envelope::refusal(
            404,
            TRANSACTION_NOT_FOUND,
            "Unrecognized transaction id. Transaction may have timed out and been rolled back.",
        ),
        NotOpen::Busy => envelope::refusal(
            200,
            TRANSACTION_BUSY,
            "Another request is using the transaction. Wait for its answer.",
        ),
        NotOpen::TooMany => envelope::refusal(
            200,
            TOO_MANY_TRANSACTIONS,
            "Too many transactions are open (--graph-transactions). Try again later.",
        ),
    }
}
