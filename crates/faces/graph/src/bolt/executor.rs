//! What a client asks for, performed: one ask after another, each through the gate.

use super::BoltOperation;
use super::failure::{self, Proof};
use super::parameters::{self, ParameterFault};
use super::results::{BufferedResult, Portion};
use super::routing::RoutingTable;
use crate::GraphFace;
use crate::body::StatementText;
use crate::bookmarks::{self, InvalidBookmark};
use crate::commit::{self, ExecutedStatements};
use crate::envelope::OUT_OF_MEMORY;
use crate::fresh::{self, WaitResult};
use crate::open::NotOpen;
use crate::parameters::ParameterRoom;
use crate::render::ResultForm;
use crate::run::{Results, StatementContext, Statements, Summary};
use crate::server_facts::ServerFacts;
use crate::transactions::{self, AccessMode, TransactionRefusal};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_bolt::{
    Ask, Auth, Failure, Fetch, FetchAmount, Hello, PackedMap, ResultPlace, Route, Run, Session,
    TextList, TransactionSettings, Version,
};
use wellspring_cypher::Plan;
use wellspring_cypher::error::Error;
use wellspring_cypher::value::Value;
use wellspring_host::http::Request;
use wellspring_host::http::operation::{Credentials, OperationClient, OperationResult};
use wellspring_host::http::routes::Operation;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::Problem;

/// The database of a client that names none.
const DEFAULT_DATABASE: &str = "neo4j";

/// What a client is told of an ask that was performed.
pub(super) enum Reply {
    /// Nothing but that it is done.
    Done,
    /// Who the server is.
    Greeting,
    /// A transaction is open on this database.
    Begun(String),
    /// The servers.
    Table(RoutingTable),
    /// The columns of a statement, and the database that was chosen.
    Columns(Arc<Plan>, String),
    /// Rows of a result: so many of them, and whether they are sent or passed over.
    Rows(Fetch, RowsWanted),
    /// A commit, at which the graph is as the bookmark says.
    Committed(Option<String>),
}

/// Whether rows are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsWanted {
    Sent,
    Discarded,
}

/// What is open on a connection.
enum Work {
    Nothing,
    /// A statement that is a transaction of its own, not executed yet.
    Prepared(Box<PreparedRun>),
    /// Its rows.
    Streaming(Box<OpenResult>),
    Transaction(Box<OpenTransaction>),
}

struct PreparedRun {
    statements: Arc<Statements>,
    settings: TransactionSettings,
    /// The log, under its own name.
    database: String,
    metadata: Vec<(Arc<str>, Value)>,
    deadline_us: Option<u64>,
}

/// A result with what its end tells.
pub(super) struct OpenResult {
    result: BufferedResult,
    pub(super) database: String,
    pub(super) bookmark: Option<String>,
}

impl OpenResult {
    pub(super) fn take(&mut self, amount: FetchAmount) -> Portion<'_> {
        self.result.take(amount)
    }

    pub(super) fn summary(&self) -> &Summary {
        self.result.summary()
    }
}

struct OpenTransaction {
    /// Its number among the open ones, as text.
    id: String,
    database: String,
    metadata: Vec<(Arc<str>, Value)>,
    deadline_us: Option<u64>,
    results: BTreeMap<i64, OpenResult>,
}

impl OpenTransaction {
    /// Whether its client's time limit has not passed, whatever it did meanwhile.
    fn check_time(&self, now_us: u64) -> Result<(), Failed> {
        match self.deadline_us {
            Some(deadline_us) if deadline_us <= now_us => Err(Failed(Failure::new(
                "Neo.ClientError.Transaction.TransactionTimedOut",
                "The transaction has lasted longer than the time limit that its client gave it.",
            ))),
            _ => Ok(()),
        }
    }
}

/// Why an ask fails: with its failure.
struct Failed(Failure);

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
type Within<T> = Result<Result<T, Failed>, Box<Problem>>;

/// Performs the asks of one connection.
pub(super) struct Executor {
    face: Arc<GraphFace>,
    client: OperationClient,
    work: Work,
    /// The address by which the client knows this server.
    known_as: Option<String>,
    version: Version,
    /// What the ask under way has done.
    pub(super) effects: Effects,
}

