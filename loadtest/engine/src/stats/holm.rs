//! Several questions asked of the same runs.

/// Adjusts p values so that calling everything below α different is wrong about
/// *anything* with a probability of at most α, however the questions depend on
/// each other (Holm 1979, "A simple sequentially rejective multiple test
/// procedure"). The order of the input is kept; results are at most 1.
#[must_use]
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        least = least.max(p_values[at] * factor).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_worked_example() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (told, truth) in adjusted.iter().zip(expected) {
            assert!((told - truth).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }

    proptest! {
        #[test]
        fn never_smaller_than_given_and_in_the_same_order(
            values in proptest::collection::vec(0.0..1.0_f64, 1..9)
        ) {
            let adjusted = holm(&values);
            for (a, p) in adjusted.iter().zip(&values) {
                prop_assert!(a >= p && *a <= 1.0);
            }
            for (i, j) in (0..values.len()).flat_map(|i| (0..values.len()).map(move |j| (i, j))) {
                if values[i] < values[j] {
                    prop_assert!(adjusted[i] <= adjusted[j]);
                }
            }
        }
    }
}
