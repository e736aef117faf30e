//! Statements: prepared once, run as often as wanted.

use std::sync::Arc;

use crate::context::{Budget, Context, Names, Parameters, Patterns, StatementTime, Subqueries};
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::execute;
use crate::ir::{SchemaChange, StatementBody};
use crate::plan::{self, QueryPlan, SubqueryPlan};
use crate::procedure::Procedures;
use crate::syntax;
use crate::value::Value;
use wellspring_graph::{Statistics, Transaction};
use wellspring_types::random::SplitMix64;

pub use crate::execute::Flow;

/// What a statement may do to the graph: known before it is run, so that rights can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// It only reads.
    Read,
    /// It may change data.
    Write,
    /// It changes indexes or constraints, and must be alone in its transaction.
    Schema,
}

/// A statement that is ready to be run. It depends on no graph and can be shared.
pub struct Plan {
    columns: Vec<Arc<str>>,
    parameters: Vec<Arc<str>>,
    access: Access,
    explain: bool,
    width: usize,
    deep: bool,
    body: Body,
}

/// Everything that may be nested deeply.
#[derive(Default)]
struct Body {
    query: Option<QueryPlan>,
    subqueries: Vec<SubqueryPlan>,
    schema: Option<SchemaChange>,
}

/// Reads a statement and decides how it is executed.
///
/// # Errors
/// Whatever is wrong with the text: all that can be said without the graph and the parameters.
pub fn prepare(text: &str, procedures: &dyn Procedures) -> Result<Arc<Plan>> {
    let syntax::Parsed { statement, parameters, deep } = syntax::parse(text, procedures)?;
    syntax::with_stack(deep, || {
        let (query, subqueries) = plan::compile(&statement, procedures)?;
        let (columns, access, schema) = match statement.body {
            StatementBody::Query(query) => {
                let access = if plan::writes(&query) { Access::Write } else { Access::Read };
                (query.columns, access, None)
            }
            StatementBody::Schema(change) => (Vec::new(), Access::Schema, Some(change)),
        };
        let (explain, width) = (statement.explain, statement.width);
        let body = Body { query, subqueries, schema };
        Ok(Arc::new(Plan { columns, parameters, access, explain, width, deep, body }))
    })
}

impl Plan {
    /// The names of the columns; empty if it returns nothing.
    pub fn columns(&self) -> &[Arc<str>] {
        &self.columns
    }

    /// What it may do to the graph.
    pub fn access(&self) -> Access {
        if self.explain { Access::Read } else { self.access }
    }

    /// The parameters it reads.
    pub fn parameters(&self) -> &[Arc<str>] {
        &self.parameters
    }

    /// `EXPLAIN`: it is not executed.
    pub fn is_explained(&self) -> bool {
        self.explain
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

/// What comes with a statement from outside.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Values by the names of parameters.
    pub parameters: &'a Parameters,
    /// What `elementId()` calls the database.
    pub database: &'a str,
    /// When the statement began.
    pub time: StatementTime,
    /// What `rand()` begins with.
    pub seed: u64,
}

/// Takes the values of a row's columns. Nodes and relationships among them can be looked up in the
/// transaction; what it keeps is charged to the budget.
pub type RowSink<'s> = dyn FnMut(&[Value], &Transaction, &mut Budget) -> Result<Flow> + 's;

/// Runs a statement on a transaction. Rows go to the sink one by one; those of a statement that
/// writes are told to nobody before the transaction is committed. What the statement changed is
/// what it adds to the transaction's statistics.
///
/// # Errors
/// Whatever the statement runs into; the transaction must be dropped then.
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
            execute::change_schema(change, transaction)?;
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
        subqueries: plan,
    };
    execute::run_query(query, &mut row, &mut context, &mut |columns, _, context| {
        rows(columns, context.transaction, context.budget)
    })?;
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
