//! The renderers: each a pure function from a [`crate::result::Report`] to text.
//!
//! They print what is in the report and judge nothing: findings, thresholds and
//! the verdict are there already. All figures come from the raw values; what is
//! not known is `n/a`, never guessed. Each form ends with the verdict.

pub mod figures;
#[cfg(test)]
mod sample;
mod table;
mod tables;
mod terminal;
mod view;

pub use terminal::{TerminalOptions, terminal};
