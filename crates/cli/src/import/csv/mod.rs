//! CSV: its dialect, its records, the types of its columns, and its rows
//! as events.
//!
//! Events cannot be removed, so ambiguous input is refused or reported.

pub(crate) mod column_types;
pub(crate) mod dialect;
mod header;
mod number;
pub(crate) mod options;
pub(crate) mod records;
pub(crate) mod rows;

pub(crate) use header::read_header;
