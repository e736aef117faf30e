//! What asks need before they are executed: the operation on a database, statements, parameters,
//! bookmarks; and how they fail.

use super::BoltOperation;
use super::executor::Reply;
use super::failure::{self, Proof};
use super::parameters::{self, ParameterFault};
use super::results::BufferedResult;
use crate::GraphFace;
use crate::body::StatementText;
use crate::bookmarks::{self, InvalidBookmark};
use crate::envelope::OUT_OF_MEMORY;
use crate::fresh::{self, WaitResult};
use crate::open::NotOpen;
use crate::parameters::ParameterRoom;
use crate::render::ResultForm;
use crate::run::{Results, StatementContext, Statements};
use crate::transactions::{self, AccessMode, TransactionRefusal};
use std::sync::Arc;
use wellspring_bolt::{Failure, PackedMap, Run, TextList, TransactionSettings, Version};
use wellspring_cypher::error::Error;
use wellspring_cypher::value::Value;
use wellspring_host::http::Request;
use wellspring_host::http::operation::OperationResult;
use wellspring_host::http::routes::Operation;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::problem::Problem;

/// Why an ask fails: with its failure.
pub(super) struct Failed(pub(super) Failure);

impl From<Box<Problem>> for Failed {
    fn from(problem: Box<Problem>) -> Failed {
        Failed(failure::of_problem(&problem, Proof::Given))
    }
}

impl From<TransactionRefusal> for Failed {
    fn from(refusal: TransactionRefusal) -> Failed {
        Failed(failure::of_refusal(&refusal))
    }
}

impl From<InvalidBookmark> for Failed {
    fn from(InvalidBookmark(text): InvalidBookmark) -> Failed {
        let code = "Neo.ClientError.Transaction.InvalidBookmark";
        Failed(Failure::new(code, format!("no bookmark: {text:?}")))
    }
}

/// The result of work within an operation, whose own failures are not problems of the server.
pub(super) type Within<T> = Result<Result<T, Failed>, Box<Problem>>;

impl Failed {
    pub(super) fn from_not_open(why: NotOpen) -> Failed {
        TransactionRefusal::NotOpen(why).into()
    }
}

pub(super) fn nothing_at<T>(value: T) -> OperationResult<T> {
    OperationResult { value, position: None }
}

pub(super) fn no_transaction() -> Failed {
    Failed(Failure::invalid("there is no open transaction"))
}

/// The operation on a database, and the name of its log.
pub(super) fn of_database<'a>(
    face: &'a GraphFace,
    operation: BoltOperation,
    database: &'a str,
) -> (&'a Operation, &'a str) {
    if database == SYSTEM_LOG {
        (face.bolt.operation(BoltOperation::System), SYSTEM_LOG)
    } else {
        (face.bolt.operation(operation), database)
    }
}

pub(super) fn is_system(operation: &Operation) -> bool {
    operation.entry.route.path == BoltOperation::System.name()
}

pub(super) fn mode_of(settings: &TransactionSettings) -> AccessMode {
    match settings.mode {
        wellspring_bolt::AccessMode::Write => AccessMode::Write,
        wellspring_bolt::AccessMode::Read => AccessMode::Read,
    }
}

pub(super) fn refuse_impersonation(user: Option<&str>) -> Result<(), Failed> {
    match user {
        None => Ok(()),
        Some(_) => Err(Failed(Failure::new(
            "Neo.ClientError.Security.Forbidden",
            "Impersonation is not supported: log on as that account.",
        ))),
    }
}

/// Opens a transaction; its id.
pub(super) async fn open(
    face: &GraphFace,
    request: &Request,
    operation: &Operation,
    bookmarks: &TextList,
    mode: AccessMode,
) -> Result<String, Failed> {
    if is_system(operation) {
        let lent = transactions::open_empty(face, request)?;
        return Ok(transactions::keep(face, lent)?);
    }
    wait_for(face, request, bookmarks).await?;
    let lent = transactions::open(face, request, mode).await?;
    Ok(transactions::keep(face, lent)?)
}

