//! C17, survivors: whether the answers that came stand for the requests that were sent.
//!
//! - *Silence*: no answer at the end of the measured part for longer than 1 s and than three times
//!   p99, while requests were waiting: the server had stopped, so stop.
//! - *Lower bounds*: `m` requests unanswered, timed out or never sent would have been the slowest.
//!   With `n` answers, quantile `q` is a lower bound only if `m ≥ (1 − q)(n + m)`. For p50 that is
//!   a stop, for p99 care, for p99.9 a note. Any unanswered request needs care: the server took it
//!   and was silent until the end.
//! - *Warm-up*: requests of it that got no answer need care, and stop if nothing else was answered.
//! - *Graceful ends*: requests that the server did not take, and said so, are sent again: a note.
//! - *Early end*: a run that could not go on needs care, an interrupted one is a note.

use super::figures::{Figures, StepFinding};
use crate::numbers::{counted, duration, quantile_name};
use crate::result::{ErrorKind, Finish};

/// Silence shorter than this is never held against the server, in nanoseconds.
const SHORTEST_SILENCE_NS: f64 = 1e9;

/// Whether quantile `q` of `answered` is a lower bound only, when `missing` more would have been
/// slower than all.
#[must_use]
pub(crate) fn is_lower_bound(q: f64, answered: u64, missing: u64) -> bool {
    // A hair of tolerance, as in the support of a quantile: 1 − 0.99 is 0.010000000000000009.
    missing > 0 && missing as f64 >= (1.0 - q) * (answered + missing) as f64 - 1e-6
}

pub(super) fn judge(figures: &Figures<'_>) -> StepFinding {
    let mut found = Vec::new();
    found.extend(silence(figures));
    found.extend(lower_bounds(figures));
    if figures.unanswered > 0 {
        found.push(StepFinding::care(format!(
            "{} still unanswered when the run ended.",
            match figures.unanswered {
                1 => "1 request was".to_owned(),
                n => format!("{} were", counted(n, "request", "requests")),
            }
        )));
    }
    let of_warmup: u64 = figures.step.runs.iter().map(|run| run.warmup_unanswered).sum();
    if of_warmup > 0 {
        let sentence =
            format!("{} of the warm-up got no answer.", counted(of_warmup, "request", "requests"));
        let nothing_else = figures.answers() == 0;
        found.push(if nothing_else {
            StepFinding::stop(sentence)
        } else {
            StepFinding::care(sentence)
        });
    }
    let unprocessed = figures.total.counters.unprocessed;
    if unprocessed > 0 {
        found.push(StepFinding::note(format!(
            "{} before it took them: they were sent again over others and are no failures.",
            match unprocessed {
                1 => "The server ended the connection of 1 request".to_owned(),
                n => format!(
                    "The server ended the connections of {} requests",
                    crate::numbers::count(n)
                ),
            }
        )));
    }
    let crossed = figures.total.counters.crossed;
    if crossed > 0 {
        found.push(StepFinding::note(format!(
            "{} before a byte of the answer, over a connection that had brought others. Nobody can know whether the server took them: they count as failures. If it ends connections that are idle or have served enough, --no-keepalive avoids this.",
            match crossed {
                1 => "The server ended the connection of 1 request".to_owned(),
                n => format!(
                    "The server ended the connections of {} requests",
                    crate::numbers::count(n)
                ),
            }
        )));
    }
    found.extend(figures.step.runs.iter().filter_map(|run| match &run.finish {
        Finish::Time | Finish::Count => None,
        Finish::Interrupted => {
            Some(StepFinding::note(format!("Run {} was interrupted by the user.", run.order)))
        }
        Finish::Aborted(why) => {
            Some(StepFinding::care(format!("Run {} could not go on: {why}.", run.order)))
        }
    }));
    StepFinding::worst(
        found,
        StepFinding::passed(
            "Every request was answered or ended in an error before the run did, and answers came until the end.",
        ),
    )
}

