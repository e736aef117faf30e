//! The one result file: everything asked, found and measured, from which every
//! report is rendered and which the checks judge.
//!
//! Format `wellspring-bench/1`: JSON, written by [`Report::to_json`]. Unknown
//! fields are ignored when read, so that later versions may add; a later number
//! after the slash means that a reader of this version would misunderstand.

mod environment;
mod finding;
mod run;
mod summary;

pub use environment::{Environment, ServerIdentity};
pub use finding::{CheckId, Finding, Outcome, ThresholdOutcome, Verdict};
pub use run::{
    ClientUse, Counters, EndpointResult, ErrorKind, Finish, Noise, OpenLoop, Phases, Run,
    ServerUse, Slice, WorkerUse,
};

use crate::plan::Settings;
use crate::stats::mean_of_runs;
use serde::{Deserialize, Serialize};

/// What the field `format` says of a file this version can read.
pub const FORMAT: &str = "wellspring-bench/1";

/// Everything one invocation measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Always [`FORMAT`].
    pub format: String,
    /// Name and version of the program that measured, e.g. `wellspring 0.1.0`.
    pub tool: String,
    /// What the run is called in reports; the target unless the user gave a name.
    pub title: String,
    /// When it began, microseconds since 1970 UTC.
    pub started_unix_us: u64,
    /// The command line, with secrets replaced by `***`.
    #[serde(default)]
    pub command: Vec<String>,
    /// Where and with what it was measured.
    pub environment: Environment,
    /// What was measured: one step for a plain run, one a rung for a ladder, one a probe for a
    /// search.
    pub steps: Vec<Step>,
    /// What the checks said, in order of their numbers.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The thresholds asked for with `--fail-if`, and whether they held.
    #[serde(default)]
    pub thresholds: Vec<ThresholdOutcome>,
    /// The last line of every report; `None` before the checks have been applied.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// What a search for the highest sustainable rate concluded.
    #[serde(default)]
    pub search: Option<SearchOutcome>,
}

/// One setting of the load, measured once or repeatedly.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Short name, unique within the report, e.g. `c=16` or `1000/s`.
    pub name: String,
    /// The load that was offered.
    pub settings: Settings,
    /// The repeats, in the order they were run.
    pub runs: Vec<Run>,
}

/// The result of `bench search`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// The condition that had to hold, as the user wrote it.
    pub slo: String,
    /// The highest rate at which it held, requests a second; `None` if it never did.
    pub highest_rate_per_s: Option<f64>,
    /// The lowest rate at which it failed; `None` if the search ended at its upper bound.
    pub lowest_failing_rate_per_s: Option<f64>,
    /// In words: why the search ended where it did.
    pub reason: String,
    /// Name of the step that measured the highest rate that held: the one the
    /// verdict is about. Rates that were too high are meant to go wrong.
    #[serde(default)]
    pub decisive_step: Option<String>,
}

/// Why a result file could not be read. Reading it again does not help.
#[derive(Debug)]
pub enum ReadError {
    /// Not JSON, or a field is missing or malformed; the text says where.
    Malformed(String),
    /// A format this version does not know.
    Format(String),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Malformed(why) => write!(f, "not a result file of wellspring bench: {why}"),
            ReadError::Format(format) => write!(
                f,
                "the file's format is {format:?}; this version of wellspring reads {FORMAT:?}"
            ),
        }
    }
}

impl std::error::Error for ReadError {}

impl Report {
    /// The result file.
    ///
    /// # Panics
    /// Never: every map in it has strings or numbers for keys.
    #[must_use]
    pub fn to_json(&self) -> String {
        let written = summary::SummarizedReport::of(self);
        let mut text = serde_json::to_string_pretty(&written).expect("a report is plain data");
        text.push('\n');
        text
    }

    /// Reads a result file.
    ///
    /// # Errors
    /// [`ReadError`], which names what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<String>,
        }
        let head: Head =
            serde_json::from_str(text).map_err(|error| ReadError::Malformed(error.to_string()))?;
        match head.format {
            Some(format) if format == FORMAT => {}
            Some(format) => return Err(ReadError::Format(format)),
            None => return Err(ReadError::Malformed("the field `format` is missing".into())),
        }
        serde_json::from_str(text).map_err(|error| ReadError::Malformed(error.to_string()))
    }
}

impl Step {
    /// Successes a second: the one throughput that every report gives for the step. Of several
    /// runs it is `mean_of_runs`, over those that came to their end (over all if none did), as
    /// comparisons take it. 0 without any.
    #[must_use]
    pub fn throughput_per_s(&self) -> f64 {
        self.over_runs(Run::throughput_per_s)
    }

    /// The same of one endpoint; 0 if no run has it.
    #[must_use]
    pub fn endpoint_throughput_per_s(&self, name: &str) -> f64 {
        self.over_runs(|run| {
            let those = run.endpoints.iter().filter(|endpoint| endpoint.name == name);
            those.map(|endpoint| endpoint.counters.throughput_per_s(run.measured_ns)).sum()
        })
    }

    fn over_runs(&self, throughput_per_s: impl Fn(&Run) -> f64) -> f64 {
        let whole: Vec<&Run> = self.runs.iter().filter(|run| run.is_whole()).collect();
        let runs = if whole.is_empty() { self.runs.iter().collect() } else { whole };
        let throughputs: Vec<f64> = runs.into_iter().map(throughput_per_s).collect();
        mean_of_runs(&throughputs).unwrap_or(0.0)
    }

    /// All endpoints of all repeats, merged by endpoint in order of first appearance.
    #[must_use]
    pub(crate) fn merged_endpoints(&self) -> Vec<EndpointResult> {
        let mut merged: Vec<EndpointResult> = Vec::new();
        for endpoint in self.runs.iter().flat_map(|run| &run.endpoints) {
            match merged.iter_mut().find(|there| there.name == endpoint.name) {
                Some(there) => there.merge(endpoint),
                None => merged.push(endpoint.clone()),
            }
        }
        merged
    }

    /// Everything of all repeats and endpoints in one; `None` without any.
    #[must_use]
    pub fn total(&self) -> Option<EndpointResult> {
        let mut all = self.runs.iter().flat_map(|run| &run.endpoints);
        let mut total = all.next()?.clone();
        for endpoint in all {
            total.merge(endpoint);
        }
        "total".clone_into(&mut total.name);
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_formats_are_refused_by_name() {
        let later = Report::from_json(r#"{"format":"wellspring-bench/2"}"#).unwrap_err();
        assert!(later.to_string().contains("wellspring-bench/2"), "{later}");
        let none = Report::from_json(r#"{"a":1}"#).unwrap_err();
        assert!(none.to_string().contains("`format` is missing"), "{none}");
        assert!(matches!(Report::from_json("[1"), Err(ReadError::Malformed(_))));
    }
}
