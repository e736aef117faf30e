//! Figures of logs, and the page as a whole.

use super::*;
use crate::node::IngestAccount;
use crate::stats::prometheus;
use wellspring_log::LogStats;
use wellspring_log::batcher::Amount;

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "{line}\n{text}");
}

#[test]
fn a_log_is_told_with_its_account() {
    let stats = LogStats { head: 9, ..LogStats::default() };
    let account = IngestAccount::of_accepted(Amount { events: 7, bytes: 70 });
    let idle_us = Some(1_500_000);
    let log =
        LogFigures { stats, account, subscribers: 2, idle_us, ..LogFigures::for_tests("main") };
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
