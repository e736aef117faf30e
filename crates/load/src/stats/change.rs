//! Change points: where a series of run results began to be another one.
//!
//! One change is sought at a time by the largest standardised difference between
//! the mean ranks before and after (CUSUM over ranks, as in Pettitt 1979: a
//! single wild run has only its rank). Whether it is one is decided by shuffling
//! the series: the p value is the share of shuffles with a difference as large.
//! Found, the series is split there and both parts are searched in the same way
//! (as E-divisive does, Matteson and James 2014).

use super::describe::median;
use crate::random::SplitMix64;

/// How changes are sought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detection {
    /// A change is reported if its p value is at most this. Of series without any
    /// change, about this share is reported to have one.
    pub alpha: f64,
    /// How often each part is shuffled; the smallest p value is 1 / (shuffles + 1).
    pub shuffles: u32,
    /// The fewest results before and after a change; at least 1.
    pub shortest: usize,
    /// Seed of the shuffles.
    pub seed: u64,
}

impl Default for Detection {
    fn default() -> Self {
        Detection { alpha: 0.05, shuffles: 999, shortest: 2, seed: 1 }
    }
}

/// A place where the series changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first result after the change; the one before it is the last of the old kind.
    pub at: usize,
    /// The p value of the split.
    pub p: f64,
    /// Median of the results since the change before (or the beginning).
    pub median_before: f64,
    /// Median of the results up to the next change (or the end).
    pub median_after: f64,
}

/// All changes in `values`, in their order. Series of fewer than six results
/// cannot show one at 5%.
#[must_use]
pub fn change_points(values: &[f64], how: &Detection) -> Vec<ChangePoint> {
    let mut random = SplitMix64::new(how.seed);
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((from, to)) = parts.pop() {
        if let Some((at, p)) = split(&values[from..to], how, &mut random) {
            found.push((from + at, p));
            parts.push((from, from + at));
            parts.push((from + at, to));
        }
    }
    found.sort_by_key(|&(at, _)| at);
    let part_median = |from: usize, to: usize| median(&values[from..to]).unwrap_or(0.0);
    (0..found.len())
        .map(|which| {
            let (at, p) = found[which];
            let from = if which == 0 { 0 } else { found[which - 1].0 };
            let to = found.get(which + 1).map_or(values.len(), |next| next.0);
            let (median_before, median_after) = (part_median(from, at), part_median(at, to));
            ChangePoint { at, p, median_before, median_after }
        })
        .collect()
}

/// The best split of one part, if its p value is small enough.
fn split(part: &[f64], how: &Detection, random: &mut SplitMix64) -> Option<(usize, f64)> {
    let shortest = how.shortest.max(1);
    if part.len() < 2 * shortest {
        return None;
    }
    let mut ranks = centred_ranks(part);
    let (at, observed) = largest_step(&ranks, shortest)?;
    let mut as_large = 1_u32;
    for _ in 0..how.shuffles {
        random.shuffle(&mut ranks);
        let shuffled = largest_step(&ranks, shortest).map_or(0.0, |(_, size)| size);
        as_large += u32::from(shuffled >= observed - 1e-9);
    }
    let p = f64::from(as_large) / f64::from(how.shuffles + 1);
    (p <= how.alpha).then_some((at, p))
}

/// Ranks minus their mean, equal values sharing theirs.
#[allow(clippy::cast_precision_loss)] // lengths of series
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let centre = (values.len() - 1) as f64 / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut to = from + 1;
        while to < order.len() && values[order[to]] == values[order[from]] {
            to += 1;
        }
        for &at in &order[from..to] {
            ranks[at] = (from + to - 1) as f64 / 2.0 - centre;
        }
        from = to;
    }
    ranks
}

/// Where the cumulated sum, divided by what chance gives it there, is furthest from 0.
#[allow(clippy::cast_precision_loss)]
fn largest_step(centred: &[f64], shortest: usize) -> Option<(usize, f64)> {
    let n = centred.len();
    let mut sum = 0.0_f64;
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in centred.iter().enumerate() {
        if at >= shortest && at + shortest <= n {
            let size = sum.abs() / ((at * (n - at)) as f64).sqrt();
            if best.is_none_or(|(_, largest)| size > largest) {
                best = Some((at, size));
            }
        }
        sum += value;
    }
    best.filter(|&(_, size)| size > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(length: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        (0..length).map(|_| random.normal()).collect()
    }

    #[test]
    fn two_steps_are_found_where_they_are() {
        let mut values = noise(60, 2);
        values[20..].iter_mut().for_each(|value| *value += 5.0);
        values[45..].iter_mut().for_each(|value| *value -= 8.0);
        let found = change_points(&values, &Detection::default());
        let places: Vec<usize> = found.iter().map(|change| change.at).collect();
        assert_eq!(places, [20, 45], "{found:?}");
        assert!((found[0].median_after - found[0].median_before - 5.0).abs() < 1.0);
        assert!(found.iter().all(|change| change.p <= 0.01));
        assert_eq!(found, change_points(&values, &Detection::default()), "the seed decides");
    }

    #[test]
    fn noise_and_a_single_wild_run_are_no_change() {
        let mut alarms = 0;
        for seed in 0..200 {
            let how = Detection { shuffles: 199, seed, ..Detection::default() };
            alarms += usize::from(!change_points(&noise(20, 1_000 + seed), &how).is_empty());
        }
        // 5% of 200 are 10; 20 would be three standard deviations more.
        assert!(alarms <= 20, "{alarms} of 200");
        let mut wild = vec![1.0; 20];
        wild[9] = 1e6;
        assert_eq!(change_points(&wild, &Detection::default()), []);
        assert_eq!(change_points(&[1.0, 1.0, 1.0, 1.0, 9.0], &Detection::default()), []);
        assert_eq!(change_points(&[], &Detection::default()), []);
    }
}
