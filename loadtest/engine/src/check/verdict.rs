//! The last line: the worst of what the checks said, with its reasons.

use crate::numbers::counted;
use crate::result::{CheckId, Finding, Outcome, Verdict};

/// The verdict over all findings: not measurable if any says stop, use with care if any
/// says care, else trusted. A reason is a check with its sentence; a check that
/// objects in several steps is one reason, with how many of them and the first one's sentence.
#[must_use]
pub fn verdict(findings: &[Finding], steps: usize) -> Verdict {
    match findings.iter().map(|finding| finding.outcome).max() {
        Some(Outcome::Stop) => Verdict::NotMeasurable(reasons(findings, Outcome::Stop, steps)),
        Some(Outcome::Care) => Verdict::UseWithCare(reasons(findings, Outcome::Care, steps)),
        _ => Verdict::Trusted,
    }
}

fn reasons(findings: &[Finding], outcome: Outcome, steps: usize) -> Vec<String> {
    let objecting: Vec<&Finding> = findings.iter().filter(|one| one.outcome == outcome).collect();
    let mut checks: Vec<CheckId> = objecting.iter().map(|one| one.check).collect();
    checks.dedup();
    checks.sort();
    checks.dedup();
    checks
        .into_iter()
        .flat_map(|check| {
            let of: Vec<&&Finding> = objecting.iter().filter(|one| one.check == check).collect();
            let whole = of
                .iter()
                .filter(|one| one.step.is_none())
                .map(|one| format!("{check}: {}", one.sentence));
            let mut reasons: Vec<String> = whole.collect();
            let in_steps: Vec<_> = of.iter().filter(|one| one.step.is_some()).collect();
            match in_steps.as_slice() {
                [] => {}
                [only] if steps <= 1 => reasons.push(format!("{check}: {}", only.sentence)),
                [first, ..] => reasons.push(format!(
                    "{check} in {} of {}: {}: {}",
                    in_steps.len(),
                    counted(steps as u64, "step", "steps"),
                    first.step.as_deref().unwrap_or_default(),
                    first.sentence
                )),
            }
            reasons
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(check: u8, step: Option<&str>, outcome: Outcome) -> Finding {
        let sentence = format!("Said by C{check} of {}.", step.unwrap_or("all"));
        Finding { check: CheckId(check), step: step.map(str::to_owned), outcome, sentence }
    }

    #[test]
    fn the_worst_decides_and_notes_do_not() {
        let notes = [finding(16, None, Outcome::Note), finding(18, None, Outcome::NotChecked)];
        assert_eq!(verdict(&notes, 1), Verdict::Trusted);
        assert_eq!(verdict(&[], 0), Verdict::Trusted);
        let care = [finding(7, Some("c=1"), Outcome::Care), finding(16, None, Outcome::Note)];
        assert_eq!(verdict(&care, 1), Verdict::UseWithCare(vec!["C7: Said by C7 of c=1.".into()]));
        let stop = [finding(7, Some("c=1"), Outcome::Care), finding(1, Some("c=1"), Outcome::Stop)];
        assert_eq!(
            verdict(&stop, 1),
            Verdict::NotMeasurable(vec!["C1: Said by C1 of c=1.".into()])
        );
    }

    #[test]
    fn a_check_that_objects_in_several_steps_is_one_reason() {
        let findings: Vec<Finding> = ["c=1", "c=2", "c=4"]
            .iter()
            .map(|step| finding(7, Some(step), Outcome::Care))
            .collect();
        let Verdict::UseWithCare(reasons) = verdict(&findings, 5) else { panic!() };
        assert_eq!(reasons, ["C7 in 3 of 5 steps: c=1: Said by C7 of c=1."]);
    }
}
