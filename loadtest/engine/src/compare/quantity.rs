//! Figures of a comparison as people read them.

use super::figures::Metric;
use crate::numbers;

/// A change given as log ratio: `+12%`, `−3.4%`, `2.31×`.
pub(crate) fn change(log_ratio: f64) -> String {
    numbers::change(log_ratio.exp())
}

/// A range of changes given as log ratios: `−9.8…+9.8%`, `−95%…18.2×`.
pub(crate) fn change_range(low: f64, high: f64, decimals: usize) -> String {
    numbers::change_range(low.exp(), high.exp(), decimals)
}

/// A factor without its sign: `2.31`.
pub(crate) fn factor(ratio: f64) -> String {
    numbers::factor(ratio).trim_end_matches('×').to_owned()
}

/// The value of a metric in its unit.
#[must_use]
pub fn of_metric(metric: Metric, value: Option<f64>) -> String {
    match (metric, value) {
        (_, None) => numbers::NOT_AVAILABLE.into(),
        (Metric::Throughput, Some(value)) => numbers::rate(value),
        (Metric::FailureShare, Some(value)) => numbers::percent(value),
        (_, Some(value)) => numbers::duration(value),
    }
}
