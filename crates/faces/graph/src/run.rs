//! Executes statements on a transaction: here while they are short, otherwise in the room for long
//! work.

use crate::body::StatementText;
use crate::render::{Place, ResultForm};
use crate::server_facts::ServerFacts;
use crate::view::CommitTransaction;
use std::sync::Arc;
use wellspring_cypher::context::{Budget, Grant, Parameters, Pool, StatementTime, Stop};
use wellspring_cypher::error::{Detail, Error, ErrorKind};
use wellspring_cypher::{Access, BuiltIn, Environment, Flow, Plan, PlanCache, run};
use wellspring_graph::{GraphError, Statistics, Transaction, Violation};
use wellspring_host::http::work::{Cost, Job};
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Stopped, Work};

/// Steps and bytes that statements may take on a serving thread, their texts and parameters apart:
/// some tens of µs. Longer ones start again elsewhere, and those with more bytes begin there.
const SHORT_STEPS: u64 = 2_048;
const SHORT_BYTES: u64 = 1 << 18;
/// Size of a result apart from its columns and rows, mostly its statistics.
const RESULT_BYTES: usize = 400;
/// The same for work of some ms: it queues elsewhere, without one of the few permits for long work.
const BRIEF_STEPS: u64 = 1 << 16;
const BRIEF_BYTES: u64 = 1 << 20;

/// Words and signs of new texts that a serving thread parses: some ms.
const SHORT_TOKENS: usize = 400;
/// Bytes of texts that are not looked at for that: the tokens in them are fewer.
const SHORT_TEXT_BYTES: usize = 256;
/// Characters of a statement in the operator's log.
const SHOWN_CHARACTERS: usize = 200;

/// The statements of a request, as far as they can be executed.
pub(crate) struct Statements {
    /// Those before the first faulty one.
    ready: Vec<ReadyStatement>,
    /// Size of all texts and parameters, in bytes.
    bytes: u64,
    /// The fault of the next.
    fault: Option<Error>,
}

struct ReadyStatement {
    text: String,
    plan: Arc<Plan>,
    parameters: Parameters,
    parameter_bytes: usize,
    form: ResultForm,
}

impl Statements {
    /// Prepares them, in order, up to the first faulty one.
    pub(crate) fn prepare(texts: Vec<StatementText>, plans: &PlanCache) -> Statements {
        let mut ready = Vec::with_capacity(texts.len());
        let mut bytes = 0;
        for given in texts {
            bytes += (given.text.len() + given.parameter_bytes) as u64;
            match plans.get(&given.text, &BuiltIn) {
                Ok(plan) => ready.push(ReadyStatement {
                    text: given.text,
                    plan,
                    parameters: given.parameters,
                    parameter_bytes: given.parameter_bytes,
                    form: given.form,
                }),
                Err(fault) => return Statements { ready, bytes, fault: Some(fault) },
            }
        }
        Statements { ready, bytes, fault: None }
    }

    /// What [`prepare`](Self::prepare) costs: the parser's time depends on the words and signs of
    /// those texts whose plans are not known.
    pub(crate) fn cost(texts: &[StatementText], plans: &PlanCache) -> Cost {
        let bytes: usize = texts.iter().map(|given| given.text.len()).sum();
        if bytes <= SHORT_TEXT_BYTES {
            return Cost::Cheap;
        }
        let unknown = texts.iter().map(|given| &*given.text).filter(|text| !plans.has(text));
        let tokens: usize = unknown.map(wellspring_cypher::count_tokens).sum();
        if tokens > SHORT_TOKENS { Cost::Expensive } else { Cost::Cheap }
    }

    /// Size of all texts and parameters, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Whether a serving thread may begin them.
    fn are_small(&self) -> bool {
        self.bytes <= SHORT_BYTES
    }

    /// The beginning of the first one, for the operator's log: without parameters.
    fn shown(&self) -> Arc<str> {
        let text = self.ready.first().map_or("", |statement| &statement.text);
        text.chars().take(SHOWN_CHARACTERS).collect::<String>().into()
    }

    /// Whether any may change the graph.
    pub(crate) fn write(&self) -> bool {
        self.ready.iter().any(|statement| statement.plan.access() > Access::Read)
    }

    /// No statements.
    pub(crate) fn none() -> Statements {
        Statements { ready: Vec::new(), bytes: 0, fault: None }
    }