impl Executor {
    pub(super) fn new(face: &Arc<GraphFace>, client: Option<IpAddr>, version: Version) -> Executor {
        Executor {
            face: Arc::clone(face),
            client: OperationClient::new(&face.host, client),
            work: Work::Nothing,
            known_as: None,
            version,
            effects: Effects::default(),
        }
    }

    /// Takes the version that the client knows after its greeting.
    pub(super) fn follow(&mut self, session: &Session) {
        self.version = session.version();
    }

    /// The result whose rows are wanted, if it is open.
    pub(super) fn result(&mut self, qid: i64) -> Option<&mut OpenResult> {
        match &mut self.work {
            Work::Streaming(result) => Some(result),
            Work::Transaction(open) => open.results.get_mut(&qid),
            Work::Nothing | Work::Prepared(_) => None,
        }
    }

    /// Drops a result that was pulled to its end.
    pub(super) fn close_result(&mut self, qid: i64) {
        match &mut self.work {
            Work::Transaction(open) => drop(open.results.remove(&qid)),
            work => *work = Work::Nothing,
        }
    }

    /// Rolls back whatever is open.
    pub(super) fn reset(&mut self) {
        if let Work::Transaction(open) = std::mem::replace(&mut self.work, Work::Nothing) {
            self.face.open.end(&open.id);
        }
    }

    /// Performs an ask. Dropped before its end it is given up, unless `effects` tell that it is at
    /// the log.
    ///
    /// # Errors
    /// The failure for the client.
    pub(super) async fn perform(&mut self, ask: Ask) -> Result<Reply, Failure> {
        let performed = match ask {
            Ask::Hello(hello) => return self.greet(*hello).await,
            Ask::Logon(auth) => return self.authenticate(&auth).await.map(|()| Reply::Done),
            Ask::Logoff => {
                self.reset();
                self.forget_credentials();
                Ok(Reply::Done)
            }
            Ask::Route(route) => self.route(*route).await,
            Ask::Begin(settings) => self.begin(*settings).await,
            Ask::Run(run, ResultPlace::AutoCommit) => self.prepare(*run).await,
            Ask::Run(run, ResultPlace::Transaction { qid }) => self.run(*run, qid).await,
            Ask::Pull(fetch) => self.fetch(fetch, RowsWanted::Sent).await,
            Ask::Discard(fetch) => self.fetch(fetch, RowsWanted::Discarded).await,
            Ask::Commit => self.commit().await,
            Ask::Rollback | Ask::Reset => {
                self.reset();
                Ok(Reply::Done)
            }
        };
        performed.map_err(|Failed(failure)| failure)
    }

    async fn greet(&mut self, hello: Hello) -> Result<Reply, Failure> {
        self.known_as = hello.routing.and_then(|routing| routing.address);
        if let Some(auth) = &hello.auth {
            self.authenticate(auth).await?;
        }
        Ok(Reply::Greeting)
    }

    fn forget_credentials(&mut self) {
        // Nothing can be wrong with no credentials.
        let _ = self.client.set_credentials(&Credentials::Missing);
    }

    /// Proves the credentials of a client. A server without accounts lets everyone in, whatever the
    /// scheme.
    async fn authenticate(&mut self, auth: &Auth) -> Result<(), Failure> {
        let (account, secret) = (&*auth.principal, &*auth.credentials);
        let given = match &*auth.scheme {
            "basic" => Credentials::Password { account, password: secret },
            "bearer" => Credentials::Bearer(secret),
            "none" | "" => Credentials::Missing,
            other if self.face.host.access.has_accounts() => {
                let shown: String = other.chars().take(40).collect();
                let code = "Neo.ClientError.Security.Unauthorized";
                let what = format!("There is no scheme {shown:?}: use basic or bearer.");
                return Err(Failure::new(code, what));
            }
            _ => Credentials::Missing,
        };
        let told = |problem: Box<Problem>| failure::of_problem(&problem, Proof::Awaited);
        self.client.set_credentials(&given).map_err(told)?;
        let operation = self.face.bolt.operation(BoltOperation::Logon);
        let proved = self.client.operate(operation, "", &self.effects, async |_| {
            Ok(OperationResult { value: (), position: None })
        });
        proved.await.map_err(told)
    }

