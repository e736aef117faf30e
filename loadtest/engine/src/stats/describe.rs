//! One number for several runs.

/// The arithmetic mean; `None` if empty.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The geometric mean; `None` if empty or if a value is not above 0.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.iter().any(|&value| value <= 0.0 || !value.is_finite()) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    mean(&logs).map(f64::exp)
}

/// What stands for several runs wherever one figure is given for them: the geometric mean, or the
/// arithmetic one if a run has 0. `None` if empty. Of the means it is the one for which B ÷ A is
/// exactly the change that a comparison reports (`docs/decisions/0038-one-throughput.md`).
#[must_use]
pub(crate) fn mean_of_runs(values: &[f64]) -> Option<f64> {
    match values {
        // Equal values are their own mean, to the last bit.
        [first, rest @ ..] if rest.iter().all(|value| value == first) => Some(*first),
        _ => geometric_mean(values).or_else(|| mean(values)),
    }
}

/// The standard deviation of a sample (divided by n − 1); `None` for fewer than two values.
#[must_use]
pub(crate) fn stdev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The median; of an even number the mean of the middle two. `None` if empty.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile `q` (0 to 1) by linear interpolation between order statistics
/// (Hyndman and Fan 1996, definition 7). `None` if empty.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - place.floor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_small_sample() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert_eq!(median(&values), Some(4.5));
        assert!((stdev(&values).unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((geometric_mean(&[1.0, 100.0]).unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), Some(1.75));
        assert_eq!((mean(&[]), median(&[]), stdev(&[1.0])), (None, None, None));
    }
}
