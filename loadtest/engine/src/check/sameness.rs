//! C11: only what was measured in the same way can be compared.
//!
//! [`comparable`] looks at two reports:
//!
//! | differs | |
//! |---|---|
//! | what was sent (workload hash), closed or open loop, rate or think time, connections, streams, keep-alive | stop |
//! | processor or number of processors | stop |
//! | protocol, phases, spinning, workers, time limit, warm-up; kernel, governor, usable processors, control group's limit, memory, client's version | care |
//! | seed, length of the run, address, server's program, its `Server` header, git revision, the user's notes | note: perhaps just this is compared |
//! | known on one side only | not checked |
//!
//! Within one report, steps should differ in one thing: the amount of load (connections, streams,
//! workers, rate, think time) counts as one. If they differ in several, no difference
//! between them can be put down to one of them.

use super::figures::StepFinding;
use crate::numbers::counted;
use crate::plan::{Load, Settings};
use crate::result::{CheckId, Environment, Finding, Outcome, Report, Step};

/// Says what differs between two reports apart from their figures: one [`Finding`] of check C11
/// for each difference, the worst first, or a single passed one. Steps are matched by name, and if
/// each report has just one, by place. A finding with [`Outcome::Stop`] means that the figures must
/// not be compared.
#[must_use]
pub fn comparable(a: &Report, b: &Report) -> Vec<Finding> {
    let mut found = environments(&a.environment, &b.environment);
    let pairs = pairs(a, b);
    if pairs.is_empty() {
        found.push((None, StepFinding::stop("The reports have no step in common.")));
    }
    for (one, other) in &pairs {
        let different = settings(&one.settings, &other.settings);
        found.extend(different.into_iter().map(|finding| (Some(one.name.clone()), finding)));
    }
    let unmatched = a.steps.len() + b.steps.len() - 2 * pairs.len();
    if unmatched > 0 && !pairs.is_empty() {
        found.push((
            None,
            StepFinding::note(format!(
                "{} in one report only and cannot be compared.",
                match unmatched {
                    1 => "1 step is".to_owned(),
                    n => format!("{n} steps are"),
                }
            )),
        ));
    }
    if found.is_empty() {
        found.push((
            None,
            StepFinding::passed("Machine, client, load and requests are the same in both reports."),
        ));
    }
    found.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.outcome));
    found
        .into_iter()
        .map(|(step, finding)| Finding {
            check: CheckId(11),
            step,
            outcome: finding.outcome,
            sentence: finding.sentence,
        })
        .collect()
}

fn pairs<'a>(a: &'a Report, b: &'a Report) -> Vec<(&'a Step, &'a Step)> {
    if let ([one], [other]) = (a.steps.as_slice(), b.steps.as_slice()) {
        return vec![(one, other)];
    }
    let same = |step: &&Step, name: &str| step.name == name;
    a.steps
        .iter()
        .filter_map(|step| Some((step, b.steps.iter().find(|other| same(other, &step.name))?)))
        .collect()
}

/// Says that `what` differs, if it does. `None` on one side is said to be unknown there.
fn differs<T: PartialEq + std::fmt::Display>(
    outcome: Outcome,
    what: &str,
    a: Option<T>,
    b: Option<T>,
) -> Option<StepFinding> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => Some(StepFinding::new(
            outcome,
            format!("The {what} differs: {a} in the first, {b} in the second."),
        )),
        (Some(known), None) | (None, Some(known)) => Some(StepFinding::not_checked(format!(
            "The {what} is known in one report only ({known})."
        ))),
        _ => None,
    }
}

fn environments(a: &Environment, b: &Environment) -> Vec<(Option<String>, StepFinding)> {
    let processors = |e: &Environment| {
        let list: Vec<String> = e.allowed_cpus.iter().map(u32::to_string).collect();
        (!list.is_empty()).then(|| list.join(","))
    };
    let limit = |e: &Environment| Some(e.cgroup_cpu_limit.clone().unwrap_or_else(|| "none".into()));
    let version = |e: &Environment| Some(e.client_version.clone()).filter(|text| !text.is_empty());
    let notes = |e: &Environment| {
        let list: Vec<String> =
            e.notes.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Some(if list.is_empty() { "none".into() } else { list.join(" ") })
    };
    let gib = |e: &Environment| {
        e.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)))
    };
    let (mut one, mut other) = (a.server.clone(), b.server.clone());
    // The whole hash says no more to people than its beginning.
    for hash in [&mut one.program_sha256, &mut other.program_sha256].into_iter().flatten() {
        *hash = hash.chars().take(12).collect();
    }
    let all = [
        differs(Outcome::Stop, "processor", a.cpu_model.clone(), b.cpu_model.clone()),
        differs(Outcome::Stop, "number of processors", a.cpus, b.cpus),
        differs(Outcome::Care, "set of usable processors", processors(a), processors(b)),
        differs(Outcome::Care, "control group's processor limit", limit(a), limit(b)),
        differs(Outcome::Care, "frequency governor", a.governor.clone(), b.governor.clone()),
        differs(Outcome::Care, "kernel", a.kernel.clone(), b.kernel.clone()),
        differs(Outcome::Care, "memory of the machine", gib(a), gib(b)),
        differs(Outcome::Care, "client's version", version(a), version(b)),
        differs(Outcome::Care, "protocol spoken", one.protocol, other.protocol),
        differs(Outcome::Note, "target", Some(a.target.clone()), Some(b.target.clone())),
        differs(Outcome::Note, "server's program", one.program_sha256, other.program_sha256),
        differs(Outcome::Note, "server's header", one.header, other.header),
        differs(Outcome::Note, "git revision", a.git_revision.clone(), b.git_revision.clone()),
        differs(Outcome::Note, "set of notes", notes(a), notes(b)),
    ];
    all.into_iter().flatten().map(|finding| (None, finding)).collect()
}

