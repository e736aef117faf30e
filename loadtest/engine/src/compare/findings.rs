//! What has to be said about a comparison: its design (C10), what is not equal
//! (C11), and latencies of survivors (C17).

use super::effect::MetricComparison;
use super::figures::Metric;
use super::interleave::{Design, pairs_by_time};
use super::mismatch::{Mismatch, Weight};
use super::{MismatchPolicy, Options, StepComparison, sides};
use crate::check::delayed;
use crate::numbers::{counted, percent};
use crate::result::{CheckId, Finding, Finish, Outcome, Report, Run, Step, Verdict as Trust};
use crate::table::visible;

const DESIGN: CheckId = CheckId(10);
const EQUALITY: CheckId = CheckId(11);
const SURVIVORS: CheckId = CheckId(17);
const DELAYED_ACKNOWLEDGEMENTS: CheckId = CheckId(19);

/// Fewer pairs or runs than this are worth a remark.
const FEW_RUNS: usize = 5;
/// Where only differences larger than this would have been detected, "no difference" says little.
const BLIND_SHARE: f64 = 0.5;
/// So many metrics are named.
const NAMED: usize = 3;
/// From this difference of failure shares on, latencies are those of survivors.
const SURVIVORS_GAP: f64 = 0.01;

pub(super) fn of(
    a: &Report,
    b: &Report,
    matched: &[(&Step, &Step)],
    steps: &[StepComparison],
    mismatches: &[Mismatch],
    options: &Options,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((step_a, step_b), compared) in matched.iter().zip(steps) {
        let mut say = |check, outcome, sentence: String| {
            let step = Some(compared.step.clone());
            findings.push(Finding { check, step, outcome, sentence });
        };
        design(compared, step_a, step_b, &mut say);
        blind(compared, &mut say);
        lonely_endpoints(compared, step_a, step_b, &mut say);
        survivors(compared, &mut say);
        delayed_acknowledgements(compared, step_a, step_b, &mut say);
    }
    if matched.is_empty() {
        let names = |report: &Report| {
            let names: Vec<String> = report.steps.iter().map(|step| visible(&step.name)).collect();
            if names.is_empty() { "no steps".into() } else { names.join(", ") }
        };
        let sentence = format!(
            "A and B have no step of the same name: A has {}, B has {}.",
            names(a),
            names(b)
        );
        findings.push(Finding { check: EQUALITY, step: None, outcome: Outcome::Stop, sentence });
    }
    equality(mismatches, options, &mut findings);
    for (side, report) in [("A", a), ("B", b)] {
        if let Some(Trust::NotMeasurable(reasons)) = &report.verdict {
            let reasons: Vec<String> = reasons.iter().map(|reason| visible(reason)).collect();
            let sentence = format!("{side}'s own report is NOT MEASURABLE: {}", reasons.join(" "));
            findings.push(Finding {
                check: EQUALITY,
                step: None,
                outcome: Outcome::Stop,
                sentence,
            });
        }
    }
    findings.sort_by_key(|finding| finding.check);
    findings
}

/// The verdict that follows from the findings.
pub(super) fn trust(findings: &[Finding]) -> Trust {
    let reasons = |outcome| -> Vec<String> {
        let all = findings.iter().filter(|finding| finding.outcome == outcome);
        all.map(|finding| finding.sentence.clone()).collect()
    };
    let (stops, cares) = (reasons(Outcome::Stop), reasons(Outcome::Care));
    if !stops.is_empty() {
        Trust::NotMeasurable(stops)
    } else if !cares.is_empty() {
        Trust::UseWithCare(cares)
    } else {
        Trust::Trusted
    }
}

/// Latencies that wait for an acknowledgement hide what the servers do: 5 ms against 10 ms of work
/// are 48 ms against 52 ms.
fn delayed_acknowledgements(
    compared: &StepComparison,
    a: &Step,
    b: &Step,
    say: &mut impl FnMut(CheckId, Outcome, String),
) {
    let sides = [("A", delayed(a)), ("B", delayed(b))];
    let found: Vec<String> = sides
        .into_iter()
        .filter_map(|(side, found)| Some((side, found?)))
        .map(|(side, (endpoint, share))| {
            format!("{} of {side}'s answers ({})", percent(share), visible(&endpoint))
        })
        .collect();
    if !found.is_empty() {
        let sentence = format!(
            "{}: {} took a little over 40 ms, as answers do that wait for a delayed acknowledgement: how long the servers worked cannot be compared. Set TCP_NODELAY on the server's connections, or write head and body at once.",
            visible(&compared.step),
            found.join(" and ")
        );
        say(DELAYED_ACKNOWLEDGEMENTS, Outcome::Care, sentence);
    }
}

