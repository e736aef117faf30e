//! Formats the server's description of a sink or source.

use crate::numbers::{counted, grouped};
use crate::table::table;
use serde::Deserialize;
use serde_json::Value;

/// A sink or source as the server describes it.
#[derive(Debug, Deserialize)]
pub(super) struct ConnectorReport {
    name: String,
    #[serde(default)]
    definition: Value,
    #[serde(default)]
    defined_by: String,
    pub(super) state: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    stop_code: Option<String>,
    #[serde(default)]
    stopped_at: Option<u64>,
    pub(super) position: u64,
    #[serde(default)]
    head: u64,
    #[serde(default)]
    lag: Option<u64>,
    #[serde(default)]
    records_behind: Option<u64>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    skips: Vec<u64>,
    #[serde(default)]
    events: u64,
    #[serde(default)]
    batches: u64,
    #[serde(default)]
    restarts: u64,
    #[serde(default)]
    retries: u64,
    #[serde(default)]
    set_aside: u64,
    #[serde(default)]
    skipped: u64,
}

impl ConnectorReport {
    fn log(&self) -> &str {
        self.definition.get("log").and_then(Value::as_str).unwrap_or("main")
    }

    /// The other end: a URL, or a topic.
    fn other_end(&self) -> String {
        let text = |name: &str| self.definition.get(name).and_then(Value::as_str);
        match (text("url"), text("topic")) {
            (Some(url), _) => url.to_owned(),
            (None, Some(topic)) => format!("topic {topic}"),
            (None, None) => "-".to_owned(),
        }
    }

    fn behind(&self) -> u64 {
        self.lag.or(self.records_behind).unwrap_or(0)
    }
}

/// A table row for each.
pub(super) fn rows(reports: &[ConnectorReport]) -> Vec<String> {
    let row = |report: &ConnectorReport| {
        vec![
            report.name.clone(),
            report.state.clone(),
            report.log().to_owned(),
            report.other_end(),
            report.position.to_string(),
            report.behind().to_string(),
        ]
    };
    let heads = ["NAME", "STATE", "LOG", "OTHER END", "POSITION", "BEHIND"];
    table(&heads, reports.iter().map(row))
}

/// All about one.
pub(super) fn lines(report: &ConnectorReport) -> Vec<String> {
    let ConnectorReport { name, state, defined_by, .. } = report;
    let mut lines = vec![format!("{name}: {state} ({}, {})", report.log(), report.other_end())];
    if let Some(reason) = &report.reason {
        let at = report.stopped_at.map_or(String::new(), |at| format!(" at position {at}"));
        let code = report.stop_code.as_ref().map_or(String::new(), |code| format!("{code}{at}: "));
        lines.push(format!("  {code}{reason}"));
    }
    lines.push(format!(
        "  position {} of {}, {} behind",
        grouped(report.position),
        grouped(report.head),
        grouped(report.behind())
    ));
    let mut counts = vec![
        counted(report.events, "event", "events"),
        counted(report.batches, "batch", "batches"),
    ];
    for (count, one, many) in [
        (report.restarts, "restart", "restarts"),
        (report.retries, "retry", "retries"),
        (report.set_aside, "set aside", "set aside"),
        (report.skipped, "skipped", "skipped"),
    ] {
        if count > 0 {
            counts.push(counted(count, one, many));
        }
    }
    lines.push(format!("  since it started: {}", counts.join(", ")));
    lines.extend(report.warnings.iter().map(|warning| format!("  note: {warning}")));
    if !report.skips.is_empty() {
        let skips: Vec<String> = report.skips.iter().map(u64::to_string).collect();
        lines.push(format!("  skips: {}", skips.join(", ")));
    }
    lines.push(format!("  defined by {}: {}", word(defined_by), report.definition));
    lines
}

fn word(defined_by: &str) -> &str {
    match defined_by {
        "configuration" => "the configuration of the server",
        _ => "PUT",
    }
}