fn settings(a: &Settings, b: &Settings) -> Vec<StepFinding> {
    use Outcome::{Care, Note, Stop};
    let stop = |s: &Settings| match (s.stop.requests, s.stop.duration_ms) {
        (Some(n), Some(ms)) => format!("{} or {ms} ms", counted(n, "request", "requests")),
        (Some(n), None) => counted(n, "request", "requests"),
        (None, Some(ms)) => format!("{ms} ms"),
        (None, None) => "without end".into(),
    };
    let kept = |s: &Settings| if s.keep_alive { "kept open" } else { "opened for each request" };
    let phases = |s: &Settings| if s.phases { "measured" } else { "not measured" };
    let spin = |s: &Settings| if s.spin { "spinning" } else { "sleeping" };
    let workload = |s: &Settings| format!("{} ({})", s.workload, s.workload_hash);
    let all = [
        // The hash covers what is sent: if only the name differs, nothing does.
        (a.workload_hash != b.workload_hash)
            .then(|| differs(Stop, "workload", Some(workload(a)), Some(workload(b))))
            .flatten(),
        differs(Stop, "load", Some(load(a)), Some(load(b))),
        differs(Stop, "number of connections", Some(a.connections), Some(b.connections)),
        differs(Stop, "number of streams a connection", Some(a.streams), Some(b.streams)),
        differs(Stop, "handling of connections", Some(kept(a)), Some(kept(b))),
        differs(Care, "protocol", Some(protocol(a)), Some(protocol(b))),
        differs(Care, "number of workers", Some(a.workers), Some(b.workers)),
        differs(Care, "way workers wait", Some(spin(a)), Some(spin(b))),
        differs(Care, "treatment of phases", Some(phases(a)), Some(phases(b))),
        differs(Care, "time limit in ms", Some(a.timeout_ms), Some(b.timeout_ms)),
        differs(Care, "warm-up in ms", Some(a.warmup_ms), Some(b.warmup_ms)),
        differs(Note, "length of the run", Some(stop(a)), Some(stop(b))),
        differs(Note, "seed", Some(a.seed), Some(b.seed)),
        differs(Note, "address", Some(&a.url), Some(&b.url)),
    ];
    all.into_iter().flatten().collect()
}

fn load(settings: &Settings) -> String {
    match settings.load {
        Load::Closed { think_min_us: 0, think_max_us: 0 } => "closed loop".into(),
        Load::Closed { think_min_us, think_max_us } => {
            format!("closed loop with {think_min_us} to {think_max_us} µs of think time")
        }
        Load::Open { rate_per_s, arrivals } => {
            format!("open loop at {rate_per_s}/s, {arrivals:?}").to_lowercase()
        }
    }
}

fn protocol(settings: &Settings) -> String {
    // As it is written in the result file.
    match settings.protocol {
        crate::plan::Protocol::Http1 => "HTTP/1.1".into(),
        crate::plan::Protocol::Http2 => "HTTP/2".into(),
    }
}

/// Something steps may differ in: its name, and how it is set.
type Aspect<'a> = (&'a str, &'a dyn Fn(&Settings) -> String);

