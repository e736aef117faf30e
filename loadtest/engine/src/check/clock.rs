//! C3, quantisation: a clock or a printout too coarse for what it measures.
//!
//! Of at least 200 answers, those below p90 should take many different values.
//! The check trips if they take at most 20, and the nearest two of these (the
//! first value above p90 included) are more than 1% of the median apart, many
//! times the width of a bucket. A constant latency has neighbours within a
//! bucket or two; a coarse clock leaves nothing in between.

use super::figures::{Figures, StepFinding};
use crate::histogram::Histogram;
use crate::numbers::{count, counted, duration};

/// Answers below which nothing is said.
const FEWEST_ANSWERS: u64 = 200;
/// At most so many different values below p90 are few.
const FEW_VALUES: usize = 20;
/// The least distance between values, as a share of the median, that is coarse.
const COARSE_SHARE: f64 = 0.01;

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let latency = figures.total.latency();
    if latency.count() < FEWEST_ANSWERS {
        return StepFinding::not_checked(format!(
            "The clock check needs {FEWEST_ANSWERS} answers; there are {}.",
            count(latency.count())
        ));
    }
    let (distinct, step) = spacing(latency);
    match step {
        Some(step) if distinct <= FEW_VALUES => StepFinding::care(format!(
            "Below p90 the {} take only {}, about {} apart: the clock is too coarse, so quantiles are known only to that step.",
            counted(latency.count(), "latency", "latencies"),
            counted(distinct as u64, "value", "different values"),
            duration(step)
        )),
        _ => StepFinding::passed(format!(
            "Below p90 the latencies take {}.",
            counted(distinct as u64, "value", "different values")
        )),
    }
}

/// Whether the latencies come from a clock or printout too coarse for them.
pub(super) fn is_coarse(latency: &Histogram) -> bool {
    let (distinct, step) = spacing(latency);
    distinct <= FEW_VALUES && step.is_some()
}

/// How many values there are up to p90, and the distance of the nearest two in
/// nanoseconds if it is coarse.
fn spacing(latency: &Histogram) -> (usize, Option<f64>) {
    let p90 = latency.quantile_ns(0.9).unwrap_or(0);
    let mut distinct = 0;
    let mut nearest = f64::INFINITY;
    let mut last: Option<u64> = None;
    for (value, _) in latency.buckets() {
        if let Some(last) = last {
            nearest = nearest.min((value - last) as f64);
        }
        last = Some(value);
        if value > p90 {
            break;
        }
        distinct += 1;
    }
    let median = latency.quantile_ns(0.5).unwrap_or(0) as f64;
    let coarse = nearest.is_finite() && nearest > median * COARSE_SHARE;
    (distinct, coarse.then_some(nearest))
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    fn of(values: impl IntoIterator<Item = (u64, u64)>) -> StepFinding {
        let mut step = build::closed(4).step();
        let mut histogram = Histogram::new();
        for (value, times) in values {
            histogram.record_n(value, times);
        }
        step.runs[0].endpoints[0].service = histogram;
        judge(&Figures::of(&step).unwrap())
    }

    #[test]
    fn milliseconds_only_are_seen() {
        let finding = of([(1_000_000, 700), (2_000_000, 200), (3_000_000, 90), (7_000_000, 10)]);
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(finding.sentence.contains("2 different values, about 999 µs apart"), "{finding:?}");
    }

    #[test]
    fn one_tick_for_nearly_all_is_seen() {
        assert_eq!(of([(0, 950), (1_000_000, 50)]).outcome, Outcome::Care);
    }

    #[test]
    fn a_spread_or_a_constant_latency_is_not() {
        let spread = build::closed(4).step();
        assert_eq!(judge(&Figures::of(&spread).unwrap()).outcome, Outcome::Passed);
        // A server that answers after 1 ms and a little.
        assert_eq!(
            of([(1_000_100, 500), (1_001_200, 480), (1_002_900, 20)]).outcome,
            Outcome::Passed
        );
        assert_eq!(of([(1_000_000, 1_000)]).outcome, Outcome::Passed);
    }

    #[test]
    fn few_answers_say_nothing() {
        assert_eq!(of([(1_000_000, 100), (2_000_000, 99)]).outcome, Outcome::NotChecked);
    }
}
