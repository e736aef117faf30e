//! The environment of a statement's execution: everything an expression can read apart from its
//! row.

mod budget;
mod names;
mod patterns;
mod pool;
mod sort;
mod tables;

pub use budget::{Budget, Stop};
pub use names::Names;
pub use patterns::{MOST_PATTERN_BYTES, Patterns};
pub use pool::{Grant, Pool, PoolEmpty};
pub use sort::sorted;
pub use tables::FoundTables;
pub(crate) use tables::{JoinState, JoinTable, LONG_LIST};

use crate::error::{Error, Result};
use crate::server::Server;
use crate::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use wellspring_graph::Transaction;
use wellspring_types::random::SplitMix64;

/// Values by parameter name.
pub type Parameters = BTreeMap<Arc<str>, Value>;

/// The environment of one statement's execution.
pub struct Context<'a> {
    /// The transaction in which the statement runs.
    pub transaction: &'a mut Transaction,
    /// The statement's parameters.
    pub parameters: &'a Parameters,
    /// The database's name in element ids: the middle of `4:…:7`.
    pub database: &'a str,
    /// When the statement began.
    pub time: StatementTime,
    /// The source of `rand()`.
    pub random: &'a mut SplitMix64,
    /// The statement's remaining budget.
    pub budget: &'a mut Budget,
    /// Compiled regular expressions; empty at first.
    pub patterns: Patterns,
    /// Names looked up so far; empty at first.
    pub names: Names,
    /// Tables made so far; empty at first.
    pub known: FoundTables,
    /// The evaluator of subqueries.
    pub subqueries: &'a dyn Subqueries,
    /// The server around the graph.
    pub server: &'a dyn Server,
}

impl Context<'_> {
    /// Charges the memory held by the transaction, if it comes from a shared pool.
    pub(crate) fn charge_written(&mut self) -> Result<()> {
        let transaction = &*self.transaction;
        self.budget.charge_written(|| transaction.written_bytes())
    }
}

/// Evaluates `Expression::Subquery`; implemented by the executor.
pub trait Subqueries {
    /// The value of the subquery with this number for a row.
    fn evaluate(
        &self,
        number: usize,
        row: &mut [Value],
        context: &mut Context<'_>,
    ) -> Result<Value>;
}

/// For expressions without subqueries.
pub struct NoSubqueries;

impl Subqueries for NoSubqueries {
    fn evaluate(&self, number: usize, _: &mut [Value], _: &mut Context<'_>) -> Result<Value> {
        Err(Error::defect(format!("no subquery {number}")))
    }
}

/// The time at which a statement began, in UTC: `datetime()` and related functions return it
/// throughout the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementTime {
    /// Seconds since 1970-01-01T00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second, below 10⁹.
    pub nanoseconds: u32,
}
