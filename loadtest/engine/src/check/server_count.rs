//! C18: the server's own count of what it handled against the client's.
//!
//! The server is asked before the warm-up and after the last answer, so what was sent in the
//! warm-up is in its count and is added to the client's. The count may be of successes or of all
//! answers; a few are on one side or the other: at most one a connection and stream, and the two
//! questions for the count itself. Within `successes − edge … answers + edge` it agrees. Above, up
//! to everything sent, the server handled requests whose answers were lost on the way: a note.
//! Beyond that another client asked it too: care. Fewer than the client's successes: stop.

use super::figures::{Figures, StepFinding};
use crate::numbers::{count, counted};
use crate::result::Run;

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let places = figures.places();
    let mut found = Vec::new();
    let mut counted_runs = 0u64;
    for run in &figures.step.runs {
        let Some(server) = &run.server else { continue };
        let Some(there) = server.counted_requests else { continue };
        counted_runs += 1;
        let by = server.counted_by.as_deref().unwrap_or("its own count");
        found.extend(judge_run(run, there, by, places));
    }
    match counted_runs {
        0 => StepFinding::not_checked("The server's own count of requests is unknown."),
        n => {
            let runs = counted(n, "run", "runs");
            StepFinding::worst(
                found,
                StepFinding::passed(format!(
                    "The server's own count agrees with the client's in {runs}."
                )),
            )
        }
    }
}

fn judge_run(run: &Run, there: u64, by: &str, places: u64) -> Option<StepFinding> {
    let edge = places + 2;
    let counters = run.total()?.counters;
    let answers = counters.statuses.values().sum::<u64>() + run.warmup_requests;
    // What is not known of the warm-up is left out where it could accuse the server.
    let successes = counters.successes + run.warmup_successes.unwrap_or(0);
    let sent = counters.sent + run.warmup_requests;
    let warmup = if run.warmup_requests > 0 { ", warm-up included" } else { "" };
    let facts = format!(
        "Run {}: the server handled {} by {by}, the client counted {} and {} in all{warmup}",
        run.order,
        counted(there, "request", "requests"),
        counted(successes, "success", "successes"),
        counted(answers, "answer", "answers")
    );
    if there.saturating_add(edge) < successes {
        return Some(StepFinding::stop(format!(
            "{facts}: {} were answered by something else.",
            count(successes - there)
        )));
    }
    if there <= answers + edge {
        return None;
    }
    Some(if there <= sent.max(answers + run.unanswered) + edge {
        StepFinding::note(format!("{facts}: it handled requests whose answers did not arrive."))
    } else {
        StepFinding::care(format!("{facts}: others asked it at the same time."))
    })
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{ErrorKind, Outcome, ServerUse};

    fn with(there: Option<u64>) -> StepFinding {
        let mut step = build::closed(4).step();
        let run = &mut step.runs[0];
        // 39,600 successes, 100 failed answers, 50 timeouts; 1,000 more in the warm-up, 10 of them
        // failed.
        (run.warmup_requests, run.warmup_successes) = (1_000, Some(990));
        let counters = &mut run.endpoints[0].counters;
        counters.statuses.insert(500, 100);
        counters.errors.insert(ErrorKind::Timeout, 50);
        counters.sent += 150;
        run.server = Some(ServerUse { counted_requests: there, ..ServerUse::default() });
        judge(&Figures::of(&step).unwrap())
    }

    #[test]
    fn successes_or_all_answers_agree() {
        for there in [40_584, 40_590, 40_650, 40_706] {
            assert_eq!(with(Some(there)).outcome, Outcome::Passed, "{there}");
        }
        assert_eq!(with(None).outcome, Outcome::NotChecked);
    }

    #[test]
    fn other_counts_do_not() {
        let fewer = with(Some(40_490));
        assert_eq!(fewer.outcome, Outcome::Stop);
        assert!(fewer.sentence.contains("100 were answered by something else"), "{fewer:?}");
        assert_eq!(with(Some(40_750)).outcome, Outcome::Note);
        assert_eq!(with(Some(45_000)).outcome, Outcome::Care);
    }
}
