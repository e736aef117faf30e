//! Comparisons of steps with several endpoints.

use super::*;
use crate::result::{EndpointResult, Outcome, Report};
use crate::testing::{report, run};

/// An endpoint with `count` answers around `mean_us`.
fn endpoint(name: &str, count: u64, mean_us: f64) -> EndpointResult {
    let mut endpoint = EndpointResult::new(name);
    endpoint.counters.sent = count;
    endpoint.counters.successes = count;
    endpoint.counters.statuses.insert(200, count);
    for part in 0..20 {
        endpoint.service.record_n((mean_us * f64::from(900 + 10 * part)) as u64, count / 20);
    }
    endpoint
}

/// Eight pairs in turns of `book` (100 µs) and `look` (3 ms), about half of the requests each: the
/// median over both is sometimes a `book` and sometimes a `look`. In B `look` takes `factor` times
/// as long.
fn in_turns(factor: f64) -> (Report, Report) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (at, side) in abba(8).into_iter().enumerate() {
        let wobble = [1.0, 1.02, 0.985, 1.01, 0.99][at / 2 % 5];
        let looks = [9_000, 11_000, 9_600, 10_400, 10_200, 9_400][at % 6];
        let slower = if side == Side::B { factor } else { 1.0 };
        let mut made = run(100 + 2 * at as u64, 20_000, 800);
        made.endpoints = vec![
            endpoint("book", 20_000 - looks, 100.0 * wobble),
            endpoint("look", looks, 3_000.0 * wobble * slower),
        ];
        if side == Side::A { &mut a } else { &mut b }.push(made);
    }
    (report("old", a), report("new", b))
}

fn compare(a: &Report, b: &Report) -> Comparison {
    compare_reports(a, b, &Options::default())
}

#[test]
fn an_endpoint_that_is_40_percent_slower_is_found_and_the_other_is_not_blamed() {
    let (a, b) = in_turns(1.4);
    let comparison = compare(&a, &b);
    let step = &comparison.steps[0];
    let names: Vec<&str> = step.endpoints.iter().map(|each| each.endpoint.as_str()).collect();
    assert_eq!(names, ["book", "look"]);
    for metric in [Metric::P50, Metric::P90, Metric::P99] {
        let look = step.endpoint("look").unwrap().metric(metric).unwrap();
        assert_eq!(look.verdict, Verdict::Slower, "{}", look.sentence);
        assert!((look.effect.unwrap().ratio().unwrap() - 1.4).abs() < 0.03, "{}", look.sentence);
        let book = step.endpoint("book").unwrap().metric(metric).unwrap();
        assert_eq!(book.verdict, Verdict::NoDifferenceSeen, "{}", book.sentence);
    }
    assert!(step.any_difference() && !step.worsenings(0.0).is_empty());
    assert!(!step.worsenings(0.3).is_empty() && step.worsenings(0.5).is_empty());
    let text = render_text(&comparison, Color::Plain);
    assert!(text.contains("\nlook: B's p50 is 40% longer ("), "{text}");
    assert!(text.contains("\nbook: no difference detected in p50: "), "{text}");
    let row = text.lines().find(|line| line.contains("look") && line.contains("p90")).unwrap();
    assert!(row.ends_with("more time"), "{row}");
    let markdown = render_markdown(&comparison);
    assert!(markdown.contains("### By endpoint\n\n| endpoint |"), "{markdown}");
}

#[test]
fn latencies_of_several_endpoints_are_not_pooled() {
    let (a, b) = in_turns(1.4);
    let step = &compare(&a, &b).steps[0];
    for metric in step.metrics.iter().filter(|metric| metric.metric.is_latency()) {
        assert_eq!((metric.verdict, metric.p), (Verdict::NotComparable, None));
        assert!(metric.a.is_some() && metric.b.is_some(), "the figures stay");
        assert!(metric.sentence.contains("would mix 2 endpoints"), "{}", metric.sentence);
    }
    // The throughput of all of them is one thing, and so are the failures.
    assert!(step.metric(Metric::Throughput).unwrap().effect.is_some());
    // With a single endpoint nothing changes.
    let (mut a, mut b) = (a, b);
    for run in a.steps[0].runs.iter_mut().chain(&mut b.steps[0].runs) {
        run.endpoints.remove(0);
    }
    let step = &compare(&a, &b).steps[0];
    assert!(step.endpoints.is_empty());
    assert_eq!(step.metric(Metric::P50).unwrap().verdict, Verdict::Slower);
}

