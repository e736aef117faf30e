//! Counting, and the page as a whole.

use super::*;
use crate::http::Shell;
use crate::ingest::Account;
use wellspring_log::LogStats;
use wellspring_log::batcher::Amount;

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "{line}\n{text}");
}

#[test]
fn every_status_there_is_has_a_counter() {
    for kind in crate::http::problem::ALL {
        assert!(requests::STATUSES.contains(&kind.status), "{}", kind.status);
    }
}

#[test]
fn answers_are_counted_by_route_status_and_time() {
    let stats = Arc::new(Stats::new(2, 1, 0));
    stats.answered(0, 200, 70);
    stats.answered(0, 409, 3_000_000);
    stats.received(10);
    enter_thread(1);
    stats.answered(0, 200, 31);
    stats.answered(1, 418, 1);
    stats.received(5);
    stats.sent(7);
    stats.waiting(2);
    let in_flight = stats.begin();
    // It may end on another thread.
    enter_thread(0);
    let other = stats.begin();
    drop(in_flight);
    let text = stats.requests_page(&["GET /x".into()]);
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
    let stats = Arc::new(Stats::new(1, 0, 0));
    let [first, second] = ["a", "a"].map(|log| stats.subscribe(log));
    let other = stats.subscribe("b");
    assert_eq!((stats.subscribers_of("a"), stats.subscribers_of("b")), (2, 1));
    drop((first, other));
    assert_eq!((stats.subscribers_of("a"), stats.subscribers_of("b")), (1, 0));
    assert_eq!(stats.subscribers.load(Relaxed), 1);
    drop(second);
    assert!(stats.by_log().is_empty());
}

#[test]
fn a_log_is_told_with_its_account() {
    let stats = LogStats { head: 9, ..LogStats::default() };
    let account = Account::of_accepted(Amount { events: 7, bytes: 70 });
    let idle_us = Some(1_500_000);
    let log = LogFigures { log: "main".into(), stats, account, subscribers: 2, idle_us };
    let empty = LogFigures { log: "new".into(), idle_us: None, ..log.clone() };
    let text = prometheus::page(&logs::families(&[log, empty]));
    for line in [
        r#"wellspring_log_head{log="main"} 9"#,
        r#"wellspring_log_subscribers{log="main"} 2"#,
        r#"wellspring_log_last_event_age_seconds{log="main"} 1.5"#,
        r#"wellspring_log_barrier_seconds_count{log="main"} 0"#,
        r#"wellspring_ingest_accepted_events_total{log="main"} 7"#,
        r#"wellspring_ingest_lost_possible_bytes{log="main"} 70"#,
    ] {
        has(&text, line);
    }
    assert!(!text.contains(r#"age_seconds{log="new"}"#), "{text}");
}

#[test]
fn names_are_unique_and_say_their_unit_and_kind() {
    let dir = tempfile::tempdir().unwrap();
    let shell = Shell::for_tests(dir.path(), &[]);
    let families = gather(&shell);
    let mut names = std::collections::BTreeSet::new();
    for family in &families {
        let name = &*family.name;
        assert!(names.insert(name), "{name} comes twice");
        assert!(name.starts_with("wellspring_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == family::Kind::Counter, "{name}");
        assert!(family.help.ends_with('.'), "{name}: {}", family.help);
        for word in ["microseconds", "milliseconds", "_us", "_ms", "kilobytes"] {
            assert!(!name.contains(word), "{name} is not in a base unit");
        }
    }
    for name in ["wellspring_build_info", "wellspring_log_barrier_seconds", "process_threads"] {
        assert!(names.contains(name), "{name}");
    }
    shell.node.close();
}
