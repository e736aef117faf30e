//! Form 3: writes and reads, scaling by connections, changes against a baseline, run history.

use super::super::measured::{
    AGAINST_MEDIAN, Column, ENDPOINT, FAILURES, MAX, Measured, P50, P95, P99, RATE, Row, STEP,
    figure, table, words,
};
use super::metric::pace;
use super::{Input, Part};
use crate::numbers::{change, count, percent, rate, significant, timestamp};
use crate::result::EndpointResult;
use crate::stats::{mean, median, stdev};

const REQUESTS: [Column<Measured>; 9] = [
    STEP,
    ENDPOINT,
    figure("requests", |row| count(row.result.counters.sent)),
    RATE,
    P50,
    P95,
    P99,
    MAX,
    FAILURES,
];

/// What a request does, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Write,
    Read,
    Unknown,
}

/// By the method a name begins with, as plain requests are named: RFC 9110's safe methods read.
fn effect(name: &str) -> Effect {
    match name.split_whitespace().next().unwrap_or_default() {
        "POST" | "PUT" | "PATCH" | "DELETE" => Effect::Write,
        "GET" | "HEAD" | "OPTIONS" => Effect::Read,
        _ => Effect::Unknown,
    }
}

pub(super) fn writes_and_reads(input: &Input<'_>) -> Vec<Part> {
    let mut rows = Vec::new();
    for step in &input.steps {
        let endpoints = step.endpoints();
        for (wanted, sum) in [
            (Effect::Write, Some("all writes")),
            (Effect::Read, Some("all reads")),
            (Effect::Unknown, None),
        ] {
            let of_effect = || endpoints.iter().filter(|e| effect(&e.result.name) == wanted);
            rows.extend(of_effect().cloned());
            if let Some(name) = sum.filter(|_| of_effect().count() > 1) {
                let mut all = EndpointResult::new(name);
                of_effect().for_each(|endpoint| all.merge(&endpoint.result));
                rows.push(step.measured.endpoint(all));
            }
        }
    }
    vec![Part::of(table(&REQUESTS, &rows))]
}

const SCALING: [Column<Measured>; 5] = [
    words("connections", |row| count(row.in_flight)),
    RATE,
    figure("per connection", |row| significant(per_connection(row))),
    figure("against the first", |row| pace(row.rate_per_s, row.first().rate_per_s)),
    figure("efficiency", |row| percent(per_connection(row) / per_connection(row.first()))),
];

fn per_connection(of: &Measured) -> f64 {
    of.rate_per_s / of.in_flight as f64
}

/// For each report whose steps differ in connections: how throughput grows with them.
pub(super) fn scaling(input: &Input<'_>) -> Vec<Part> {
    let parts = input.names.iter().filter_map(|name| {
        let of_report = |step: &Measured| step.report == *name && step.offered_per_s.is_none();
        let mut rungs: Vec<Measured> = input.measured().into_iter().filter(of_report).collect();
        rungs.sort_by_key(|step| step.in_flight);
        let distinct = rungs.windows(2).all(|pair| pair[0].in_flight < pair[1].in_flight);
        if rungs.len() < 2 || !distinct {
            return None;
        }
        let part = Part::of(table(&SCALING, &rungs));
        Some(if input.several() { part.small_headed(name) } else { part })
    });
    parts.collect()
}

const CHANGES: [Column<Measured>; 8] = [
    STEP.headed("case"),
    RATE,
    figure("change", |row| against_first(row, |step| Some(step.rate_per_s))),
    P50,
    figure("change", |row| against_first(row, |step| step.quantile_ns(0.5))),
    P99,
    figure("change", |row| against_first(row, |step| step.quantile_ns(0.99))),
    FAILURES,
];

fn against_first(row: &Row<'_, Measured>, value: fn(&Measured) -> Option<f64>) -> String {
    if row.rank() == 1 {
        return "baseline".to_owned();
    }
    change(value(row).unwrap_or(f64::NAN) / value(row.first()).unwrap_or(f64::NAN))
}

