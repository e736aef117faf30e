//! C2: the figures of one distribution agree with each other and with the counters.
//!
//! - The mean from the exact sum and the mean from the buckets differ by at most
//!   0.5% (three digits leave at most 0.05%), or by 1 ns.
//! - `min ≤ p50 ≤ p75 ≤ p90 ≤ p95 ≤ p99 ≤ p99.9 ≤ max`.
//! - A share `1 − q` of all values is at least as large as quantile `q`, and none is
//!   below the minimum, so `mean ≥ q·min + (1 − q)·Q(q)` (Markov's inequality; for the
//!   median it says mean ≥ p50 ÷ 2); and a share `q` is at most `Q(q)`, none above the
//!   maximum, so `mean ≤ q·Q(q) + (1 − q)·max`. Both with 0.5% of play for the buckets.
//! - As many values as answers: successes in the service times, the others in the
//!   failed ones; and every request sent became exactly one of answer, error or unanswered.

use super::figures::{Figures, StepFinding};
use crate::histogram::{Histogram, LARGEST_NS};
use crate::numbers::{count, duration, percent, quantile_name};
use crate::result::{ErrorKind, Run};

/// How far the two means may differ, as a share.
pub(crate) const MEAN_TOLERANCE: f64 = 0.005;

/// The quantiles compared with the mean.
const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let mut found = Vec::new();
    let mut values = 0;
    for endpoint in figures.step.runs.iter().flat_map(|run| &run.endpoints) {
        let kinds = [
            ("service", Some(&endpoint.service)),
            ("failed", Some(&endpoint.failed_service)),
            ("response", endpoint.response.as_ref()),
            ("lateness", endpoint.lateness.as_ref()),
        ];
        for (kind, histogram) in kinds {
            let Some(histogram) = histogram else { continue };
            values += histogram.count();
            if let Some(what) = distribution(histogram) {
                found.push(StepFinding::stop(format!(
                    "{} times of {}: {what}.",
                    kind, endpoint.name
                )));
            }
        }
    }
    found.extend(figures.step.runs.iter().filter_map(counters).map(StepFinding::stop));
    if values == 0 && found.is_empty() {
        return StepFinding::not_checked(
            "No answer was measured, so there is no distribution to check.",
        );
    }
    let passed = "Means from the sum and from the buckets agree, quantiles fit the mean, and every request is accounted for.";
    StepFinding::worst(found, StepFinding::passed(passed))
}

/// What is wrong with a distribution, if anything.
fn distribution(histogram: &Histogram) -> Option<String> {
    let (min, max) = (histogram.min_ns()? as f64, histogram.max_ns()? as f64);
    let (mean, buckets) = (histogram.mean_ns()?, histogram.bucket_mean_ns()?);
    // Beyond an hour the buckets saturate by design; the exact sum does not.
    if max <= LARGEST_NS as f64 && (mean - buckets).abs() > (mean * MEAN_TOLERANCE).max(1.0) {
        return Some(format!(
            "the mean is {} from the sum but {} from the buckets ({} apart)",
            duration(mean),
            duration(buckets),
            percent((buckets / mean - 1.0).abs())
        ));
    }
    let mut last = (min, "the minimum".to_owned());
    for q in QUANTILES {
        let value = histogram.quantile_ns(q)? as f64;
        if value < last.0 {
            let name = quantile_name(q);
            return Some(format!(
                "{name} ({}) is below {} ({})",
                duration(value),
                last.1,
                duration(last.0)
            ));
        }
        last = (value, quantile_name(q));
        let n = histogram.count() as f64;
        // At least this share of the values is at or above, and at or below, the quantile.
        let above = ((1.0 - q) * n).floor() / n;
        let below = (q * n).floor() / n;
        if let Some(what) = mean_against_quantile(mean, (q, value), (above, below), (min, max)) {
            return Some(what);
        }
    }
    (last.0 > max).then(|| {
        format!("{} ({}) is above the maximum ({})", last.1, duration(last.0), duration(max))
    })
}

fn mean_against_quantile(
    mean: f64,
    (q, value): (f64, f64),
    (above, below): (f64, f64),
    (min, max): (f64, f64),
) -> Option<String> {
    let least = (1.0 - above) * min + above * value;
    let most = below * value + (1.0 - below) * max;
    let play = mean * MEAN_TOLERANCE + 1.0;
    let name = quantile_name(q);
    if mean + play < least {
        return Some(format!(
            "with {name} at {} the mean must be at least {}, and it is {}",
            duration(value),
            duration(least),
            duration(mean)
        ));
    }
    (mean - play > most).then(|| {
        format!(
            "with {name} at {} and a maximum of {} the mean can be at most {}, and it is {}",
            duration(value),
            duration(max),
            duration(most),
            duration(mean)
        )
    })
}

