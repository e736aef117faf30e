//! What a measurement means for the command that made it: its exit code, and in one line why, which
//! is said however little else is shown.

use crate::exit::Code;
use std::collections::BTreeMap;
use wellspring_load::result::{Counters, Report, Verdict};

/// So many causes are named.
const NAMED: usize = 3;

/// How a command ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: u8,
    /// For standard error; `None` if there is nothing to explain.
    pub(crate) why: Option<String>,
}

/// Whether anything else than TRUSTED is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trusted {
    Needed,
    NotNeeded,
}

/// How a command with this report ends that was `stopped` by Ctrl-C or not.
pub(crate) fn of(report: &Report, trusted: Trusted, stopped: bool) -> Outcome {
    let failed: Vec<String> = report
        .thresholds
        .iter()
        .filter(|threshold| threshold.failed)
        .map(|threshold| {
            let measured = threshold.measured.as_deref().unwrap_or("not known");
            format!("{} ({}: {measured})", threshold.expression, threshold.step)
        })
        .collect();
    if !failed.is_empty() {
        let why = format!("a threshold failed: {}", failed.join(", "));
        return Outcome { code: Code::Threshold as u8, why: Some(why) };
    }
    if stopped {
        return Outcome { code: Code::Interrupted as u8, why: None };
    }
    let (total, unanswered) = total(report);
    if total.successes == 0 {
        let runs = report.steps.iter().flat_map(|step| &step.runs);
        let first = runs.filter_map(|run| run.first_error.as_deref()).next();
        let first = first.map_or(String::new(), |first| format!("; the first error: {first}"));
        let why = format!("no request succeeded: {}{first}", causes(&total, unanswered));
        return Outcome { code: Code::Refused as u8, why: Some(why) };
    }
    if trusted == Trusted::Needed && report.verdict != Some(Verdict::Trusted) {
        let why = "--strict: the verdict is not TRUSTED".to_owned();
        return Outcome { code: Code::Refused as u8, why: Some(why) };
    }
    Outcome { code: 0, why: None }
}

/// What happened to all requests of all runs, and how many were not answered in time.
fn total(report: &Report) -> (Counters, u64) {
    let (mut total, mut unanswered) = (Counters::default(), 0);
    for run in report.steps.iter().flat_map(|step| &step.runs) {
        run.endpoints.iter().for_each(|endpoint| total.merge(&endpoint.counters));
        unanswered += run.unanswered;
    }
    (total, unanswered)
}

/// The causes by which requests failed, the most frequent first.
fn causes(total: &Counters, unanswered: u64) -> String {
    let mut causes: BTreeMap<String, u64> = BTreeMap::new();
    let statuses = total.statuses.iter().map(|(status, n)| (format!("HTTP {status}"), *n));
    let checks = total.failed_checks.iter().map(|(check, n)| (check.clone(), *n));
    let errors = total.errors.iter().map(|(error, n)| (error.label().to_owned(), *n));
    let late = std::iter::once(("no answer before the end".to_owned(), unanswered));
    for (cause, count) in statuses.chain(checks).chain(errors).chain(late) {
        *causes.entry(cause).or_default() += count;
    }
    let mut causes: Vec<(String, u64)> = causes.into_iter().filter(|(_, n)| *n > 0).collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = if causes.len() > NAMED { ", …" } else { "" };
    let named: Vec<String> = causes
        .iter()
        .take(NAMED)
        .map(|(cause, count)| format!("{cause} ({count} times)"))
        .collect();
    if named.is_empty() {
        "none was sent".to_owned()
    } else {
        format!("{}{more}", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_load::result::ErrorKind;

    #[test]
    fn causes_are_told_by_how_often_they_were() {
        let mut total = Counters::default();
        assert_eq!(causes(&total, 0), "none was sent");
        total.statuses = [(404, 7), (503, 90)].into();
        total.errors = [(ErrorKind::Connect, 8)].into();
        assert_eq!(
            causes(&total, 0),
            "HTTP 503 (90 times), could not connect (8 times), HTTP 404 (7 times)"
        );
        assert!(causes(&total, 1).ends_with("HTTP 404 (7 times), …"));
    }
}