    async fn route(&mut self, route: Route) -> Result<Reply, Failed> {
        refuse_impersonation(route.imp_user.as_deref())?;
        if let Some(address) = route.routing.address {
            self.known_as = Some(address);
        }
        let database = route.db.as_deref().unwrap_or(DEFAULT_DATABASE);
        let (face, known_as) = (Arc::clone(&self.face), self.known_as.clone());
        let (operation, log) = of_database(&face, BoltOperation::Route, database);
        let told = self.client.operate(operation, log, &self.effects, async |request| {
            let mut table = RoutingTable::of(&face.host, request, known_as.as_deref());
            table.name(database);
            Ok(OperationResult { value: table, position: None })
        });
        Ok(Reply::Table(told.await?))
    }

    async fn begin(&mut self, settings: TransactionSettings) -> Result<Reply, Failed> {
        refuse_impersonation(settings.imp_user.as_deref())?;
        let metadata = metadata_of(&settings.metadata, self.version)?;
        let deadline_us = self.deadline_us(&settings);
        let database = settings.db.as_deref().unwrap_or(DEFAULT_DATABASE).to_owned();
        let face = Arc::clone(&self.face);
        let (operation, log) = of_database(&face, BoltOperation::Begin, &database);
        let mode = mode_of(&settings);
        let begun = self.client.operate(operation, log, &self.effects, async |request| {
            let bookmarks = &settings.bookmarks;
            Ok(nothing_at(open(&face, request, operation, bookmarks, mode).await))
        });
        let (id, database) = begun.await??;
        let results = BTreeMap::new();
        let reply = Reply::Begun(database.clone());
        self.work = Work::Transaction(Box::new(OpenTransaction {
            id,
            database,
            metadata,
            deadline_us,
            results,
        }));
        Ok(reply)
    }

    fn deadline_us(&self, settings: &TransactionSettings) -> Option<u64> {
        let timeout_us = settings.timeout_ms?.saturating_mul(1_000);
        Some(self.face.now_us().saturating_add(timeout_us))
    }

    /// Prepares a statement that is a transaction of its own.
    async fn prepare(&mut self, run: Run) -> Result<Reply, Failed> {
        refuse_impersonation(run.settings.imp_user.as_deref())?;
        let metadata = metadata_of(&run.settings.metadata, self.version)?;
        let deadline_us = self.deadline_us(&run.settings);
        let settings = run.settings.clone();
        let database = settings.db.as_deref().unwrap_or(DEFAULT_DATABASE);
        let face = Arc::clone(&self.face);
        let (operation, log) = of_database(&face, BoltOperation::Run, database);
        let version = self.version;
        let prepared = self.client.prepare(operation, log, async |request| {
            let value = statements_of(&face, request, run, version, operation).await?;
            let named = value.map(|statements| (statements, name_of(request, operation)));
            Ok(OperationResult { value: named, position: None })
        });
        let (statements, database) = prepared.await??;
        if let Some(fault) = mode_of(&settings).fault(&statements) {
            return Err(Failed(failure::of_fault(&fault)));
        }
        let columns = columns_of(&statements, &database)?;
        self.work = Work::Prepared(Box::new(PreparedRun {
            statements,
            settings,
            database,
            metadata,
            deadline_us,
        }));
        Ok(columns)
    }

    /// Executes a statement in the open transaction.
    async fn run(&mut self, run: Run, qid: i64) -> Result<Reply, Failed> {
        let now_us = self.face.now_us();
        let Work::Transaction(open) = &mut self.work else { return Err(no_transaction()) };
        open.check_time(now_us)?;
        let face = Arc::clone(&self.face);
        let (operation, log) = of_database(&face, BoltOperation::Run, &open.database);
        let version = self.version;
        let executed = self.client.operate(operation, log, &self.effects, async |request| {
            let statements = match statements_of(&face, request, run, version, operation).await? {
                Ok(statements) => statements,
                Err(failed) => return Ok(nothing_at(Err(failed))),
            };
            let context = context_of(&face, request, &open.metadata, open.deadline_us);
            let continued = async {
                let lent = transactions::lend(&face, request, &open.id).await?;
                transactions::go_on(&face, request, Arc::clone(&statements), &context, lent).await
            };
            let value = match continued.await {
                Ok(continued) => match &continued.results.fault {
                    Some(fault) => Err(told(&face, fault)),
                    None => Ok((statements, continued.results)),
                },
                Err(refusal) => Err(refusal.into()),
            };
            Ok(nothing_at(value))
        });
        let (statements, results) = executed.await??;
        let columns = columns_of(&statements, &open.database)?;
        if let Some(result) = BufferedResult::new(results) {
            let (database, bookmark) = (open.database.clone(), None);
            open.results.insert(qid, OpenResult { result, database, bookmark });
        }
        Ok(columns)
    }

