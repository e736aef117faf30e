//! A row for each step, endpoint and repeat, for spreadsheets and scripts.
//!
//! RFC 4180: a header line, comma between fields, CRLF after each line, fields
//! with a comma, quote or line break quoted. Numbers are plain and raw: nothing
//! is grouped or rounded but times in seconds. What is not known or not
//! supported by enough values is empty.

use super::view;
use crate::histogram::Histogram;
use crate::numbers::timestamp;
use crate::plan::{Arrivals, Load, Protocol};
use crate::result::{EndpointResult, Finish, Report, Run, Step};

/// The header, in order. What the columns mean is in `docs/bench/result.md`.
const COLUMNS: [&str; 48] = [
    "title",
    "step",
    "endpoint",
    "repeat",
    "order",
    "started_utc",
    "measured_s",
    "finish",
    "loop",
    "offered_rate_per_s",
    "connections",
    "streams",
    "workers",
    "protocol",
    "sent",
    "successes",
    "failures",
    "run_unanswered",
    "rate_per_s",
    "statuses",
    "errors",
    "failed_checks",
    "connections_opened",
    "bytes_sent",
    "bytes_received",
    "latency_of",
    "latency_count",
    "latency_mean_ns",
    "latency_stdev_ns",
    "latency_min_ns",
    "latency_p50_ns",
    "latency_p75_ns",
    "latency_p90_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "latency_max_ns",
    "service_p50_ns",
    "service_p99_ns",
    "service_max_ns",
    "lateness_p50_ns",
    "lateness_p99_ns",
    "lateness_max_ns",
    "failed_service_p50_ns",
    "url",
    "workload",
    "step_throughput_per_s",
    "verdict",
];

/// The report as CSV. The verdict is the last column of every row.
#[must_use]
pub fn csv(report: &Report) -> String {
    let mut out = COLUMNS.join(",");
    out.push_str("\r\n");
    for step in &report.steps {
        for run in &step.runs {
            for endpoint in &run.endpoints {
                let row: Vec<String> =
                    row(report, step, run, endpoint).iter().map(|cell| field(cell)).collect();
                out.push_str(&row.join(","));
                out.push_str("\r\n");
            }
        }
    }
    out
}

fn row(report: &Report, step: &Step, run: &Run, endpoint: &EndpointResult) -> Vec<String> {
    let mut cells = vec![report.title.clone(), step.name.clone(), endpoint.name.clone()];
    cells.extend(about_run(run));
    cells.extend(about_load(step));
    cells.extend(about_counters(run, endpoint));
    cells.extend(about_latency(endpoint));
    cells.extend([
        step.settings.url.clone(),
        step.settings.workload.clone(),
        format!("{:.3}", step.throughput_per_s()),
        view::verdict(report.verdict.as_ref()),
    ]);
    cells
}

fn about_run(run: &Run) -> [String; 5] {
    let finish = match run.finish {
        Finish::Time => "time",
        Finish::Count => "count",
        Finish::Interrupted => "interrupted",
        Finish::Aborted(_) => "aborted",
    };
    [
        run.repeat.to_string(),
        run.order.to_string(),
        timestamp(run.started_unix_us),
        format!("{:.6}", run.measured_ns as f64 / 1e9),
        finish.to_owned(),
    ]
}

fn about_load(step: &Step) -> [String; 6] {
    let settings = &step.settings;
    let (kind, rate) = match settings.load {
        Load::Closed { .. } => ("closed", String::new()),
        Load::Open { rate_per_s, arrivals: Arrivals::Constant } => {
            ("open constant", rate_per_s.to_string())
        }
        Load::Open { rate_per_s, arrivals: Arrivals::Poisson } => {
            ("open poisson", rate_per_s.to_string())
        }
    };
    let protocol = match settings.protocol {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
    };
    [
        kind.to_owned(),
        rate,
        settings.connections.to_string(),
        settings.streams.to_string(),
        settings.workers.to_string(),
        protocol.to_owned(),
    ]
}

