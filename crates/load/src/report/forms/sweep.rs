//! Form 3: writes and reads, scaling by connections, categorical sweeps, run history.

use super::{Named, measured_steps, origin, pace};
use crate::numbers::{
    change, count, optional_duration, percent, rate, short_quantile, significant, timestamp,
};
use crate::page::Page;
use crate::report::tables::failures;
use crate::report::view::{StepView, extremes, median};
use crate::result::{EndpointResult, Report, Run};
use crate::table::Table;

pub(super) fn write(page: &mut Page, reports: &[Report]) {
    page.list(reports.iter().map(origin));
    let steps = measured_steps(reports);
    let several = reports.len() > 1;
    phases(page, &steps, several);
    scaling(page, &steps, reports);
    sweep(page, &steps, several);
    history(page, &steps);
}

/// What a request does, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Read,
    Other,
}

/// By the method a name begins with, as plain requests are named: RFC 9110's safe methods read.
fn kind(name: &str) -> Kind {
    match name.split_whitespace().next().unwrap_or_default() {
        "POST" | "PUT" | "PATCH" | "DELETE" => Kind::Write,
        "GET" | "HEAD" | "OPTIONS" => Kind::Read,
        _ => Kind::Other,
    }
}

fn phases(page: &mut Page, steps: &[Named<'_>], several: bool) {
    page.heading("Writes and reads");
    let mut table = Table::new([
        "step", "phase", "requests", "req/s", "median", "p95", "p99", "max", "failures",
    ])
    .words(1);
    for step in steps {
        let endpoints = step.view.step.merged_endpoints();
        for (kind_of, name) in [(Kind::Write, "all writes"), (Kind::Read, "all reads")] {
            let of_kind = || endpoints.iter().filter(|e| kind(&e.name) == kind_of);
            for endpoint in of_kind() {
                phase_row(&mut table, step, several, &endpoint.name, endpoint);
            }
            if of_kind().count() > 1 {
                let mut all = EndpointResult::new(name);
                of_kind().for_each(|endpoint| all.merge(endpoint));
                phase_row(&mut table, step, several, name, &all);
            }
        }
        for endpoint in endpoints.iter().filter(|e| kind(&e.name) == Kind::Other) {
            phase_row(&mut table, step, several, &endpoint.name, endpoint);
        }
    }
    page.table(table);
    page.text("Writes are POST, PUT, PATCH and DELETE, reads are GET, HEAD and OPTIONS.");
}

fn phase_row(
    table: &mut Table,
    step: &Named<'_>,
    several: bool,
    name: &str,
    result: &EndpointResult,
) {
    let latency = result.latency();
    let counters = &result.counters;
    table.row([
        step.label(several),
        name.to_owned(),
        count(counters.sent),
        significant(counters.throughput_per_s(step.view.measured_ns())),
        short_quantile(latency, 0.5),
        short_quantile(latency, 0.95),
        short_quantile(latency, 0.99),
        optional_duration(latency.max_ns()),
        failures(counters.failures(), counters.sent.max(counters.failures())),
    ]);
}

/// For each report whose steps differ in connections: how throughput grows with them.
fn scaling(page: &mut Page, steps: &[Named<'_>], reports: &[Report]) {
    page.heading("Throughput by connections");
    let mut found = false;
    for report in super::names(reports) {
        let mut rungs: Vec<&Named<'_>> =
            steps.iter().filter(|step| step.report == report && !step.view.is_open()).collect();
        rungs.sort_by_key(|step| step.view.in_flight());
        let distinct =
            rungs.windows(2).all(|pair| pair[0].view.in_flight() < pair[1].view.in_flight());
        if rungs.len() < 2 || !distinct {
            continue;
        }
        if reports.len() > 1 {
            page.small_heading(report);
        }
        found = true;
        page.table(scaling_table(&rungs));
    }
    if found {
        page.text("Efficiency is the rate per connection against that of the first row: 100% is linear scaling.");
    } else {
        page.text("Not shown: it needs steps in closed loop with different numbers of connections (wellspring bench ladder).");
    }
}

fn scaling_table(rungs: &[&Named<'_>]) -> Table {
    let mut table =
        Table::new(["connections", "req/s", "per connection", "against the first", "efficiency"]);
    let each = |view: &StepView<'_>| view.rate_per_s() / view.in_flight() as f64;
    let first = &rungs[0].view;
    for step in rungs {
        let view = &step.view;
        table.row([
            count(view.in_flight()),
            significant(view.rate_per_s()),
            significant(each(view)),
            pace(view.rate_per_s(), first.rate_per_s()),
            percent(each(view) / each(first)),
        ]);
    }
    table
}

/// All steps against the first.
fn sweep(page: &mut Page, steps: &[Named<'_>], several: bool) {
    page.heading("Change against the baseline");
    let Some((baseline, others)) = steps.split_first().filter(|(_, others)| !others.is_empty())
    else {
        page.text("Not shown: it needs two steps or more, of one result file or of several.");
        return;
    };
    let mut table =
        Table::new(["case", "req/s", "change", "median", "change", "p99", "change", "failures"]);
    for step in std::iter::once(baseline).chain(others) {
        let raw = |view: &StepView<'_>, q| {
            view.total.latency().printable_quantile_ns(q).map_or(f64::NAN, |ns| ns as f64)
        };
        let (view, base) = (&step.view, &baseline.view);
        let against = |new: f64, old: f64| {
            if std::ptr::eq(step, baseline) { "baseline".to_owned() } else { change(new / old) }
        };
        table.row([
            step.label(several),
            significant(view.rate_per_s()),
            against(view.rate_per_s(), base.rate_per_s()),
            short_quantile(view.total.latency(), 0.5),
            against(raw(view, 0.5), raw(base, 0.5)),
            short_quantile(view.total.latency(), 0.99),
            against(raw(view, 0.99), raw(base, 0.99)),
            failures(view.failures(), view.tried()),
        ]);
    }
    page.table(table);
    page.text(format!("The baseline is the first: {}.", baseline.label(several)));
}

/// A run and where it comes from.
type Told<'a> = (&'a str, &'a Run);

/// Runs of the same load (by name, target and hash of what was sent), over all reports, in order of
/// time.
fn history(page: &mut Page, steps: &[Named<'_>]) {
    page.heading("Run history");
    let key = |step: &Named<'_>| {
        let settings = &step.view.step.settings;
        (step.view.step.name.clone(), format!("{} {}", settings.workload_hash, settings.url))
    };
    let mut groups: Vec<((String, String), Vec<Told<'_>>)> = Vec::new();
    for step in steps {
        let runs = step.view.step.runs.iter().map(|run| (step.report.as_str(), run));
        match groups.iter_mut().find(|(there, _)| *there == key(step)) {
            Some((_, told)) => told.extend(runs),
            None => groups.push((key(step), runs.collect())),
        }
    }
    groups.retain(|(_, runs)| runs.len() > 1);
    if groups.is_empty() {
        page.text("Not shown: it needs a step measured more than once (--repeat, or several result files of the same load).");
        return;
    }
    for ((name, _), mut runs) in groups {
        runs.sort_by_key(|(_, run)| run.started_unix_us);
        page.small_heading(name);
        page.table(history_table(&runs));
        page.text(variance(&runs));
    }
}

fn history_table(runs: &[Told<'_>]) -> Table {
    let rates: Vec<f64> = runs.iter().map(|(_, run)| run.throughput_per_s()).collect();
    let middle = median(&rates).unwrap_or(f64::NAN);
    let mut table = Table::new([
        "began",
        "result file",
        "run",
        "req/s",
        "against median",
        "median",
        "p99",
        "failures",
    ])
    .words(1);
    for (report, run) in runs {
        let total = run.total().unwrap_or_else(|| EndpointResult::new("total"));
        table.row([
            timestamp(run.started_unix_us),
            (*report).to_owned(),
            run.repeat.to_string(),
            significant(run.throughput_per_s()),
            change(run.throughput_per_s() / middle),
            short_quantile(total.latency(), 0.5),
            short_quantile(total.latency(), 0.99),
            failures(run.failures(), total.counters.sent.max(run.failures())),
        ]);
    }
    table
}

/// How much the runs differ, in a sentence.
fn variance(runs: &[Told<'_>]) -> String {
    let rates: Vec<f64> = runs.iter().map(|(_, run)| run.throughput_per_s()).collect();
    let number = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / number;
    // The sample's standard deviation, with n − 1.
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let deviation = (squares / (number - 1.0)).sqrt();
    let (lowest, highest) = extremes(&rates).unwrap_or((f64::NAN, f64::NAN));
    let middle = median(&rates).unwrap_or(f64::NAN);
    format!(
        "Median {}, mean {}, lowest {}, highest {}; standard deviation {}, coefficient of variation {}. The best run alone would differ from the median by {}.",
        rate(middle),
        rate(mean),
        rate(lowest),
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
        let report = sample::repeated();
        let runs: Vec<Told<'_>> = report.steps[0].runs.iter().map(|run| ("", run)).collect();
        // 1000, 1040, 970, 1200, 1010: mean 1044, deviation 90.7 by hand.
        let text = variance(&runs);
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
