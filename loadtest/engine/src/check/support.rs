//! C4: a quantile `q` of `n` answers is printed only if `n × (1 − q) ≥ 10`, that is if at least
//! ten answers lie beyond it. With fewer, it is mostly chance which value it is.

use super::figures::{Figures, StepFinding};
use crate::histogram::Histogram;
use crate::numbers::{count, counted, quantile_name};

/// The quantiles reports print, highest first, and how many answers each needs.
const NEEDS: [(f64, u64); 7] = [
    (0.9999, 100_000),
    (0.999, 10_000),
    (0.99, 1_000),
    (0.95, 200),
    (0.9, 100),
    (0.75, 40),
    (0.5, 20),
];

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let merged = figures.step.merged_endpoints();
    let few = merged.iter().min_by_key(|endpoint| endpoint.latency().count());
    let whole = figures.total.latency();
    let Some(highest) = highest(whole) else {
        return StepFinding::care(format!(
            "{}: even the median needs 20, so no quantile is printed.",
            answered(whole.count())
        ));
    };
    let mut sentence =
        format!("{} support quantiles up to {}", answered(whole.count()), quantile_name(highest));
    // One endpoint is the whole; of several, the one with the fewest answers is the weakest.
    if let Some(few) = few.filter(|few| merged.len() > 1 && !few.latency().quantile_supported(0.99))
    {
        sentence += &format!(
            "; {} had {}, {}",
            few.name,
            counted(few.latency().count(), "answer", "answers"),
            self::highest(few.latency())
                .map_or("too few for any".into(), |q| format!("enough up to {}", quantile_name(q)))
        );
        return StepFinding::note(sentence + ".");
    }
    if highest < 0.99 {
        return StepFinding::note(format!(
            "{sentence}; p99 needs {} and is not printed.",
            count(Histogram::values_needed(0.99))
        ));
    }
    StepFinding::passed(sentence + ".")
}

fn answered(n: u64) -> String {
    counted(n, "successful answer", "successful answers")
}

/// The highest of the quantiles reports print that may be printed.
fn highest(histogram: &Histogram) -> Option<f64> {
    NEEDS.iter().map(|(q, _)| *q).find(|q| histogram.quantile_supported(*q))
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    fn with(count: u64) -> StepFinding {
        let mut step = build::closed(1).step();
        step.runs[0].endpoints[0].service = build::spread(count, 1.0);
        judge(&Figures::of(&step).unwrap())
    }

    #[test]
    fn the_table_is_the_formula() {
        for (q, needed) in NEEDS {
            assert_eq!(Histogram::values_needed(q), needed, "{q}");
        }
    }

    #[test]
    fn the_highest_quantile_is_named() {
        assert_eq!(with(19).outcome, Outcome::Care);
        assert_eq!(with(999).outcome, Outcome::Note);
        assert!(with(999).sentence.contains("up to p95; p99 needs 1,000"), "{:?}", with(999));
        assert_eq!(with(1_000).outcome, Outcome::Passed);
        assert!(with(10_000).sentence.contains("up to p99.9."), "{:?}", with(10_000));
    }

    #[test]
    fn the_rarest_endpoint_is_named() {
        let mut step = build::closed(1).step();
        let mut rare = step.runs[0].endpoints[0].clone();
        rare.name = "POST /order".into();
        rare.service = build::spread(50, 1.0);
        step.runs[0].endpoints.push(rare);
        let finding = judge(&Figures::of(&step).unwrap());
        assert_eq!(finding.outcome, Outcome::Note);
        assert!(
            finding.sentence.contains("POST /order had 50 answers, enough up to p75"),
            "{finding:?}"
        );
    }
}
