//! What surrounds the load tester: scenarios and micro-benchmarks imported from other tools' files,
//! result files over time, and the checks applied to published tables.
//!
//! Everything here reads files. Nothing sends a request.

pub mod audit;
pub mod history;
pub mod micro;
pub mod scenarios;
