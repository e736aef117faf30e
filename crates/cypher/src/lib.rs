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
mod graph_values;
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
pub use server::{
    Account, Database, EachRecord, EventSink, EventsWanted, LogEvent, NoServer,
    STEPS_BEFORE_READING, Server,
};
pub use statement::{Access, Environment, Flow, Plan, RowSink, prepare, run};
pub use syntax::count_tokens;
