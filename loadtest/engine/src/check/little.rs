//! C1, Little's law: what users did with their time adds up to the time there was.
//!
//! In closed loop every user is at any moment waiting for an answer, thinking,
//! or (for the client's short work between an answer and the next request)
//! neither. So, with `X` the answers a second, failed ones included, `S` their
//! mean service time and `Z` the mean think time,
//!
//! `U = X × (S + Z) ÷ users`   must be   `0.95 ≤ U ≤ 1.005`
//!
//! (J. D. C. Little, "A Proof for the Queuing Formula L = λW", 1961). As `X × S`
//! is the sum of service times over the measured time, `U` is computed from sums.
//!
//! **Edges.** A request under way when the measured part begins or ends is
//! counted wholly or not at all, and when a count ends the run, users finish one
//! by one. Each changes a user's time by at most one longest cycle, so the limits
//! widen by *longest answer + longest think time ÷ length of one run*. If that
//! is more than a quarter, nothing can be said.
//!
//! **Time that is in no distribution.** A request that ended in an error took at
//! most the time limit, and opening a connection is not part of the service
//! time. Both can only explain a `U` that is too low, so they widen the lower
//! limit alone; when connections are not kept open (and `--phases` did not
//! measure their opening) only the upper limit is checked.
//!
//! **Few turns.** Throughput counts answers that came within the measured part. With fewer
//! than ten a user, the one that each had under way at the end is more than a tenth: care.
//!
//! In open loop users may be idle: only `X × S ÷ places ≤ 1.005` is checked. Overdue requests are
//! sent and answered after the end; `X` there is of the answers that came before it.

use super::figures::{Figures, StepFinding};
use crate::numbers::{duration, percent, rate, significant};
use crate::plan::Load;
use crate::result::ErrorKind;

/// The least share of users' time that must be accounted for.
const LOWEST: f64 = 0.95;
/// Turns a user must have in a run for its last, unfinished one not to matter.
const FEWEST_TURNS: f64 = 10.0;
/// The largest share that can be explained by rounding and clock reads.
const HIGHEST: f64 = 1.005;

/// The shares a step's figures come to.
struct Shares {
    /// Waiting and thinking, as measured.
    busy: f64,
    /// The most that errors and opening connections may have taken.
    errors_and_opening: f64,
    /// The client's own processor time and delays, as a share of users' time.
    client: f64,
    /// How far the edges of the measured part may move the result.
    edge: f64,
}

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    if figures.answers() == 0 || figures.measured_ns == 0.0 {
        return StepFinding::not_checked("Little's law needs answers; there are none.");
    }
    let shares = shares(figures);
    let finding = judge_shares(figures, &shares);
    match few_turns(figures, &shares) {
        Some(few) if finding.outcome < few.outcome => few,
        _ => finding,
    }
}

/// In closed loop: whether users had so few turns that the last, unfinished one of each matters.
fn few_turns(figures: &Figures<'_>, shares: &Shares) -> Option<StepFinding> {
    let cycles = figures.answers() as f64;
    let runs = figures.step.runs.len() as f64;
    let turns = cycles / (users(figures) as f64 * runs);
    if !figures.is_closed() || turns >= FEWEST_TURNS {
        return None;
    }
    Some(StepFinding::care(format!(
        "Each user had about {} in a run ({} busy), and one more or less is chance: the throughput is known to about {}. Measure longer.",
        match significant(turns) {
            one if one == "1.00" => "1 turn".to_owned(),
            some => format!("{some} turns"),
        },
        percent(shares.busy),
        percent(1.0 / turns)
    )))
}

fn judge_shares(figures: &Figures<'_>, shares: &Shares) -> StepFinding {
    if shares.edge > 0.25 {
        return StepFinding::not_checked(format!(
            "Little's law needs a longer run: the longest answer ({}) takes up {} of it.",
            duration(figures.longest_ns()),
            percent(shares.edge)
        ));
    }
    let facts = facts(figures, shares);
    if shares.busy > HIGHEST + shares.edge {
        return StepFinding::stop(format!(
            "{facts}; more than {} is impossible, so throughput and mean contradict each other.",
            percent(HIGHEST + shares.edge)
        ));
    }
    if !figures.is_closed() {
        return StepFinding::passed(format!("{facts}; in open loop some may be idle."));
    }
    if connections_hide_time(figures) {
        return StepFinding::passed(format!(
            "{facts}; the rest may be the opening of connections, which --phases would measure."
        ));
    }
    let accounted = shares.busy + shares.errors_and_opening + shares.edge;
    if accounted >= LOWEST {
        return StepFinding::passed(format!("{facts}, as Little's law asks."));
    }
    if accounted + shares.client >= LOWEST {
        return StepFinding::care(format!(
            "{facts}; the client's own work took the rest, so the server could do more than this throughput."
        ));
    }
    StepFinding::stop(format!(
        "{facts}; at least {} is needed, so time is missing and throughput and mean contradict each other.",
        percent(LOWEST)
    ))
}

