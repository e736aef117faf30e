//! Statements and queries.

use std::sync::Arc;

use super::{Clause, SchemaChange, Slot};

/// A whole statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// `EXPLAIN`: planned, not executed.
    pub explain: bool,
    /// What it does.
    pub body: StatementBody,
    /// How wide its rows are.
    pub width: usize,
    /// What `Expression::Subquery` stands for, by number.
    pub subqueries: Vec<Subquery>,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementBody {
    /// Reads and writes data.
    Query(Query),
    /// Changes indexes or constraints.
    Schema(SchemaChange),
}

/// One or more single queries whose rows are united.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// At least one.
    pub branches: Vec<SingleQuery>,
    /// `UNION ALL`: equivalent rows of two branches both pass.
    pub all: bool,
    /// The names of the columns; empty without `RETURN`.
    pub columns: Vec<Arc<str>>,
}

/// A chain of clauses.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleQuery {
    /// The clauses in order; `RETURN` is a projection at the end.
    pub clauses: Vec<Clause>,
    /// The slots of the columns; none if there is no `RETURN`.
    pub result: Option<Vec<Slot>>,
    /// After each clause, the slots of variables that later ones may read.
    pub visible: Vec<Vec<Slot>>,
}

/// A query inside an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// What is made of its rows.
    pub kind: SubqueryKind,
    /// The query; it reads the slots of the row around it.
    pub query: Query,
}

/// What a subquery's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryKind {
    /// Whether there is a row.
    Exists,
    /// How many rows there are.
    Count,
    /// A list of the values of its only column.
    Collect,
}