    /// The plan of the first statement.
    pub(crate) fn first_plan(&self) -> Option<&Arc<Plan>> {
        self.ready.first().map(|statement| &statement.plan)
    }

    /// The fault of the first statement, if its text is faulty: nothing can be executed.
    pub(crate) fn first_fault(&self) -> Option<&Error> {
        self.fault.as_ref().filter(|_| self.ready.is_empty())
    }

    /// The fault of the first statement that is about a graph, where there is none.
    pub(crate) fn fault_on_system(&self) -> Option<Error> {
        let is_about_graph = |statement: &ReadyStatement| statement.plan.needs_graph();
        self.ready.iter().any(is_about_graph).then(|| {
            let message = "The database system is no graph: it answers SHOW DATABASES, SHOW \
                           PROCEDURES and other statements about the server. Use another database.";
            Error::compile(ErrorKind::SemanticError, Detail::Unsupported, message)
        })
    }

    /// Number of read-only and of writing statements.
    pub(crate) fn count(&self) -> (u64, u64) {
        let writing = self.ready.iter().filter(|one| one.plan.access() > Access::Read).count();
        ((self.ready.len() - writing) as u64, writing as u64)
    }

    /// Approximate size of the parameters in bytes.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.ready.iter().map(|statement| statement.parameter_bytes).sum()
    }

    /// Whether any changes the schema, which visits everything with a label.
    fn change_schema(&self) -> bool {
        self.ready.iter().any(|statement| statement.plan.access() == Access::Schema)
    }

    /// Whether there is nothing to execute.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.fault.is_none()
    }

    fn run(
        &self,
        transaction: &mut Transaction,
        context: &StatementContext,
        budget: &mut Budget,
    ) -> Results {
        let mut results = Results::of(None);
        for (index, statement) in self.ready.iter().enumerate() {
            let begun_at = results.bytes.len();
            if index > 0 {
                results.bytes.push(b',');
            }
            let summary = Summary::of(&statement.plan);
            let summary = results.summary.insert(summary);
            let ran = statement.run(transaction, context, budget, &mut results.bytes, summary);
            if let Err(fault) = ran {
                if fault.phase == wellspring_cypher::error::Phase::Compile {
                    // As if its text had been faulty: it has no columns.
                    results.bytes.truncate(begun_at);
                    results.summary = None;
                }
                results.fault = Some(fault);
                return results;
            }
        }
        results.fault = self.fault.clone();
        results
    }
}

impl ReadyStatement {
    fn run(
        &self,
        transaction: &mut Transaction,
        context: &StatementContext,
        budget: &mut Budget,
        out: &mut Vec<u8>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let environment = Environment {
            parameters: &self.parameters,
            database: &context.database,
            time: context.time,
            seed: context.seed,
            server: &*context.server,
        };
        let begun_with = out.len();
        self.form.begin(out, self.plan.columns());
        budget.charge_bytes((out.len() - begun_with + RESULT_BYTES) as u64)?;
        let rows_at = out.len();
        let bytes_left = budget.bytes_left();
        let executed =
            run(&self.plan, transaction, &environment, budget, &mut |row, transaction, budget| {
                let begun_at = out.len();
                let left = usize::try_from(budget.bytes_left()).unwrap_or(usize::MAX);
                let most = begun_at.saturating_add(left);
                let place = Place { transaction, database: &context.database, most };
                self.form.push_row(out, row, summary.rows, &place);
                summary.rows += 1;
                if out.len() > most {
                    return Err(too_large(bytes_left));
                }
                budget.charge_bytes((out.len() - begun_at) as u64)?;
                Ok(Flow::Continue)
            });
        match executed {
            Ok(statistics) => {
                summary.statistics = statistics;
                self.form.end(out, Some(summary), &context.database);
                Ok(())
            }
            Err(fault) => {
                if fault.kind == ErrorKind::ResourceExhausted {
                    // The rows may be incomplete, and there is no room for them.
                    out.truncate(rows_at);
                    summary.rows = 0;
                }
                self.form.end(out, None, &context.database);
                Err(fault)
            }
        }
    }
}

fn too_large(most: u64) -> Error {
    let detail = Detail::LimitExceeded;
    let message = format!("The result exceeds its limit of {most} bytes.");
    Error::runtime(ErrorKind::ResourceExhausted, detail, message)
}

