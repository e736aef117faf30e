//! The Query API of Neo4j: one statement a request, in a transaction of its own or an open one.
//!
//! Version 2, as in <https://neo4j.com/docs/query-api/current>.
//!
//! | status | when |
//! |---|---|
//! | 202 | executed; or a fault while rows were read: the rows so far, then `errors` |
//! | 400 | a fault before anything was executed, or of a statement that writes: `errors` alone |
//! | 404 | there is no such transaction |
//! | 503 | too many transactions are open |
//!
//! The database `system` is no graph: it answers statements that are about the server.

mod answer;
mod body;

use crate::GraphFace;
use crate::body::{RefusedBody, StatementText};
use crate::bookmarks::{self, InvalidBookmark};
use crate::commit::{self, ExecutedStatements};
use crate::envelope::{INVALID_REQUEST, OUT_OF_MEMORY, fault_message, not_open, shortened};
use crate::fresh;
use crate::handlers::TRANSACTION;
use crate::open::{BorrowedTransaction, NotOpen};
use crate::render::{Layout, QueryForm, ValueForm};
use crate::run::{Results, Statements};
use crate::transactions::{self, TransactionRefusal};
use answer::QueryAnswer;
use body::{QueryBody, RequestForms};
use std::sync::Arc;
use wellspring_cypher::error::{Error, Phase};
use wellspring_host::http::content::expect_media;
use wellspring_host::http::contract::Media;
use wellspring_host::http::work::Cost;
use wellspring_host::http::{Answer, JSON, Request, Response};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::problem::Problem;
use wellspring_types::limits::MAX_REQUEST_BYTES;

/// JSON lines.
const LINES: &str = "application/jsonl";
/// Typed JSON, and its versions. They differ in types that are not here.
const TYPED: &str = "application/vnd.neo4j.query";
const TYPED_VERSIONS: [&str; 3] = [
    "application/vnd.neo4j.query.v1.0",
    "application/vnd.neo4j.query.v1.1",
    "application/vnd.neo4j.query.v1.2",
];
const TYPED_LINES: [&str; 3] = [
    "application/vnd.neo4j.query.v1.0+jsonl",
    "application/vnd.neo4j.query.v1.1+jsonl",
    "application/vnd.neo4j.query.v1.2+jsonl",
];

/// The media types of answers.
pub(crate) const ANSWERS: Media = &[
    (JSON, "QueryResult"),
    (TYPED, "QueryResult"),
    (TYPED_VERSIONS[0], "QueryResult"),
    (TYPED_VERSIONS[1], "QueryResult"),
    (TYPED_VERSIONS[2], "QueryResult"),
    (LINES, ""),
    (TYPED_LINES[0], ""),
    (TYPED_LINES[1], ""),
    (TYPED_LINES[2], ""),
];
/// The media types of requests.
pub(crate) const REQUESTS: Media = &[
    (JSON, "QueryRequest"),
    (TYPED, "QueryRequest"),
    (TYPED_VERSIONS[0], "QueryRequest"),
    (TYPED_VERSIONS[1], "QueryRequest"),
    (TYPED_VERSIONS[2], "QueryRequest"),
];

fn value_form(media: &str) -> ValueForm {
    if media.starts_with(TYPED) { ValueForm::Typed } else { ValueForm::Plain }
}