fn about_counters(run: &Run, endpoint: &EndpointResult) -> [String; 11] {
    let counters = &endpoint.counters;
    let rate = counters.throughput_per_s(run.measured_ns);
    let errors = counters.errors.iter().map(|(kind, n)| format!("{}={n}", kind.label()));
    [
        counters.sent.to_string(),
        counters.successes.to_string(),
        counters.failures().to_string(),
        run.unanswered.to_string(),
        format!("{rate:.3}"),
        joined(counters.statuses.iter().map(|(status, n)| format!("{status}={n}"))),
        joined(errors),
        joined(counters.failed_checks.iter().map(|(text, n)| format!("{text}={n}"))),
        counters.connections_opened.to_string(),
        counters.bytes_sent.to_string(),
        counters.bytes_received.to_string(),
    ]
}

fn about_latency(endpoint: &EndpointResult) -> Vec<String> {
    let latency = endpoint.latency();
    let of = if endpoint.response.is_some() { "response" } else { "service" };
    let mut cells = vec![of.to_owned(), latency.count().to_string()];
    cells.push(latency.mean_ns().map_or_else(String::new, |ns| format!("{ns:.1}")));
    cells.push(latency.stdev_ns().map_or_else(String::new, |ns| format!("{ns:.1}")));
    cells.push(optional(latency.min_ns()));
    cells.extend([0.5, 0.75, 0.9, 0.95, 0.99, 0.999].map(|q| quantile(Some(latency), q)));
    cells.push(optional(latency.max_ns()));
    for histogram in [Some(&endpoint.service), endpoint.lateness.as_ref()] {
        cells.push(quantile(histogram, 0.5));
        cells.push(quantile(histogram, 0.99));
        cells.push(optional(histogram.and_then(Histogram::max_ns)));
    }
    cells.push(quantile(Some(&endpoint.failed_service), 0.5));
    cells
}

fn quantile(histogram: Option<&Histogram>, q: f64) -> String {
    optional(histogram.and_then(|histogram| histogram.printable_quantile_ns(q)))
}

fn optional(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

/// A field as RFC 4180 wants it.
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, assert_golden};

    /// The fields of every record, read by RFC 4180's rules.
    fn read(text: &str) -> Vec<Vec<String>> {
        let mut records = vec![vec![String::new()]];
        let mut quoted = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let record = records.last_mut().unwrap();
            match (c, quoted) {
                ('"', true) if chars.peek() == Some(&'"') => {
                    chars.next();
                    record.last_mut().unwrap().push('"');
                }
                ('"', _) => quoted = !quoted,
                (',', false) => record.push(String::new()),
                ('\r', false) => {
                    assert_eq!(chars.next(), Some('\n'));
                    records.push(vec![String::new()]);
                }
                (c, _) => record.last_mut().unwrap().push(c),
            }
        }
        assert_eq!(records.pop(), Some(vec![String::new()]), "ends with CRLF");
        records
    }

    #[test]
    fn rows_of_open_failing_and_two_endpoints() {
        assert_golden(&[
            ("open.csv", csv(&sample::open())),
            ("failing.csv", csv(&sample::failing())),
            ("two_endpoints.csv", csv(&sample::two_endpoints())),
        ]);
    }

    #[test]
    fn every_row_has_every_column_whatever_the_names() {
        for report in [sample::hostile(), sample::repeated(), sample::ladder(), sample::failing()] {
            let records = read(&csv(&report));
            let runs: usize =
                report.steps.iter().flat_map(|s| &s.runs).map(|run| run.endpoints.len()).sum();
            assert_eq!(records.len(), runs + 1);
            assert!(records.iter().all(|record| record.len() == COLUMNS.len()));
        }
        let report = sample::hostile();
        assert_eq!(read(&csv(&report))[1][2], report.steps[0].runs[0].endpoints[0].name);
    }
}