fn design(
    compared: &StepComparison,
    a: &Step,
    b: &Step,
    say: &mut impl FnMut(CheckId, Outcome, String),
) {
    let step = visible(&compared.step);
    let runs = compared.runs_a.min(compared.runs_b);
    if same_runs(&a.runs, &b.runs) {
        let sentence = format!(
            "{step}: A and B hold the same runs; comparing a run with itself shows nothing."
        );
        say(DESIGN, Outcome::Care, sentence);
    } else if overlap(&a.runs, &b.runs) {
        let sentence = format!(
            "{step}: runs of A and B overlapped and disturbed each other; run them in turns."
        );
        say(DESIGN, Outcome::Care, sentence);
    }
    if compared.left_out > 0 {
        let left_out = counted(compared.left_out, "run was", "runs were");
        let sentence =
            format!("{step}: {left_out} left out: interrupted, aborted or without a partner.");
        // Leaving out what went wrong makes a side look better than it is.
        let aborted = |run: &Run| matches!(run.finish, Finish::Aborted(_));
        let outcome =
            if a.runs.iter().chain(&b.runs).any(aborted) { Outcome::Care } else { Outcome::Note };
        say(DESIGN, outcome, sentence);
    }
    match (compared.design, runs) {
        (_, 0) => {
            let why = compared.refused.as_deref().unwrap_or("a side has no run");
            say(DESIGN, Outcome::Stop, format!("{step}: nothing was compared: {why}."));
        }
        (_, 1) => {
            let sentence = format!(
                "{step}: a single run per side gives no interval, so no difference can be called; repeat each with --repeat 5 or more, or measure both in turns: give `bench compare` two URLs (with --scenario FILE for a scenario)."
            );
            say(DESIGN, Outcome::Care, sentence);
        }
        (Design::Separate, _) => {
            let sentence = format!(
                "{step}: the runs of A and B did not take turns, so a drift of the machine looks like a difference (measured: 20 runs after 20 of the same server said −57%, in turns −1.2% ± 9.8%); to interleave them, give `bench compare` two URLs (with --scenario FILE for a scenario)."
            );
            say(DESIGN, Outcome::Care, sentence);
        }
        (Design::Paired, pairs) => {
            if let Some(side) = always_first(&a.runs, &b.runs) {
                let sentence = format!(
                    "{step}: {side} went first in every pair, so a steady drift does not cancel; A B B A would be better."
                );
                say(DESIGN, Outcome::Note, sentence);
            }
            let few = if pairs < FEW_RUNS { "; more pairs would narrow the interval" } else { "" };
            let outcome = if pairs < FEW_RUNS { Outcome::Note } else { Outcome::Passed };
            say(DESIGN, outcome, format!("{step}: {pairs} pairs of runs, made in turns{few}."));
        }
    }
}

/// The side that went first in every pair, from two pairs on.
fn always_first(a: &[Run], b: &[Run]) -> Option<&'static str> {
    let pairs = pairs_by_time(a, b)?;
    let mut first =
        pairs.iter().map(|&(at_a, at_b)| a[at_a].started_unix_us < b[at_b].started_unix_us);
    let of_first = first.next()?;
    first.all(|later| later == of_first).then_some(if of_first { "A" } else { "B" })
}

fn same_runs(a: &[Run], b: &[Run]) -> bool {
    let key = |run: &Run| (run.started_unix_us, run.measured_ns);
    a.iter().any(|run| run.started_unix_us > 0 && b.iter().any(|there| key(there) == key(run)))
}

fn overlap(a: &[Run], b: &[Run]) -> bool {
    let span = |run: &Run| (run.started_unix_us, run.started_unix_us + run.measured_ns / 1_000);
    a.iter().map(span).any(|(from_a, to_a)| {
        b.iter().map(span).any(|(from_b, to_b)| from_a > 0 && from_a < to_b && from_b < to_a)
    })
}

