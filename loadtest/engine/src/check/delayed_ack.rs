//! C19, delayed acknowledgements: whether answers wait for the client's acknowledgement.
//!
//! If a server writes an answer in two pieces without `TCP_NODELAY`, Nagle's algorithm holds back
//! the second piece until the first is acknowledged, and the client's kernel delays that
//! acknowledgement: on Linux by 40 ms and, in steps of its clock, up to some 25 ms more. The
//! latency is then a little over 40 ms, which says nothing of the server's work and vanishes with
//! one line of code.
//!
//! The check fires for an endpoint if at least 20 answers, and 5% of all, took 39.5 to 48.5 ms,
//! four times as many as in an equal span just below, and if four times as many took up to 66 ms
//! as in an equal span beyond. Latencies that merely spread across these values have no such edge
//! and peak. With `--phases` the check uses the time from the first to the last byte, because that
//! is where the second piece waits. It is a note: a server may have other reasons to take 40 ms.

use super::figures::{Figures, StepFinding};
use crate::histogram::Histogram;
use crate::numbers::{duration, percent};
use crate::result::{EndpointResult, Step};

/// Answers of an endpoint below which nothing is said of it, and in the peak.
const FEWEST: u64 = 20;
/// Where the peak begins, where it has its steep side, and where it ends, in nanoseconds.
const BEGINS_NS: u64 = 39_500_000;
const STEEP_UNTIL_NS: u64 = 48_500_000;
const ENDS_NS: u64 = 66_000_000;
/// The smallest share of the answers that matters.
const SHARE: f64 = 0.05;
/// How many times more answers the peak has than its surroundings.
const STEEP: f64 = 4.0;

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let endpoints = figures.step.merged_endpoints();
    if endpoints.iter().all(|endpoint| times(endpoint).count() < FEWEST) {
        return StepFinding::not_checked(format!(
            "Delayed acknowledgements show from {FEWEST} answers on, and there were fewer."
        ));
    }
    let several = endpoints.len() > 1;
    let found = endpoints.iter().filter_map(|endpoint| {
        let peak = peak(times(endpoint))?;
        let of = if several { format!(" of {}", endpoint.name) } else { String::new() };
        Some(StepFinding::note(format!(
            "{} of the answers{of} took about {}, and hardly any a little less than 40 ms: that is how long Linux delays an acknowledgement. The server probably writes an answer in two pieces, and Nagle's algorithm holds the second back until the first is acknowledged: set TCP_NODELAY on the server's connections, or write head and body at once.",
            percent(peak.share),
            duration(peak.middle_ns)
        )))
    });
    StepFinding::worst(
        found.collect(),
        StepFinding::passed(
            "No peak of answers at 40 ms, where delayed acknowledgements would show.",
        ),
    )
}

/// The first endpoint of a step in which the delay shows, and the share of its answers that waited.
pub(crate) fn delayed(step: &Step) -> Option<(String, f64)> {
    let endpoints = step.merged_endpoints();
    endpoints.iter().find_map(|one| Some((one.name.clone(), peak(times(one))?.share)))
}

/// The distribution in which the waiting shows best.
fn times(endpoint: &EndpointResult) -> &Histogram {
    endpoint.phases.as_ref().map_or(&endpoint.service, |phases| &phases.last_byte)
}

/// Values that the delay explains.
struct Peak {
    /// Their share, 0 to 1.
    share: f64,
    /// Their median, in nanoseconds.
    middle_ns: f64,
}

fn peak(times: &Histogram) -> Option<Peak> {
    let share = |low: u64, high: u64| times.share_at_most(high) - times.share_at_most(low);
    let steep = share(BEGINS_NS, STEEP_UNTIL_NS);
    let below = share(2 * BEGINS_NS - STEEP_UNTIL_NS, BEGINS_NS);
    let whole = share(BEGINS_NS, ENDS_NS);
    let beyond = share(ENDS_NS, 2 * ENDS_NS - BEGINS_NS);
    let enough = steep * times.count() as f64 >= FEWEST as f64 && steep >= SHARE;
    if !enough || steep < STEEP * below || whole < STEEP * beyond {
        return None;
    }
    let middle = times.share_at_most(BEGINS_NS) + whole / 2.0;
    Some(Peak { share: whole, middle_ns: times.quantile_ns(middle)? as f64 })
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::Outcome;

    fn judged(change: impl Fn(&mut EndpointResult)) -> StepFinding {
        let mut step = build::closed(4).step();
        change(&mut step.runs[0].endpoints[0]);
        judge(&Figures::of(&step).unwrap())
    }

    fn peaked(at_us: u64, answers: u64) -> Histogram {
        let mut times = build::spread(1_000, 1.0);
        for i in 0..answers {
            times.record(at_us * 1_000 + i * 4_000_000 / answers.max(1));
        }
        times
    }

    #[test]
    fn a_peak_at_40_ms_is_noted_with_cause_and_remedy() {
        let finding = judged(|endpoint| endpoint.service = peaked(40_100, 1_000));
        assert_eq!(finding.outcome, Outcome::Note, "{finding:?}");
        assert!(finding.sentence.starts_with("50.0% of the answers took about 42.1 ms"));
        assert!(finding.sentence.contains("TCP_NODELAY"), "{finding:?}");
    }

    #[test]
    fn peaks_elsewhere_spreads_and_single_answers_are_not() {
        for at_us in [5_000, 30_000, 55_000] {
            let finding = judged(|endpoint| endpoint.service = peaked(at_us, 1_000));
            assert_eq!(finding.outcome, Outcome::Passed, "{at_us}: {finding:?}");
        }
        let finding = judged(|endpoint| {
            endpoint.service = Histogram::new();
            (0..1_000).for_each(|i| endpoint.service.record(20_000_000 + i * 60_000));
        });
        assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
        let finding = judged(|endpoint| endpoint.service = peaked(40_100, 19));
        assert_eq!(finding.outcome, Outcome::Passed, "{finding:?}");
        let finding = judged(|endpoint| endpoint.service = build::spread(10, 1.0));
        assert_eq!(finding.outcome, Outcome::NotChecked, "{finding:?}");
    }

    #[test]
    fn with_phases_the_time_after_the_first_byte_decides() {
        let phases =
            |last_byte: Histogram| crate::result::Phases { last_byte, ..Default::default() };
        let slow_at_first = judged(|endpoint| {
            endpoint.service = peaked(40_100, 1_000);
            endpoint.phases = Some(phases(build::spread(2_000, 0.01)));
        });
        assert_eq!(slow_at_first.outcome, Outcome::Passed, "{slow_at_first:?}");
        let in_two_pieces = judged(|endpoint| {
            endpoint.service = peaked(40_100, 1_000);
            endpoint.phases = Some(phases(peaked(40_050, 1_000)));
        });
        assert_eq!(in_two_pieces.outcome, Outcome::Note, "{in_two_pieces:?}");
    }
}
