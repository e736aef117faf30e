//! Comparisons of whole reports.

use super::*;
use crate::histogram::Histogram;
use crate::plan::{Arrivals, Load};
use crate::result::{ErrorKind, Finish, OpenLoop, Outcome};
use crate::testing::{report, run, settings};

/// Ten pairs in ABBA order with a drift of 3% a run; B is `factor` times as fast.
fn in_turns(factor: f64) -> (Report, Report) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (at, side) in abba(10).into_iter().enumerate() {
        let wobble = [1.0, 1.02, 0.985, 1.01, 0.99][at / 2 % 5];
        let speed = 20_000.0 * 0.97_f64.powi(at as i32) * wobble;
        let (runs, speed) = match side {
            Side::A => (&mut a, speed),
            Side::B => (&mut b, speed * factor),
        };
        runs.push(run(100 + 2 * at as u64, speed as u64, (16e6 / speed) as u64));
    }
    (report("old", a), report("new", b))
}

fn compare(a: &Report, b: &Report) -> Comparison {
    compare_reports(a, b, &Options::default())
}

fn sentences(comparison: &Comparison, outcome: Outcome) -> String {
    let all = comparison.findings.iter().filter(|finding| finding.outcome == outcome);
    all.map(|finding| finding.sentence.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn runs_in_turns_are_paired_and_the_drift_cancels() {
    let (old, new) = in_turns(1.12);
    let comparison = compare(&old, &new);
    let step = &comparison.steps[0];
    assert_eq!((step.design, step.runs_a, step.left_out), (Design::Paired, 10, 0));
    let throughput = step.metric(Metric::Throughput).unwrap();
    assert_eq!(throughput.verdict, Verdict::Faster, "{}", throughput.sentence);
    assert!((throughput.effect.unwrap().ratio().unwrap() - 1.12).abs() < 0.02);
    let ratio = throughput.b.unwrap() / throughput.a.unwrap();
    assert!((ratio - throughput.effect.unwrap().ratio().unwrap()).abs() < 1e-12);
    assert!(throughput.sentence.starts_with("B is 12% faster ("), "{}", throughput.sentence);
    let p99 = step.metric(Metric::P99).unwrap();
    assert!(p99.sentence.starts_with("B's p99 is 11% shorter ("), "{}", p99.sentence);
    assert_eq!(comparison.trust, Trust::Trusted, "{:?}", comparison.findings);
    // The other way round everything is mirrored.
    let back = compare(&new, &old);
    let slower = back.steps[0].metric(Metric::Throughput).unwrap();
    assert_eq!(slower.verdict, Verdict::Slower);
    assert!(slower.sentence.starts_with("B is 11% slower ("), "{}", slower.sentence);
    assert_eq!(back.steps[0].metric(Metric::P99).unwrap().verdict, Verdict::Slower);
}

#[test]
fn the_same_speed_is_not_called_different_and_what_could_be_seen_is_said() {
    let (a, b) = in_turns(1.0);
    let comparison = compare(&a, &b);
    assert!(!comparison.steps[0].any_difference());
    let throughput = comparison.steps[0].metric(Metric::Throughput).unwrap();
    assert!(throughput.sentence.starts_with("no difference detected in throughput: "));
    assert!(throughput.sentence.ends_with("% would not have been detected."));
    assert!(throughput.detectable_share().unwrap() < 0.15);
}

#[test]
fn one_block_after_the_other_is_warned_of() {
    let of = |from: u64, per_s: u64| {
        report("x", (0..6).map(|at| run(from + 2 * at, per_s + 40 * at, 800)).collect())
    };
    let comparison = compare(&of(100, 20_000), &of(200, 24_000));
    assert_eq!(comparison.steps[0].design, Design::Separate);
    assert_eq!(comparison.steps[0].metrics[0].verdict, Verdict::Faster);
    assert!(sentences(&comparison, Outcome::Care).contains("did not take turns"));
    assert!(matches!(comparison.trust, Trust::UseWithCare(_)));
}

#[test]
fn single_runs_give_no_interval_and_no_verdict() {
    let comparison = compare(
        &report("x", vec![run(100, 20_000, 800)]),
        &report("y", vec![run(110, 30_000, 500)]),
    );
    let throughput = comparison.steps[0].metric(Metric::Throughput).unwrap();
    assert_eq!((throughput.verdict, throughput.p), (Verdict::NotComparable, None));
    assert!(throughput.effect.unwrap().interval.is_none());
    assert_eq!(
        throughput.sentence,
        "In these runs B is 50% faster, but a single run per side gives no interval."
    );
    assert!(sentences(&comparison, Outcome::Care).contains("--repeat 5"));
}

#[test]
fn other_settings_are_refused_unless_forced() {
    let (old, mut new) = in_turns(1.12);
    new.steps[0].settings.connections = 64;
    new.steps[0].settings.stop.duration_ms = Some(30_000);
    new.environment.kernel = Some("Linux 7".into());
    new.environment.git_revision = Some("abc".into());
    let refused = compare(&old, &new);
    assert!(refused.steps[0].metrics.iter().all(|m| m.verdict == Verdict::NotComparable));
    assert!(refused.steps[0].metrics[0].a.is_some(), "both figures are shown");
    assert!(matches!(refused.trust, Trust::NotMeasurable(_)));
    let stop = sentences(&refused, Outcome::Stop);
    assert!(stop.contains("c=16: connections (16 against 64)"), "{stop}");
    assert!(stop.contains("duration (1 s against 30 s)"), "{stop}");
    let weights: Vec<_> = refused.mismatches.iter().map(|m| (m.what.as_str(), m.weight)).collect();
    use Weight::{Environment, Settings, WhatDiffers};
    assert_eq!(
        weights,
        [
            ("connections", Settings),
            ("duration", Settings),
            ("kernel", Environment),
            ("git revision", WhatDiffers)
        ]
    );
    let forced = compare_reports(
        &old,
        &new,
        &Options { mismatch_policy: MismatchPolicy::Compare, ..Options::default() },
    );
    assert_eq!(forced.steps[0].metrics[0].verdict, Verdict::Faster);
    assert!(sentences(&forced, Outcome::Care).contains("forced"));
    assert!(sentences(&forced, Outcome::Care).contains("kernel (unknown against Linux 7)"));
}

#[test]
fn steps_are_matched_by_name_and_what_has_no_partner_is_named() {
    let (mut old, mut new) = in_turns(1.0);
    let extra = |name: &str| Step { name: name.into(), settings: settings(), runs: Vec::new() };
    old.steps.insert(0, extra("c=1"));
    new.steps.push(extra("c=64"));
    let comparison = compare(&old, &new);
    assert_eq!(comparison.steps.len(), 1);
    assert_eq!(comparison.only_in_a, ["c=1"]);
    assert_eq!(comparison.only_in_b, ["c=64"]);
    old.steps.remove(1);
    new.steps.remove(0);
    new.steps.push(extra("c=128"));
    let nothing = compare(&old, &new);
    let stop = sentences(&nothing, Outcome::Stop);
    assert_eq!(stop, "A and B have no step of the same name: A has c=1, B has c=64, c=128.");
}

#[test]
fn failures_are_no_slowness_and_survivors_are_pointed_at() {
    let (a, mut b) = in_turns(1.0);
    for run in &mut b.steps[0].runs {
        let counters = &mut run.endpoints[0].counters;
        counters.errors.insert(ErrorKind::Timeout, counters.successes / 9);
    }
    let comparison = compare(&a, &b);
    let failures = comparison.steps[0].metric(Metric::FailureShare).unwrap();
    assert_eq!(failures.verdict, Verdict::MoreFailures);
    assert!(
        failures.sentence.starts_with("B has 10.0 percentage points more failures"),
        "{}",
        failures.sentence
    );
    assert!(sentences(&comparison, Outcome::Care).contains("10.0% of B's"));
}

#[test]
fn interrupted_runs_leave_with_their_partner() {
    let (mut a, b) = in_turns(1.0);
    a.steps[0].runs[3].finish = Finish::Interrupted;
    let comparison = compare(&a, &b);
    let step = &comparison.steps[0];
    assert_eq!((step.design, step.runs_a, step.runs_b, step.left_out), (Design::Paired, 9, 9, 2));
    let direct =
        compare_paired("c=16", &a.steps[0].runs, &b.steps[0].runs[..8], &Options::default());
    assert_eq!((direct.runs_a, direct.left_out), (7, 4));
    for run in &mut a.steps[0].runs {
        run.finish = Finish::Aborted("refused".into());
    }
    let none = compare(&a, &b);
    assert_eq!(none.steps[0].refused.as_deref(), Some("A has no run that came to its end"));
}

#[test]
fn turns_that_always_begin_with_the_same_side_are_pointed_at() {
    let of = |from: u64| {
        report("x", (0..6).map(|at| run(from + 4 * at, 20_000 + 40 * at, 800)).collect())
    };
    let comparison = compare(&of(100), &of(102));
    assert!(sentences(&comparison, Outcome::Note).contains("A went first in every pair"));
    let (a, b) = in_turns(1.0);
    assert!(!sentences(&compare(&a, &b), Outcome::Note).contains("went first"));
}

#[test]
fn two_pairs_of_wild_runs_are_told_without_endless_digits() {
    let of = |from: u64, per_s: [u64; 2]| {
        report("x", per_s.iter().zip(0..).map(|(&n, at)| run(from + 4 * at, n, 800)).collect())
    };
    let comparison = compare(&of(100, [1_000, 90_000]), &of(102, [80_000, 2_000]));
    let throughput = comparison.steps[0].metric(Metric::Throughput).unwrap();
    assert_eq!(throughput.verdict, Verdict::NoDifferenceSeen);
    assert!(throughput.sentence.contains("% (−100%…over 10,000×)"), "{}", throughput.sentence);
    assert!(
        throughput
            .sentence
            .ends_with("under a factor of over 10,000 would not have been detected."),
        "{}",
        throughput.sentence
    );
}

#[test]
fn a_quantile_needs_its_answers_and_zero_has_no_ratio() {
    let few = |from: u64| report("x", (0..5).map(|at| run(from + 4 * at, 200, 800)).collect());
    let comparison = compare(&few(100), &few(102));
    let p99 = comparison.steps[0].metric(Metric::P99).unwrap();
    assert_eq!(p99.verdict, Verdict::NotComparable);
    assert_eq!(p99.sentence, "p99 is not compared: it needs at least 1000 answers in every run.");
    let dead = report("dead", (0..5).map(|at| run(102 + 4 * at, 0, 800)).collect());
    let comparison = compare(&few(100), &dead);
    let throughput = comparison.steps[0].metric(Metric::Throughput).unwrap();
    assert_eq!(throughput.verdict, Verdict::NotComparable);
    assert!(throughput.sentence.contains("a ratio to 0 does not exist"), "{}", throughput.sentence);
}

#[test]
fn figures_that_never_vary_are_dealt_and_counted() {
    let of = |from: u64, mean_us| {
        report("x", (0..6).map(|at| run(from + 4 * at, 20_000, mean_us)).collect())
    };
    let comparison = compare(&of(100, 800), &of(102, 900));
    let p50 = comparison.steps[0].metric(Metric::P50).unwrap();
    assert_eq!(p50.verdict, Verdict::Slower, "{}", p50.sentence);
    assert!((p50.p.unwrap() - 2.0 / 924.0).abs() < 1e-12);
    assert_eq!(comparison.steps[0].metrics[0].p, Some(1.0));
    assert_eq!(comparison.steps[0].metrics[0].verdict, Verdict::NoDifferenceSeen);
}

#[test]
fn a_report_against_itself_and_runs_at_the_same_time_are_pointed_at() {
    let (a, b) = in_turns(1.0);
    assert!(sentences(&compare(&a, &a), Outcome::Care).contains("hold the same runs"));
    let mut shifted = b.clone();
    for run in &mut shifted.steps[0].runs {
        run.measured_ns *= 3;
    }
    assert!(sentences(&compare(&a, &shifted), Outcome::Care).contains("overlapped"));
}

#[test]
fn answers_that_wait_for_acknowledgements_are_not_compared_in_trust() {
    let (mut a, b) = in_turns(1.12);
    assert_eq!(compare(&a, &b).trust, Trust::Trusted);
    for run in &mut a.steps[0].runs {
        let mut waited = Histogram::new();
        waited.record_n(44_000_000, run.endpoints[0].service.count());
        run.endpoints[0].service = waited;
    }
    let told = sentences(&compare(&a, &b), Outcome::Care);
    assert!(told.contains("100% of A's answers") && told.contains("TCP_NODELAY"), "{told}");
}

#[test]
fn open_loop_throughput_is_not_speed() {
    let (mut a, mut b) = in_turns(1.12);
    for report in [&mut a, &mut b] {
        for run in &mut report.steps[0].runs {
            run.open_loop = Some(OpenLoop::default());
            run.endpoints[0].response = Some(run.endpoints[0].service.clone());
        }
        report.steps[0].settings.load =
            Load::Open { rate_per_s: 500.0, arrivals: Arrivals::Poisson };
    }
    let comparison = compare(&a, &b);
    let throughput = comparison.steps[0].metric(Metric::Throughput).unwrap();
    assert!(throughput.sentence.starts_with("B answers 12% more requests a second ("));
    let text = render_text(&comparison, Color::Plain);
    assert!(text.contains("open loop, 10 pairs of runs, made in turns"), "{text}");
}

#[test]
fn the_renderings_carry_figures_verdicts_and_the_last_line() {
    let (mut a, mut b) = in_turns(1.12);
    a.title = "old|\u{1b}[2J".into();
    b.environment.git_revision = Some("2a9d87d".into());
    let comparison = compare(&a, &b);
    let text = render_text(&comparison, Color::Plain);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.contains("git revision: unknown → 2a9d87d"), "{text}");
    assert!(
        text.lines().any(|line| line.trim().starts_with("throughput") && line.ends_with("faster"))
    );
    assert_eq!(text.lines().last(), Some("TRUSTED"));
    assert!(render_text(&comparison, Color::Ansi).contains("\u{1b}[32mfaster\u{1b}[0m"));
    let markdown = render_markdown(&comparison);
    assert!(markdown.starts_with("# old\\|"), "{markdown}");
    assert!(markdown.trim_end().ends_with("**TRUSTED**"), "{markdown}");
    let json = serde_json::to_string(&comparison).unwrap();
    let read: Comparison = serde_json::from_str(&json).unwrap();
    assert_eq!(read.steps[0].metrics.len(), comparison.steps[0].metrics.len());
    assert_eq!(read.steps[0].metrics[0].sentence, comparison.steps[0].metrics[0].sentence);
    assert_eq!(read.trust, comparison.trust);
    assert_eq!(comparison.steps, compare(&a, &b).steps, "the same seed gives the same figures");
}
