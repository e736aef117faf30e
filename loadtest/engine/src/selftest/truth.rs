//! Exact distributions of what really happened, and how a reported one is held to them.

use super::ledger::Ledger;
use crate::histogram::Histogram;

/// All values, in rising order.
#[derive(Clone, Debug, Default)]
pub(super) struct Exact(Vec<u64>);

impl Exact {
    pub(super) fn new(values: impl IntoIterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        Exact(values)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest value that at least `q` of all do not exceed; 0 if there is none.
    pub(super) fn quantile(&self, q: f64) -> u64 {
        let rank = (self.0.len() as f64 * q - 1e-9).ceil().max(1.0) as usize;
        self.0.get(rank - 1).or(self.0.last()).copied().unwrap_or(0)
    }

    pub(super) fn mean(&self) -> f64 {
        let sum: u128 = self.0.iter().map(|value| u128::from(*value)).sum();
        sum as f64 / self.0.len().max(1) as f64
    }

    /// The standard deviation divided by the mean.
    pub(super) fn variation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
        (squares / self.0.len().max(1) as f64).sqrt() / mean
    }
}

/// How far a reported duration may lie from the truth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    /// Either way, as a share of the truth.
    pub(super) share: f64,
    /// Below it, in nanoseconds.
    pub(super) below_ns: u64,
    /// Above it, in nanoseconds.
    pub(super) above_ns: u64,
}

impl Error {
    /// The resolution of a histogram of three digits, and what lies between two readings of the
    /// clock: laying out a request, taking an answer apart.
    pub(super) const STOPWATCH: Error = Error { share: 0.001, below_ns: 10_000, above_ns: 10_000 };

    /// What may be reported for this truth.
    pub(super) fn around(self, truth_ns: u64) -> std::ops::RangeInclusive<u64> {
        let share_ns = (truth_ns as f64 * self.share).ceil() as u64;
        truth_ns.saturating_sub(share_ns + self.below_ns)..=truth_ns + share_ns + self.above_ns
    }
}

/// The quantiles of `values` that are worth comparing: ten values lie beyond each.
pub(super) fn quantiles(values: usize) -> impl Iterator<Item = f64> {
    let supported = move |q: &f64| values as f64 * (1.0 - q) >= 10.0 - 1e-6;
    [0.5, 0.75, 0.9, 0.95, 0.99, 0.999].into_iter().filter(supported)
}

/// Holds a reported distribution to the exact one of the same moments: equal
/// count, and every quantile and the mean within the resolution.
///
/// Two readings of the clock lie between them, and the thread may lose its
/// processor there: so quantiles are `timely`, and what a busy machine cannot
/// excuse is told apart.
pub(super) fn same(ledger: &mut Ledger, what: &str, reported: &Histogram, truth: &Exact) {
    ledger.equal(&format!("{what}: how many"), truth.len() as u64, reported.count());
    for q in quantiles(truth.len()) {
        let told_ns = reported.quantile_ns(q).unwrap_or(0);
        let range_ns = Error::STOPWATCH.around(truth.quantile(q));
        ledger.timely(&format!("{what}: quantile {q}"), range_ns, told_ns);
    }
    let mean_ns = reported.mean_ns().unwrap_or(0.0);
    let allowed = 0.001 + 10_000.0 / truth.mean().max(1.0);
    let ratio = mean_ns / truth.mean().max(1.0);
    ledger.timely_ratio(&format!("{what}: mean / truth"), 1.0 - allowed..=1.0 + allowed, ratio);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn exact_quantiles_are_values_that_were_there() {
        let exact = Exact::new((1..=1000).rev());
        assert_eq!(
            (exact.quantile(0.5), exact.quantile(0.99), exact.quantile(1.0)),
            (500, 990, 1000)
        );
        assert_eq!(Exact::default().quantile(0.5), 0);
        assert!((exact.mean() - 500.5).abs() < 1e-9);
        assert!((Exact::new([2, 2, 2]).variation()).abs() < 1e-9);
        assert!((Exact::new([1, 3]).variation() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn only_quantiles_with_ten_values_beyond_are_compared() {
        assert_eq!(quantiles(999).last(), Some(0.95));
        assert_eq!(quantiles(1000).last(), Some(0.99));
        assert_eq!(quantiles(19).last(), None);
    }

    #[test]
    fn a_distribution_that_is_the_truth_passes_and_any_other_does_not() {
        let values = || (1..=2000u64).map(|n| n * 10_000);
        let truth = Exact::new(values());
        let judged = |reported: &Histogram| {
            let mut ledger = Ledger::default();
            same(&mut ledger, "service", reported, &truth);
            (ledger.wrong.len(), ledger.untimely.len())
        };
        assert_eq!(judged(&histogram(values())), (0, 0));
        assert_eq!(judged(&histogram(values().map(|value| value + 9_000))), (0, 0));
        // One lost: the count. A constant error beyond resolution and clock: every quantile.
        assert_eq!(judged(&histogram(values().skip(1))).0, 1);
        let shifted = judged(&histogram(values().map(|value| value + 60_000)));
        assert!(shifted.1 >= 5, "{shifted:?}");
        // Filled in afterwards, as some tools do: the tail.
        let invented = values().map(|value| if value > 19_000_000 { value * 2 } else { value });
        assert!(judged(&histogram(invented)).1 >= 2);
    }
}