fn shares(figures: &Figures<'_>) -> Shares {
    let settings = figures.settings();
    let timeout_ns = settings.timeout_ms as f64 * 1e6;
    let (think, longest_think) = match settings.load {
        Load::Closed { think_max_us, .. } => {
            let think: f64 = figures.step.runs.iter().map(|run| run.think_ns as f64).sum();
            (think, think_max_us as f64 * 1e3)
        }
        Load::Open { .. } => (0.0, 0.0),
    };
    let users = users(figures);
    let there = figures.measured_ns * users as f64;
    let run_ns = figures.measured_ns / figures.step.runs.len().max(1) as f64;
    let errors: u64 = figures.total.counters.errors.values().sum();
    // A request that could not be made is tried again after 10 ms; every other error ends by the
    // time limit.
    let unmade = figures.errors(ErrorKind::Request);
    let lost_ns = (errors - unmade + figures.unanswered) as f64 * timeout_ns + unmade as f64 * 10e6;
    let opening_ns = figures
        .total
        .phases
        .as_ref()
        .map_or(0.0, |phases| phases.connect.sum_ns() as f64 + phases.tls.sum_ns() as f64);
    let workers = figures.step.runs.iter().flat_map(|run| &run.client.workers);
    let client_ns: f64 = workers
        .map(|worker| {
            let working = if worker.spin { worker.wall_ns } else { worker.cpu_ns };
            (working + worker.run_delay_ns) as f64
        })
        .sum();
    Shares {
        busy: (figures.service_ns() * in_time(figures) + think) / there,
        errors_and_opening: (lost_ns + opening_ns) / there,
        client: client_ns / there,
        edge: (figures.longest_ns() + longest_think) / run_ns,
    }
}

/// The share of the answers that came within the measured part. In open loop requests that were
/// overdue are still sent after its end, and their service fills no time of it; in closed loop each
/// user has at most one answer there, which the edges allow for.
fn in_time(figures: &Figures<'_>) -> f64 {
    match figures.total.counters.completed {
        Some(completed) if !figures.is_closed() && figures.total.counters.successes > 0 => {
            (completed as f64 / figures.total.counters.successes as f64).min(1.0)
        }
        _ => 1.0,
    }
}

/// Users that had something to do: not more than requests were sent in one run.
fn users(figures: &Figures<'_>) -> u64 {
    let busiest = figures
        .step
        .runs
        .iter()
        .map(|run| run.endpoints.iter().map(|e| e.counters.sent).sum::<u64>())
        .max();
    figures.places().min(busiest.unwrap_or(0).max(1))
}

/// Whether connections are opened so often, unmeasured, that their time matters: more
/// than one for every hundred answers.
fn connections_hide_time(figures: &Figures<'_>) -> bool {
    let reopened = figures.total.counters.connections_opened.saturating_sub(figures.places());
    let often = !figures.settings().keep_alive || reopened * 100 > figures.answers();
    often && figures.total.phases.is_none()
}

