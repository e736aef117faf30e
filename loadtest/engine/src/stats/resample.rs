//! Intervals and tests that suppose no distribution: they deal the measured runs anew.

use super::describe::mean;
use super::normal::{normal_cdf, normal_quantile};
use crate::random::SplitMix64;

/// The most ways of dealing that are all gone through; beyond, they are drawn at random.
const EXACT_LIMIT: u64 = 20_000;
/// How many are drawn then. The p value is (hits + 1) / (draws + 1), never 0.
const DRAWS: u32 = 9_999;

/// The bias-corrected and accelerated bootstrap interval (Efron 1987) of
/// `statistic` over `samples`, each resampled on its own with replacement.
/// Samples are runs or pairs of runs. `None` if a sample has fewer than four
/// values: with fewer, resampling cannot show what was not measured.
#[must_use]
pub(crate) fn bootstrap_bca(
    samples: &[&[f64]],
    statistic: impl Fn(&[Vec<f64>]) -> f64,
    confidence: f64,
    resamples: u32,
    seed: u64,
) -> Option<(f64, f64)> {
    if samples.is_empty() || samples.iter().any(|sample| sample.len() < 4) || resamples == 0 {
        return None;
    }
    if samples.iter().all(|sample| sample.iter().all(|value| *value == sample[0])) {
        // However they are dealt, it is the same runs: the interval is a point.
        let all: Vec<Vec<f64>> = samples.iter().map(|sample| sample.to_vec()).collect();
        let observed = statistic(&all);
        return Some((observed, observed));
    }
    let mut dealt: Vec<Vec<f64>> = samples.iter().map(|sample| sample.to_vec()).collect();
    let observed = statistic(&dealt);
    let mut random = SplitMix64::new(seed);
    let mut drawn: Vec<f64> = Vec::with_capacity(resamples as usize);
    for _ in 0..resamples {
        for (into, from) in dealt.iter_mut().zip(samples) {
            for value in into.iter_mut() {
                *value = from[random.index(from.len())];
            }
        }
        drawn.push(statistic(&dealt));
    }
    drawn.sort_by(f64::total_cmp);
    let below = drawn.iter().filter(|&&value| value < observed).count() as f64;
    let equal = drawn.iter().filter(|&&value| value == observed).count() as f64;
    // Half of the ties count as below, and the share stays off 0 and 1, where the correction is
    // infinite.
    let n = f64::from(resamples);
    let share = ((below + equal / 2.0) / n).clamp(0.5 / n, 1.0 - 0.5 / n);
    let bias = normal_quantile(share);
    let acceleration = acceleration(samples, &statistic);
    let end = |tail: f64| {
        let z = bias + normal_quantile(tail);
        let place = normal_cdf(bias + z / (1.0 - acceleration * z));
        sorted_quantile(&drawn, place)
    };
    let tail = (1.0 - confidence) / 2.0;
    Some((end(tail), end(1.0 - tail)))
}

/// Efron's acceleration, from leaving out one value at a time.
fn acceleration(samples: &[&[f64]], statistic: &impl Fn(&[Vec<f64>]) -> f64) -> f64 {
    let (mut squares, mut cubes) = (0.0, 0.0);
    for (which, sample) in samples.iter().enumerate() {
        let without: Vec<f64> = (0..sample.len())
            .map(|left_out| {
                let mut all: Vec<Vec<f64>> = samples.iter().map(|s| s.to_vec()).collect();
                all[which].remove(left_out);
                statistic(&all)
            })
            .collect();
        let centre = mean(&without).unwrap_or(0.0);
        let n = sample.len() as f64;
        // Influence values, so that samples of different sizes add up.
        for value in without {
            let influence = (centre - value) * (n - 1.0) / n;
            squares += influence * influence;
            cubes += influence.powi(3);
        }
    }
    if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 }
}

fn sorted_quantile(sorted: &[f64], q: f64) -> f64 {
    let place = (q * (sorted.len() - 1) as f64).round() as usize;
    sorted[place.min(sorted.len() - 1)]
}

/// The two-sided p value of "a and b are dealt from one deck": the share of all
/// ways to split the values into sets of these sizes with means at least as far
/// apart. All ways if there are at most 20,000, otherwise 9,999 random ones. 1 if either is empty.
#[must_use]
pub(crate) fn permutation_p(a: &[f64], b: &[f64], seed: u64) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    let total: f64 = all.iter().sum();
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let gap = |sum_a: f64| (sum_a / n_a - (total - sum_a) / n_b).abs();
    let least = gap(a.iter().sum()) - tolerance(&all);
    if let Some(ways) = ways_to_choose(all.len(), a.len()).filter(|&ways| ways <= EXACT_LIMIT) {
        let mut hits = 0;
        for_each_subset(&all, a.len(), 0.0, &mut |sum_a| hits += usize::from(gap(sum_a) >= least));
        return share(hits, u32::try_from(ways).expect("at most 20,000"));
    }
    let mut random = SplitMix64::new(seed);
    let mut hits = 0;
    for _ in 0..DRAWS {
        random.shuffle(&mut all);
        hits += usize::from(gap(all[..a.len()].iter().sum()) >= least);
    }
    share(hits + 1, DRAWS + 1)
}

