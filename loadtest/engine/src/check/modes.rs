//! Whether a latency distribution has two separate groups, which a mean or a median describes
//! badly.
//!
//! The counts are put into bins of a quarter octave (19% wide) and smoothed over
//! three. Two groups are told apart if the lowest bin between two peaks has at most
//! half of the lower peak, that difference is more than four times what chance gives
//! (`√(peak + valley)`, as for independent counts), the peaks are a factor of two or
//! more apart, and each side of the valley holds at least a tenth of all values.

use crate::histogram::Histogram;

/// Values below which nothing is said.
const FEWEST: u64 = 1_000;
/// Bins an octave.
const PER_OCTAVE: f64 = 4.0;

/// Two groups of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TwoGroups {
    /// Share of the faster group, 0 to 1.
    pub(super) fast_share: f64,
    /// The middle of the faster and of the slower group, in nanoseconds.
    pub(super) fast_ns: f64,
    pub(super) slow_ns: f64,
}

fn bin(value_ns: u64) -> usize {
    ((value_ns.max(1) as f64).log2() * PER_OCTAVE) as usize
}

/// The two groups, if there are two.
pub(super) fn two_groups(latency: &Histogram) -> Option<TwoGroups> {
    if latency.count() < FEWEST {
        return None;
    }
    let mut counts = vec![0.0; bin(u64::MAX) + 2];
    for (value, count) in latency.buckets() {
        counts[bin(value)] += count as f64;
    }
    let smooth = smoothed(&counts);
    let valley = deepest_valley(&smooth, &counts)?;
    let below: f64 = counts[..valley].iter().sum();
    let fast_share = below / latency.count() as f64;
    let middle = |q: f64| latency.quantile_ns(q).map(|ns| ns as f64);
    Some(TwoGroups {
        fast_share,
        fast_ns: middle(fast_share / 2.0)?,
        slow_ns: middle(f64::midpoint(fast_share, 1.0))?,
    })
}

fn smoothed(counts: &[f64]) -> Vec<f64> {
    let at = |i: Option<usize>| i.and_then(|i| counts.get(i)).copied().unwrap_or(0.0);
    (0..counts.len())
        .map(|i| (at(i.checked_sub(1)) + 2.0 * counts[i] + at(Some(i + 1))) / 4.0)
        .collect()
}

/// The bin in which the slower group begins.
fn deepest_valley(smooth: &[f64], counts: &[f64]) -> Option<usize> {
    let all: f64 = counts.iter().sum();
    // The highest bin up to each place, and from each place on.
    let left = running_peak(smooth.iter().copied().enumerate());
    let mut right = running_peak(smooth.iter().copied().enumerate().rev());
    right.reverse();
    let mut below = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for at in 0..smooth.len() {
        let (fast, slow) = (left[at], right[at]);
        let lower = smooth[fast].min(smooth[slow]);
        let deep = smooth[at] <= lower / 2.0
            && lower - smooth[at] > 4.0 * (lower + smooth[at]).sqrt()
            && (slow - fast) as f64 >= PER_OCTAVE;
        if deep && below >= all / 10.0 && all - below >= all / 10.0 {
            let depth = lower - smooth[at];
            if best.is_none_or(|(deepest, _)| depth > deepest) {
                best = Some((depth, at));
            }
        }
        below += counts[at];
    }
    best.map(|(_, at)| at)
}

fn running_peak(bins: impl Iterator<Item = (usize, f64)>) -> Vec<usize> {
    let mut peak = (0, f64::NEG_INFINITY);
    bins.map(|(at, count)| {
        if count > peak.1 {
            peak = (at, count);
        }
        peak.0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;

    #[test]
    fn one_group_is_one() {
        assert_eq!(two_groups(&build::spread(100_000, 1.0)), None);
        let mut constant = Histogram::new();
        constant.record_n(1_000_000, 100_000);
        assert_eq!(two_groups(&constant), None);
        // A wide and even spread over a factor of a thousand.
        let mut wide = Histogram::new();
        for i in 0..5_000u64 {
            wide.record((10_000.0 * 10f64.powf(i as f64 / 5_000.0 * 3.0)) as u64);
        }
        assert_eq!(two_groups(&wide), None);
    }

    #[test]
    fn two_groups_are_found_with_their_shares() {
        let mut both = build::spread(60_000, 0.1);
        both.merge(&build::spread(40_000, 3.0));
        let groups = two_groups(&both).unwrap();
        assert!((groups.fast_share - 0.6).abs() < 0.01, "{groups:?}");
        assert!((60_000.0..120_000.0).contains(&groups.fast_ns), "{groups:?}");
        assert!((1.8e6..3.5e6).contains(&groups.slow_ns), "{groups:?}");
    }

    #[test]
    fn a_small_tail_is_not_a_group() {
        let mut tailed = build::spread(95_000, 0.1);
        tailed.merge(&build::spread(5_000, 3.0));
        assert_eq!(two_groups(&tailed), None);
        assert_eq!(two_groups(&build::spread(900, 1.0)), None);
    }
}