fn silence(figures: &Figures<'_>) -> Option<StepFinding> {
    let longest = figures.step.runs.iter().map(|run| run.silent_tail_ns).max()? as f64;
    let usual = figures.total.service.quantile_ns(0.99).unwrap_or(0) as f64;
    let rest =
        if figures.answers() > 0 { ", and what is reported was measured before" } else { "" };
    (longest > SHORTEST_SILENCE_NS.max(3.0 * usual)).then(|| {
        StepFinding::stop(format!(
            "No answer came in the last {} while requests were waiting: the server had stopped{rest}.",
            duration(longest)
        ))
    })
}

fn lower_bounds(figures: &Figures<'_>) -> Option<StepFinding> {
    let (answered, missing) = (figures.answers(), figures.missing());
    let lowest = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999]
        .into_iter()
        .find(|q| is_lower_bound(*q, answered, missing))?;
    let outcome = match lowest {
        q if q <= 0.5 => StepFinding::stop,
        q if q <= 0.99 => StepFinding::care,
        _ => StepFinding::note,
    };
    let parts = [
        (figures.unanswered, "unanswered"),
        (figures.errors(ErrorKind::Timeout), "timed out"),
        (figures.never_sent, "never sent"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", crate::numbers::count(*n)))
        .collect();
    Some(outcome(format!(
        "Quantiles from {} on are lower bounds, for the slowest are missing: {} beside {}.",
        quantile_name(lowest),
        parts.join(", "),
        counted(answered, "answer", "answers")
    )))
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::result::{Outcome, Run, Step};

    fn judged(step: Step, change: impl Fn(&mut Run)) -> StepFinding {
        let mut step = step;
        change(&mut step.runs[0]);
        judge(&Figures::of(&step).unwrap())
    }

    fn closed(change: impl Fn(&mut Run)) -> StepFinding {
        judged(build::closed(4).step(), change)
    }

    #[test]
    fn answers_until_the_end_pass() {
        assert_eq!(closed(|_| ()).outcome, Outcome::Passed);
        // A slow server may be silent for long.
        let slow = judged(build::closed(4).stretched(500.0).step(), |run| {
            run.silent_tail_ns = 2_000_000_000
        });
        assert_eq!(slow.outcome, Outcome::Passed, "{slow:?}");
    }

    #[test]
    fn a_frozen_server_stops() {
        let finding = closed(|run| {
            run.silent_tail_ns = 3_000_000_000;
            run.unanswered = 4;
        });
        assert_eq!(finding.outcome, Outcome::Stop);
        assert!(finding.sentence.contains("in the last 3.00 s"), "{finding:?}");
        assert!(finding.sentence.contains("4 requests were still unanswered"), "{finding:?}");
    }

    #[test]
    fn missing_requests_make_quantiles_lower_bounds() {
        assert!(!is_lower_bound(0.99, 990, 0));
        assert!(!is_lower_bound(0.99, 991, 9));
        assert!(is_lower_bound(0.99, 990, 10));
        let timeouts = |n| {
            closed(move |run| {
                run.endpoints[0].counters.errors.insert(ErrorKind::Timeout, n);
            })
        };
        assert_eq!(timeouts(10).outcome, Outcome::Passed);
        assert_eq!(timeouts(50).outcome, Outcome::Note);
        let many = timeouts(500);
        assert_eq!(many.outcome, Outcome::Care);
        assert!(many.sentence.contains("from p99 on are lower bounds"), "{many:?}");
        assert_eq!(timeouts(40_000).outcome, Outcome::Stop);
        let unsent = judged(build::open(1_000.0).step(), |run| {
            run.open_loop.as_mut().unwrap().never_sent = 600;
        });
        assert!(
            unsent.sentence.contains("from p95 on") && unsent.sentence.contains("600 never sent"),
            "{unsent:?}"
        );
    }

    #[test]
    fn an_early_end_is_told() {
        assert_eq!(closed(|run| run.unanswered = 1).outcome, Outcome::Care);
        assert_eq!(closed(|run| run.finish = Finish::Interrupted).outcome, Outcome::Note);
        let aborted = closed(|run| run.finish = Finish::Aborted("no address".into()));
        assert_eq!(aborted.outcome, Outcome::Care);
        assert!(aborted.sentence.contains("could not go on: no address"), "{aborted:?}");
    }
}