/// Sums in another order differ by rounding; that must not hide a tie.
fn tolerance(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum::<f64>() * 1e-12
}

fn share(hits: usize, of: u32) -> f64 {
    hits as f64 / f64::from(of)
}

fn ways_to_choose(n: usize, k: usize) -> Option<u64> {
    let mut ways = 1_u64;
    for at in 0..k {
        ways = ways.checked_mul((n - at) as u64)? / (at as u64 + 1);
    }
    Some(ways)
}

fn for_each_subset(values: &[f64], choose: usize, sum: f64, visit: &mut dyn FnMut(f64)) {
    if choose == 0 {
        visit(sum);
        return;
    }
    for at in 0..=values.len() - choose {
        for_each_subset(&values[at + 1..], choose - 1, sum + values[at], visit);
    }
}

/// An interval of the median that supposes nothing but independence: two order
/// statistics that hold it with at least `confidence`, by the binomial
/// distribution. `None` if there are too few values (below six for 95%).
#[must_use]
pub fn median_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let n = i32::try_from(values.len()).ok()?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut tail = 0.0;
    // In logarithms, so that hundreds of repeats do not underflow.
    let mut ln_term = -f64::from(n) * std::f64::consts::LN_2;
    let mut best = None;
    for k in 0..n / 2 {
        tail += ln_term.exp();
        if 2.0 * tail > 1.0 - confidence {
            break;
        }
        let at = k.unsigned_abs() as usize;
        best = Some((sorted[at], sorted[sorted.len() - 1 - at]));
        ln_term += (f64::from(n - k) / f64::from(k + 1)).ln();
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::describe::median;
    use super::*;

    fn mean_of_first(samples: &[Vec<f64>]) -> f64 {
        mean(&samples[0]).unwrap()
    }

    #[test]
    fn the_bootstrap_covers_about_as_often_as_it_says() {
        let mut random = SplitMix64::new(3);
        let mut held = 0;
        for seed in 0..300 {
            let values: Vec<f64> = (0..20).map(|_| random.normal()).collect();
            let (low, high) = bootstrap_bca(&[&values], mean_of_first, 0.95, 400, seed).unwrap();
            assert!(low < high);
            held += u32::from(low <= 0.0 && 0.0 <= high);
        }
        // With 20 values it is known to be a little too narrow: 92 to 94%.
        assert!((268..=294).contains(&held), "{held} of 300");
    }

    #[test]
    fn the_bootstrap_leans_with_a_skewed_sample_and_repeats_with_its_seed() {
        let skewed = [1.0, 1.1, 1.2, 1.2, 1.3, 1.4, 1.5, 1.9, 4.0, 9.0];
        let of = |seed| bootstrap_bca(&[&skewed], mean_of_first, 0.95, 2_000, seed).unwrap();
        let (low, high) = of(1);
        let centre = mean(&skewed).unwrap();
        assert!(high - centre > 1.3 * (centre - low), "{low}…{high}");
        assert_eq!(of(1), of(1));
        assert_eq!(bootstrap_bca(&[&skewed[..3]], mean_of_first, 0.95, 100, 1), None);
    }

    #[test]
    fn permutations_of_few_runs_are_counted_out() {
        // Five against five without overlap: 2 of 252 splits.
        let (low, high) = ([1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4]);
        assert!((permutation_p(&low, &high, 1) - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(permutation_p(&[0.0; 4], &[0.0; 4], 1), 1.0);
        assert_eq!(permutation_p(&[0.0; 12], &[1.0; 12], 1), 1.0 / 10_000.0);
    }

    #[test]
    fn the_median_is_held_by_order_statistics() {
        // Known ranks for 95%: 6 values → 1 and 6; 10 → 2 and 9; 20 → 6 and 15.
        for (n, low, high) in [(6, 1.0, 6.0), (10, 2.0, 9.0), (20, 6.0, 15.0)] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(median_interval(&values, 0.95), Some((low, high)), "{n}");
        }
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95), None);
        let many: Vec<f64> = (0..3_000).map(f64::from).collect();
        let (low, high) = median_interval(&many, 0.95).unwrap();
        assert!(low < median(&many).unwrap() && high - low < 120.0, "{low}…{high}");
    }
}
