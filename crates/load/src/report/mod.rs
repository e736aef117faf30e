//! The renderers: each a pure function from a [`crate::result::Report`] to text.
//!
//! They print what is in the report and judge nothing: findings, thresholds and
//! the verdict are there already. All figures come from the raw values; what is
//! not known is `n/a`, never guessed. Each form ends with the verdict.

mod ab;
mod csv;
pub mod figures;
mod forms;
mod html;
mod markdown;
mod page;
mod prometheus;
mod redact;
#[cfg(test)]
mod sample;
mod table;
mod tables;
mod terminal;
mod view;

pub use ab::ab;
pub use csv::csv;
pub use forms::{FORMS, FormError, MicroRow, form};
pub use html::html;
pub use markdown::markdown;
pub use prometheus::prometheus;
pub use redact::{REDACTED, redact_command};
pub use terminal::{TerminalOptions, terminal};
