//! Statements and queries.

use std::sync::Arc;

use super::{Clause, SchemaChange, Slot};

/// A whole statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// `EXPLAIN`: planned, not executed.
    pub explain: bool,
    /// Its body.
    pub body: StatementBody,
    /// The width of its rows.
    pub width: usize,
    /// The subqueries of `Expression::Subquery`, by number.
    pub subqueries: Vec<Subquery>,
}

/// The body of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementBody {
    /// Reads and writes data.
    Query(Query),
    /// Changes indexes or constraints.
    Schema(SchemaChange),
}

/// One or more single queries, combined by `UNION`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// At least one.
    pub branches: Vec<SingleQuery>,
    /// `UNION ALL`: keeps equivalent rows of different branches.
    pub all: bool,
    /// The names of the columns; empty without `RETURN`.
    pub columns: Vec<Arc<str>>,
}

/// A chain of clauses.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleQuery {
    /// The clauses in order; `RETURN` is a projection at the end.
    pub clauses: Vec<Clause>,
    /// The slots of the columns; `None` without `RETURN`.
    pub result: Option<Vec<Slot>>,
    /// For each clause, the slots of variables that later clauses may read.
    pub visible: Vec<Vec<Slot>>,
}

/// A query inside an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// How its rows become a value.
    pub kind: SubqueryKind,
    /// The query, which can read the slots of the surrounding row.
    pub query: Query,
}

/// How a subquery's rows become a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryKind {
    /// Whether there is a row.
    Exists,
    /// The number of rows.
    Count,
    /// A list of the values of its only column.
    Collect,
}