/// What the runs are too few or too noisy for.
fn blind(compared: &StepComparison, say: &mut impl FnMut(CheckId, Outcome, String)) {
    let blind: Vec<String> = compared
        .questions()
        .filter_map(|(endpoint, metric)| {
            let smallest = metric.detectable_share().filter(|smallest| *smallest > BLIND_SHARE)?;
            Some(format!("{} ({})", of_endpoint(endpoint, metric), percent(smallest)))
        })
        .collect();
    if blind.is_empty() {
        return;
    }
    let more = match blind.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {}", counted(more, "other figure", "other figures")),
    };
    let named = blind[..blind.len().min(NAMED)].join(", ");
    let whether = if blind.len() > 1 { "they" } else { "it" };
    let sentence = format!(
        "{}: only large differences would have been detected in {named}{more}, so this comparison cannot show whether {whether} changed; measure more pairs, longer, or on a quieter machine.",
        visible(&compared.step)
    );
    say(DESIGN, Outcome::Care, sentence);
}

/// A metric as sentences name it: `p99`, or `p99 of create`.
fn of_endpoint(endpoint: Option<&str>, metric: &MetricComparison) -> String {
    match endpoint {
        Some(name) => format!("{} of {}", metric.metric.label(), visible(name)),
        None => metric.metric.label().to_owned(),
    }
}

/// Endpoints that only one side has are in no comparison.
fn lonely_endpoints(
    compared: &StepComparison,
    a: &Step,
    b: &Step,
    say: &mut impl FnMut(CheckId, Outcome, String),
) {
    let (in_a, in_b) = (sides::names(a.runs.iter()), sides::names(b.runs.iter()));
    if in_a.len() < 2 && in_b.len() < 2 {
        return;
    }
    for (side, own, other) in [("A", &in_a, &in_b), ("B", &in_b, &in_a)] {
        let lonely: Vec<String> =
            own.iter().filter(|name| !other.contains(name)).map(|name| visible(name)).collect();
        if !lonely.is_empty() {
            let step = visible(&compared.step);
            let sentence =
                format!("{step}: only {side} has {}, so it is not compared.", lonely.join(", "));
            say(EQUALITY, Outcome::Note, sentence);
        }
    }
}

/// Of each endpoint where there are several, otherwise of the whole.
fn survivors(compared: &StepComparison, say: &mut impl FnMut(CheckId, Outcome, String)) {
    let by_endpoint = !compared.endpoints.is_empty();
    let failures = compared.questions().filter(|(endpoint, metric)| {
        metric.metric == Metric::FailureShare && endpoint.is_some() == by_endpoint
    });
    for (endpoint, metric) in failures {
        let (Some(a), Some(b)) = (metric.a, metric.b) else { continue };
        if (a - b).abs() < SURVIVORS_GAP {
            continue;
        }
        let step = visible(&compared.step);
        let requests = match endpoint {
            Some(name) => format!("requests of {}", visible(name)),
            None => "requests".to_owned(),
        };
        let sentence = format!(
            "{step}: {} of A's {requests} failed and {} of B's; the latencies are those of the others, which may be the easy ones.",
            percent(a),
            percent(b)
        );
        say(SURVIVORS, Outcome::Care, sentence);
    }
}

fn equality(mismatches: &[Mismatch], options: &Options, findings: &mut Vec<Finding>) {
    let list = |weight| {
        let all: Vec<String> = mismatches
            .iter()
            .filter(|mismatch| mismatch.weight == weight)
            .map(|mismatch| {
                let step = mismatch.step.as_ref().map_or(String::new(), |step| format!("{step}: "));
                let Mismatch { what, a, b, .. } = mismatch;
                visible(&format!("{step}{what} ({a} against {b})"))
            })
            .collect();
        all.join(", ")
    };
    let (settings, environment) = (list(Weight::Settings), list(Weight::Environment));
    let mut say = |outcome, sentence| {
        findings.push(Finding { check: EQUALITY, step: None, outcome, sentence });
    };
    if settings.is_empty() && environment.is_empty() {
        say(Outcome::Passed, "Workload, settings and environment are the same.".into());
    }
    if !settings.is_empty() {
        match options.mismatch_policy {
            MismatchPolicy::Refuse => say(
                Outcome::Stop,
                format!(
                    "The settings differ, so the figures answer different questions: {settings}. Measure both with the same settings, or compare them anyway with --force."
                ),
            ),
            MismatchPolicy::Compare => say(
                Outcome::Care,
                format!("The comparison was forced although the settings differ: {settings}."),
            ),
        }
    }
    if !environment.is_empty() {
        let sentence =
            format!("The machine or the client differs, which may be the cause: {environment}.");
        say(Outcome::Care, sentence);
    }
}