/// Says whether the steps of one report differ in one thing only.
pub(super) fn within(report: &Report) -> StepFinding {
    let Some((first, rest)) = report.steps.split_first() else {
        return StepFinding::not_checked("The report has no step.");
    };
    if rest.is_empty() {
        return StepFinding::passed("One step, so there is nothing within this report to compare.");
    }
    let differ = |of: &dyn Fn(&Settings) -> String| {
        rest.iter().any(|step| of(&step.settings) != of(&first.settings))
    };
    let amount = |s: &Settings| {
        let kind = matches!(s.load, Load::Open { .. });
        // A search in open loop may open more connections as the rate grows.
        format!("{kind} {} {} {} {}", load(s), s.connections, s.streams, s.workers)
    };
    let aspects: [Aspect<'_>; 9] = [
        ("the amount of load", &amount),
        ("what is sent", &|s| s.workload_hash.clone()),
        ("the address", &|s| s.url.clone()),
        ("the protocol", &protocol),
        ("whether connections are kept open", &|s| s.keep_alive.to_string()),
        ("whether phases are measured", &|s| s.phases.to_string()),
        ("whether workers spin", &|s| s.spin.to_string()),
        ("the time limit", &|s| s.timeout_ms.to_string()),
        ("the warm-up", &|s| s.warmup_ms.to_string()),
    ];
    let different: Vec<&str> =
        aspects.iter().filter(|(_, of)| differ(of)).map(|(name, _)| *name).collect();
    let steps = counted(report.steps.len() as u64, "step", "steps");
    match different.as_slice() {
        [] => StepFinding::passed(format!("The {steps} were measured in the same way.")),
        [one] => StepFinding::passed(format!("The {steps} differ in {one} only.")),
        // Another workload usually has an address of its own: one thing, two names.
        ["what is sent", "the address"] => {
            StepFinding::passed(format!("The {steps} differ in what is sent and to which address."))
        }
        [start @ .., last] => StepFinding::care(format!(
            "The {steps} differ in {} and {last}: a difference between them cannot be put down to one of these.",
            start.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::plan::Protocol;

    fn outcomes(a: &Report, b: &Report) -> Vec<(Outcome, String)> {
        comparable(a, b).into_iter().map(|f| (f.outcome, f.sentence)).collect()
    }

    #[test]
    fn equal_reports_can_be_compared() {
        let report = build::closed(4).report();
        let found = comparable(&report, &report);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].outcome, Outcome::Passed);
    }

    #[test]
    fn every_difference_is_named_with_both_values() {
        let a = build::closed(4).report();
        let mut b = a.clone();
        b.environment.cpu_model = Some("another".into());
        b.environment.kernel = Some("Linux 6.1".into());
        b.environment.governor = None;
        b.environment.target = "198.51.100.1".into();
        b.steps[0].settings.workload_hash = "beef".into();
        b.steps[0].settings.timeout_ms = 1_000;
        b.steps[0].settings.seed = 7;
        let found = outcomes(&a, &b);
        for (outcome, text) in [
            (
                Outcome::Stop,
                "The processor differs: a processor in the first, another in the second.",
            ),
            (Outcome::Stop, "The workload differs"),
            (Outcome::Care, "The kernel differs"),
            (Outcome::Care, "The time limit in ms differs: 30000 in the first, 1000"),
            (
                Outcome::NotChecked,
                "The frequency governor is known in one report only (performance).",
            ),
            (Outcome::Note, "The target differs"),
            (Outcome::Note, "The seed differs"),
        ] {
            assert!(
                found.iter().any(|f| f.0 == outcome && f.1.starts_with(text)),
                "{text}: {found:?}"
            );
        }
        assert_eq!(found.len(), 7, "{found:?}");
        assert_eq!(found[0].0, Outcome::Stop, "the worst first");
    }

    #[test]
    fn a_workload_of_another_name_and_the_same_bytes_is_the_same() {
        let a = build::closed(4).report();
        let mut b = a.clone();
        b.steps[0].settings.workload = "the health page".into();
        assert_eq!(outcomes(&a, &b)[0].0, Outcome::Passed);
    }

    #[test]
    fn steps_are_matched_by_name() {
        let a = build::report(vec![build::closed(1).step(), build::closed(2).step()]);
        let b = build::report(vec![build::closed(2).step(), build::closed(4).step()]);
        let found = outcomes(&a, &b);
        assert_eq!(
            found,
            [(Outcome::Note, "2 steps are in one report only and cannot be compared.".into())]
        );
        let c = build::report(vec![build::closed(8).step(), build::closed(16).step()]);
        assert_eq!(outcomes(&a, &c)[0].0, Outcome::Stop);
        // One against one: compared, and found to differ in connections.
        let found = outcomes(&build::closed(1).report(), &build::closed(2).report());
        assert!(found[0].1.starts_with("The number of connections differs: 1"), "{found:?}");
    }

    #[test]
    fn steps_of_a_ladder_may_differ_in_the_load_only() {
        let mut ladder = build::report(vec![build::closed(1).step(), build::closed(16).step()]);
        assert_eq!(within(&ladder).outcome, Outcome::Passed);
        ladder.steps[1].settings.protocol = Protocol::Http2;
        let finding = within(&ladder);
        assert_eq!(finding.outcome, Outcome::Care);
        assert!(finding.sentence.contains("the amount of load and the protocol"), "{finding:?}");
        ladder.steps[1].settings.connections = 1;
        assert_eq!(within(&ladder).outcome, Outcome::Passed, "a sweep over the protocol");
    }
}
