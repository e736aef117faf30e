//! The handlers of the routes of the transaction API.

use crate::GraphFace;
use crate::body::{self, RefusedBody, StatementText};
use crate::bookmarks::bookmark;
use crate::commit::at_once;
use crate::envelope::{self, INVALID_FORMAT, Members, OUT_OF_MEMORY};
use crate::open::NotOpen;
use crate::run::{Results, Statements};
use crate::transactions::{self, AccessMode, ContinuedTransaction, TransactionRefusal};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use wellspring_host::http::content::{expect_identity, expect_json};
use wellspring_host::http::contract::Segment;
use wellspring_host::http::work::Cost;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::Problem;
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
    Ok(RequestedStatements::Statements(transactions::admitted(face, request, texts).await?))
}

impl GraphFace {
    /// The URL of the transactions of a request's database, as the client spelled it.
    fn transactions_url(&self, request: &Request) -> String {
        let database = request.uri.path().split('/').nth(2).unwrap_or_default();
        format!("{}/db/{database}/tx", self.host.base_url(request))
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.host.clock.monotonic_us()
    }

    /// An answer with results; a fault among them is counted.
    fn answer(&self, results: &Results, members: &Members) -> Response {
        if let Some(fault) = &results.fault {
            self.tally.told(fault);
        }
        Response::json(200, envelope::content(results, members))
    }

    /// The answer about a transaction that stays open, unless it has failed.
    fn answer_open(
        &self,
        request: &Request,
        id: u64,
        continued: &ContinuedTransaction,
    ) -> Response {
        let date = |ends_us| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_micros(ends_us));
        let members = Members {
            commit: Some(format!("{}/{id}/commit", self.transactions_url(request))),
            expires: continued.ends_us.map(date),
            bookmark: None,
        };
        self.answer(&continued.results, &members)
    }
}

impl TransactionRefusal {
    /// The answer of the transaction API.
    fn answer(self) -> Answer {
        match self {
            TransactionRefusal::Problem(problem) => Err(problem),
            TransactionRefusal::NotOpen(why) => Ok(refused(why)),
        }
    }
}

/// `POST /db/{log}/tx/commit`: statements as a transaction of their own.
pub(crate) async fn commit_at_once(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    let context = transactions::context(&face, &request, Vec::new());
    let executed = at_once(&face, &request, statements, &context).await?;
    let done = executed.results.fault.is_none();
    let bookmark = done.then(|| bookmark(&request.log_name, executed.position));
    let members = Members { bookmark, ..Members::default() };
    Ok(face.answer(&executed.results, &members).at(executed.position))
}

/// `POST /db/{log}/tx`: opens a transaction, and executes statements in it.
pub(crate) async fn begin(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    let opened = async {
        let lent = transactions::open(&face, &request, AccessMode::Write).await?;
        let (id, context) = (lent.id, transactions::context(&face, &request, Vec::new()));
        Ok((id, transactions::go_on(&face, &request, statements, &context, lent).await?))
    };
    match opened.await {
        Ok((id, continued)) => {
            let url = format!("{}/{id}", face.transactions_url(&request));
            let response = face.answer_open(&request, id, &continued);
            Ok(response.with_status(201).with("location", url))
        }
        Err(declined) => TransactionRefusal::answer(declined),
    }
}

/// `POST /db/{log}/tx/{transaction}`: executes statements in an open transaction, or just keeps it
/// open.
pub(crate) async fn go_on(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    let id = request.segment(&TRANSACTION)?;
    let continued = async {
        let lent = transactions::lend(&face, &request, &id).await?;
        let (id, context) = (lent.id, transactions::context(&face, &request, Vec::new()));
        Ok((id, transactions::go_on(&face, &request, statements, &context, lent).await?))
    };
    match continued.await {
        Ok((id, continued)) => Ok(face.answer_open(&request, id, &continued)),
        Err(declined) => TransactionRefusal::answer(declined),
    }
}

/// `POST /db/{log}/tx/{transaction}/commit`: executes statements in an open transaction, and
/// commits it.
pub(crate) async fn commit(face: Arc<GraphFace>, mut request: Box<Request>) -> Answer {
    let statements = match requested(&face, &mut request).await? {
        RequestedStatements::Statements(statements) => statements,
        RequestedStatements::Refused(response) => return Ok(*response),
    };
    let id = request.segment(&TRANSACTION)?;
    let committed = async {
        let lent = transactions::lend(&face, &request, &id).await?;
        let (id, context) = (lent.id, transactions::context(&face, &request, Vec::new()));
        Ok((id, transactions::commit(&face, &request, statements, &context, lent).await?))
    };
    let (id, executed) = match committed.await {
        Ok(committed) => committed,
        Err(declined) => return TransactionRefusal::answer(declined),
    };
    let done = executed.results.fault.is_none();
    let members = Members {
        commit: Some(format!("{}/{id}/commit", face.transactions_url(&request))),
        bookmark: done.then(|| bookmark(&request.log_name, executed.position)),
        ..Members::default()
    };
    Ok(face.answer(&executed.results, &members).at(executed.position))
}

/// `DELETE /db/{log}/tx/{transaction}`: rolls an open transaction back.
pub(crate) async fn rollback(face: Arc<GraphFace>, request: Box<Request>) -> Answer {
    let id = request.segment(&TRANSACTION)?;
    Ok(match transactions::roll_back(&face, &request, &id) {
        Ok(()) => face.answer(&Results::of(None), &Members::default()),
        Err(why) => refused(why),
    })
}

fn refused(why: NotOpen) -> Response {
    let status = if why == NotOpen::Unknown { 404 } else { 200 };
    let (code, message) = envelope::not_open(why);
    envelope::refusal(status, code, message)
}