/// Waits for what bookmarks name.
pub(super) async fn wait_for(
    face: &GraphFace,
    request: &Request,
    given: &TextList,
) -> Result<(), Failed> {
    if given.is_empty() {
        return Ok(());
    }
    let position = bookmarks::greatest(given.iter(), &request.log_name)?;
    match fresh::reached(face, request, position).await? {
        WaitResult::Yes => Ok(()),
        WaitResult::NotYet { position: at } => Err(Failed(Failure::new(
            "Neo.TransientError.Transaction.BookmarkTimeout",
            format!(
                "Position {position} of a bookmark was not reached in time; the graph is at {at}."
            ),
        ))),
    }
}

pub(super) fn context_of(
    face: &GraphFace,
    request: &Request,
    metadata: &[(Arc<str>, Value)],
    deadline_us: Option<u64>,
) -> StatementContext {
    StatementContext { deadline_us, ..transactions::context(face, request, metadata.to_vec()) }
}

pub(super) fn metadata_of(
    packed: &PackedMap,
    version: Version,
) -> Result<Vec<(Arc<str>, Value)>, Failed> {
    let room = ParameterRoom::new(1 << 20);
    let read = parameters::read(packed.as_bytes(), version, &room);
    read.map(|entries| entries.into_iter().collect()).map_err(|fault| unreadable(fault, &room))
}

pub(super) fn unreadable(fault: ParameterFault, room: &ParameterRoom) -> Failed {
    Failed(match fault {
        ParameterFault::Malformed(fault) => Failure::invalid(fault.to_string()),
        ParameterFault::Unusable(why) => {
            Failure::new("Neo.ClientError.Statement.ArgumentError", why)
        }
        ParameterFault::TooLarge => Failure::new(
            OUT_OF_MEMORY,
            format!("The parameters exceed the memory limit of a query, {} bytes.", room.most()),
        ),
    })
}

/// The statement of a request, ready to be executed.
pub(super) async fn statements_of(
    face: &Arc<GraphFace>,
    request: &Request,
    run: Run,
    version: Version,
    operation: &Operation,
) -> Within<Arc<Statements>> {
    let room = ParameterRoom::new(face.memory.query_bytes);
    let parameters = match parameters::read(run.parameters.as_bytes(), version, &room) {
        Ok(parameters) => parameters,
        Err(fault) => return Ok(Err(unreadable(fault, &room))),
    };
    let text = StatementText {
        text: run.text,
        parameters,
        parameter_bytes: room.taken(),
        form: ResultForm::Records(version),
    };
    let statements = transactions::prepared(face, request, vec![text]).await?;
    if let Some(fault) = statements.first_fault() {
        return Ok(Err(told(face, fault)));
    }
    if !is_system(operation) {
        transactions::check_role(request, &statements)?;
        return Ok(Ok(statements));
    }
    Ok(match statements.fault_on_system() {
        Some(fault) => Err(told(face, &fault)),
        None => Ok(statements),
    })
}

/// The failure of a fault, which is counted.
pub(super) fn told(face: &GraphFace, fault: &Error) -> Failed {
    face.tally.told(fault);
    Failed(failure::of_fault(fault))
}

pub(super) fn columns_of(statements: &Statements, database: &str) -> Result<Reply, Failed> {
    let plan = statements.first_plan().ok_or_else(no_transaction)?;
    Ok(Reply::Columns(Arc::clone(plan), database.to_owned()))
}

/// The rows of a statement that was executed as a transaction of its own.
pub(super) fn finished(
    face: &GraphFace,
    results: Results,
    bookmark: Option<String>,
) -> Result<(BufferedResult, Option<String>), Failed> {
    if let Some(fault) = &results.fault {
        return Err(told(face, fault));
    }
    BufferedResult::new(results).map(|result| (result, bookmark)).ok_or_else(no_transaction)
}
