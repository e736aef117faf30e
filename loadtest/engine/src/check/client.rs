//! C7, client saturation: a client without time to spare invents latency.
//!
//! | sign | formula | |
//! |---|---|---|
//! | processor | a worker's processor time ÷ wall time > 80% (not asked of a spinning one) | care; from 95% stop |
//! | waiting for a processor | `run_delay` ÷ wall time > 2% | care |
//! | loop lag | longest time without a look at the sockets ≥ 1% of the wall time: as many requests were read late as lie beyond p99 | care |
//! | | or ≥ half of the largest latency, and ≥ 1 ms | note: the maximum may be the client's |
//! | headroom | throughput against a built-in server that does nothing ÷ throughput measured < 2 | care; under 1.1 stop; under 1 it is not known: care |

use super::figures::{Figures, StepFinding};
use crate::numbers::{duration, percent, rate, significant};
use crate::result::{Run, WorkerUse};

/// The share of processor time from which a worker has too little to spare.
pub(super) const BUSY_SHARE: f64 = 0.8;
/// The share from which the client is the bottleneck.
const SATURATED_SHARE: f64 = 0.95;
/// The largest share of time a worker may wait for a processor.
const RUN_DELAY_SHARE: f64 = 0.02;
/// The least headroom against the null server.
const HEADROOM: f64 = 2.0;

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let workers: Vec<&WorkerUse> = figures
        .step
        .runs
        .iter()
        .flat_map(|run| &run.client.workers)
        .filter(|worker| worker.wall_ns > 0)
        .collect();
    if workers.is_empty() {
        return StepFinding::not_checked("How busy the client's threads were is unknown.");
    }
    let busiest =
        largest(&workers, |worker| if worker.spin { 0.0 } else { share(worker.cpu_ns, worker) });
    let delayed = largest(&workers, |worker| share(worker.run_delay_ns, worker));
    let headroom = least_headroom(&figures.step.runs);
    let mut found = Vec::new();
    found.extend(processor(busiest));
    found.extend(waiting(delayed));
    found.extend(loop_lag(figures, &workers));
    found.extend(headroom.and_then(judge_headroom));
    let tail = match headroom {
        Some((null, achieved)) => format!("headroom is {} times", significant(null / achieved)),
        None => "the headroom was not measured".to_owned(),
    };
    let busy = if workers.iter().all(|worker| worker.spin) {
        "the workers spin deliberately".to_owned()
    } else {
        format!("the busiest worker used {} of its processor", percent(busiest))
    };
    let passed = format!(
        "{busy} and spent {} of the time waiting for a processor; {tail}.",
        percent(delayed)
    );
    StepFinding::worst(found, StepFinding::passed(capitalised(&passed)))
}

fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn share(ns: u64, worker: &WorkerUse) -> f64 {
    ns as f64 / worker.wall_ns as f64
}

fn largest(workers: &[&WorkerUse], of: impl Fn(&WorkerUse) -> f64) -> f64 {
    workers.iter().map(|worker| of(worker)).fold(0.0, f64::max)
}

fn processor(busiest: f64) -> Option<StepFinding> {
    if busiest <= BUSY_SHARE {
        return None;
    }
    let facts = format!("One client worker used {} of its processor", percent(busiest));
    Some(if busiest >= SATURATED_SHARE {
        StepFinding::stop(format!(
            "{facts}: the client was the bottleneck, and latencies and throughput are its own. Use more workers or less load."
        ))
    } else {
        StepFinding::care(format!(
            "{facts}: it had little time to spare, so latencies are partly its own."
        ))
    })
}

fn waiting(delayed: f64) -> Option<StepFinding> {
    (delayed > RUN_DELAY_SHARE).then(|| {
        StepFinding::care(format!(
            "One client worker spent {} of the time waiting for a processor that another program was using.",
            percent(delayed)
        ))
    })
}

fn loop_lag(figures: &Figures<'_>, workers: &[&WorkerUse]) -> Option<StepFinding> {
    let worst = workers.iter().max_by_key(|worker| worker.longest_loop_ns)?;
    let lag = worst.longest_loop_ns as f64;
    let facts = format!("One client worker did not poll its sockets for {}", duration(lag));
    if lag >= 0.01 * worst.wall_ns as f64 {
        return Some(StepFinding::care(format!(
            "{facts}, {} of its time: quantiles from p99 on may be the client's.",
            percent(share(worst.longest_loop_ns, worst))
        )));
    }
    let max = figures.total.latency().max_ns()? as f64;
    (lag >= 1e6 && lag >= max / 2.0).then(|| {
        StepFinding::note(format!(
            "{facts}: the largest latency ({}) may be the client's.",
            duration(max)
        ))
    })
}

