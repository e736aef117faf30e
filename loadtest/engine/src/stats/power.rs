//! What a measurement could have seen: the minimum detectable effect.
//!
//! A true difference of that size would have been called with the power asked
//! for. Formula: (t(1 − α/2) + t(power)) × standard error, with the degrees of
//! freedom of the design (Bloom 1995, "Minimum detectable effects"). It takes a
//! central t for the non-central one; simulated, the effect it names is seen with
//! a power of 0.77 for three pairs, 0.79 for five and 0.80 from seven on.

use super::student::t_quantile;

/// The power that comparisons are designed for: four real differences of five are seen.
pub(crate) const DESIGN_POWER: f64 = 0.8;

/// The smallest effect that an estimate with this standard error (> 0) and these
/// degrees of freedom could have shown, in the unit of the standard error. `alpha` is two-sided.
#[must_use]
pub(crate) fn detectable(standard_error: f64, df: f64, alpha: f64, power: f64) -> f64 {
    (t_quantile(1.0 - alpha / 2.0, df) + t_quantile(power, df)) * standard_error
}

#[cfg(test)]
mod tests {
    use super::super::describe::stdev;
    use super::super::interval::{one_sample_t, welch_t};
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn an_effect_of_that_size_is_seen_four_times_of_five() {
        // The effect is set from the true spread (1) of ten pairs; then many experiments are made.
        let exact: Vec<f64> = (0..10).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let scale = stdev(&exact).unwrap();
        let error = scale / 10.0_f64.sqrt();
        let effect = detectable(error, 9.0, 0.05, DESIGN_POWER) / scale;
        assert!((effect - (2.262_157 + 0.883_404) / 10.0_f64.sqrt()).abs() < 1e-4, "{effect}");
        let mut random = SplitMix64::new(5);
        let mut seen = 0;
        for _ in 0..2_000 {
            let differences: Vec<f64> = (0..10).map(|_| effect + random.normal()).collect();
            seen += u32::from(one_sample_t(&differences, 0.95).unwrap().p < 0.05);
        }
        assert!((1_540..=1_700).contains(&seen), "{seen} of 2000");
    }

    #[test]
    fn more_runs_see_smaller_effects() {
        let few = [0.1, -0.1, 0.1, -0.1];
        let many: Vec<f64> = few.iter().cycle().take(40).copied().collect();
        let of = |values: &[f64]| {
            let welch = welch_t(values, values, 0.95).unwrap();
            detectable(welch.standard_error, welch.df, 0.05, 0.8)
        };
        assert!(of(&many) < of(&few) / 3.0);
    }
}
