//! Executes plans on a transaction.
//!
//! Rows are pushed through a pipeline one by one: each operator writes its slots into the same row
//! and calls the next operator. This copies nothing, and an operator that needs no more rows
//! returns [`Flow::Stop`]. Operators that keep rows (sorting, grouping, barriers) release them once
//! all have arrived.

mod aggregate;
mod call;
mod change;
mod create;
mod expand;
mod join;
mod keep;
mod load_csv;
mod merge;
mod path;
mod pipeline;
mod reach;
mod result;
mod scan;
mod schema;
mod shortest;
mod sort;
mod trails;
mod unwind;
mod variable;

pub use pipeline::Flow;
pub(crate) use result::{run_query, subquery};
pub(crate) use schema::change_schema;
