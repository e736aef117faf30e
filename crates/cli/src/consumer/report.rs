//! Formats the server's description of a consumer.

use crate::numbers::{counted, grouped};
use crate::table::table;
use serde::Deserialize;
use serde_json::Value;
use wellspring_readable::numbers::elapsed;

/// A consumer as the server describes it.
#[derive(Debug, Deserialize)]
pub(super) struct ConsumerReport {
    name: String,
    #[serde(default)]
    definition: Value,
    pub(super) state: String,
    scanned: u64,
    lag: u64,
    open_keys: u64,
    ready: u64,
    in_flight: u64,
    parked: u64,
    workers: u64,
    #[serde(default)]
    oldest_age_ms: Option<u64>,
    #[serde(default)]
    oldest: Option<OpenKeyReport>,
}

/// An open key.
#[derive(Debug, Deserialize)]
pub(super) struct OpenKeyReport {
    position: u64,
    key: Option<String>,
    state: String,
    tries: u64,
    #[serde(default)]
    worker: Option<String>,
    #[serde(default)]
    retry_in_ms: Option<u64>,
    #[serde(default)]
    reason: Option<String>,
}

fn shown_ms(ms: u64) -> String {
    elapsed(ms.saturating_mul(1_000_000))
}

impl OpenKeyReport {
    /// Who holds it, when it is tried again, or why it is parked.
    fn remark(&self) -> String {
        let retry = self.retry_in_ms.map(|ms| format!("again in {}", shown_ms(ms)));
        let reason = self.reason.as_ref().map(|reason| reason.replace(['\n', '\r'], " "));
        self.worker.clone().or(retry).or(reason).unwrap_or_default()
    }
}

/// A table row for each.
pub(super) fn rows(reports: &[ConsumerReport]) -> Vec<String> {
    let row = |report: &ConsumerReport| {
        let mut row = vec![report.name.clone(), report.state.clone()];
        let numbers =
            [report.lag, report.open_keys, report.in_flight, report.parked, report.workers];
        row.extend(numbers.iter().map(u64::to_string));
        row.push(report.oldest_age_ms.map_or_else(|| "-".to_owned(), shown_ms));
        row
    };
    let heads =
        ["NAME", "STATE", "BEHIND", "OPEN KEYS", "IN FLIGHT", "PARKED", "WORKERS", "OLDEST"];
    table(&heads, reports.iter().map(row))
}

/// A table row for each open key.
pub(super) fn open_rows(keys: &[OpenKeyReport]) -> Vec<String> {
    let row = |key: &OpenKeyReport| {
        vec![
            key.position.to_string(),
            key.key.clone().unwrap_or_else(|| "-".to_owned()),
            key.state.clone(),
            key.tries.to_string(),
            key.remark(),
        ]
    };
    table(&["POSITION", "KEY", "STATE", "TRIES", "WORKER OR REASON"], keys.iter().map(row))
}

/// All about one.
pub(super) fn lines(report: &ConsumerReport) -> Vec<String> {
    let mut lines = vec![
        format!("{}: {}", report.name, report.state),
        format!(
            "  looked at the log up to {}, {} behind",
            grouped(report.scanned),
            grouped(report.lag)
        ),
        format!(
            "  {}: {} ready, {} in flight, {} parked",
            counted(report.open_keys, "open key", "open keys"),
            grouped(report.ready),
            grouped(report.in_flight),
            grouped(report.parked)
        ),
        format!("  {}", counted(report.workers, "worker", "workers")),
    ];
    if let Some(oldest) = &report.oldest {
        let age =
            report.oldest_age_ms.map_or(String::new(), |ms| format!(", {} old", shown_ms(ms)));
        let remark = oldest.remark();
        let remark = if remark.is_empty() { remark } else { format!(" ({remark})") };
        lines
            .push(format!("  oldest: position {}{age}, {}{remark}", oldest.position, oldest.state));
    }
    lines.push(format!("  definition: {}", report.definition));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_event_and_its_holder_are_shown() {
        let report: ConsumerReport = serde_json::from_str(
            r#"{"name":"m","definition":{"query":{}},"state":"running","scanned":1000,"lag":3,"open_keys":2,
                "ready":1,"in_flight":1,"parked":0,"workers":1,"oldest_age_ms":61000,
                "oldest":{"position":7,"key":"a","state":"held","tries":2,"worker":"w-1"}}"#,
        )
        .unwrap();
        let shown = lines(&report).join("\n");
        for told in ["m: running", "1,000", "3 behind", "position 7", "held (w-1)"] {
            assert!(shown.contains(told), "{told}: {shown}");
        }
        let key: OpenKeyReport = serde_json::from_str(
            r#"{"position":9,"key":null,"state":"parked","tries":8,"reason":"SMTP\n451"}"#,
        )
        .unwrap();
        let shown = open_rows(&[key]).join("\n");
        assert!(shown.contains("SMTP 451") && shown.contains("9"), "{shown}");
    }
}
