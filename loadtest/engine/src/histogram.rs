//! Latency distributions: every value counted, three significant digits kept.
//!
//! The counts are an HDR histogram (Gil Tene's, as the `hdrhistogram` crate
//! implements it) over nanoseconds from 1 ns to one hour. Sum, smallest and
//! largest value are kept exactly beside it, so that a mean never depends on
//! the buckets and check C2 has something to compare with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::io::Cursor;

/// The largest value told apart from larger ones: one hour, in nanoseconds.
pub(crate) const LARGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of every recorded value.
pub(crate) const SIGNIFICANT_DIGITS: u8 = 3;

/// A distribution of durations in nanoseconds. Its size does not depend on how many were recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, LARGEST_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants within what HDR allows");
        Histogram { counts, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one duration. Above `LARGEST_NS` it is counted in the last bucket; the exact sum
    /// and maximum keep it as it is.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts one duration `times` times.
    #[inline]
    pub(crate) fn record_n(&mut self, value_ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.counts.saturating_record_n(value_ns, times);
        self.sum_ns += u128::from(value_ns) * u128::from(times);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds everything `other` has counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.add(&other.counts).expect("all histograms have the same bounds");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The exact sum of all durations, in nanoseconds.
    #[must_use]
    pub(crate) fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The smallest duration, exact; `None` if empty.
    #[must_use]
    pub(crate) fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// The largest duration, exact; `None` if empty.
    #[must_use]
    pub(crate) fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// The exact mean from sum and count, in nanoseconds; `None` if empty.
    #[must_use]
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The mean as the buckets tell it, for check C2; `None` if empty.
    #[must_use]
    pub(crate) fn bucket_mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.counts.mean())
    }

    /// The value at quantile `q` (0 to 1), in nanoseconds: the smallest recorded
    /// value that at least `q` of all do not exceed, to three digits and never
    /// beyond the exact extremes. `None` if empty. Whether enough was recorded
    /// to print it is `Histogram::quantile_supported`'s to say.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.counts.value_at_quantile(q).clamp(self.min_ns, self.max_ns))
    }

    /// How many values quantile `q` needs before it may be printed: 10 ÷ (1 − q).
    #[must_use]
    pub fn values_needed(q: f64) -> u64 {
        if q < 1.0 { (10.0 / (1.0 - q) - 1e-6).ceil() as u64 } else { 0 }
    }

    /// Whether quantile `q` may be printed: at least ten values lie beyond it (check C4).
    #[must_use]
    pub(crate) fn quantile_supported(&self, q: f64) -> bool {
        // A hair of tolerance: 1000 × (1 − 0.99) is 10.000000000000009 or 9.99…, by rounding.
        self.count() as f64 * (1.0 - q) >= 10.0 - 1e-6
    }

    /// The quantile if `Histogram::quantile_supported`.
    #[must_use]
    pub fn printable_quantile_ns(&self, q: f64) -> Option<u64> {
        self.quantile_supported(q).then(|| self.quantile_ns(q)).flatten()
    }

    /// The share of durations of at most `value_ns`, 0 to 1; 0 if empty.
    #[must_use]
    pub(crate) fn share_at_most(&self, value_ns: u64) -> f64 {
        if self.is_empty() { 0.0 } else { self.counts.quantile_below(value_ns) }
    }

    /// The non-empty buckets in rising order: highest equivalent value in nanoseconds, and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value()))
    }

    fn to_hdr(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.counts, &mut bytes)
            .expect("writing to memory cannot fail");
        BASE64.encode(bytes)
    }
}

/// As stored: the exact figures, quantiles for people and `jq`, and the HDR V2
/// counts (deflated, base64: what HdrHistogram's own tools read).
#[derive(Serialize, Deserialize)]
struct StoredHistogram {
    count: u64,
    sum_ns: f64,
    min_ns: u64,
    max_ns: u64,
    #[serde(default)]
    quantiles_ns: std::collections::BTreeMap<String, u64>,
    hdr: String,
}

