//! Statements from text to rows, on a graph.

mod access;
mod clauses;
mod cost;
mod dynamic_labels;
mod graph;
mod indexes;
mod limits;
mod procedures;
mod reachability;
mod reports;
mod serial;
mod server;
mod soup;
mod text_search;
mod types;
mod value_joins;
mod vector_search;
