//! Executes plans on a transaction.
//!
//! Rows are pushed through a pipeline one by one: each operator writes its slots into the same row
//! and calls the next one. So nothing is copied, and who has enough says [`Flow::Stop`]. Operators
//! that keep rows (sorting, grouping, barriers) release them when all have come.

mod aggregate;
mod call;
mod change;
mod create;
mod expand;
mod keep;
mod merge;
mod path;
mod pipeline;
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
