//! Exact quantiles over bounded runs: every latency is kept, none is bucketed.

use std::time::Duration;

/// Latencies of one run.
#[derive(Default)]
pub(crate) struct Samples {
    nanos: Vec<u64>,
    sorted: bool,
}

impl Samples {
    /// Room for `count` latencies, so that none of them pays for growth.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { nanos: Vec::with_capacity(count), sorted: false }
    }

    /// Adds one latency.
    pub(crate) fn add(&mut self, latency: Duration) {
        self.nanos.push(latency.as_nanos() as u64);
        self.sorted = false;
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.nanos.len()
    }

    /// The quantile `q` in microseconds, if enough samples lie beyond it to mean something (10,
    /// check C4 of BENCH.md; the median needs only one).
    pub(crate) fn quantile_us(&mut self, q: f64) -> Option<f64> {
        let beyond = self.nanos.len() as f64 * (1.0 - q);
        if self.nanos.is_empty() || (q > 0.5 && beyond < 10.0) {
            return None;
        }
        if !self.sorted {
            self.nanos.sort_unstable();
            self.sorted = true;
        }
        let rank = ((self.nanos.len() as f64 * q).ceil() as usize).clamp(1, self.nanos.len());
        Some(self.nanos[rank - 1] as f64 / 1000.0)
    }
}