#[test]
fn every_endpoint_adds_to_the_questions_that_are_corrected_for() {
    let (a, b) = in_turns(1.0);
    let step = &compare(&a, &b).steps[0];
    let asked: Vec<f64> = step.questions().filter_map(|(_, metric)| metric.p).collect();
    assert_eq!(asked.len(), 1 + 2 * 3, "throughput, and three latencies of two endpoints");
    let expected = crate::stats::holm(&asked);
    let adjusted: Vec<f64> = step.questions().filter_map(|(_, metric)| metric.p_adjusted).collect();
    assert_eq!(adjusted, expected);
    assert!(!step.any_difference(), "{:?}", step.endpoints);
}

#[test]
fn failures_of_one_endpoint_are_its_own() {
    let (a, mut b) = in_turns(1.0);
    for run in &mut b.steps[0].runs {
        let counters = &mut run.endpoints[1].counters;
        counters.statuses.insert(503, counters.successes / 9);
        counters.sent += counters.successes / 9;
    }
    let comparison = compare(&a, &b);
    let step = &comparison.steps[0];
    let share = |name: &str| step.endpoint(name).unwrap().metric(Metric::FailureShare).unwrap();
    assert_eq!(share("look").verdict, Verdict::MoreFailures, "{}", share("look").sentence);
    assert_eq!(share("book").verdict, Verdict::NoDifferenceSeen);
    let care = comparison.findings.iter().filter(|finding| finding.outcome == Outcome::Care);
    let care: Vec<&str> = care.map(|finding| finding.sentence.as_str()).collect();
    assert!(
        care.iter().any(|said| said.contains("0% of A's requests of look failed and 10.0% of")),
        "{care:?}"
    );
}

#[test]
fn an_endpoint_of_one_side_is_named_and_not_compared() {
    let (a, mut b) = in_turns(1.0);
    b.steps[0].runs.iter_mut().for_each(|run| run.endpoints.push(endpoint("pay", 1_000, 500.0)));
    let comparison = compare(&a, &b);
    assert!(comparison.steps[0].endpoint("pay").is_none());
    let told = comparison.findings.iter().any(|finding| {
        finding.outcome == Outcome::Note && finding.sentence.contains("only B has pay")
    });
    assert!(told, "{:?}", comparison.findings);
}

#[test]
fn a_comparison_is_read_back_and_so_is_one_of_before_endpoints() {
    let (a, b) = in_turns(1.4);
    let comparison = compare(&a, &b);
    let text = serde_json::to_string(&comparison).unwrap();
    let read: Comparison = serde_json::from_str(&text).unwrap();
    let told = |comparison: &Comparison| -> Vec<(Option<String>, String)> {
        let questions = comparison.steps[0].questions();
        questions.map(|(name, m)| (name.map(str::to_owned), m.sentence.clone())).collect()
    };
    assert_eq!(told(&read), told(&comparison));
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    old["steps"][0].as_object_mut().unwrap().remove("endpoints");
    let read: Comparison = serde_json::from_value(old).unwrap();
    assert!(read.steps[0].endpoints.is_empty());
}

#[test]
fn endpoints_of_refused_steps_are_not_concluded_from() {
    let (a, mut b) = in_turns(1.4);
    b.steps[0].settings.connections = 64;
    let step = &compare(&a, &b).steps[0];
    assert!(step.questions().all(|(_, metric)| metric.verdict == Verdict::NotComparable));
    assert!(step.endpoints[0].metrics[0].sentence.contains("the settings differ: connections"));
}
