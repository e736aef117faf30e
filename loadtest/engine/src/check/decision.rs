//! C14: thresholds decide. Each `--fail-if` is applied to every step (of a search: to the one that
//! decided); where it is true, or its figure could not be had, the run fails: the program ends with
//! exit code 99, and the verdict is at best "use with care", so that the last line of a failed run
//! never reads "trusted".

use super::figures::StepFinding;
use super::threshold::{Threshold, Truth};
use crate::numbers::counted;
use crate::result::{Report, ThresholdOutcome};

/// Applies each threshold to each step.
pub(super) fn outcomes(report: &Report, thresholds: &[Threshold]) -> Vec<ThresholdOutcome> {
    let each = super::judged(report).flat_map(|step| thresholds.iter().map(move |t| (step, t)));
    each.map(|(step, threshold)| {
        let (measured, failed) = match threshold.judge(step) {
            Truth::True(measured) => (Some(measured.text), true),
            Truth::False(measured) => (Some(measured.text), false),
            Truth::Unknown(_) => (None, true),
        };
        ThresholdOutcome {
            expression: threshold.expression.clone(),
            step: step.name.clone(),
            measured,
            failed,
        }
    })
    .collect()
}

pub(super) fn judge(report: &Report, thresholds: &[Threshold]) -> StepFinding {
    if thresholds.is_empty() {
        return StepFinding::not_checked("No threshold was given (--fail-if).");
    }
    let outcomes = outcomes(report, thresholds);
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|one| one.failed)
        .map(|one| {
            let measured = one.measured.as_deref().unwrap_or("could not be measured");
            format!("{} at {}: {measured}", one.expression, one.step)
        })
        .collect();
    let all = counted(outcomes.len() as u64, "threshold", "thresholds");
    if failed.is_empty() && !outcomes.is_empty() {
        return StepFinding::passed(format!("{all} passed."));
    }
    let shown = failed.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = match failed.len().saturating_sub(3) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    StepFinding::care(format!(
        "{} of {all} failed, so the run failed: {shown}{more}.",
        failed.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    #[test]
    fn a_run_that_could_not_be_made_keeps_no_threshold() {
        let mut step = build::closed(4).repeats(&[1.0, 1.0]).step();
        step.runs[1].finish = crate::result::Finish::Aborted("connection refused".into());
        step.runs[1].endpoints.clear();
        step.runs[1].measured_ns = 0;
        let thresholds = [Threshold::parse("failures>0").unwrap()];
        let outcomes = outcomes(&build::report(vec![step]), &thresholds);
        assert!(outcomes[0].failed && outcomes[0].measured.is_none());
    }

    #[test]
    fn of_a_search_only_the_step_that_decided_is_asked() {
        let mut report =
            build::report(vec![build::closed(4).step(), build::closed(16).stretched(3.0).step()]);
        let thresholds = [Threshold::parse("p99>5ms").unwrap()];
        assert!(outcomes(&report, &thresholds).iter().any(|one| one.failed));
        report.search = Some(crate::result::SearchOutcome {
            slo: "p99<5ms".into(),
            highest_rate_per_s: Some(1.0),
            lowest_failing_rate_per_s: None,
            reason: String::new(),
            decisive_step: Some("c=4".into()),
        });
        let outcomes = outcomes(&report, &thresholds);
        assert_eq!(outcomes.len(), 1);
        assert!(!outcomes[0].failed);
    }

    #[test]
    fn a_threshold_that_is_true_fails_the_run() {
        let report = build::report(vec![build::closed(1).step(), build::closed(4).step()]);
        let parsed = |texts: &[&str]| -> Vec<Threshold> {
            texts.iter().map(|text| Threshold::parse(text).unwrap()).collect()
        };
        assert_eq!(judge(&report, &[]).outcome, Outcome::NotChecked);
        let kept = parsed(&["p99>5ms", "failures>0"]);
        assert_eq!(judge(&report, &kept), StepFinding::passed("4 thresholds passed."));
        let broken = parsed(&["rate<1000", "p99.999>1s"]);
        let finding = judge(&report, &broken);
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(finding.sentence.starts_with("3 of 4 thresholds failed"), "{finding:?}");
        assert!(finding.sentence.contains("rate<1000 at c=1: 990/s"), "{finding:?}");
        let outcomes = outcomes(&report, &broken);
        assert_eq!(outcomes[1].measured, None);
        assert!(outcomes[1].failed && outcomes[0].failed && !outcomes[2].failed);
    }
}
