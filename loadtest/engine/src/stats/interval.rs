//! Confidence intervals of a mean and of a difference of means.

use super::describe::{mean, stdev};
use super::student::{t_quantile, t_two_sided_p};

/// An estimate with its interval and the p value of "it is really 0".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p value against 0.
    pub p: f64,
    /// Standard error of the estimate.
    pub standard_error: f64,
    /// Degrees of freedom.
    pub df: f64,
}

impl Interval {
    fn new(estimate: f64, standard_error: f64, df: f64, confidence: f64) -> Self {
        let reach = t_quantile(f64::midpoint(1.0, confidence), df) * standard_error;
        Interval {
            estimate,
            low: estimate - reach,
            high: estimate + reach,
            p: t_two_sided_p(estimate / standard_error, df),
            standard_error,
            df,
        }
    }
}

/// Student's interval of the mean of `differences`, one a pair (Student 1908).
/// `None` for fewer than two, or if they are all the same: then nothing is known of their spread.
#[must_use]
pub(crate) fn one_sample_t(differences: &[f64], confidence: f64) -> Option<Interval> {
    let spread = stdev(differences).filter(|&spread| is_spread(spread, differences))?;
    let n = differences.len() as f64;
    Some(Interval::new(mean(differences)?, spread / n.sqrt(), n - 1.0, confidence))
}

/// The interval of mean(b) − mean(a) for two independent samples that may differ
/// in spread (Welch 1947). `None` if either has fewer than two values or neither varies.
#[must_use]
pub(crate) fn welch_t(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    let (spread_a, spread_b) = (stdev(a)?, stdev(b)?);
    if !is_spread(spread_a, a) && !is_spread(spread_b, b) {
        return None;
    }
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let (part_a, part_b) = (spread_a * spread_a / n_a, spread_b * spread_b / n_b);
    let variance = part_a + part_b;
    let df = variance * variance / (part_a * part_a / (n_a - 1.0) + part_b * part_b / (n_b - 1.0));
    Some(Interval::new(mean(b)? - mean(a)?, variance.sqrt(), df, confidence))
}

/// Whether a standard deviation is more than what rounding leaves of equal values.
fn is_spread(spread: f64, values: &[f64]) -> bool {
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    spread > largest * 1e-12
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn students_own_example() {
        // The sleep data of Student 1908: mean 1.58, t = 4.06, p = 0.00283, interval 0.70 to 2.46.
        let extra = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let told = one_sample_t(&extra, 0.95).unwrap();
        assert!((told.estimate - 1.58).abs() < 1e-12);
        assert!((told.low - 0.700_114_2).abs() < 1e-6 && (told.high - 2.459_885_8).abs() < 1e-6);
        assert!((told.p - 0.002_833).abs() < 1e-6, "{}", told.p);
    }

    #[test]
    fn welch_of_the_same_data_unpaired() {
        // R: t.test(extra ~ group, sleep): t = −1.8608, df = 17.776, p = 0.07939,
        // −3.3654832…0.2054832.
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let told = welch_t(&two, &one, 0.95).unwrap();
        assert!((told.low + 3.365_483).abs() < 1e-5 && (told.high - 0.205_483).abs() < 1e-5);
        assert!((told.df - 17.776).abs() < 1e-3 && (told.p - 0.079_39).abs() < 1e-5);
    }

    #[test]
    fn without_spread_there_is_no_interval() {
        assert_eq!(one_sample_t(&[0.1, 0.1, 0.1], 0.95), None);
        assert_eq!(one_sample_t(&[0.1], 0.95), None);
        assert_eq!(welch_t(&[1.0, 1.0], &[2.0, 2.0], 0.95), None);
        assert_eq!(welch_t(&[1.0], &[2.0, 3.0], 0.95), None);
        assert!(welch_t(&[1.0, 1.0], &[2.0, 3.0], 0.95).is_some());
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        let mut random = SplitMix64::new(11);
        let mut held = 0;
        for _ in 0..2_000 {
            let values: Vec<f64> = (0..6).map(|_| 3.0 + random.normal()).collect();
            let told = one_sample_t(&values, 0.95).unwrap();
            held += u32::from(told.low <= 3.0 && 3.0 <= told.high);
        }
        assert!((1_870..=1_930).contains(&held), "{held} of 2000");
    }
}
