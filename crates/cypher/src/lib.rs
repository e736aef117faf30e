//! The query language Cypher over `wellspring-graph`.
//!
//! Text becomes an [`ir`] (`syntax`), that a plan (`plan`), which is executed on a transaction (`execute`). Nothing
//! here reads a clock, a disk or a socket: time and randomness come with the statement.
#![forbid(unsafe_code)]

pub mod context;
pub mod error;
pub mod evaluate;
pub mod functions;
pub mod ir;
#[allow(dead_code, reason = "plans come with the next commits")]
mod syntax;
pub mod temporal;
pub mod value;
