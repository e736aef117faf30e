//! Form 1: header, metrics, percentile spreads, and two concurrency levels side by side.

use super::{Named, measured_steps, origin};
use crate::numbers::{
    NOT_AVAILABLE, QUANTILES, bytes, count, duration, elapsed, factor, optional_duration,
    optional_mean, quantile, quantile_name, share, significant,
};
use crate::page::Page;
use crate::report::view::{StepView, load};
use crate::result::Report;
use crate::table::Table;

pub(super) fn write(page: &mut Page, reports: &[Report]) {
    page.list(reports.iter().map(origin));
    let steps = measured_steps(reports);
    let several = reports.len() > 1;
    for step in &steps {
        page.heading(step.label(several));
        page.text(format!(
            "{}: {}.",
            step.view.step.settings.workload,
            load(&step.view.step.settings)
        ));
        page.table(metrics(&step.view));
        page.small_heading("Percentiles");
        page.table(percentiles(&step.view));
    }
    page.heading("Comparison");
    match (steps.first(), steps.last()) {
        (Some(low), Some(high)) if steps.len() > 1 => {
            page.table(comparison(low, high, several));
            page.text("Difference and ratio are of the second column against the first, from the raw values.");
        }
        _ => page.text("A comparison needs two steps: measure a ladder, or give two result files."),
    }
}

fn metrics(view: &StepView<'_>) -> Table {
    let counters = &view.total.counters;
    let mut table = Table::new(["metric", "value"]);
    table.row(["requests sent", &count(counters.sent)]);
    table.row(["successes", &count(counters.successes)]);
    table.row(["failures", &count(view.failures())]);
    table.row(["failures, share", &share(view.failures(), view.tried())]);
    table.row(["requests a second", &significant(view.rate_per_s())]);
    table.row(["runs", &count(view.step.runs.len() as u64)]);
    table.row(["measured time", &elapsed(view.measured_ns())]);
    table.row(["mean latency", &optional_mean(view.total.latency().mean_ns())]);
    table.row(["bytes received", &bytes(counters.bytes_received as f64)]);
    table.row(["bytes sent", &bytes(counters.bytes_sent as f64)]);
    table
}

/// Each quantile with its distance from the one before and its multiple of the median.
fn percentiles(view: &StepView<'_>) -> Table {
    let latency = view.total.latency();
    let mut table = Table::new(["percentile", "latency", "above the one before", "of the median"]);
    let median_ns = latency.printable_quantile_ns(0.5);
    let mut before: Option<u64> = None;
    let mut row = |name: String, ns: Option<u64>, text: String| {
        let above = before.zip(ns).map(|(before, ns)| ns.saturating_sub(before));
        let multiple = match (ns, median_ns) {
            (Some(ns), Some(median_ns)) => factor(ns as f64 / median_ns as f64),
            _ => factor(f64::NAN),
        };
        table.row([name, text, optional_duration(above), multiple]);
        before = ns.or(before);
    };
    row("min".to_owned(), latency.min_ns(), optional_duration(latency.min_ns()));
    for q in QUANTILES.into_iter().filter(|q| *q < 0.9999 || latency.quantile_supported(*q)) {
        row(quantile_name(q), latency.printable_quantile_ns(q), quantile(latency, q));
    }
    row("max".to_owned(), latency.max_ns(), optional_duration(latency.max_ns()));
    table
}

fn comparison(low: &Named<'_>, high: &Named<'_>, several: bool) -> Table {
    let columns = ["metric".to_owned(), low.label(several), high.label(several)];
    let mut table =
        Table::new(columns.into_iter().chain(["difference".to_owned(), "ratio".to_owned()]));
    let (low, high) = (&low.view, &high.view);
    let rates = (low.rate_per_s(), high.rate_per_s());
    table.row([
        "requests a second".to_owned(),
        significant(rates.0),
        significant(rates.1),
        signed(rates.1 - rates.0, significant),
        factor(rates.1 / rates.0),
    ]);
    let mut durations = |name: String, of: &dyn Fn(&StepView<'_>) -> Option<f64>| {
        let (a, b) = (of(low), of(high));
        let text = |ns: Option<f64>| optional_mean(ns);
        let (raw_a, raw_b) = (a.unwrap_or(f64::NAN), b.unwrap_or(f64::NAN));
        table.row([name, text(a), text(b), signed(raw_b - raw_a, duration), factor(raw_b / raw_a)]);
    };
    durations("mean latency".to_owned(), &|view| view.total.latency().mean_ns());
    for q in [0.5, 0.9, 0.95, 0.99, 0.999] {
        durations(format!("{} latency", quantile_name(q)), &|view| {
            view.total.latency().printable_quantile_ns(q).map(|ns| ns as f64)
        });
    }
    durations("max latency".to_owned(), &|view| view.total.latency().max_ns().map(|ns| ns as f64));
    let failed = |view: &StepView<'_>| view.failures() as f64 / view.tried() as f64;
    table.row([
        "failures, share".to_owned(),
        share(low.failures(), low.tried()),
        share(high.failures(), high.tried()),
        signed(failed(high) - failed(low), points),
        factor(failed(high) / failed(low)),
    ]);
    table
}

/// A difference with its sign, its size as `write` writes it.
fn signed(difference: f64, write: fn(f64) -> String) -> String {
    let size = write(difference.abs());
    match difference.partial_cmp(&0.0) {
        Some(std::cmp::Ordering::Greater) => format!("+{size}"),
        Some(std::cmp::Ordering::Less) => format!("−{size}"),
        Some(std::cmp::Ordering::Equal) => size,
        None => NOT_AVAILABLE.to_owned(),
    }
}

/// A size of a share in percentage points.
fn points(share: f64) -> String {
    format!("{} points", significant(share * 100.0))
}

#[cfg(test)]
mod tests {
    use crate::report::{form, sample};

    #[test]
    fn ratios_come_from_raw_values_not_from_cells() {
        let step = |name: &str, connections, count| {
            let endpoint = sample::endpoint("a", count, 1_000_000);
            sample::step(name, connections, vec![sample::run(1, vec![endpoint])])
        };
        // 100.6 and 104.4 a second are written 101 and 104; 104/101 would be 1.03.
        let report = sample::report("x", vec![step("c=1", 1, 1_006), step("c=2", 2, 1_044)]);
        let text = form(1, &[report], &[]).unwrap();
        let row = text.lines().rfind(|line| line.starts_with("| requests a second")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2..6], ["101", "104", "+3.80", "1.04×"]);
    }
}