/// Of all runs the one closest to what the client can do: the null server's rate and its own.
fn least_headroom(runs: &[Run]) -> Option<(f64, f64)> {
    runs.iter()
        .filter_map(|run| {
            let answers: u64 =
                run.endpoints.iter().map(|e| e.counters.statuses.values().sum::<u64>()).sum();
            let achieved = answers as f64 * 1e9 / run.measured_ns as f64;
            let null = run.client.null_server_rate_per_s?;
            (achieved > 0.0 && achieved.is_finite()).then_some((null, achieved))
        })
        .min_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
}

fn judge_headroom((null, achieved): (f64, f64)) -> Option<StepFinding> {
    let ratio = null / achieved;
    if ratio >= HEADROOM {
        return None;
    }
    if ratio < 1.0 {
        return Some(StepFinding::care(format!(
            "What this client can do is not known: against a server that does nothing it was measured at {}, less than the {} of this run ({} times), so the machine was busy with something else during the first. Measure again when nothing else runs.",
            rate(null),
            rate(achieved),
            significant(ratio)
        )));
    }
    let facts = format!(
        "Against a server that does nothing the client reached {}, only {} times the {} measured",
        rate(null),
        significant(ratio),
        rate(achieved)
    );
    Some(if ratio < 1.1 {
        StepFinding::stop(format!(
            "{facts}: the figures are those of this client and machine, not of the server."
        ))
    } else {
        StepFinding::care(format!("{facts}: part of the latency is the client's."))
    })
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{Outcome, Step};

    fn judged(change: impl Fn(&mut Step)) -> StepFinding {
        let mut step = build::closed(4).step();
        change(&mut step);
        judge(&Figures::of(&step).unwrap())
    }

    fn worker(step: &mut Step) -> &mut WorkerUse {
        &mut step.runs[0].client.workers[0]
    }

    #[test]
    fn a_client_with_time_to_spare_passes() {
        let finding = judged(|_| ());
        assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
        assert!(finding.sentence.contains("used 10.0%"), "{finding:?}");
        let untried = judged(|step| step.runs[0].client.null_server_rate_per_s = None);
        assert_eq!(untried.outcome, Outcome::Passed);
        assert!(untried.sentence.contains("not measured"), "{untried:?}");
        assert_eq!(judged(|step| step.runs[0].client.workers.clear()).outcome, Outcome::NotChecked);
    }

    #[test]
    fn a_busy_worker_needs_care_a_saturated_one_stops() {
        assert_eq!(
            judged(|s| worker(s).cpu_ns = build::RUN_NS * 79 / 100).outcome,
            Outcome::Passed
        );
        assert_eq!(judged(|s| worker(s).cpu_ns = build::RUN_NS * 81 / 100).outcome, Outcome::Care);
        assert_eq!(judged(|s| worker(s).cpu_ns = build::RUN_NS * 99 / 100).outcome, Outcome::Stop);
        let spinning = judged(|s| {
            worker(s).cpu_ns = build::RUN_NS;
            worker(s).spin = true;
        });
        assert_eq!(spinning.outcome, Outcome::Passed);
        assert!(spinning.sentence.starts_with("The workers spin deliberately"), "{spinning:?}");
    }

    #[test]
    fn waiting_for_a_processor_needs_care() {
        assert_eq!(
            judged(|s| worker(s).run_delay_ns = build::RUN_NS * 3 / 100).outcome,
            Outcome::Care
        );
        assert_eq!(
            judged(|s| worker(s).run_delay_ns = build::RUN_NS / 100).outcome,
            Outcome::Passed
        );
    }

    #[test]
    fn a_pause_of_the_client_is_seen_in_the_tail() {
        let finding = judged(|s| worker(s).longest_loop_ns = 2_000_000);
        assert_eq!(finding.outcome, Outcome::Note, "{finding:?}");
        let finding = judged(|s| worker(s).longest_loop_ns = 150_000_000);
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(finding.sentence.contains("150 ms, 1.5% of its time"), "{finding:?}");
    }

    #[test]
    fn headroom_under_two_needs_care_and_none_stops() {
        let with = |factor: f64| {
            judged(|s| s.runs[0].client.null_server_rate_per_s = Some(3_960.0 * factor))
        };
        assert_eq!(with(2.1).outcome, Outcome::Passed);
        assert_eq!(with(1.9).outcome, Outcome::Care);
        assert_eq!(with(1.05).outcome, Outcome::Stop);
    }

    #[test]
    fn less_than_none_is_told_as_measured_and_not_as_what_the_client_can_do() {
        let finding = judged(|s| s.runs[0].client.null_server_rate_per_s = Some(3_960.0 * 0.7));
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(
            finding.sentence.starts_with("What this client can do is not known"),
            "{finding:?}"
        );
        assert!(!finding.sentence.contains("the figures are those of this client"), "{finding:?}");
    }
}
