//! C12, scaling: throughput that the users cannot have made.
//!
//! - *Implied latency* (every step in closed loop): with `N` users each answer takes, on average,
//!   `N ÷ X − Z` of a user's time (`X` answers a second, `Z` mean think time). That cannot be
//!   less than the shortest single request of the whole report. The edges of the
//!   measured part give play: one longest cycle a user (see C1).
//! - *Superlinear scaling* (between steps in closed loop that differ in users only): from `N1` to
//!   `N2 > N1` users throughput, as the median over the repeats, cannot grow by more than `N2 ÷ N1
//!   × 1.05`. More means that something else changed, such as a cache, a clock speed or a server
//!   that was still warming up.

use super::figures::{Figures, StepFinding};
use crate::numbers::{count, counted, duration, rate, significant};
use crate::plan::Load;
use crate::result::{Report, Step};

/// How much more than in proportion throughput may grow.
const SUPERLINEAR: f64 = 1.05;

/// The shortest answer of all steps in closed loop, in nanoseconds.
pub(super) fn shortest_ns(report: &Report) -> Option<f64> {
    report.steps.iter().filter_map(|step| Figures::of(step)?.shortest_ns()).min_by(f64::total_cmp)
}

/// The implied latency of one step against the shortest answer of all.
pub(super) fn implied(figures: &Figures<'_>, shortest_ns: Option<f64>) -> StepFinding {
    let Load::Closed { think_max_us, .. } = figures.settings().load else {
        return StepFinding::not_checked(
            "Implied latency applies to closed loop; this was open loop.",
        );
    };
    let (Some(shortest), true) = (shortest_ns, figures.answers() > 0) else {
        return StepFinding::not_checked("Implied latency needs answers; there are none.");
    };
    let users = figures.places() as f64;
    let answers = figures.answers() as f64;
    let think: f64 = figures.step.runs.iter().map(|run| run.think_ns as f64).sum();
    let run_ns = figures.measured_ns / figures.step.runs.len() as f64;
    let edge = (figures.longest_ns() + think_max_us as f64 * 1e3) / run_ns.max(1.0);
    let there = figures.measured_ns * users;
    let implied = (there - think) / answers;
    let most = (there * (1.0 + edge) - think) / answers;
    let facts = format!(
        "{} from {} leave {} for each answer",
        rate(answers * 1e9 / figures.measured_ns),
        counted(figures.places(), "user", "users"),
        duration(implied)
    );
    if most < shortest {
        StepFinding::stop(format!(
            "{facts}, but the shortest of all took {}: so many answers are impossible.",
            duration(shortest)
        ))
    } else {
        StepFinding::passed(format!("{facts}; the shortest of all took {}.", duration(shortest)))
    }
}

/// Superlinear scaling between the steps of a report; `None` if there are no two to compare.
pub(super) fn superlinear(report: &Report) -> Option<StepFinding> {
    let mut rungs: Vec<(u64, f64, &Step)> = report
        .steps
        .iter()
        .filter(|step| matches!(step.settings.load, Load::Closed { .. }))
        .filter_map(|step| {
            let throughput = step.throughput_per_s();
            (throughput > 0.0).then(|| (super::figures::places(&step.settings), throughput, step))
        })
        .collect();
    rungs.sort_by_key(|rung| rung.0);
    let mut found = Vec::new();
    let mut compared = 0;
    for pair in rungs.windows(2) {
        let ((users, slow, one), (more, fast, other)) = (pair[0], pair[1]);
        if users == more || !alike(one, other) {
            continue;
        }
        compared += 1;
        let (growth, allowed) = (fast / slow, more as f64 / users as f64);
        if growth > allowed * SUPERLINEAR {
            found.push(StepFinding::care(format!(
                "From {} to {} throughput grew {} times, from {} to {}, though there were only {} times the users: something other than the load changed.",
                count(users),
                counted(more, "user", "users"),
                significant(growth),
                rate(slow),
                rate(fast),
                significant(allowed)
            )));
        }
    }
    (compared > 0).then(|| {
        StepFinding::worst(
            found,
            StepFinding::passed("Throughput grows from step to step by no more than the users."),
        )
    })
}

/// Whether two steps differ in users only.
fn alike(one: &Step, other: &Step) -> bool {
    let mut same = other.settings.clone();
    let it = &one.settings;
    (same.connections, same.streams, same.workers) = (it.connections, it.streams, it.workers);
    (same.stop, same.warmup_ms, same.seed) = (it.stop, it.warmup_ms, it.seed);
    same == *it
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    #[test]
    fn throughput_in_proportion_passes_and_more_needs_care() {
        let ladder = build::report(vec![build::closed(4).step(), build::closed(1).step()]);
        assert_eq!(superlinear(&ladder).unwrap().outcome, Outcome::Passed);
        let faster = build::closed(4).repeats(&[1.2]).step();
        let mut ladder = build::report(vec![build::closed(1).step(), faster]);
        let finding = superlinear(&ladder).unwrap();
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(
            finding.sentence.contains("From 1 to 4 users throughput grew 4.80 times"),
            "{finding:?}"
        );
        ladder.steps[1].settings.workload_hash = "other".into();
        assert_eq!(superlinear(&ladder), None, "another workload");
        assert_eq!(superlinear(&build::closed(4).report()), None);
    }

    #[test]
    fn answers_shorter_than_the_shortest_stop() {
        let step = build::closed(4).step();
        let figures = Figures::of(&step).unwrap();
        assert_eq!(implied(&figures, figures.shortest_ns()).outcome, Outcome::Passed);
        let finding = implied(&figures, Some(1_100_000.0));
        assert_eq!(finding.outcome, Outcome::Stop);
        assert!(finding.sentence.contains("leave 1.01 ms for each answer"), "{finding:?}");
        // Think time leaves less.
        let mut thinking = step.clone();
        thinking.runs[0].think_ns = 2 * build::RUN_NS;
        let figures = Figures::of(&thinking).unwrap();
        assert_eq!(implied(&figures, figures.shortest_ns()).outcome, Outcome::Stop);
        let open = build::open(10.0).step();
        assert_eq!(implied(&Figures::of(&open).unwrap(), None).outcome, Outcome::NotChecked);
    }
}
