//! Statements: prepared once, run any number of times.

use std::sync::Arc;

use crate::context::{
    Budget, Context, FoundTables, Names, Parameters, Patterns, StatementTime, Subqueries,
};
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::execute;
use crate::ir::{SchemaChange, StatementBody};
use crate::plan::{self, PlanStep, QueryPlan, SubqueryPlan};
use crate::procedure::Procedures;
use crate::server::Server;
use crate::syntax;
use crate::value::Value;
use wellspring_graph::{Statistics, Transaction};
use wellspring_types::random::SplitMix64;

pub use crate::execute::Flow;

/// The access that a statement needs. It is known before the statement runs, so that authorization
/// can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read-only.
    Read,
    /// It may change data.
    Write,
    /// It changes indexes or constraints, and must be alone in its transaction.
    Schema,
}

/// A prepared statement. It depends on no graph and can be shared.
pub struct Plan {
    columns: Vec<Arc<str>>,
    parameters: Vec<Arc<str>>,
    access: Access,
    needs_graph: bool,
    explain: bool,
    width: usize,
    deep: bool,
    body: Body,
}

/// The parts that can be nested deeply.
#[derive(Default)]
struct Body {
    query: Option<QueryPlan>,
    subqueries: Vec<SubqueryPlan>,
    schema: Option<SchemaChange>,
}

/// Parses and plans a statement.
///
/// # Errors
/// Everything wrong with the text that can be detected without the graph and the parameters.
pub fn prepare(text: &str, procedures: &dyn Procedures) -> Result<Arc<Plan>> {
    let syntax::ParsedStatement { statement, parameters, deep } = syntax::parse(text, procedures)?;
    syntax::with_stack(deep, || {
        let (query, subqueries) = plan::compile(&statement, procedures)?;
        let needs_graph = plan::needs_graph(&statement);
        if statement.subqueries.iter().any(|subquery| plan::writes(&subquery.query)) {
            let message = "A subquery in an expression cannot change the graph";
            let detail = Detail::InvalidClauseComposition;
            return Err(Error::compile(ErrorKind::SyntaxError, detail, message));
        }
        let (columns, access, schema) = match statement.body {
            StatementBody::Query(query) => {
                let access = if plan::writes(&query) { Access::Write } else { Access::Read };
                (query.columns, access, None)
            }
            StatementBody::Schema(change) => (Vec::new(), Access::Schema, Some(change)),
        };
        let (explain, width) = (statement.explain, statement.width);
        let body = Body { query, subqueries, schema };
        Ok(Arc::new(Plan { columns, parameters, access, needs_graph, explain, width, deep, body }))
    })
}

impl Plan {
    /// The names of the columns; empty if it returns nothing.
    pub fn columns(&self) -> &[Arc<str>] {
        &self.columns
    }

    /// The access that it needs.
    pub fn access(&self) -> Access {
        if self.explain { Access::Read } else { self.access }
    }

    /// Whether it is about a graph. The others can be answered where there is none: expressions,
    /// and procedures about the server.
    pub fn needs_graph(&self) -> bool {
        self.needs_graph
    }

    /// The parameters it reads.
    pub fn parameters(&self) -> &[Arc<str>] {
        &self.parameters
    }

    /// For `EXPLAIN`, by which a query is not executed: its operators.
    pub fn explained(&self) -> Option<PlanStep> {
        let query = self.body.query.as_ref().filter(|_| self.explain)?;
        // Nested queries may be nested deeply.
        Some(syntax::with_stack(self.deep, || plan::describe(query, &self.columns)))
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let body = std::mem::take(&mut self.body);
        syntax::with_stack(self.deep, || drop(body));
    }
}

impl Subqueries for Plan {
    fn evaluate(
        &self,
        number: usize,
        row: &mut [Value],
        context: &mut Context<'_>,
    ) -> Result<Value> {
        let plan = self.body.subqueries.get(number);
        let plan = plan.ok_or_else(|| Error::defect(format!("no subquery {number}")))?;
        execute::subquery(plan, row, context)
    }
}

/// The inputs of a statement.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Values by parameter name.
    pub parameters: &'a Parameters,
    /// The database's name in element ids.
    pub database: &'a str,
    /// When the statement began.
    pub time: StatementTime,
    /// The seed of `rand()`.
    pub seed: u64,
    /// The server around the graph.
    pub server: &'a dyn Server,
}

/// Takes the values of a row's columns. Nodes and relationships among them can be read in the
/// transaction; memory that it keeps is charged to the budget.
pub type RowSink<'s> = dyn FnMut(&[Value], &Transaction, &mut Budget) -> Result<Flow> + 's;

/// Runs a statement on a transaction. Rows go to the sink one by one; those of a writing statement
/// must not be sent to the client before the transaction is committed. The statement's changes are
/// added to the transaction's statistics.
///
/// # Errors
/// Any error of the statement; the transaction must then be dropped.
pub fn run(
    plan: &Plan,
    transaction: &mut Transaction,
    environment: &Environment<'_>,
    budget: &mut Budget,
    rows: &mut RowSink<'_>,
) -> Result<Statistics> {
    transaction.take_statistics();
    check_parameters(plan, environment.parameters)?;
    if plan.explain {
        return Ok(Statistics::default());
    }
    syntax::with_stack(plan.deep, || {
        if let Some(change) = &plan.body.schema {
            execute::change_schema(change, environment.parameters, transaction)?;
        }
        if let Some(query) = &plan.body.query {
            run_query(plan, query, transaction, environment, budget, rows)?;
        }
        transaction.check()?;
        Ok(transaction.take_statistics())
    })
}

fn run_query(
    plan: &Plan,
    query: &QueryPlan,
    transaction: &mut Transaction,
    environment: &Environment<'_>,
    budget: &mut Budget,
    rows: &mut RowSink<'_>,
) -> Result<()> {
    let mut row = vec![Value::Null; plan.width];
    let mut context = Context {
        transaction,
        parameters: environment.parameters,
        database: environment.database,
        time: environment.time,
        random: &mut SplitMix64::new(environment.seed),
        budget,
        patterns: Patterns::default(),
        names: Names::default(),
        known: FoundTables::default(),
        subqueries: plan,
        server: environment.server,
    };
    execute::run_query(query, &mut row, &mut context, &mut |columns, _, context| {
        rows(columns, context.transaction, context.budget)
    })?;
    context.known.close(context.budget);
    Ok(())
}

fn check_parameters(plan: &Plan, parameters: &Parameters) -> Result<()> {
    let mut missing =
        plan.parameters.iter().filter(|name| !parameters.contains_key(*name)).peekable();
    if missing.peek().is_none() {
        return Ok(());
    }
    let names: Vec<&str> = missing.map(|name| &**name).collect();
    let message = format!("Expected parameter(s): {}", names.join(", "));
    Err(Error::compile(ErrorKind::ParameterMissing, Detail::MissingParameter, message))
}
