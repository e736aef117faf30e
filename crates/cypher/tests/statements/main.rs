//! Statements from text to rows, on a graph.

mod clauses;
mod graph;
mod limits;
