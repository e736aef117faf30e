//! The figures of a step as they are printed, in the result file: so that nobody has to decode
//! histograms to know p99. Reading a result file ignores them.

use super::{
    EndpointResult, Environment, Finding, Report, Run, SearchOutcome, Step, ThresholdOutcome,
    Verdict,
};
use crate::numbers::QUANTILES;
use crate::numbers::quantile_name;
use crate::plan::Settings;
use serde::Serialize;
use std::collections::BTreeMap;

/// A report with its summaries.
#[derive(Serialize)]
pub(super) struct SummarizedReport<'a> {
    format: &'a str,
    tool: &'a str,
    title: &'a str,
    started_unix_us: u64,
    command: &'a [String],
    environment: &'a Environment,
    steps: Vec<SummarizedStep<'a>>,
    findings: &'a [Finding],
    thresholds: &'a [ThresholdOutcome],
    verdict: &'a Option<Verdict>,
    search: &'a Option<SearchOutcome>,
}

#[derive(Serialize)]
struct SummarizedStep<'a> {
    name: &'a str,
    summary: Option<Summary>,
    settings: &'a Settings,
    runs: &'a [Run],
}

/// Figures over all runs of a step, as every report gives them.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    total: Figures,
    /// Where the step has several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    endpoints: BTreeMap<String, Figures>,
}

/// Figures of all endpoints together, or of one.
#[derive(Serialize)]
struct Figures {
    throughput_per_s: f64,
    sent: u64,
    successes: u64,
    failures: u64,
    /// Of successes, in open loop from when they were due; `null` where too few were measured.
    mean_ns: Option<f64>,
    max_ns: Option<u64>,
    #[serde(flatten)]
    quantiles_ns: BTreeMap<String, Option<u64>>,
}

impl<'a> SummarizedReport<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        SummarizedReport {
            format: &report.format,
            tool: &report.tool,
            title: &report.title,
            started_unix_us: report.started_unix_us,
            command: &report.command,
            environment: &report.environment,
            steps: report.steps.iter().map(SummarizedStep::of).collect(),
            findings: &report.findings,
            thresholds: &report.thresholds,
            verdict: &report.verdict,
            search: &report.search,
        }
    }
}

impl<'a> SummarizedStep<'a> {
    fn of(step: &'a Step) -> Self {
        SummarizedStep {
            name: &step.name,
            summary: summary(step),
            settings: &step.settings,
            runs: &step.runs,
        }
    }
}

fn summary(step: &Step) -> Option<Summary> {
    let total = figures(&step.total()?, step.throughput_per_s());
    let all = step.merged_endpoints();
    let several = all.iter().filter(|_| all.len() > 1);
    let endpoints = several.map(|endpoint| {
        let throughput_per_s = step.endpoint_throughput_per_s(&endpoint.name);
        (endpoint.name.clone(), figures(endpoint, throughput_per_s))
    });
    Some(Summary { total, endpoints: endpoints.collect() })
}

fn figures(of: &EndpointResult, throughput_per_s: f64) -> Figures {
    let latency = of.latency();
    let quantiles =
        QUANTILES.map(|q| (format!("{}_ns", quantile_name(q)), latency.printable_quantile_ns(q)));
    Figures {
        throughput_per_s,
        sent: of.counters.sent,
        successes: of.counters.successes,
        failures: of.counters.failures(),
        mean_ns: latency.mean_ns(),
        max_ns: latency.max_ns(),
        quantiles_ns: quantiles.into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::report::sample;
    use crate::result::Report;

    #[test]
    fn the_result_file_has_the_figures_that_reports_print() {
        let report = sample::two_endpoints();
        let text = report.to_json();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let step = &report.steps[0];
        let summary = &json["steps"][0]["summary"];
        let total = step.total().unwrap();
        assert_eq!(summary["throughput_per_s"].as_f64(), Some(step.throughput_per_s()));
        assert_eq!(summary["p50_ns"].as_u64(), total.latency().printable_quantile_ns(0.5));
        assert_eq!(summary["sent"].as_u64(), Some(total.counters.sent));
        let name = &step.merged_endpoints()[0].name;
        assert!(summary["endpoints"][name]["p50_ns"].is_u64(), "{summary}");
        assert!(summary["p99.99_ns"].is_null() && summary.get("p99.99_ns").is_some());
        assert_eq!(Report::from_json(&text).unwrap().to_json(), text);
    }
}
