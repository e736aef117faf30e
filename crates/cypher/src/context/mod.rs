//! What a statement is executed with: everything an expression may read besides its row.

mod budget;
mod names;
mod patterns;
mod pool;

pub use budget::{Budget, Stop};
pub use names::Names;
pub use patterns::Patterns;
pub use pool::{Grant, Pool, PoolEmpty};

use crate::error::{Error, Result};
use crate::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use wellspring_graph::Transaction;
use wellspring_types::random::SplitMix64;

/// Values by the names of parameters.
pub type Parameters = BTreeMap<Arc<str>, Value>;

/// The surroundings of one statement's execution.
pub struct Context<'a> {
    /// The graph as the statement sees it.
    pub transaction: &'a mut Transaction,
    /// The statement's parameters.
    pub parameters: &'a Parameters,
    /// What `elementId()` calls the database: `4:…:7` has it in the middle.
    pub database: &'a str,
    /// When the statement began.
    pub time: StatementTime,
    /// Where `rand()` comes from.
    pub random: &'a mut SplitMix64,
    /// What the statement may still spend.
    pub budget: &'a mut Budget,
    /// The regular expressions met so far; empty at first.
    pub patterns: Patterns,
    /// The names met so far; empty at first.
    pub names: Names,
    /// Who answers subqueries.
    pub subqueries: &'a dyn Subqueries,
}

impl Context<'_> {
    /// Charges what the transaction has come to hold, if others share the memory.
    pub(crate) fn charge_written(&mut self) -> Result<()> {
        let transaction = &*self.transaction;
        self.budget.charge_written(|| transaction.written_bytes())
    }
}

/// Answers `Expression::Subquery`: the executor does.
pub trait Subqueries {
    /// The value of the subquery with this number for a row.
    fn evaluate(
        &self,
        number: usize,
        row: &mut [Value],
        context: &mut Context<'_>,
    ) -> Result<Value>;
}

/// For what has no subqueries.
pub struct NoSubqueries;

impl Subqueries for NoSubqueries {
    fn evaluate(&self, number: usize, _: &mut [Value], _: &mut Context<'_>) -> Result<Value> {
        Err(Error::defect(format!("no subquery {number}")))
    }
}

/// The instant at which a statement began: what `datetime()` and its kin say throughout the
/// statement. In UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementTime {
    /// Seconds since 1970-01-01T00:00Z.
    pub seconds: i64,
    /// Nanoseconds of the second, below 10⁹.
    pub nanoseconds: u32,
}
