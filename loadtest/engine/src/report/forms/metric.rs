//! Figures that are set against each other: which is the better, and how much they differ.

use super::super::measured::Measured;
use crate::numbers::{NOT_AVAILABLE, duration, factor, percent, significant};
use std::cmp::Ordering;

/// A figure of something measured, raw.
#[derive(Clone, Copy)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// `None` where too little was measured.
    pub(super) value: fn(&Measured) -> Option<f64>,
}

/// What a figure is, which decides how it is written and which is the better.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Rate,
    Duration,
    Share,
}

const fn metric(name: &'static str, kind: Kind, value: fn(&Measured) -> Option<f64>) -> Metric {
    Metric { name, kind, value }
}

/// All metrics of form 1.
pub(super) const METRICS: [Metric; 9] = [
    metric("req/s", Kind::Rate, |of| Some(of.rate_per_s)),
    metric("mean", Kind::Duration, |of| of.result.latency().mean_ns()),
    metric("p50", Kind::Duration, |of| of.quantile_ns(0.5)),
    metric("p90", Kind::Duration, |of| of.quantile_ns(0.9)),
    metric("p95", Kind::Duration, |of| of.quantile_ns(0.95)),
    metric("p99", Kind::Duration, |of| of.quantile_ns(0.99)),
    metric("p99.9", Kind::Duration, |of| of.quantile_ns(0.999)),
    metric("max", Kind::Duration, |of| of.result.latency().max_ns().map(|ns| ns as f64)),
    metric("failures, share", Kind::Share, |of| {
        (of.tried > 0).then(|| of.failures as f64 / of.tried as f64)
    }),
];

/// Those of which form 2 names the best.
pub(super) const CONTESTED: [Metric; 5] =
    [METRICS[0], METRICS[2], METRICS[4], METRICS[5], METRICS[8]];

impl Kind {
    fn size(self, value: f64) -> String {
        match self {
            Kind::Rate => significant(value),
            Kind::Duration => duration(value),
            Kind::Share => percent(value),
        }
    }

    pub(super) fn write(self, value: Option<f64>) -> String {
        value.map_or_else(|| NOT_AVAILABLE.to_owned(), |value| self.size(value))
    }

    /// A difference with its sign; of shares in percentage points.
    pub(super) fn difference(self, difference: f64) -> String {
        let size = match self {
            Kind::Share => format!("{} points", significant(difference.abs() * 100.0)),
            Kind::Rate | Kind::Duration => self.size(difference.abs()),
        };
        match difference.partial_cmp(&0.0) {
            Some(Ordering::Greater) => format!("+{size}"),
            Some(Ordering::Less) => format!("−{size}"),
            Some(Ordering::Equal) => size,
            None => NOT_AVAILABLE.to_owned(),
        }
    }

    /// The better one first.
    pub(super) fn order(self, a: f64, b: f64) -> Ordering {
        match self {
            Kind::Rate => b.total_cmp(&a),
            Kind::Duration | Kind::Share => a.total_cmp(&b),
        }
    }

    /// How far `best` is ahead of `second`: `equal` where the digits would say 1.00; nothing for
    /// shares that differ, whose ratio says little.
    pub(super) fn lead(self, best: f64, second: f64) -> Option<String> {
        match self {
            Kind::Rate => Some(pace(best, second)),
            Kind::Duration => Some(pace(second, best)),
            Kind::Share => (best.total_cmp(&second).is_eq()).then(|| EQUAL.to_owned()),
        }
    }
}

/// Said of two figures that do not differ in the digits shown.
pub(super) const EQUAL: &str = "equal";

/// Names how the rate `new_per_s` compares with `old_per_s`: `1.90× faster`, `1.90× slower`,
/// `equal` where the digits would say 1.00.
pub(super) fn pace(new_per_s: f64, old_per_s: f64) -> String {
    let ratio = new_per_s / old_per_s;
    if !ratio.is_finite() || ratio <= 0.0 {
        return NOT_AVAILABLE.to_owned();
    }
    let size = ratio.max(1.0 / ratio);
    if size - 1.0 < 0.005 {
        return EQUAL.to_owned();
    }
    format!("{} {}", factor(size), if ratio > 1.0 { "faster" } else { "slower" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_named_by_the_larger_over_the_smaller() {
        assert_eq!(pace(190.0, 100.0), "1.90× faster");
        assert_eq!(pace(100.0, 190.0), "1.90× slower");
        assert_eq!(pace(100.0, 100.3), "equal");
        assert_eq!(pace(0.0, 1.0), "n/a");
        assert_eq!(Kind::Duration.lead(1.0, 2.0).as_deref(), Some("2.00× faster"));
        assert_eq!(Kind::Share.lead(0.0, 0.0).as_deref(), Some("equal"));
        assert_eq!(Kind::Share.lead(0.0, 0.1), None);
        assert_eq!(Kind::Share.difference(-0.012), "−1.20 points");
    }
}
