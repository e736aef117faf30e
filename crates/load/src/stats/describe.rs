//! One number for several runs.

/// The arithmetic mean; `None` if empty.
#[must_use]
#[allow(clippy::cast_precision_loss)] // numbers of runs
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

/// The standard deviation of a sample (divided by n − 1); `None` for fewer than two values.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn stdev(values: &[f64]) -> Option<f64> {
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
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
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

/// Correlation of each value with the one before, −1 to 1; `None` for fewer than
/// three values or if they are all the same. Clearly above 0 means drift.
#[must_use]
pub fn lag1_autocorrelation(values: &[f64]) -> Option<f64> {
    if values.len() < 3 {
        return None;
    }
    let centre = mean(values)?;
    let total: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let shared: f64 = values.windows(2).map(|two| (two[0] - centre) * (two[1] - centre)).sum();
    (total > 0.0).then(|| shared / total)
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

    #[test]
    fn autocorrelation_tells_drift_from_alternation() {
        let drift: Vec<f64> = (0..20).map(f64::from).collect();
        let alternating: Vec<f64> = (0..20).map(|at| f64::from(at % 2)).collect();
        assert!(lag1_autocorrelation(&drift).unwrap() > 0.8);
        assert!(lag1_autocorrelation(&alternating).unwrap() < -0.9);
        assert_eq!(lag1_autocorrelation(&[1.0, 1.0, 1.0]), None);
    }
}
