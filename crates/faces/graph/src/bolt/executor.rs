//! What a client asks for, performed: one ask after another, each through the gate.

use super::BoltOperation;
use super::failure::{self, Proof};
use super::preparation::{
    Failed, columns_of, context_of, finished, is_system, metadata_of, mode_of, no_transaction,
    nothing_at, of_database, open, refuse_impersonation, statements_of, told, wait_for,
};
use super::results::{BufferedResult, Portion};
use super::routing::RoutingTable;
use crate::GraphFace;
use crate::bookmarks;
use crate::commit::{self, ExecutedStatements};
use crate::open::NotOpen;
use crate::run::{Statements, Summary};
use crate::transactions::{self, TransactionRefusal};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_bolt::{
    Ask, Auth, Failure, Fetch, FetchAmount, Hello, ResultPlace, Route, Run, Session,
    TransactionSettings, Version,
};
use wellspring_cypher::Plan;
use wellspring_cypher::value::Value;
use wellspring_host::http::Request;
use wellspring_host::http::operation::{Credentials, OperationClient, OperationResult};
use wellspring_host::http::work::Job;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::Log;
use wellspring_types::HistoryId;

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
    /// What was open has been dropped, because its client did nothing for too long.
    Expired,
}

struct PreparedRun {
    statements: Arc<Statements>,
    settings: TransactionSettings,
    database: String,
    metadata: Vec<(Arc<str>, Value)>,
    deadline_us: Option<u64>,
    /// Holds the memory of its parameters.
    _held: Job,
    /// The history of its log: another log may have the name by the time it is executed.
    history: Option<HistoryId>,
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
            Work::Nothing | Work::Prepared(_) | Work::Expired => None,
        }
    }

    /// Drops a result that was pulled to its end.
    pub(super) fn close_result(&mut self, qid: i64) {
        match &mut self.work {
            Work::Transaction(open) => drop(open.results.remove(&qid)),
            work => *work = Work::Nothing,
        }
    }

    /// Whether anything is open.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.work, Work::Nothing | Work::Expired)
    }

    /// Drops what is open, because its client has done nothing for too long: its next message is
    /// told so.
    pub(super) fn expire(&mut self) {
        self.reset();
        self.work = Work::Expired;
    }

    /// Counts memory for what the client has sent; whether there is enough.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        self.client.hold(bytes).is_ok()
    }

    /// Why a transaction or a result is not open.
    fn not_open(&self) -> Failed {
        match self.work {
            Work::Expired => TransactionRefusal::NotOpen(NotOpen::Unknown).into(),
            _ => no_transaction(),
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
        let id = begun.await??;
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
        // Under the name by which it was asked for, which drivers compare.
        let database = settings.db.as_deref().unwrap_or(DEFAULT_DATABASE).to_owned();
        let face = Arc::clone(&self.face);
        let (operation, log) = of_database(&face, BoltOperation::Run, &database);
        let version = self.version;
        let prepared = self.client.prepare(operation, log, async |request| {
            let value = statements_of(&face, request, run, version, operation).await?;
            let held = match value {
                Ok(statements) => {
                    let mut job = face.host.job(request)?;
                    job.hold(statements.parameter_bytes())?;
                    Ok((statements, job, history_of(request)))
                }
                Err(failed) => Err(failed),
            };
            Ok(nothing_at(held))
        });
        let (statements, held, history) = prepared.await??;
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
            _held: held,
            history,
        }));
        Ok(columns)
    }

    /// Executes a statement in the open transaction.
    async fn run(&mut self, run: Run, qid: i64) -> Result<Reply, Failed> {
        let (now_us, not_open) = (self.face.now_us(), self.not_open());
        let Work::Transaction(open) = &mut self.work else { return Err(not_open) };
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

    /// Makes sure that rows are there: a statement that is a transaction of its own is executed
    /// when its first rows are asked for.
    async fn fetch(&mut self, fetch: Fetch, wanted: RowsWanted) -> Result<Reply, Failed> {
        let rows = Reply::Rows(fetch, wanted);
        match self.work {
            Work::Prepared(_) => {}
            Work::Expired => return Err(self.not_open()),
            _ => {
                // The account may have been disabled since its rows were found.
                self.client.still_may()?;
                return Ok(rows);
            }
        }
        let Work::Prepared(prepared) = std::mem::replace(&mut self.work, Work::Nothing) else {
            return Ok(rows);
        };
        let PreparedRun { statements, settings, database, metadata, deadline_us, _held, history } =
            *prepared;
        let face = Arc::clone(&self.face);
        let (operation, log) = of_database(&face, BoltOperation::Run, &database);
        let executed = self.client.operate(operation, log, &self.effects, async |request| {
            let context = context_of(&face, request, &metadata, deadline_us);
            if is_system(operation) {
                let about = transactions::about_the_server(&face, request, &statements, &context);
                return Ok(nothing_at(finished(&face, about.await?, None)));
            }
            if history_of(request) != history {
                return Err(problem::no_such_log(&request.log_name));
            }
            // The account may have lost a role since the statement was prepared.
            transactions::check_role(request, &statements)?;
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
        if let Work::Expired = self.work {
            return Err(self.not_open());
        }
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

fn history_of(request: &Request) -> Option<HistoryId> {
    request.log.as_ref().and_then(Log::history)
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.reset();
    }
}