    /// Makes sure that rows are there: a statement that is a transaction of its own is executed when
    /// its first rows are asked for.
    async fn fetch(&mut self, fetch: Fetch, wanted: RowsWanted) -> Result<Reply, Failed> {
        let rows = Reply::Rows(fetch, wanted);
        if !matches!(self.work, Work::Prepared(_)) {
            return Ok(rows);
        }
        let Work::Prepared(prepared) = std::mem::replace(&mut self.work, Work::Nothing) else {
            return Ok(rows);
        };
        let PreparedRun { statements, settings, database, metadata, deadline_us } = *prepared;
        let face = Arc::clone(&self.face);
        let (operation, log) = of_database(&face, BoltOperation::Run, &database);
        let executed = self.client.operate(operation, log, &self.effects, async |request| {
            let context = context_of(&face, request, &metadata, deadline_us);
            if is_system(operation) {
                let about = transactions::about_the_server(&face, request, &statements, &context);
                return Ok(nothing_at(finished(&face, about.await?, None)));
            }
            if let Err(failed) = wait_for(&face, request, &settings.bookmarks).await {
                return Ok(nothing_at(Err(failed)));
            }
            let ExecutedStatements { results, position } =
                commit::at_once(&face, request, statements, &context).await?;
            let bookmark = bookmarks::bookmark(&request.log_name, position);
            let value = finished(&face, results, Some(bookmark));
            Ok(OperationResult { value, position: Some(position) })
        });
        let (result, bookmark) = executed.await??;
        self.work = Work::Streaming(Box::new(OpenResult { result, database, bookmark }));
        Ok(rows)
    }

    async fn commit(&mut self) -> Result<Reply, Failed> {
        let Work::Transaction(open) = std::mem::replace(&mut self.work, Work::Nothing) else {
            return Err(no_transaction());
        };
        let face = Arc::clone(&self.face);
        if let Err(failed) = open.check_time(face.now_us()) {
            face.open.end(&open.id);
            return Err(failed);
        }
        let (operation, log) = of_database(&face, BoltOperation::Commit, &open.database);
        let committed = self.client.operate(operation, log, &self.effects, async |request| {
            if is_system(operation) {
                let ended = transactions::roll_back(&face, request, &open.id);
                let value = ended.map(|()| None).map_err(Failed::from_not_open);
                return Ok(nothing_at(value));
            }
            let context = context_of(&face, request, &open.metadata, open.deadline_us);
            let nothing = Arc::new(Statements::none());
            let committed = async {
                let lent = transactions::lend(&face, request, &open.id).await?;
                transactions::commit(&face, request, nothing, &context, lent).await
            };
            Ok(match committed.await {
                Ok(ExecutedStatements { results, position }) => {
                    let value = match &results.fault {
                        Some(fault) => Err(told(&face, fault)),
                        None => Ok(Some(bookmarks::bookmark(&request.log_name, position))),
                    };
                    OperationResult { value, position: Some(position) }
                }
                Err(TransactionRefusal::Problem(problem)) => return Err(problem),
                Err(refusal) => nothing_at(Err(refusal.into())),
            })
        });
        let committed = committed.await;
        // Whatever came of it, the transaction is over.
        face.open.end(&open.id);
        Ok(Reply::Committed(committed??))
    }
}

impl Failed {
    fn from_not_open(why: NotOpen) -> Failed {
        TransactionRefusal::NotOpen(why).into()
    }
}

