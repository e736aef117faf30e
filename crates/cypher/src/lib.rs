//! The query language Cypher over `wellspring-graph`.
//!
//! `syntax` lowers text to an [`ir`], `plan` turns it into a plan, and `execute` runs that on a
//! transaction. Nothing here uses a clock, a disk or a socket: time and randomness come with the
//! statement.
#![forbid(unsafe_code)]

mod cache;
pub mod context;
pub mod error;
pub mod evaluate;
mod execute;
mod fulltext;
pub mod functions;
pub mod ir;
mod plan;
mod procedure;
mod server;
mod statement;
mod syntax;
pub mod temporal;
pub mod value;

pub use cache::PlanCache;
pub use plan::PlanStep;
pub use procedure::{
    Argument, ArgumentType, BuiltIn, Mode, NEO4J_VERSION, Procedure, Procedures, Rows,
};
pub use server::{Account, Database, EventSink, EventsWanted, LogEvent, NoServer, Server};
pub use statement::{Access, Environment, Flow, Plan, RowSink, prepare, run};
pub use syntax::count_tokens;
