//! `bench history`: the result files of a folder over time, and where a series changed.
//!
//! A series is one step of one workload with one load: what differs in any
//! setting that must be equal for a comparison is another series. Histograms are
//! dropped as soon as a file is summarised, so that memory grows by some hundred
//! bytes a run.

mod date;
mod read;
mod render;
mod series;

pub use read::{HistoryError, read_folder, summarise};
pub use render::{render_markdown, render_text};
pub use series::{Change, Entry, History, Series, Skipped, Standing, Summary};

use wellspring_load::stats::Detection;

/// What the field `format` says of a history written as JSON.
pub const FORMAT: &str = "wellspring-history/1";

/// How a history is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How changes are sought.
    pub detection: Detection,
    /// What makes a series.
    pub grouping: Grouping,
}

impl Default for Options {
    fn default() -> Self {
        Options { detection: Detection::default(), grouping: Grouping::Workload }
    }
}

/// What makes a series, besides workload, step and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Nothing: ports and hosts may change from one measurement to the next.
    Workload,
    /// The target (host and port) too: for folders with several servers' results.
    WorkloadAndTarget,
}

#[cfg(test)]
mod tests;
