//! What the checks say, and the verdict.

use serde::{Deserialize, Serialize};

/// The number of a check: `C1` to `C19`, as `docs/bench/checks.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckId(pub u8);

impl std::fmt::Display for CheckId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "C{}", self.0)
    }
}

/// What one check says of one step, or of the whole report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check.
    pub check: CheckId,
    /// The step it speaks of; `None` for the whole report.
    pub step: Option<String>,
    /// What came out.
    pub outcome: Outcome,
    /// One sentence with the figures in it, as printed.
    pub sentence: String,
}

/// What came out of a check, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Checked, nothing found.
    Passed,
    /// The data needed are not there; the sentence says which.
    NotChecked,
    /// Worth saying; does not change the verdict.
    Note,
    /// The figures mislead unless the sentence is read with them.
    Care,
    /// The figures do not measure what they claim to.
    Stop,
}

/// The last line of every report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "reasons")]
pub enum Verdict {
    /// No check objected.
    Trusted,
    /// Sound with the reasons given in mind.
    UseWithCare(Vec<String>),
    /// The figures do not measure the server, for the reasons given.
    NotMeasurable(Vec<String>),
}

/// Whether a threshold (`--fail-if`) held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThresholdOutcome {
    /// As the user wrote it, e.g. `p99>5ms`.
    pub expression: String,
    /// The step it was applied to.
    pub step: String,
    /// What was measured, as printed with its unit; `None` if the figure could
    /// not be had (too few answers), which counts as failed.
    pub measured: Option<String>,
    /// Whether the run fails by it.
    pub failed: bool,
}