/// External inputs of statements.
#[derive(Clone)]
pub(crate) struct StatementContext {
    /// The name of the database in ids of elements.
    pub(crate) database: Arc<str>,
    /// Their start time.
    pub(crate) time: StatementTime,
    /// The seed of `rand()`.
    pub(crate) seed: u64,
    /// What they can ask of the server.
    pub(crate) server: Arc<ServerFacts>,
    /// When their client wants them ended, on the monotonic clock in µs.
    pub(crate) deadline_us: Option<u64>,
}

/// What is known of the last statement that was executed, apart from its rows.
#[derive(Clone)]
pub(crate) struct Summary {
    pub(crate) plan: Arc<Plan>,
    /// Rows that were written.
    pub(crate) rows: u64,
    /// What it changed; nothing if it failed.
    pub(crate) statistics: Statistics,
}

impl Summary {
    fn of(plan: &Arc<Plan>) -> Summary {
        Summary { plan: Arc::clone(plan), rows: 0, statistics: Statistics::default() }
    }

    /// What the statement does, in Neo4j's letters: reads, writes, both, or changes the schema.
    pub(crate) fn query_type(&self) -> &'static str {
        match self.plan.access() {
            Access::Read => "r",
            Access::Write if self.plan.columns().is_empty() => "w",
            Access::Write => "rw",
            Access::Schema => "s",
        }
    }
}

/// The results of statements.
pub(crate) struct Results {
    /// The results in the form of their statements.
    pub(crate) bytes: Vec<u8>,
    /// The fault that ended them, if any.
    pub(crate) fault: Option<Error>,
    /// The last statement that was executed, at least in part.
    pub(crate) summary: Option<Summary>,
    /// The memory granted to them and their transaction.
    grant: Option<Grant>,
}

impl Results {
    /// Of statements that were not executed.
    pub(crate) fn of(fault: Option<Error>) -> Results {
        Results { bytes: Vec::new(), fault, summary: None, grant: None }
    }
}

/// The result of an attempt to execute statements.
pub(crate) struct Attempt {
    /// Their results.
    pub(crate) results: Results,
    /// The transaction, if it stays open.
    pub(crate) transaction: Option<Transaction>,
    /// The transaction, if it is to be committed.
    pub(crate) commit: Option<CommitTransaction>,
}

impl Attempt {
    /// `None` if it exceeded its budget here.
    fn within_budget(self) -> Option<Attempt> {
        let fault = self.results.fault.as_ref();
        let is_longer = fault.is_some_and(|fault| fault.kind == ErrorKind::ResourceExhausted);
        (!is_longer).then_some(self)
    }
}

/// Memory for statements beyond a small amount.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    /// Maximum for one request, in bytes.
    pub(crate) query_bytes: usize,
    /// The shared pool.
    pub(crate) pool: Arc<Pool>,
}

/// The fate of the transaction after its statements.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TransactionEnd {
    /// It stays open.
    KeepOpen,
    /// It is committed: the number of failed staged commits when it began, if it began with a
    /// staged one, and a unique number for its parts.
    Commit { setbacks: Option<u64>, number: u128 },
}

/// A transaction to execute statements in, and its fate after them.
pub(crate) struct BegunTransaction {
    pub(crate) transaction: Transaction,
    /// What becomes of it.
    pub(crate) end: TransactionEnd,
}

/// Executes statements, and finishes the transaction if requested. A fault drops the transaction.
fn attempt(
    statements: &Statements,
    begun: BegunTransaction,
    context: &StatementContext,
    mut budget: Budget,
) -> Attempt {
    let BegunTransaction { mut transaction, end } = begun;
    let mut results = match budget.charge_written(|| transaction.written_bytes()) {
        Ok(()) => statements.run(&mut transaction, context, &mut budget),
        Err(fault) => Results::of(Some(fault)),
    };
    let (mut open, mut commit) = (None, None);
    if results.fault.is_none() {
        match end {
            TransactionEnd::KeepOpen => open = Some(transaction),
            TransactionEnd::Commit { setbacks, number } => {
                let bytes = || transaction.written_bytes() + transaction.finishing_bytes();
                let room = budget.charge_written(bytes);
                let finished =
                    room.and_then(|()| finish(transaction, setbacks, number).map_err(of_violation));
                match finished {
                    Ok(finished) => commit = Some(finished),
                    Err(fault) => results.fault = Some(fault),
                }
            }
        }
    }
    results.grant = budget.into_grant();
    Attempt { results, transaction: open, commit }
}