/// Why a request is not executed.
enum QueryRefusal {
    /// As for any route.
    Problem(Box<Problem>),
    /// An error of this API.
    Fault { status: u16, code: &'static str, message: String },
}

impl From<Box<Problem>> for QueryRefusal {
    fn from(problem: Box<Problem>) -> QueryRefusal {
        QueryRefusal::Problem(problem)
    }
}

impl From<NotOpen> for QueryRefusal {
    fn from(why: NotOpen) -> QueryRefusal {
        let (code, message) = not_open(why);
        let (status, code) = match why {
            NotOpen::Unknown => (404, INVALID_REQUEST),
            NotOpen::Busy => (400, code),
            NotOpen::TooMany => (503, code),
        };
        QueryRefusal::Fault { status, code, message: message.to_owned() }
    }
}

impl From<TransactionRefusal> for QueryRefusal {
    fn from(declined: TransactionRefusal) -> QueryRefusal {
        match declined {
            TransactionRefusal::Problem(problem) => QueryRefusal::Problem(problem),
            TransactionRefusal::NotOpen(why) => why.into(),
        }
    }
}

impl From<InvalidBookmark> for QueryRefusal {
    fn from(InvalidBookmark(text): InvalidBookmark) -> QueryRefusal {
        invalid("Neo.ClientError.Transaction.InvalidBookmark", format!("no bookmark: {text:?}"))
    }
}

fn invalid(code: &'static str, message: String) -> QueryRefusal {
    QueryRefusal::Fault { status: 400, code, message }
}

/// A request that may be executed.
struct QueryRequest {
    form: QueryForm,
    body: QueryBody,
    statements: Arc<Statements>,
}

impl QueryRequest {
    /// Reads a request, and waits for what its bookmarks name.
    ///
    /// # Errors
    /// It cannot be executed, or not now.
    async fn read(
        face: &Arc<GraphFace>,
        request: &mut Request,
    ) -> Result<QueryRequest, QueryRefusal> {
        let forms = forms(request)?;
        let most_bytes = face.memory.query_bytes;
        let content = request.content(MAX_REQUEST_BYTES).await?;
        let cost = Cost::of_bytes(content.len());
        let read = move || body::read(&content, forms, most_bytes);
        let read = match cost {
            Cost::Cheap => read(),
            cost => face.host.job(request)?.brief(cost, read).await?,
        };
        let mut body = read.map_err(|refused| {
            let code = match refused {
                RefusedBody::Invalid(_) => INVALID_REQUEST,
                RefusedBody::TooLarge(_) => OUT_OF_MEMORY,
            };
            invalid(code, refused.message().to_owned())
        })?;
        if body.impersonates {
            let what = "impersonatedUser is not supported: send the credentials of that account";
            return Err(invalid(INVALID_REQUEST, what.to_owned()));
        }
        let texts: Vec<StatementText> = body.statement.take().into_iter().collect();
        let statements = transactions::prepared(face, request, texts).await?;
        if let Some(fault) = statements.first_fault() {
            return Err(refusal_of(fault));
        }
        if is_system(request) {
            if let Some(fault) = statements.fault_on_system() {
                return Err(refusal_of(&fault));
            }
        } else {
            transactions::check_role(request, &statements)?;
            wait_for_bookmarks(face, request, &body.bookmarks).await?;
        }
        Ok(QueryRequest { form: forms.answer, body, statements })
    }
}

/// The forms in which a request is written and wants its answer.
///
/// # Errors
/// 415.
fn forms(request: &Request) -> Result<RequestForms, Box<Problem>> {
    let is_accepted = |media: &str| REQUESTS.iter().any(|(known, _)| *known == media);
    let media = expect_media(request, is_accepted)?;
    let answer = QueryForm { values: value_form(request.wants), layout: layout(request) };
    Ok(RequestForms { parameters: value_form(&media), answer })
}

fn layout(request: &Request) -> Layout {
    if request.wants.ends_with("jsonl") { Layout::Lines } else { Layout::Object }
}

fn is_system(request: &Request) -> bool {
    request.log_name == SYSTEM_LOG
}

async fn wait_for_bookmarks(
    face: &GraphFace,
    request: &Request,
    given: &[String],
) -> Result<(), QueryRefusal> {
    let given = given.iter().map(String::as_str);
    let position = bookmarks::greatest(given, &request.log_name)?;
    match fresh::reached(face, request, position).await? {
        fresh::WaitResult::Yes => Ok(()),
        fresh::WaitResult::NotYet { position: at } => Err(invalid(
            "Neo.TransientError.Transaction.BookmarkTimeout",
            format!(
                "position {position} of a bookmark was not reached in time; the graph is at {at}"
            ),
        )),
    }
}

fn refusal_of(fault: &Error) -> QueryRefusal {
    invalid(fault.code(), fault_message(fault))
}

/// Answers, or refuses in the form of this API.
fn answered(request: &Request, executed: Result<Response, QueryRefusal>) -> Answer {
    let (status, code, message) = match executed {
        Ok(response) => return Ok(response.of_type(request.wants)),
        Err(QueryRefusal::Problem(problem)) => return Err(problem),
        Err(QueryRefusal::Fault { status, code, message }) => (status, code, message),
    };
    let form = QueryForm { values: ValueForm::Plain, layout: layout(request) };
    let message = &*shortened(&message);
    let answer = QueryAnswer { fault: Some((code, message)), ..QueryAnswer::default() };
    Ok(Response::json(status, form.content(&answer)).of_type(request.wants))
}

/// What an answer tells beside the results.
#[derive(Default)]
struct AnswerMembers {
    transaction: Option<(u64, u64)>,
    bookmark: Option<String>,
}

impl GraphFace {
    /// The answer with results. Rows of a statement that writes are not told with its fault: they
    /// show what is not there.
    fn query_answer(
        &self,
        asked: &QueryRequest,
        results: &Results,
        told: &AnswerMembers,
    ) -> Response {
        let Results { bytes, fault, summary, .. } = results;
        if let Some(fault) = fault {
            self.tally.told(fault);
        }
        let is_told = |fault: &Error| fault.phase == Phase::Runtime && !asked.statements.write();
        let summary = summary.as_ref().filter(|_| fault.as_ref().is_none_or(is_told));
        let message = fault.as_ref().map(|fault| (fault.code(), fault_message(fault)));
        let answer = QueryAnswer {
            summary,
            rows: bytes,
            includes_counters: asked.body.includes_counters,
            transaction: told.transaction,
            bookmark: told.bookmark.as_deref(),
            fault: message.as_ref().map(|(code, message)| (*code, message.as_str())),
        };
        let status = if fault.is_some() && summary.is_none() { 400 } else { 202 };
        Response::json(status, asked.form.content(&answer))
    }
}

/// The database that a route names: `system`, if it names none.
fn name_database(request: &mut Request) {
    if request.log_name.is_empty() {
        SYSTEM_LOG.clone_into(&mut request.log_name);
    }
}

/// `POST /db/{log}/query/v2`: a statement as a transaction of its own.
pub(crate) async fn at_once(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    name_database(&mut request);
    let executed = executed_at_once(&face, &mut request).await;
    answered(&request, executed)
}

async fn executed_at_once(
    face: &Arc<GraphFace>,
    request: &mut Request,
) -> Result<Response, QueryRefusal> {
    let asked = QueryRequest::read(face, request).await?;
    if asked.statements.is_empty() {
        return Err(invalid(INVALID_REQUEST, "the member statement is missing".to_owned()));
    }
    let context = transactions::context(face, request, Vec::new());
    let statements = Arc::clone(&asked.statements);
    if is_system(request) {
        let results = transactions::about_the_server(face, request, &statements, &context).await?;
        return Ok(face.query_answer(&asked, &results, &AnswerMembers::default()));
    }
    if let Some(fault) = asked.body.mode.fault(&statements) {
        return Err(refusal_of(&fault));
    }
    let executed = commit::at_once(face, request, statements, &context).await?;
    let ExecutedStatements { results, position } = executed;
    let told = AnswerMembers { bookmark: bookmark(request, &results, position), transaction: None };
    Ok(face.query_answer(&asked, &results, &told).at(position))
}

fn bookmark(request: &Request, results: &Results, position: u64) -> Option<String> {
    results.fault.is_none().then(|| bookmarks::bookmark(&request.log_name, position))
}

/// `POST /db/{log}/query/v2/tx`: opens a transaction, and may execute a statement in it.
pub(crate) async fn begin(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    name_database(&mut request);
    let begun = async {
        let asked = QueryRequest::read(&face, &mut request).await?;
        let lent = if is_system(&request) {
            transactions::open_empty(&face, &request)?
        } else {
            transactions::open(&face, &request, asked.body.mode).await?
        };
        continued(&face, &request, &asked, lent).await
    };
    let begun = begun.await;
    answered(&request, begun)
}

/// `POST /db/{log}/query/v2/tx/{transaction}`: executes a statement in an open transaction, or just
/// keeps it open.
pub(crate) async fn go_on(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    name_database(&mut request);
    let id = request.segment(&TRANSACTION)?;
    let answer = async {
        let asked = QueryRequest::read(&face, &mut request).await?;
        let lent = transactions::lend(&face, &request, &id).await?;
        continued(&face, &request, &asked, lent).await
    };
    let answer = answer.await;
    answered(&request, answer)
}

/// The answer to a statement in an open transaction, if there is one.
async fn continued(
    face: &GraphFace,
    request: &Request,
    asked: &QueryRequest,
    lent: BorrowedTransaction,
) -> Result<Response, QueryRefusal> {
    let (id, context) = (lent.id, transactions::context(face, request, Vec::new()));
    let statements = Arc::clone(&asked.statements);
    let continued = transactions::go_on(face, request, statements, &context, lent).await?;
    let transaction = continued.ends_us.map(|ends_us| (id, ends_us));
    let told = AnswerMembers { transaction, bookmark: None };
    Ok(face.query_answer(asked, &continued.results, &told))
}

/// `POST /db/{log}/query/v2/tx/{transaction}/commit`: may execute a statement in an open
/// transaction, and commits it.
pub(crate) async fn commit(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    name_database(&mut request);
    let id = request.segment(&TRANSACTION)?;
    let committed = async {
        let asked = QueryRequest::read(&face, &mut request).await?;
        let lent = transactions::lend(&face, &request, &id).await?;
        let statements = Arc::clone(&asked.statements);
        let context = transactions::context(&face, &request, Vec::new());
        if is_system(&request) {
            let about = transactions::about_the_server(&face, &request, &statements, &context);
            return Ok(face.query_answer(&asked, &about.await?, &AnswerMembers::default()));
        }
        let executed = transactions::commit(&face, &request, statements, &context, lent).await?;
        let ExecutedStatements { results, position } = executed;
        let told =
            AnswerMembers { bookmark: bookmark(&request, &results, position), transaction: None };
        Ok(face.query_answer(&asked, &results, &told).at(position))
    };
    let committed = committed.await;
    answered(&request, committed)
}

/// `DELETE /db/{log}/query/v2/tx/{transaction}`: rolls an open transaction back.
pub(crate) async fn rollback(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    name_database(&mut request);
    let id = request.segment(&TRANSACTION)?;
    let rolled_back = transactions::roll_back(&face, &request, &id)
        .map(|()| Response::json(200, b"{}".to_vec()))
        .map_err(QueryRefusal::from);
    answered(&request, rolled_back)
}
