//! The checks: nineteen questions put to every report, and the verdict they come to.
//!
//! Each check is a pure function of the [`Report`], in a file of its own that gives its
//! formula, its limits and their reasons; `docs/bench/checks.md` has them in one table with
//! what to do about each. [`apply`] asks all of them. What a check says is one [`Finding`]:
//!
//! - [`Outcome::Passed`] and [`Outcome::NotChecked`], so that a report can list them all;
//!   the latter names the figure that is missing;
//! - [`Outcome::Note`] is worth knowing and leaves the verdict alone;
//! - [`Outcome::Care`] and [`Outcome::Stop`] decide the [`Verdict`](crate::result::Verdict).
//!
//! | | file | | file |
//! |---|---|---|---|
//! | C1 | `little` | C10 | `repeats` |
//! | C2 | `agreement` | C11 | `sameness` |
//! | C3 | `clock` | C12 | `scaling` |
//! | C4 | `support` | C13 | `variety` |
//! | C5 | `failures` | C14 | `threshold`, `decision` |
//! | C6 | `offered` | C15 | `ratios` |
//! | C7 | `client` | C16 | `place` |
//! | C8 | `noise` | C17 | `survivors` |
//! | C9 | `stationarity`, `series`, `modes` | C18 | `server_count` |
//! | | | C19 | `delayed_ack` |

mod agreement;
#[cfg(test)]
pub(crate) mod build;
mod client;
mod clock;
mod decision;
mod delayed_ack;
mod failures;
mod figures;
mod little;
mod modes;
mod noise;
mod offered;
mod place;
pub mod ratios;
mod repeats;
mod sameness;
mod scaling;
mod series;
mod server_count;
mod stationarity;
mod support;
mod survivors;
pub mod threshold;
#[cfg(test)]
mod threshold_tests;
mod variety;
mod verdict;

pub(crate) use delayed_ack::delayed;
pub use failures::{rule_of_three, wilson};
pub use sameness::comparable;
pub use threshold::{Slo, SloOutcome, Threshold, ThresholdError};
pub use verdict::verdict;

use crate::result::{CheckId, Finding, Outcome, Report, Step};
use figures::{Figures, StepFinding};

/// Number, short name and question of every check, in their order.
const CHECKS: [(CheckId, &str, &str); 19] = [
    (CheckId(1), "Little's law", "Do throughput and latency fit the number of users?"),
    (CheckId(2), "agreement", "Do the figures of a distribution agree?"),
    (CheckId(3), "clock resolution", "Was the clock fine enough?"),
    (CheckId(4), "support of quantiles", "Are there enough answers for each quantile?"),
    (CheckId(5), "failures", "How many failed, and how well is that known?"),
    (CheckId(6), "offered and achieved", "Was the load asked for really offered?"),
    (CheckId(7), "client saturation", "Had the client time to spare?"),
    (CheckId(8), "noise", "Was the machine quiet?"),
    (CheckId(9), "stationarity", "Can one figure stand for the whole run?"),
    (CheckId(10), "repeats", "How much does it change from run to run?"),
    (CheckId(11), "sameness", "Was it measured in the same way?"),
    (CheckId(12), "scaling", "Does throughput grow as it can?"),
    (CheckId(13), "variety and caches", "Was it the same request again and again?"),
    (CheckId(14), "thresholds", "Do the thresholds hold?"),
    (CheckId(15), "ratios", "Are ratios what the figures allow?"),
    (CheckId(16), "one machine", "Are client and server on one machine?"),
    (CheckId(17), "survivors", "Do the answers stand for what was sent?"),
    (CheckId(18), "server's count", "Does the server count the same?"),
    (CheckId(19), "delayed acknowledgements", "Do answers wait for an acknowledgement?"),
];

/// The question of a check.
pub(crate) fn question(check: CheckId) -> &'static str {
    CHECKS.iter().find(|(id, ..)| *id == check).map_or("", |(_, _, question)| question)
}

