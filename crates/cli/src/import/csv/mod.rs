//! CSV: which characters it is written with, its records, the types of its columns, and its rows
//! as events.
//!
//! Events cannot be removed, so whatever could be read in two ways is refused or told.

pub(crate) mod column_types;
pub(crate) mod dialect;
mod header;
mod number;
pub(crate) mod options;
pub(crate) mod records;
pub(crate) mod rows;

pub(crate) use header::read_header;
