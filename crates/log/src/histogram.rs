//! Histograms for figures: fixed bounds, an array of counters, no lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of bounds of every histogram; one more counter is for values above them.
pub const HISTOGRAM_BOUNDS: usize = 20;

type Bounds = [u64; HISTOGRAM_BOUNDS];

/// Events in a group commit: 1, 2, 4, … 524,288.
pub(crate) static BATCH_EVENTS: Bounds = doubling_from(1);
/// Size of a group commit as written, including its header: 128 B, 256 B, … 64 MiB.
pub(crate) static BATCH_BYTES: Bounds = doubling_from(128);
/// Duration of a barrier, µs; finer where devices with a write cache are.
pub(crate) static BARRIER_US: Bounds = [
    10, 25, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_500, 5_000, 10_000, 25_000,
    50_000, 100_000, 500_000, 2_500_000,
];

const fn doubling_from(first: u64) -> Bounds {
    let mut bounds = [first; HISTOGRAM_BOUNDS];
    let mut at = 1;
    while at < HISTOGRAM_BOUNDS {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
}

/// The distribution of values since the log was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram {
    bounds: &'static Bounds,
    counts: [u64; HISTOGRAM_BOUNDS + 1],
    sum: u64,
}

impl Histogram {
    /// The bounds, each with the number of values up to it and above the previous bound; the last
    /// pair, without a bound, counts the values above all bounds.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(self.counts)
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all values.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

/// An empty histogram of events, only for initializing [`LogStats`](crate::LogStats).
impl Default for Histogram {
    fn default() -> Histogram {
        Recorder::new(&BATCH_EVENTS).read()
    }
}

/// A histogram being recorded. Relaxed: a reader may see a value counted but not yet added.
#[derive(Debug)]
pub(crate) struct Recorder {
    bounds: &'static Bounds,
    counts: [AtomicU64; HISTOGRAM_BOUNDS + 1],
    sum: AtomicU64,
}

impl Recorder {
    pub(crate) fn new(bounds: &'static Bounds) -> Recorder {
        Recorder { bounds, counts: Default::default(), sum: AtomicU64::new(0) }
    }

    pub(crate) fn record(&self, value: u64) {
        let at = self.bounds.partition_point(|&bound| bound < value);
        self.counts[at].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    pub(crate) fn read(&self) -> Histogram {
        let counts = std::array::from_fn(|at| self.counts[at].load(Relaxed));
        Histogram { bounds: self.bounds, counts, sum: self.sum.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise() {
        for bounds in [&BATCH_EVENTS, &BATCH_BYTES, &BARRIER_US] {
            assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
        }
        assert_eq!((BATCH_EVENTS[19], BATCH_BYTES[19]), (524_288, 64 << 20));
    }

    #[test]
    fn a_value_counts_at_the_first_bound_that_is_not_below_it() {
        let recorder = Recorder::new(&BATCH_EVENTS);
        for value in [0, 1, 2, 3, 4, 524_288, 524_289] {
            recorder.record(value);
        }
        let histogram = recorder.read();
        let counted: Vec<_> = histogram.buckets().filter(|&(_, count)| count > 0).collect();
        assert_eq!(
            counted,
            [(Some(1), 2), (Some(2), 1), (Some(4), 2), (Some(524_288), 1), (None, 1)]
        );
        assert_eq!((histogram.count(), histogram.sum()), (7, 1_048_587));
    }
}