/// A check that judges one step.
type OfStep = fn(&Figures<'_>) -> StepFinding;

/// The checks that judge each step on its own.
const OF_STEPS: [(u8, OfStep); 14] = [
    (1, little::judge),
    (2, agreement::judge),
    (3, clock::judge),
    (4, support::judge),
    (5, failures::judge),
    (6, offered::judge),
    (7, client::judge),
    (8, noise::judge),
    (9, stationarity::judge),
    (10, repeats::judge),
    (13, variety::judge),
    (17, survivors::judge),
    (18, server_count::judge),
    (19, delayed_ack::judge),
];

/// Asks all checks and fills `report.findings`, `report.thresholds` and `report.verdict`, replacing
/// what they held. Findings come in order of the checks' numbers, and within a check the whole
/// report first, then the steps in their order. Every check has at least one finding.
pub fn apply(report: &mut Report, thresholds: &[Threshold]) {
    let mut findings = Vec::new();
    let mut add = |check: u8, step: Option<&str>, finding: StepFinding| {
        findings.push(Finding {
            check: CheckId(check),
            step: step.map(str::to_owned),
            outcome: finding.outcome,
            sentence: finding.sentence,
        });
    };
    for (check, finding) in of_report(report, thresholds) {
        add(check, None, finding);
    }
    let shortest = scaling::shortest_ns(report);
    let judged: Vec<&Step> = judged(report).collect();
    let steps = judged.len();
    for step in judged {
        let name = Some(step.name.as_str());
        let Some(figures) = Figures::of(step) else {
            add(
                5,
                name,
                StepFinding::stop("This step was not run, so there is nothing to report."),
            );
            continue;
        };
        for (check, judge) in OF_STEPS {
            add(check, name, judge(&figures));
        }
        add(12, name, scaling::implied(&figures, shortest));
    }
    for (check, ..) in CHECKS {
        if !findings.iter().any(|finding| finding.check == check) {
            findings.push(Finding {
                check,
                step: None,
                outcome: Outcome::NotChecked,
                sentence: "Nothing was run, so there is nothing to check.".into(),
            });
        }
    }
    // Stable: within a check the order stays.
    findings.sort_by_key(|finding| finding.check);
    report.thresholds = decision::outcomes(report, thresholds);
    report.verdict = Some(verdict(&findings, steps));
    report.findings = findings;
}

/// The steps the verdict is about. Rates that were too high are meant to go wrong: a search
/// is judged by the one that held.
fn judged(report: &Report) -> impl Iterator<Item = &Step> {
    let decisive = report.search.as_ref().and_then(|search| search.decisive_step.as_deref());
    report.steps.iter().filter(move |step| decisive.is_none_or(|decisive| step.name == decisive))
}

/// The checks that judge the report as a whole.
fn of_report(report: &Report, thresholds: &[Threshold]) -> Vec<(u8, StepFinding)> {
    let mut findings = vec![
        (11, sameness::within(report)),
        (14, decision::judge(report, thresholds)),
        (
            15,
            StepFinding::passed(
                "Ratios in this report are computed from measured values, not from rounded ones.",
            ),
        ),
        (16, place::judge(report)),
    ];
    if report.steps.is_empty() {
        findings.push((5, StepFinding::stop("The report has no step, so nothing was measured.")));
    }
    findings.extend(repeats::interleaving(report).map(|finding| (10, finding)));
    findings.extend(scaling::superlinear(report).map(|finding| (12, finding)));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verdict;

    #[test]
    fn a_sound_report_is_trusted_and_lists_all_checks() {
        for mut report in [build::closed(16).report(), build::open(2_000.0).report()] {
            apply(&mut report, &[]);
            assert_eq!(report.verdict, Some(Verdict::Trusted), "{:#?}", report.findings);
            let mut numbers: Vec<u8> = report.findings.iter().map(|one| one.check.0).collect();
            assert!(numbers.is_sorted());
            numbers.dedup();
            assert_eq!(numbers, (1..=19).collect::<Vec<u8>>());
            assert!(report.findings.iter().all(|one| one.sentence.ends_with('.')));
        }
    }

    #[test]
    fn applying_twice_gives_the_same() {
        let mut report = build::report(vec![
            build::closed(1).step(),
            build::closed(4).repeats(&[1.0, 0.9]).step(),
        ]);
        let thresholds = [Threshold::parse("p99>1ms").unwrap()];
        apply(&mut report, &thresholds);
        let first = report.clone();
        apply(&mut report, &thresholds);
        assert_eq!(report.findings, first.findings);
        assert_eq!(report.thresholds.len(), 2);
        assert!(matches!(report.verdict, Some(Verdict::UseWithCare(_))));
    }

    #[test]
    fn contradictions_are_not_measurable() {
        let mut report =
            build::report(vec![build::closed(1).step(), build::closed(16).stretched(3.0).step()]);
        apply(&mut report, &[]);
        let Some(Verdict::NotMeasurable(reasons)) = &report.verdict else {
            panic!("{:?}", report.verdict)
        };
        assert!(reasons[0].starts_with("C1 in 1 of 2 steps: c=16: "), "{reasons:?}");
    }

    #[test]
    fn a_report_of_nothing_is_not_measurable() {
        let mut empty = build::report(Vec::new());
        apply(&mut empty, &[]);
        assert!(matches!(empty.verdict, Some(Verdict::NotMeasurable(_))));
        let mut unrun = build::closed(1).report();
        unrun.steps[0].runs.clear();
        apply(&mut unrun, &[Threshold::parse("errors>0").unwrap()]);
        assert!(matches!(unrun.verdict, Some(Verdict::NotMeasurable(_))));
        assert!(unrun.thresholds[0].failed, "what was not measured was not kept");
    }

    #[test]
    fn extreme_reports_do_not_panic() {
        let mut report = build::closed(2).repeats(&[1.0, 1.0, 1.0]).report();
        for run in &mut report.steps[0].runs {
            run.measured_ns = 0;
            run.slices.clear();
            run.client.workers.clear();
            run.endpoints[0] = crate::result::EndpointResult::new("GET /");
        }
        apply(&mut report, &[]);
        assert_eq!(report.findings.iter().filter(|one| one.check.0 == 18).count(), 1);
        report.steps[0].runs[0].endpoints.clear();
        apply(&mut report, &[]);
    }

    #[test]
    fn the_page_of_checks_has_them_all_in_order() {
        let page =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench/checks.md");
        let page = std::fs::read_to_string(page).expect("docs/bench/checks.md");
        let headings: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let names: Vec<String> =
            CHECKS.iter().map(|(id, name, _)| format!("{id} {name}")).collect();
        assert_eq!(headings, names);
        for (id, _, question) in CHECKS {
            assert!(page.contains(&format!("| {id} | {question} |")), "{id}");
        }
        for part in page.split("\n## ").skip(1) {
            assert!(part.contains("**What to do.**"), "{part}");
        }
    }
}
