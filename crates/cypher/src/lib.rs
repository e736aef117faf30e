//! The query language Cypher over `wellspring-graph`.
//!
//! Text becomes an [`ir`] (`syntax`), that a plan (`plan`), which is executed on a transaction
//! (`execute`). Nothing here reads a clock, a disk or a socket: time and randomness come with the
//! statement.
#![forbid(unsafe_code)]

mod cache;
pub mod context;
pub mod error;
pub mod evaluate;
mod execute;
pub mod functions;
pub mod ir;
mod plan;
mod procedure;
mod statement;
mod syntax;
pub mod temporal;
pub mod value;

pub use cache::PlanCache;
pub use procedure::{Argument, ArgumentType, BuiltIn, Procedure, Procedures};
pub use statement::{Access, Environment, Flow, Plan, RowSink, prepare, run};
