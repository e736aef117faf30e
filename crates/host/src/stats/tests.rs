//! Counting.

use super::*;
use crate::record::{RequestRecord, RouteName};

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "{line}\n{text}");
}

#[test]
fn every_status_there_is_has_a_counter() {
    for kind in crate::wire::problem::ALL {
        assert!(requests::STATUSES.contains(&kind.status), "{}", kind.status);
    }
}

#[test]
fn answers_are_counted_by_route_status_and_time() {
    let answered = |stats: &Stats, index, status, ended_us| {
        let route = RouteName { index, path: None };
        let record = RequestRecord::for_tests(&crate::identity::UNKNOWN);
        stats.answered(&RequestRecord { route, status, ended_us, ..record });
    };
    let stats = Arc::new(Stats::new(2, vec!["GET /x".to_owned()], 0));
    answered(&stats, 0, 200, 70);
    answered(&stats, 0, 409, 3_000_000);
    stats.received(10);
    enter_thread(1);
    answered(&stats, 0, 200, 31);
    answered(&stats, 1, 418, 1);
    stats.received(5);
    stats.sent(7);
    stats.waiting(2);
    let in_flight = stats.begin();
    // It may end on another thread.
    enter_thread(0);
    let other = stats.begin();
    drop(in_flight);
    let text = prometheus::page(&stats.request_families());
    for line in [
        r#"wellspring_requests_total{route="GET /x",status="200"} 2"#,
        r#"wellspring_requests_total{route="GET /x",status="409"} 1"#,
        r#"wellspring_requests_total{route="other",status="0"} 1"#,
        r#"wellspring_request_duration_seconds_bucket{route="GET /x",le="0.00003"} 0"#,
        r#"wellspring_request_duration_seconds_bucket{route="GET /x",le="0.00004"} 1"#,
        r#"wellspring_request_duration_seconds_bucket{route="GET /x",le="0.0001"} 2"#,
        r#"wellspring_request_duration_seconds_bucket{route="GET /x",le="+Inf"} 3"#,
        r#"wellspring_request_duration_seconds_sum{route="GET /x"} 3.000101"#,
        "wellspring_requests_in_flight 3",
        "wellspring_received_bytes_total 15",
        "wellspring_sent_bytes_total 7",
    ] {
        has(&text, line);
    }
    drop(other);
}

#[test]
fn subscriptions_are_counted_by_log() {
    let stats = Arc::new(Stats::new(1, Vec::new(), 0));
    let [first, second] = ["a", "a"].map(|log| stats.subscribe(log));
    let other = stats.subscribe("b");
    assert_eq!((stats.subscribers_of("a"), stats.subscribers_of("b")), (2, 1));
    drop((first, other));
    assert_eq!((stats.subscribers_of("a"), stats.subscribers_of("b")), (1, 0));
    assert_eq!(stats.subscribers.load(Relaxed), 1);
    drop(second);
    assert!(stats.by_log().is_empty());
}
