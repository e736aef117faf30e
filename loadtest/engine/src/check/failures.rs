//! C5, failures: how many, and how well that is known.
//!
//! With failures, the share and its 95% Wilson score interval (E. B. Wilson,
//! "Probable Inference, the Law of Succession, and Statistical Inference", 1927).
//! Without any, the rule of three: with 95% confidence fewer than `3 ÷ n` fail
//! (Hanley and Lippman-Hand, 1983).
//!
//! Latencies are of successes only. From 1% on, the failed ones would reach into
//! p99, so the figures need care; from one half on, they describe the failure and
//! not the service.

use super::figures::{Figures, StepFinding};
use crate::numbers::{count, counted, percent};

/// The share of failures from which the figures need care.
const CARE_SHARE: f64 = 0.01;
/// The share of failures from which the figures do not describe the service.
const STOP_SHARE: f64 = 0.5;

/// The 95% Wilson score interval of a share, `failures` of `n`. `(0, 1)` if `n` is 0.
#[must_use]
pub fn wilson(failures: u64, n: u64) -> (f64, f64) {
    const Z: f64 = 1.959_963_985;
    if n == 0 {
        return (0.0, 1.0);
    }
    let n = n as f64;
    let share = failures as f64 / n;
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

/// The rule of three: the share that fails is below this with 95% confidence
/// when none of `n` failed. At most 1.
#[must_use]
pub fn rule_of_three(n: u64) -> f64 {
    if n == 0 { 1.0 } else { (3.0 / n as f64).min(1.0) }
}

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let counters = &figures.total.counters;
    let failures = counters.failures() + figures.unanswered;
    let n = counters.successes + failures;
    if n == 0 {
        return StepFinding::stop("No request completed or failed, so there is nothing to report.");
    }
    if failures == 0 {
        return StepFinding::passed(format!(
            "None of {} failed; with 95% confidence, fewer than {} do (rule of three).",
            counted(n, "request", "requests"),
            percent(rule_of_three(n))
        ));
    }
    let share = failures as f64 / n as f64;
    let (low, high) = wilson(failures, n);
    let facts = format!(
        "{} of {} failed: {} ({} to {} with 95% confidence)",
        count(failures),
        counted(n, "request", "requests"),
        percent(share),
        percent(low),
        percent(high)
    );
    match share {
        share if share >= STOP_SHARE => StepFinding::stop(format!(
            "{facts}; the figures describe the failure, not the service."
        )),
        share if share >= CARE_SHARE => {
            StepFinding::care(format!("{facts}; the latencies are those of the successes only."))
        }
        _ => StepFinding::note(format!("{facts}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{ErrorKind, Outcome};

    #[test]
    fn the_interval_is_wilsons() {
        // Published example: 10 of 100 → 5.52% to 17.44%.
        let (low, high) = wilson(10, 100);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        let (low, high) = wilson(0, 10);
        assert!(low == 0.0 && (high - 0.2775).abs() < 1e-3, "{high}");
        assert_eq!(wilson(5, 5).1, 1.0);
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert_eq!(rule_of_three(300), 0.01);
        assert_eq!(rule_of_three(2), 1.0);
    }

    fn with(statuses_500: u64, timeouts: u64, unanswered: u64) -> StepFinding {
        let mut step = build::closed(1).step();
        let counters = &mut step.runs[0].endpoints[0].counters;
        counters.statuses.insert(500, statuses_500);
        counters.errors.insert(ErrorKind::Timeout, timeouts);
        step.runs[0].unanswered = unanswered;
        judge(&Figures::of(&step).unwrap())
    }

    #[test]
    fn failures_of_every_kind_count() {
        assert_eq!(with(0, 0, 0).outcome, Outcome::Passed);
        assert!(with(0, 0, 0).sentence.contains("fewer than 0.030%"), "{:?}", with(0, 0, 0));
        let few = with(30, 20, 10);
        assert_eq!(few.outcome, Outcome::Note);
        assert!(few.sentence.starts_with("60 of 9,960 requests failed: 0.60%"), "{few:?}");
        assert_eq!(with(100, 0, 0).outcome, Outcome::Care);
        assert_eq!(with(0, 9_900, 0).outcome, Outcome::Stop);
    }

    #[test]
    fn nothing_at_all_is_not_measurable() {
        let mut step = build::closed(1).step();
        step.runs[0].endpoints[0] = crate::result::EndpointResult::new("GET /");
        assert_eq!(judge(&Figures::of(&step).unwrap()).outcome, Outcome::Stop);
    }
}