/// What is wrong with the counts of one run, if anything.
fn counters(run: &Run) -> Option<String> {
    let total = run.total()?;
    let counted = &total.counters;
    let answered: u64 = counted.statuses.values().sum();
    let failed = answered.saturating_sub(counted.successes);
    if total.service.count() != counted.successes || total.failed_service.count() != failed {
        return Some(format!(
            "Run {}: {} successes and {} failed answers were counted, but {} and {} durations.",
            run.order,
            count(counted.successes),
            count(failed),
            count(total.service.count()),
            count(total.failed_service.count())
        ));
    }
    let errors: u64 = counted.errors.values().sum();
    // Where no connection came about, an engine may or may not have called the request sent.
    let unsent: u64 = [ErrorKind::Connect, ErrorKind::Tls, ErrorKind::Request]
        .iter()
        .filter_map(|kind| counted.errors.get(kind))
        .sum();
    let ended = answered + errors + run.unanswered;
    (counted.sent > ended || counted.sent < ended - unsent).then(|| {
        format!(
            "Run {}: {} requests were sent, but {} ended (answered, in error or unanswered).",
            run.order,
            count(counted.sent),
            count(ended)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{Outcome, Step};
    use proptest::prelude::*;

    fn judged(step: &Step) -> StepFinding {
        judge(&Figures::of(step).unwrap())
    }

    #[test]
    fn a_sound_run_passes() {
        assert_eq!(judged(&build::closed(4).step()).outcome, Outcome::Passed);
        assert_eq!(judged(&build::open(1_000.0).step()).outcome, Outcome::Passed);
    }

    /// Writes a histogram with another sum, minimum or maximum than its values have.
    fn forged(histogram: &Histogram, field: &str, value: f64) -> Histogram {
        let mut stored = serde_json::to_value(histogram).unwrap();
        stored[field] = if field == "sum_ns" { value.into() } else { (value as u64).into() };
        serde_json::from_value(stored).unwrap()
    }

    #[test]
    fn a_mean_that_the_buckets_do_not_have_stops() {
        let mut step = build::closed(4).step();
        let service = &mut step.runs[0].endpoints[0].service;
        *service = forged(service, "sum_ns", service.sum_ns() as f64 * 1.02);
        let finding = judged(&step);
        assert_eq!(finding.outcome, Outcome::Stop);
        assert!(finding.sentence.contains("buckets"), "{}", finding.sentence);
        let mut step = build::closed(4).step();
        let service = &mut step.runs[0].endpoints[0].service;
        *service = forged(service, "sum_ns", service.sum_ns() as f64 * 1.001);
        assert_eq!(judged(&step).outcome, Outcome::Passed);
    }

    #[test]
    fn the_mean_must_lie_within_what_each_quantile_allows() {
        let extremes = (10.0, 1_000.0);
        let shares = (0.5, 0.5);
        assert!(mean_against_quantile(100.0, (0.5, 100.0), shares, extremes).is_none());
        let low = mean_against_quantile(50.0, (0.5, 100.0), shares, extremes).unwrap();
        assert!(low.contains("at least 55 ns"), "{low}");
        let high = mean_against_quantile(600.0, (0.5, 100.0), shares, extremes).unwrap();
        assert!(high.contains("at most 550 ns"), "{high}");
    }

    #[test]
    fn counts_that_do_not_add_up_stop() {
        let mut step = build::closed(4).step();
        step.runs[0].endpoints[0].counters.successes -= 1;
        assert!(judged(&step).sentence.contains("durations"));
        let mut step = build::closed(4).step();
        step.runs[0].endpoints[0].counters.sent += 5;
        assert_eq!(judged(&step).outcome, Outcome::Stop);
        step.runs[0].unanswered = 5;
        assert_eq!(judged(&step).outcome, Outcome::Passed);
        // A connection refused: sent or not, both are accounted for.
        step.runs[0].endpoints[0].counters.errors.insert(ErrorKind::Connect, 3);
        assert_eq!(judged(&step).outcome, Outcome::Passed);
        step.runs[0].endpoints[0].counters.sent += 3;
        assert_eq!(judged(&step).outcome, Outcome::Passed);
        step.runs[0].endpoints[0].counters.sent += 1;
        assert_eq!(judged(&step).outcome, Outcome::Stop);
    }

    proptest! {
        #[test]
        fn whatever_is_truly_recorded_passes(values in prop::collection::vec(0u64..4_000_000_000_000, 1..200)) {
            let mut histogram = Histogram::new();
            for value in values {
                histogram.record(value);
            }
            prop_assert_eq!(distribution(&histogram), None);
        }
    }
}