/// All steps against the first.
pub(super) fn changes(input: &Input<'_>) -> Vec<Part> {
    let steps = input.measured();
    if steps.len() < 2 {
        return Vec::new();
    }
    let after = format!("The baseline is the first: {}.", steps[0].step);
    vec![Part { after, ..Part::of(table(&CHANGES, &steps)) }]
}

const HISTORY: [Column<Measured>; 8] = [
    words("began", |row| timestamp(row.started_unix_us)),
    words("result file", |row| row.report.clone()),
    figure("run", |row| row.repeat.to_string()),
    RATE,
    AGAINST_MEDIAN,
    P50,
    P99,
    FAILURES,
];

fn rates(runs: &[Measured]) -> Vec<f64> {
    runs.iter().map(|run| run.rate_per_s).collect()
}

/// Runs of the same load (by name, target and hash of what was sent), over all reports, in order of
/// time.
pub(super) fn history(input: &Input<'_>) -> Vec<Part> {
    let mut groups: Vec<([&str; 3], Vec<Measured>)> = Vec::new();
    for step in &input.steps {
        let settings = &step.view.step.settings;
        let key = [step.view.step.name.as_str(), &settings.workload_hash, &settings.url];
        let runs = step.view.step.runs.iter().map(|run| step.measured.run(run));
        match groups.iter_mut().find(|(there, _)| *there == key) {
            Some((_, group)) => group.extend(runs),
            None => groups.push((key, runs.collect())),
        }
    }
    groups.retain(|(_, runs)| runs.len() > 1);
    let parts = groups.into_iter().map(|([name, ..], mut runs)| {
        runs.sort_by_key(|run| run.started_unix_us);
        Part { after: variance(&rates(&runs)), ..Part::of(table(&HISTORY, &runs)) }
            .small_headed(name)
    });
    parts.collect()
}

/// How much the runs differ, in a sentence.
fn variance(rates: &[f64]) -> String {
    let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let (middle, mean, deviation) = (known(median(rates)), known(mean(rates)), known(stdev(rates)));
    let highest = rates.iter().copied().fold(f64::NAN, f64::max);
    format!(
        "Median {}, mean {}, lowest {}, highest {}; standard deviation {}, coefficient of variation {}. The best run alone would differ from the median by {}.",
        rate(middle),
        rate(mean),
        rate(rates.iter().copied().fold(f64::NAN, f64::min)),
        rate(highest),
        rate(deviation),
        percent(deviation / mean),
        change(highest / middle)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_same_load_in_several_files_is_one_history() {
        let mut later = sample::closed();
        later.title = "later".into();
        later.steps[0].runs[0].started_unix_us += 1_000_000_000;
        let reports = [later, sample::closed()];
        let text = crate::report::form(3, &reports, &[]).unwrap();
        let history = text.split("## Run history").nth(1).unwrap();
        let rows: Vec<&str> = history.lines().filter(|line| line.starts_with("| 2026")).collect();
        assert_eq!(rows.len(), 2, "{history}");
        assert!(rows[1].contains("later"), "in order of time: {history}");
        let mut other = sample::closed();
        other.steps[0].settings.workload_hash = "another".into();
        let text = crate::report::form(3, &[sample::closed(), other], &[]).unwrap();
        assert!(text.contains("Not shown: it needs a step measured more than once"));
    }

    #[test]
    fn the_variance_is_that_of_the_runs() {
        // Mean 1044, deviation 90.7 by hand.
        let text = variance(&[1_000.0, 1_040.0, 970.0, 1_200.0, 1_010.0]);
        assert!(
            text.contains("Median 1,010/s, mean 1,044/s, lowest 970/s, highest 1,200/s"),
            "{text}"
        );
        assert!(
            text.contains("standard deviation 90.7/s, coefficient of variation 8.7%"),
            "{text}"
        );
        assert!(text.ends_with("by +19%."), "{text}");
    }
}
