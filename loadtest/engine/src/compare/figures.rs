//! What a comparison takes from a run: a handful of numbers.

use crate::histogram::Histogram;
use crate::result::{EndpointResult, Run};
use serde::{Deserialize, Serialize};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Successes a second. More is better.
    Throughput,
    /// Mean latency (response in open loop, service in closed), nanoseconds. Less is better, as for
    /// all quantiles.
    Mean,
    /// Median latency, nanoseconds.
    P50,
    /// 90th percentile, nanoseconds.
    P90,
    /// 95th percentile, nanoseconds.
    P95,
    /// 99th percentile, nanoseconds.
    P99,
    /// Share of requests that failed or stayed without an answer, 0 to 1. Less is better.
    FailureShare,
}

impl Metric {
    /// What is compared of each endpoint, where a step has several.
    pub const OF_ENDPOINTS: [Metric; 4] =
        [Metric::P50, Metric::P90, Metric::P99, Metric::FailureShare];

    /// All metrics in the order of reports.
    pub(crate) const ALL: [Metric; 7] = [
        Metric::Throughput,
        Metric::Mean,
        Metric::P50,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::FailureShare,
    ];

    /// As written in reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput",
            Metric::Mean => "mean",
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P95 => "p95",
            Metric::P99 => "p99",
            Metric::FailureShare => "failures",
        }
    }

    /// Whether it is a figure of the latency.
    #[must_use]
    pub fn is_latency(self) -> bool {
        self == Metric::Mean || self.quantile().is_some()
    }

    /// The quantile, 0 to 1, if it is one.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::P50 => Some(0.5),
            Metric::P90 => Some(0.9),
            Metric::P95 => Some(0.95),
            Metric::P99 => Some(0.99),
            Metric::Throughput | Metric::Mean | Metric::FailureShare => None,
        }
    }
}

/// The figures of one run, over all its endpoints or of one of them, without histograms: some
/// 100 bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// When the measured part began, microseconds since 1970 UTC.
    pub started_unix_us: u64,
    /// Its length, nanoseconds.
    pub measured_ns: u64,
    /// Whether requests were due at times of their own (open loop), so that throughput is what was
    /// offered.
    pub open_loop: bool,
    /// Successes a second.
    pub throughput_per_s: f64,
    /// Mean latency, nanoseconds; `None` without a success.
    pub mean_ns: Option<f64>,
    /// Quantiles of the latency, nanoseconds; `None` with fewer than ten answers beyond (check C4).
    pub p50_ns: Option<f64>,
    /// 90th percentile.
    pub p90_ns: Option<f64>,
    /// 95th percentile.
    pub p95_ns: Option<f64>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// Failures and unanswered requests by all that came to an end, 0 to 1; `None` if nothing was
    /// sent.
    pub failure_share: Option<f64>,
}

impl Figures {
    /// The figures of `run`; `None` if it was interrupted or aborted, or measured
    /// nothing: such a run is not like the others.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        run.is_whole().then(|| Self::of_any(run))
    }

    /// The figures of one endpoint of `run`; without any latency if the run does not have it.
    /// `None` as for [`Figures::of`].
    #[must_use]
    pub fn of_endpoint(run: &Run, name: &str) -> Option<Self> {
        run.is_whole().then(|| {
            let those = run.endpoints.iter().filter(|endpoint| endpoint.name == name);
            let unanswered = those.clone().map(|endpoint| endpoint.counters.unanswered()).sum();
            Self::of_results(run, those, unanswered)
        })
    }

    /// The figures of `run`, however it ended.
    #[must_use]
    pub(crate) fn of_any(run: &Run) -> Self {
        Self::of_results(run, run.endpoints.iter(), run.unanswered)
    }

    fn of_results<'a>(
        run: &Run,
        results: impl Iterator<Item = &'a EndpointResult>,
        unanswered: u64,
    ) -> Self {
        let mut latency = Histogram::new();
        let (mut throughput_per_s, mut successes, mut failures) = (0.0, 0, unanswered);
        for result in results {
            latency.merge(result.latency());
            throughput_per_s += result.counters.throughput_per_s(run.measured_ns);
            successes += result.counters.successes;
            failures += result.counters.failures();
        }
        let quantile = |q| latency.printable_quantile_ns(q).map(|ns| ns as f64);
        let ended = failures + successes;
        Figures {
            started_unix_us: run.started_unix_us,
            measured_ns: run.measured_ns,
            open_loop: run.open_loop.is_some(),
            throughput_per_s,
            mean_ns: latency.mean_ns(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            failure_share: (ended > 0).then(|| failures as f64 / ended as f64),
        }
    }

    /// The value of a metric in its unit; `None` if this run cannot give it.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Throughput => Some(self.throughput_per_s),
            Metric::Mean => self.mean_ns,
            Metric::P50 => self.p50_ns,
            Metric::P90 => self.p90_ns,
            Metric::P95 => self.p95_ns,
            Metric::P99 => self.p99_ns,
            Metric::FailureShare => self.failure_share,
        }
    }
}