/// The commit of a transaction.
pub(crate) fn finish(
    transaction: Transaction,
    setbacks: Option<u64>,
    number: u128,
) -> Result<CommitTransaction, Violation> {
    let prepared = transaction.finish()?.prepare();
    let events = prepared.events(number)?;
    Ok(CommitTransaction { prepared, events, setbacks })
}

/// A violated constraint as an error of a statement.
pub(crate) fn of_violation(violation: Violation) -> Error {
    GraphError::from(violation).into()
}

/// The transaction of statements, for one attempt after another.
#[allow(clippy::large_enum_variant)] // one a request, on the stack
pub(crate) enum Begin<'a> {
    /// Each attempt begins another transaction.
    Anew(&'a mut (dyn FnMut() -> BegunTransaction + Send)),
    /// An open one: attempts that may be repeated work on copies.
    Open(BegunTransaction),
}

impl Begin<'_> {
    /// For an attempt that may be repeated. `None` if a copy would be large.
    fn repeatable(&mut self) -> Option<BegunTransaction> {
        match self {
            Begin::Anew(begin) => Some(begin()),
            Begin::Open(open) => {
                let transaction = open.transaction.small_copy()?;
                Some(BegunTransaction { transaction, end: open.end })
            }
        }
    }

    /// For the last attempt.
    fn last(self) -> BegunTransaction {
        match self {
            Begin::Anew(begin) => begin(),
            Begin::Open(open) => open,
        }
    }
}

/// Executes statements: here if they are short, otherwise in the room for work of some ms, and
/// otherwise in that for long work. Each attempt starts again.
///
/// # Errors
/// As of [`Job::long`]: 429 and 503.
pub(crate) async fn execute(
    job: &mut Job,
    statements: &Arc<Statements>,
    mut begin: Begin<'_>,
    context: &StatementContext,
    memory: &Memory,
) -> Result<Attempt, Box<Problem>> {
    if !statements.change_schema() {
        if statements.are_small()
            && let Some(begun) = begin.repeatable()
            && let Some(short) = short_attempt(job, statements, begun, context)
        {
            return Ok(short);
        }
        if let Some(begun) = begin.repeatable()
            && let Some(brief) = brief_attempt(job, statements, begun, context).await?
        {
            return Ok(brief);
        }
    }
    execute_elsewhere(job, statements, begin.last(), context, memory).await
}

/// An attempt on the serving thread. `None` if it takes too long there.
fn short_attempt(
    job: &mut Job,
    statements: &Statements,
    begun: BegunTransaction,
    context: &StatementContext,
) -> Option<Attempt> {
    let attempt = job.timed(|| {
        let budget = Budget::new(SHORT_STEPS, SHORT_BYTES, || None);
        attempt(statements, begun, context, budget)
    });
    attempt.within_budget()
}

/// An attempt in the room for work of some ms. `None` if it takes longer.
///
/// # Errors
/// 500, logged: the work panicked.
async fn brief_attempt(
    job: &mut Job,
    statements: &Arc<Statements>,
    begun: BegunTransaction,
    context: &StatementContext,
) -> Result<Option<Attempt>, Box<Problem>> {
    job.name(statements.shown());
    let (statements, context) = (Arc::clone(statements), context.clone());
    job.brief_within(move |work| {
        let budget = Budget::new(BRIEF_STEPS, BRIEF_BYTES, asks(work));
        attempt(&statements, begun, &context, budget).within_budget()
    })
    .await
}

/// Executes statements in the room for long work, within their time limit.
///
/// # Errors
/// As of [`Job::long`]: 429 and 503.
async fn execute_elsewhere(
    job: &mut Job,
    statements: &Arc<Statements>,
    begun: BegunTransaction,
    context: &StatementContext,
    memory: &Memory,
) -> Result<Attempt, Box<Problem>> {
    job.name(statements.shown());
    let (statements, context) = (Arc::clone(statements), context.clone());
    let Memory { query_bytes, pool } = memory.clone();
    // Dropping the waiting future ends the work.
    job.long(move |work| {
        let budget = Budget::new(u64::MAX, query_bytes as u64, asks(work)).sharing(&pool);
        attempt(&statements, begun, &context, budget)
    })
    .await
}

/// Asks bounded work whether to continue, and yields to others.
fn asks(mut work: Work) -> impl FnMut() -> Option<Stop> + Send {
    move || match work.step(4_096) {
        Ok(()) => None,
        Err(Stopped::Cancelled) => Some(Stop::Cancelled),
        Err(_) => Some(Stop::Deadline),
    }
}
