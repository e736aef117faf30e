//! Tests of the language of thresholds and of what it sees in a step.

use super::build;
use super::threshold::*;
use crate::result::{ErrorKind, Step};
use proptest::prelude::*;

fn parsed(text: &str) -> Threshold {
    Threshold::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn expressions_are_read() {
    let simple = parsed(" p99>5ms ");
    assert_eq!(simple.expression, "p99>5ms");
    assert_eq!(
        (simple.endpoint, simple.metric, simple.comparison, simple.limit),
        (None, Metric::Quantile(0.99), Comparison::Above, 5e6)
    );
    let named = parsed("GET /a:b <x> : p99.9 <= 1.5 s");
    assert_eq!(named.endpoint.as_deref(), Some("GET /a:b <x>"));
    assert_eq!((named.comparison, named.limit), (Comparison::AtMost, 1.5e9));
    let spaced = parsed("GET /items book p99>5ms");
    assert_eq!(spaced.endpoint.as_deref(), Some("GET /items book"));
    assert_eq!((spaced.metric, spaced.limit), (Metric::Quantile(0.99), 5e6));
    for (text, metric, limit) in [
        ("mean>=300us", Metric::Mean, 3e5),
        ("max>1µs", Metric::Max, 1e3),
        ("min<10ns", Metric::Min, 10.0),
        ("rate<1000", Metric::Rate, 1e3),
        ("rps<1_000/s", Metric::Rate, 1e3),
        ("rps<1e4/s", Metric::Rate, 1e4),
        ("errors>0", Metric::Errors, 0.0),
        ("failures>3", Metric::Failures, 3.0),
        ("failures>0.1%", Metric::FailureShare, 0.001),
        ("errors>1%", Metric::ErrorShare, 0.01),
        ("failure_rate>=0.05", Metric::FailureShare, 0.05),
        ("failure_rate>5%", Metric::FailureShare, 0.05),
    ] {
        let threshold = parsed(text);
        assert_eq!(threshold.metric, metric, "{text}");
        assert!((threshold.limit - limit).abs() < limit * 1e-12 + 1e-12, "{text}");
    }
}

#[test]
fn errors_say_what_to_write() {
    for (text, says) in [
        ("p99", "a comparison is missing; write for example p99>5ms"),
        ("p99>", "the limit after the comparison is missing"),
        ("p99>5", "needs a unit: ns, us, ms or s, for example 5ms"),
        ("p99>5min", "wrong unit; a time has ns, us, ms or s"),
        ("p99>fast", "does not begin with a number"),
        ("p100>5ms", "between p0 and p100; the largest value is max"),
        ("p>5ms", "there is no figure \"p\"; use p50"),
        ("latency>5ms", "there is no figure \"latency\""),
        (":p99>5ms", "endpoint's name before the colon is missing"),
        ("rate<10ms", "a rate has /s or none"),
        ("errors>5ms", "a number of requests has none"),
        ("failure_rate>5", "more than all"),
        ("p99>-5ms", "must be zero or more"),
        ("p99>=>5ms", "there is no figure \"p99>=\""),
    ] {
        let error = Threshold::parse(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
        assert!(error.contains(text.trim()), "the expression is quoted: {error}");
    }
}

fn judged(step: &Step, text: &str) -> Truth {
    parsed(text).judge(step)
}

fn is_true(step: &Step, text: &str) -> bool {
    match judged(step, text) {
        Truth::True(_) => true,
        Truth::False(_) => false,
        Truth::Unknown(why) => panic!("{text}: {why}"),
    }
}

#[test]
fn figures_of_a_step_are_compared() {
    let step = build::closed(4).step();
    // 0.6 ms and 0.4 ms × ln 100 = 1.84 ms more.
    assert!(is_true(&step, "p99>2.4ms") && !is_true(&step, "p99>2.5ms"));
    assert!(is_true(&step, "mean>990us") && is_true(&step, "mean<1.01ms"));
    assert!(is_true(&step, "min>=600us") && is_true(&step, "max<10ms"));
    assert!(is_true(&step, "rate>=3960") && !is_true(&step, "rps>3960/s"));
    assert!(!is_true(&step, "errors>0") && is_true(&step, "failures<=0"));
    let Truth::False(measured) = judged(&step, "GET /health:p50>1ms") else { panic!() };
    assert_eq!(measured.text, "878 µs");
    assert!(
        matches!(judged(&step, "GET /other:p50>1ms"), Truth::Unknown(why) if why.contains("GET /other"))
    );
}

#[test]
fn too_few_answers_are_unknown() {
    let mut step = build::closed(4).step();
    step.runs[0].endpoints[0].service = build::spread(999, 1.0);
    assert!(
        matches!(judged(&step, "p99>1ms"), Truth::Unknown(why) if why == "p99 needs 1,000 answers, and there were 999")
    );
    assert!(is_true(&step, "p98>1ms"));
}

#[test]
fn requests_without_an_answer_are_slower_than_all_others() {
    let mut step = build::closed(1).step();
    assert!(!is_true(&step, "p99>10s"));
    step.runs[0].endpoints[0].counters.errors.insert(ErrorKind::Timeout, 50);
    step.runs[0].unanswered = 49;
    // 99 of 9,999: p99 is the largest of the answers, p99.5 would have been among the missing.
    assert!(!is_true(&step, "p99>10s") && is_true(&step, "p99>3ms"));
    assert!(is_true(&step, "p99.5>10s"));
    let Truth::False(measured) = judged(&step, "p99.5<10s") else { panic!() };
    assert!(
        measured.text.starts_with("more than 3.6")
            && measured.text.ends_with("(99 requests without an answer)"),
        "{measured:?}"
    );
    let Truth::True(longest) = judged(&step, "max>20s") else { panic!() };
    assert_eq!(longest.text, "at least 30.0 s");
    assert!(is_true(&step, "errors>=99") && is_true(&step, "failures>0.9%"));
}

#[test]
fn repeats_are_merged_and_the_rate_is_the_throughput_of_reports() {
    let step = build::closed(4).repeats(&[1.0, 0.5]).step();
    let Truth::True(rate) = judged(&step, "rate>0") else { panic!() };
    assert_eq!(rate.text, "2,800/s");
    assert_eq!(rate.value, step.throughput_per_s());
    let Truth::True(rate) = judged(&step, "GET /health:rate>0") else { panic!() };
    assert_eq!(rate.value, step.throughput_per_s());
}

#[test]
fn an_slo_holds_only_if_all_of_it_does() {
    let step = build::closed(4).step();
    let slo = |text: &str| Slo::parse(text).unwrap().judge(&step);
    assert!(
        matches!(slo("p99<10ms, failures<0.1%"), SloOutcome::Holds(text) if text.contains("p99<10ms: 2.4"))
    );
    assert!(
        matches!(slo("p99<10ms,p50<100us"), SloOutcome::Fails(text) if text == "p50<100us: 878 µs")
    );
    assert!(
        matches!(slo("p99.999<1s,p50<1s"), SloOutcome::Unknown(text) if text.contains("needs 1,000,000"))
    );
    assert!(matches!(slo("p99.999<1s,p50<1us"), SloOutcome::Fails(_)));
    assert!(Slo::parse(" , ").unwrap_err().to_string().contains("empty"));
    assert!(Slo::parse("p99<10ms,p50").unwrap_err().to_string().contains("`p50`"));
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in ".{0,24}") {
        let _ = Threshold::parse(&text);
    }

    #[test]
    fn what_looks_like_an_expression_does_not_either(text in "[a-z0-9.:<>=%µ ]{0,16}") {
        let _ = Threshold::parse(&text);
    }
}
