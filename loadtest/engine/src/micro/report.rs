//! What is kept of micro-benchmarks, whichever tool measured them.

use super::ImportError;
use crate::invalid::Invalid;
use crate::stats;
use serde::{Deserialize, Serialize};

/// What the field `format` says of a file this version can read.
pub const FORMAT: &str = "wellspring-micro/1";

/// Confidence of intervals that are computed here.
const CONFIDENCE: f64 = 0.95;

/// The micro-benchmarks of one run of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MicroReport {
    /// Always [`FORMAT`].
    pub format: String,
    /// Which tool measured.
    pub source: Source,
    /// What it said of machine and build, e.g. `goos` and `linux`, in its order.
    pub context: Vec<(String, String)>,
    /// The benchmarks in the order of the source.
    pub benchmarks: Vec<MicroBenchmark>,
    /// What was left out or has to be known, as sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Which tool measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `go test -bench`.
    GoBench,
    /// Criterion.rs.
    Criterion,
}

/// One benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MicroBenchmark {
    /// Its name: in Go without `Benchmark` and without the number of processors.
    pub name: String,
    /// Go: its package.
    #[serde(default)]
    pub package: Option<String>,
    /// Repeats (Go: `-count`) or samples (Criterion) that the figures come from; at least 1.
    pub n: usize,
    /// Operations done in all of them together; `None` if unknown.
    #[serde(default)]
    pub iterations: Option<u64>,
    /// Time of one operation, nanoseconds: the median over repeats or samples;
    /// `None` if the benchmark reports other things only.
    pub time_ns: Option<f64>,
    /// How sure that is; `None` with a single repeat.
    pub spread: Option<Spread>,
    /// Operations a second, one after another: 10^9 / `time_ns`.
    pub ops_per_s: Option<f64>,
    /// Bytes allocated by one operation, median; `None` if not measured.
    #[serde(default)]
    pub bytes_per_op: Option<f64>,
    /// Allocations of one operation, median; `None` if not measured.
    #[serde(default)]
    pub allocs_per_op: Option<f64>,
    /// Bytes processed a second, median; `None` if the benchmark does not say how many it
    /// processes.
    #[serde(default)]
    pub bytes_per_s: Option<f64>,
    /// Everything else it reports: unit and median, in its order.
    #[serde(default)]
    pub other: Vec<(String, f64)>,
}

/// An interval of [`MicroBenchmark::time_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Lower end, nanoseconds.
    pub low_ns: f64,
    /// Upper end, nanoseconds.
    pub high_ns: f64,
    /// What the ends are.
    pub basis: Basis,
}

/// What the ends of an interval are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A confidence interval of the median over repeats (order statistics).
    Repeats {
        /// Confidence, 0 to 1.
        confidence: f64,
    },
    /// The smallest and the largest repeat: there are too few for an interval.
    Extremes,
    /// The tool's own interval over samples of a single run. It does not hold
    /// what differs from run to run, and is narrower than one over repeats.
    SamplesOfOneRun {
        /// Confidence, 0 to 1.
        confidence: f64,
    },
}

impl MicroBenchmark {
    /// A benchmark of which only the name is known.
    pub(super) fn named(name: &str) -> Self {
        MicroBenchmark {
            name: name.to_owned(),
            package: None,
            n: 0,
            iterations: None,
            time_ns: None,
            spread: None,
            ops_per_s: None,
            bytes_per_op: None,
            allocs_per_op: None,
            bytes_per_s: None,
            other: Vec::new(),
        }
    }

    /// Sets the time, and the rate that belongs to it.
    pub(super) fn set_time(&mut self, time_ns: Option<f64>) {
        self.time_ns = time_ns;
        self.ops_per_s = time_ns.filter(|&ns| ns > 0.0).map(|ns| 1e9 / ns);
    }

    /// The name with its package, if there is one.
    #[must_use]
    pub fn full_name(&self) -> String {
        match &self.package {
            Some(package) => format!("{package}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// How sure the median of repeats is: an interval from six repeats on, the extremes below.
pub(super) fn spread_over_repeats(times_ns: &[f64]) -> Option<Spread> {
    if times_ns.len() < 2 {
        return None;
    }
    if let Some((low_ns, high_ns)) = stats::median_interval(times_ns, CONFIDENCE) {
        return Some(Spread { low_ns, high_ns, basis: Basis::Repeats { confidence: CONFIDENCE } });
    }
    let low_ns = times_ns.iter().copied().fold(f64::INFINITY, f64::min);
    let high_ns = times_ns.iter().copied().fold(0.0, f64::max);
    Some(Spread { low_ns, high_ns, basis: Basis::Extremes })
}

impl MicroReport {
    /// The benchmarks from most to fewest operations a second; those without a time last.
    #[must_use]
    pub fn ranked(&self) -> Vec<&MicroBenchmark> {
        let mut ranked: Vec<&MicroBenchmark> = self.benchmarks.iter().collect();
        let rate = |benchmark: &MicroBenchmark| benchmark.ops_per_s.unwrap_or(0.0);
        ranked.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        ranked
    }

    /// As JSON, in the format [`FORMAT`].
    ///
    /// # Panics
    /// Never: it is plain data.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain data");
        text.push('\n');
        text
    }

    /// Reads what [`MicroReport::to_json`] wrote.
    ///
    /// # Errors
    /// [`ImportError::Nothing`] that says what is wrong: not JSON, another format, or a field.
    pub fn from_json(text: &str) -> Result<Self, ImportError> {
        let wrong = |why: Invalid| ImportError::Nothing(format!("not a {FORMAT} file: {why}"));
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string().into()))?;
        match value.get("format").and_then(serde_json::Value::as_str) {
            Some(FORMAT) => {}
            Some(other) => return Err(wrong(format!("its format is {other:?}").into())),
            None => return Err(wrong("the field `format` is missing".into())),
        }
        serde_json::from_value(value).map_err(|error| wrong(error.to_string().into()))
    }
}
