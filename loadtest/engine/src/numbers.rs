//! How figures of a report are written: as everywhere ([`wellspring_readable::numbers`]), and
//! quantiles of histograms.

use crate::histogram::Histogram;
pub use wellspring_readable::numbers::*;

/// The quantiles reports list, in rising order.
pub(crate) const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// A quantile as printed, or why it is not: `1.24 ms`, `n/a (needs 812 more)`.
#[must_use]
pub fn quantile(histogram: &Histogram, q: f64) -> String {
    match histogram.printable_quantile_ns(q) {
        Some(ns) => duration(ns as f64),
        None => {
            let more = Histogram::values_needed(q).saturating_sub(histogram.count());
            format!("{NOT_AVAILABLE} (needs {} more)", count(more))
        }
    }
}

/// A quantile as printed in a narrow cell: `1.24 ms` or `n/a`.
#[must_use]
pub fn short_quantile(histogram: &Histogram, q: f64) -> String {
    optional_duration(histogram.printable_quantile_ns(q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_for_a_quantile_is_told() {
        let mut histogram = Histogram::new();
        histogram.record_n(1_240_000, 1_000);
        assert_eq!(quantile(&histogram, 0.99), "1.24 ms");
        assert_eq!(quantile(&histogram, 0.999), "n/a (needs 9,000 more)");
        assert_eq!(short_quantile(&histogram, 0.999), "n/a");
        assert_eq!([0.5, 0.999, 0.9999].map(quantile_name), ["p50", "p99.9", "p99.99"]);
    }
}