fn facts(figures: &Figures<'_>, shares: &Shares) -> String {
    let per_s = figures.answers() as f64 * in_time(figures) * 1e9 / figures.measured_ns;
    let users = users(figures);
    format!(
        "{} at a mean of {} keep {} of {} {} busy ({})",
        rate(per_s),
        duration(figures.service_ns() / figures.answers() as f64),
        significant(shares.busy * users as f64),
        crate::numbers::count(users),
        match (figures.is_closed(), users) {
            (true, 1) => "user",
            (true, _) => "users",
            (false, 1) => "connection",
            (false, _) => "connections",
        },
        percent(shares.busy)
    )
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{Outcome, Phases, Step};

    fn outcome(step: &Step) -> (Outcome, String) {
        let finding = judge(&Figures::of(step).unwrap());
        (finding.outcome, finding.sentence)
    }

    #[test]
    fn a_consistent_run_passes_and_a_contradiction_stops() {
        let good = build::closed(16).step();
        let (outcome_good, sentence) = outcome(&good);
        assert_eq!(outcome_good, Outcome::Passed, "{sentence}");
        assert!(sentence.contains("of 16 users busy"), "{sentence}");

        // Latencies twice as long as the throughput allows.
        let double = build::closed(16).stretched(2.0).step();
        assert_eq!(outcome(&double).0, Outcome::Stop);
        // Half of the time is nowhere.
        let half = build::closed(16).stretched(0.5).step();
        assert_eq!(outcome(&half).0, Outcome::Stop);
        let just = build::closed(16).stretched(0.96).step();
        assert_eq!(outcome(&just).0, Outcome::Passed);
    }

    #[test]
    fn think_time_is_part_of_the_law() {
        let mut step = build::closed(16).stretched(0.5).step();
        step.settings.load = Load::Closed { think_min_us: 500, think_max_us: 1500 };
        assert_eq!(outcome(&step).0, Outcome::Stop);
        let run = &mut step.runs[0];
        run.think_ns = run.measured_ns * 8;
        assert_eq!(outcome(&step).0, Outcome::Passed);
    }

    #[test]
    fn failed_answers_and_errors_take_time_too() {
        let mut step = build::closed(16).stretched(0.5).step();
        let endpoint = &mut step.runs[0].endpoints[0];
        endpoint.failed_service.record_n(1_000_000, 80_000);
        assert_eq!(outcome(&step).0, Outcome::Passed);

        let mut step = build::closed(16).stretched(0.5).step();
        step.settings.timeout_ms = 1_000;
        step.runs[0].endpoints[0].counters.errors.insert(ErrorKind::Timeout, 80);
        assert_eq!(outcome(&step).0, Outcome::Passed, "80 × 1 s of 16 × 10 s");
    }

    #[test]
    fn without_keep_alive_only_the_upper_limit_holds() {
        let mut step = build::closed(16).stretched(0.5).step();
        step.settings.keep_alive = false;
        let (out, sentence) = outcome(&step);
        assert_eq!(out, Outcome::Passed);
        assert!(sentence.contains("--phases"), "{sentence}");
        step.runs[0].endpoints[0].phases = Some(Phases::default());
        assert_eq!(outcome(&step).0, Outcome::Stop, "measured, and not enough");
        step.runs[0].endpoints[0].phases.as_mut().unwrap().connect.record_n(500_000, 160_000);
        assert_eq!(outcome(&step).0, Outcome::Passed);
        let mut step = build::closed(16).stretched(2.0).step();
        step.settings.keep_alive = false;
        assert_eq!(outcome(&step).0, Outcome::Stop);
    }

    #[test]
    fn the_clients_own_work_explains_missing_time() {
        let mut step = build::closed(1).stretched(0.8).step();
        assert_eq!(outcome(&step).0, Outcome::Stop);
        let run = &mut step.runs[0];
        run.client.workers[0].cpu_ns = run.measured_ns / 4;
        let (out, sentence) = outcome(&step);
        assert_eq!(out, Outcome::Care);
        assert!(sentence.contains("client's own work"), "{sentence}");
    }

    #[test]
    fn a_run_hardly_longer_than_its_longest_answer_is_not_judged() {
        let mut step = build::closed(4).stretched(3.0).step();
        step.runs[0].endpoints[0].service.record(3_000_000_000);
        assert_eq!(outcome(&step).0, Outcome::NotChecked);
    }

    #[test]
    fn an_open_loop_may_idle_but_not_overflow() {
        let step = build::open(1_000.0).step();
        assert_eq!(outcome(&step).0, Outcome::Passed);
        let step = build::open(1_000.0).stretched(120.0).step();
        assert_eq!(outcome(&step).0, Outcome::Stop);
    }

    #[test]
    fn a_count_smaller_than_the_connections_counts_only_those_used() {
        let mut step = build::closed(1).step();
        step.settings.connections = 1_000_000;
        let (out, _) = outcome(&step);
        assert_eq!(out, Outcome::Stop, "10,000 users sent, but one was busy");
    }
}
