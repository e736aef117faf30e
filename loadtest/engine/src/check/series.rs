//! Tests of a short series for a change or a trend, without assuming any distribution.
//!
//! - [`change_point`]: A. N. Pettitt, "A Non-Parametric Approach to the Change-Point
//!   Problem", 1979. `U(t) = 2 × Σ ranks(1..t) − t(n + 1)`, `K = max |U(t)|`,
//!   `p ≈ 2·exp(−6K² ÷ (n³ + n²))`. For few values that approximation cannot become small; if
//!   all values before a place lie on one side of all values after it, the exact chance of that,
//!   `2 ÷ C(n, t)` summed over every `t` that leaves four values on each side, is used if smaller.
//!   The place is where two levels fit best.
//! - [`trend`]: H. B. Mann, "Nonparametric Tests Against Trend", 1945; M. G. Kendall, 1975,
//!   with the correction for ties, and the slope of H. Theil, 1950, and P. K. Sen, 1968.

/// Where a series changes most, and how surely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// Index of the first value after the change.
    pub(super) at: usize,
    /// Median before and after.
    pub(super) before: f64,
    pub(super) after: f64,
    /// Chance of a change this clear in a series without one.
    pub(super) p: f64,
}

/// A steady rise or fall over the whole series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Change from the first to the last value, as a share of the median.
    pub(super) share: f64,
    /// Chance of a trend this clear in a series without one.
    pub(super) p: f64,
}

/// The median; 0 if there are no values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Ranks from 1, equal values sharing the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut to = from + 1;
        while to < order.len() && values[order[to]] == values[order[from]] {
            to += 1;
        }
        // Places from+1 to `to`, shared.
        let shared = (from + 1 + to) as f64 / 2.0;
        for place in &order[from..to] {
            ranks[*place] = shared;
        }
        from = to;
    }
    ranks
}

/// The place of the clearest change. `None` for fewer than eight values.
pub(super) fn change_point(values: &[f64]) -> Option<Change> {
    let n = values.len();
    if n < 8 {
        return None;
    }
    let (mut sum, mut largest) = (0.0, 0.0f64);
    for (t, rank) in (1..n).zip(ranks(values)) {
        sum += rank;
        largest = largest.max((2.0 * sum - t as f64 * (n as f64 + 1.0)).abs());
    }
    let n3 = (n as f64).powi(3) + (n as f64).powi(2);
    let approximate = (2.0 * (-6.0 * largest * largest / n3).exp()).min(1.0);
    let at = best_cut(values);
    let (before, after) = values.split_at(at);
    let exact = if at >= 4 && n - at >= 4 && apart(before, after) { separation(n) } else { 1.0 };
    Some(Change { at, before: median(before), after: median(after), p: approximate.min(exact) })
}

/// Where two levels fit best, by least squares: Pettitt's statistic says whether there is a
/// change, but its largest value lies too far towards the middle.
fn best_cut(values: &[f64]) -> usize {
    let all: f64 = values.iter().sum();
    let n = values.len() as f64;
    let (mut sum, mut best) = (0.0, (f64::NEG_INFINITY, 1));
    for (t, value) in (1..values.len()).zip(values) {
        sum += value;
        let (t_before, t_after) = (t as f64, n - t as f64);
        let gain = (sum / t_before - (all - sum) / t_after).powi(2) * t_before * t_after;
        if gain > best.0 {
            best = (gain, t);
        }
    }
    best.1
}

/// Whether all values of one side are below all of the other.
fn apart(one: &[f64], other: &[f64]) -> bool {
    let low = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high(one) < low(other) || high(other) < low(one)
}

/// At most the chance that some cut of `n` values in random order, with four or more on each side,
/// sets them apart.
fn separation(n: usize) -> f64 {
    let (mut ways, mut chance) = (1.0, 0.0);
    for t in 1..=n - 4 {
        ways *= (n - t + 1) as f64 / t as f64;
        if t >= 4 {
            chance += 2.0 / ways;
        }
    }
    chance
}

/// The steady rise or fall. `None` for fewer than eight values or a median of 0.
pub(super) fn trend(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    let middle = median(values);
    if n < 8 || middle == 0.0 {
        return None;
    }
    let mut s = 0.0;
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for later in 1..n {
        for earlier in 0..later {
            let rise = values[later] - values[earlier];
            s += f64::from(i8::from(rise > 0.0) - i8::from(rise < 0.0));
            slopes.push(rise / (later - earlier) as f64);
        }
    }
    let weight = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let ties: f64 = tie_sizes(values).into_iter().map(weight).sum();
    let variance = (weight(n as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return Some(Trend { share: 0.0, p: 1.0 });
    }
    let z = (s.abs() - 1.0).max(0.0) / variance.sqrt();
    Some(Trend { share: median(&slopes) * (n - 1) as f64 / middle, p: two_sided(z) })
}

fn tie_sizes(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64).collect()
}

/// The chance that a standard normal value lies further from 0 than `z ≥ 0`, to 2e-7
/// (Abramowitz and Stegun, 7.1.26).
pub(super) fn two_sided(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    (poly * (-x * x).exp()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator (Steele, Lea and Flood's SplitMix64), so that the tests are the same each
    /// time.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn the_normal_tail_is_right() {
        for (z, p) in [(0.0, 1.0), (1.0, 0.317_310_5), (1.959_964, 0.05), (3.0, 0.002_699_8)] {
            assert!((two_sided(z) - p).abs() < 1e-6, "{z}: {}", two_sided(z));
        }
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut numbers = Numbers(1);
        for (n, at) in [(10, 5), (12, 4), (30, 20), (100, 37)] {
            let values: Vec<f64> =
                (0..n).map(|i| if i < at { 100.0 } else { 80.0 } + numbers.next()).collect();
            let change = change_point(&values).unwrap();
            assert_eq!(change.at, at);
            assert!(change.p < 0.03 && change.before > 100.0 && change.after < 81.0, "{change:?}");
        }
    }

    #[test]
    fn a_trend_is_found_with_its_size() {
        let mut numbers = Numbers(2);
        let values: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i) + numbers.next()).collect();
        let trend = trend(&values).unwrap();
        assert!(trend.p < 1e-6 && (trend.share - 19.0 / 110.0).abs() < 0.01, "{trend:?}");
    }

    #[test]
    fn noise_alone_is_seldom_called_a_change() {
        let mut numbers = Numbers(3);
        let (mut changes, mut trends) = (0, 0);
        for _ in 0..1_000 {
            let values: Vec<f64> = (0..30).map(|_| numbers.next()).collect();
            changes += usize::from(change_point(&values).unwrap().p < 0.05);
            trends += usize::from(trend(&values).unwrap().p < 0.05);
        }
        assert!(changes <= 60, "{changes} of 1000");
        assert!((25..=75).contains(&trends), "{trends} of 1000");
    }

    #[test]
    fn equal_values_have_neither() {
        assert_eq!(trend(&[5.0; 12]).unwrap().p, 1.0);
        assert_eq!(change_point(&[5.0; 12]).unwrap().p, 1.0);
        assert_eq!(change_point(&[1.0; 7]), None);
    }
}