/// The quantiles a stored histogram shows in clear, where enough was recorded.
const SHOWN: [(&str, f64); 6] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let quantiles_ns = SHOWN
            .iter()
            .filter_map(|(name, q)| Some(((*name).to_owned(), self.printable_quantile_ns(*q)?)))
            .collect();
        let stored = StoredHistogram {
            count: self.count(),
            sum_ns: self.sum_ns as f64,
            min_ns: self.min_ns().unwrap_or(0),
            max_ns: self.max_ns,
            quantiles_ns,
            hdr: self.to_hdr(),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let stored = StoredHistogram::deserialize(deserializer)?;
        let bytes = BASE64.decode(&stored.hdr).map_err(D::Error::custom)?;
        let read: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut Cursor::new(bytes))
            .map_err(|error| D::Error::custom(format!("hdr: {error:?}")))?;
        let mut whole = Histogram::new();
        whole.counts.add(&read).map_err(|error| D::Error::custom(format!("hdr: {error}")))?;
        if whole.count() != stored.count {
            return Err(D::Error::custom(format!(
                "hdr holds {} values, but count says {}",
                whole.count(),
                stored.count
            )));
        }
        if !stored.sum_ns.is_finite() || stored.sum_ns < 0.0 {
            return Err(D::Error::custom("sum_ns must be a number of nanoseconds"));
        }
        whole.sum_ns = stored.sum_ns as u128;
        whole.min_ns = if stored.count == 0 { u64::MAX } else { stored.min_ns };
        whole.max_ns = stored.max_ns;
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth_and_the_extremes_exact() {
        let mut histogram = Histogram::new();
        for value in 1..=100_000u64 {
            histogram.record(value * 1_003);
        }
        for q in [0.5, 0.9, 0.99, 0.999] {
            let truth = (q * 100_000.0_f64).ceil() * 1_003.0;
            let told = histogram.quantile_ns(q).unwrap() as f64;
            assert!((told / truth - 1.0).abs() < 0.001, "{q}: {told} for {truth}");
        }
        assert_eq!(histogram.min_ns(), Some(1_003));
        assert_eq!(histogram.max_ns(), Some(100_300_000));
        assert_eq!(histogram.quantile_ns(1.0), Some(100_300_000));
        assert!((histogram.mean_ns().unwrap() - 50_000.5 * 1_003.0).abs() < 1e-3);
    }

    #[test]
    fn a_quantile_needs_ten_values_beyond_it() {
        let mut histogram = Histogram::new();
        histogram.record_n(5, 999);
        assert!(!histogram.quantile_supported(0.99));
        histogram.record(5);
        assert!(histogram.quantile_supported(0.99));
        assert_eq!(histogram.printable_quantile_ns(0.999), None);
        for q in crate::numbers::QUANTILES {
            let mut histogram = Histogram::new();
            histogram.record_n(1, Histogram::values_needed(q) - 1);
            assert!(!histogram.quantile_supported(q), "{q}");
            histogram.record(1);
            assert!(histogram.quantile_supported(q), "{q}");
        }
    }

    #[test]
    fn what_is_stored_is_what_is_read() {
        let mut histogram = Histogram::new();
        for value in [1, 17, 999, 1_000_000, 7_777_777_777, 2 * LARGEST_NS] {
            histogram.record_n(value, value % 7 + 1);
        }
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        let empty = Histogram::new();
        let text = serde_json::to_string(&empty).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), empty);
    }

    #[test]
    fn a_damaged_histogram_is_refused() {
        let mut histogram = Histogram::new();
        histogram.record(5);
        let text = serde_json::to_string(&histogram).unwrap();
        let wrong_count = text.replace("\"count\":1", "\"count\":2");
        let cut = text.replace("HISTF", "HIST");
        for broken in [wrong_count, cut] {
            assert!(serde_json::from_str::<Histogram>(&broken).is_err(), "{broken}");
        }
    }
}