fn nothing_at<T>(value: T) -> OperationResult<T> {
    OperationResult { value, position: None }
}

fn no_transaction() -> Failed {
    Failed(Failure::invalid("there is no open transaction"))
}

/// The operation on a database, and the name of its log.
fn of_database<'a>(
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

fn is_system(operation: &Operation) -> bool {
    operation.entry.route.path == BoltOperation::System.name()
}

fn name_of(request: &Request, operation: &Operation) -> String {
    if is_system(operation) { SYSTEM_LOG.to_owned() } else { request.log_name.clone() }
}

fn mode_of(settings: &TransactionSettings) -> AccessMode {
    match settings.mode {
        wellspring_bolt::AccessMode::Write => AccessMode::Write,
        wellspring_bolt::AccessMode::Read => AccessMode::Read,
    }
}

fn refuse_impersonation(user: Option<&str>) -> Result<(), Failed> {
    match user {
        None => Ok(()),
        Some(_) => Err(Failed(Failure::new(
            "Neo.ClientError.Security.Forbidden",
            "Impersonation is not supported: log on as that account.",
        ))),
    }
}

/// Opens a transaction: its id, and the name of its database.
async fn open(
    face: &GraphFace,
    request: &Request,
    operation: &Operation,
    bookmarks: &TextList,
    mode: AccessMode,
) -> Result<(String, String), Failed> {
    if is_system(operation) {
        let lent = transactions::open_empty(face, request)?;
        return Ok((transactions::keep(face, lent)?, SYSTEM_LOG.to_owned()));
    }
    wait_for(face, request, bookmarks).await?;
    let lent = transactions::open(face, request, mode).await?;
    Ok((transactions::keep(face, lent)?, request.log_name.clone()))
}

/// Waits for what bookmarks name.
async fn wait_for(face: &GraphFace, request: &Request, given: &TextList) -> Result<(), Failed> {
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

fn context_of(
    face: &GraphFace,
    request: &Request,
    metadata: &[(Arc<str>, Value)],
    deadline_us: Option<u64>,
) -> StatementContext {
    let context = transactions::context(face, request);
    if metadata.is_empty() {
        return StatementContext { deadline_us, ..context };
    }
    let server = Arc::new(ServerFacts {
        host: Arc::clone(&face.host),
        principal: Arc::clone(&request.principal),
        csv_folder: face.csv_folder.clone(),
        metadata: metadata.to_vec(),
    });
    StatementContext { deadline_us, server, ..context }
}

fn metadata_of(packed: &PackedMap, version: Version) -> Result<Vec<(Arc<str>, Value)>, Failed> {
    let room = ParameterRoom::new(1 << 20);
    let read = parameters::read(packed.as_bytes(), version, &room);
    read.map(|entries| entries.into_iter().collect()).map_err(|fault| unreadable(fault, &room))
}

fn unreadable(fault: ParameterFault, room: &ParameterRoom) -> Failed {
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
async fn statements_of(
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
    let statements = transactions::admitted(face, request, vec![text]).await?;
    if let Some(fault) = statements.first_fault() {
        return Ok(Err(told(face, fault)));
    }
    let on_system = is_system(operation).then(|| statements.fault_on_system()).flatten();
    Ok(match on_system {
        Some(fault) => Err(told(face, &fault)),
        None => Ok(statements),
    })
}

/// The failure of a fault, which is counted.
fn told(face: &GraphFace, fault: &Error) -> Failed {
    face.tally.told(fault);
    Failed(failure::of_fault(fault))
}

fn columns_of(statements: &Statements, database: &str) -> Result<Reply, Failed> {
    let plan = statements.first_plan().ok_or_else(no_transaction)?;
    Ok(Reply::Columns(Arc::clone(plan), database.to_owned()))
}

/// The rows of a statement that was executed as a transaction of its own.
fn finished(
    face: &GraphFace,
    results: Results,
    bookmark: Option<String>,
) -> Result<(BufferedResult, Option<String>), Failed> {
    if let Some(fault) = &results.fault {
        return Err(told(face, fault));
    }
    BufferedResult::new(results).map(|result| (result, bookmark)).ok_or_else(no_transaction)
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.reset();
    }
}
