//! What a row of a table is about, whatever the table: a step, an endpoint of it, or one run. And
//! the columns such rows have.

use super::tables;
use super::view::StepView;
use crate::numbers::{change, optional_duration, short_quantile, significant};
use crate::plan::Load;
use crate::result::{EndpointResult, Run};
use crate::stats;
use crate::table::{Align, Table};

/// Something measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The report it is in, told apart from others.
    pub(crate) report: String,
    /// The step, with its report's name where there are several reports.
    pub(crate) step: String,
    /// Counters and latencies: of one endpoint, or of all in one.
    pub(crate) result: EndpointResult,
    /// Successes a second; of a step the mean of its runs (decision 0038).
    pub(crate) rate_per_s: f64,
    /// Requests that ended badly or not at all.
    pub(crate) failures: u64,
    /// What failures are a share of.
    pub(crate) tried: u64,
    /// Measured time.
    pub(crate) measured_ns: u64,
    /// How many runs it is of.
    pub(crate) runs: u64,
    /// Number of the (first) run within its step.
    pub(crate) repeat: u32,
    /// Its place among all runs of the report.
    pub(crate) order: u32,
    /// When it began, microseconds since 1970 UTC.
    pub(crate) started_unix_us: u64,
    /// Connections times streams.
    pub(crate) in_flight: u64,
    /// In open loop, the rate asked for.
    pub(crate) offered_per_s: Option<f64>,
}

impl Measured {
    /// A whole step. `label` names it among all steps shown.
    pub(crate) fn step(view: &StepView<'_>, report: &str, label: String) -> Self {
        let first = view.step.runs.first();
        Measured {
            report: report.to_owned(),
            step: label,
            result: view.total.clone(),
            rate_per_s: view.rate_per_s(),
            failures: view.failures(),
            tried: view.tried(),
            measured_ns: view.measured_ns(),
            runs: view.step.runs.len() as u64,
            repeat: first.map_or(0, |run| run.repeat),
            order: first.map_or(0, |run| run.order),
            started_unix_us: first.map_or(0, |run| run.started_unix_us),
            in_flight: view.in_flight(),
            offered_per_s: match view.step.settings.load {
                Load::Open { rate_per_s, .. } => Some(rate_per_s),
                Load::Closed { .. } => None,
            },
        }
    }

    /// An endpoint of this step, or several of them in one.
    pub(crate) fn endpoint(&self, result: EndpointResult) -> Self {
        let failures = result.counters.failures();
        Measured {
            rate_per_s: result.counters.throughput_per_s(self.measured_ns),
            failures,
            tried: result.counters.sent.max(failures),
            result,
            ..self.clone()
        }
    }

    /// The endpoints of this step, each with its throughput over all runs.
    pub(crate) fn endpoints(&self, view: &StepView<'_>) -> Vec<Self> {
        let each = view.step.merged_endpoints().into_iter().map(|result| Measured {
            rate_per_s: view.step.endpoint_throughput_per_s(&result.name),
            ..self.endpoint(result)
        });
        each.collect()
    }

    /// One run of this step.
    pub(crate) fn run(&self, run: &Run) -> Self {
        let result = run.total().unwrap_or_else(|| EndpointResult::new("total"));
        Measured {
            rate_per_s: run.throughput_per_s(),
            failures: run.failures(),
            tried: result.counters.sent.max(run.failures()),
            measured_ns: run.measured_ns,
            runs: 1,
            repeat: run.repeat,
            order: run.order,
            started_unix_us: run.started_unix_us,
            result,
            ..self.clone()
        }
    }

    /// A latency quantile; `None` where too little was measured.
    pub(crate) fn quantile_ns(&self, q: f64) -> Option<f64> {
        self.result.latency().printable_quantile_ns(q).map(|ns| ns as f64)
    }

    /// What it is in a ladder: so many users, or in open loop such a rate.
    pub(crate) fn rung(&self) -> f64 {
        self.offered_per_s.unwrap_or(self.in_flight as f64)
    }
}

/// A row among the rows of its table.
pub(crate) struct Row<'a, T> {
    all: &'a [T],
    at: usize,
}

impl<T> Row<'_, T> {
    /// The table's first row.
    pub(crate) fn first(&self) -> &T {
        &self.all[0]
    }

    /// Its place, counted from 1.
    pub(crate) fn rank(&self) -> usize {
        self.at + 1
    }

    /// All rows.
    pub(crate) fn all(&self) -> &[T] {
        self.all
    }
}

impl<T> std::ops::Deref for Row<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.all[self.at]
    }
}

/// A column: its heading, how its cells are set, and how a cell is derived from what was measured.
#[derive(Clone, Copy)]
pub(crate) struct Column<T> {
    heading: &'static str,
    align: Align,
    cell: fn(&Row<'_, T>) -> String,
}

/// A column of figures.
pub(crate) const fn figure<T>(heading: &'static str, cell: fn(&Row<'_, T>) -> String) -> Column<T> {
    Column { heading, align: Align::Right, cell }
}

/// A column of words.
pub(crate) const fn words<T>(heading: &'static str, cell: fn(&Row<'_, T>) -> String) -> Column<T> {
    Column { heading, align: Align::Left, cell }
}

impl<T> Column<T> {
    /// The same figure under another heading.
    pub(crate) const fn headed(self, heading: &'static str) -> Self {
        Column { heading, ..self }
    }

    /// The heading.
    pub(crate) fn heading(&self) -> &'static str {
        self.heading
    }

    /// The heading, after the name of a group of columns.
    pub(crate) fn heading_of(&self, group: &str) -> String {
        format!("{group}: {}", self.heading)
    }

    /// The cell of a row that stands alone.
    pub(crate) fn cell(&self, row: &T) -> String {
        (self.cell)(&Row { all: std::slice::from_ref(row), at: 0 })
    }
}

/// A row for each of `rows`.
pub(crate) fn table<T>(columns: &[Column<T>], rows: &[T]) -> Table {
    let mut table = Table::new(columns.iter().map(|column| column.heading));
    for (at, column) in columns.iter().enumerate() {
        table.columns[at].1 = if at == 0 { Align::Left } else { column.align };
    }
    for at in 0..rows.len() {
        table.row(columns.iter().map(|column| (column.cell)(&Row { all: rows, at })));
    }
    table
}

/// A card of one thing: a row for each column.
pub(crate) fn card<T>(heading: &str, columns: &[Column<T>], of: &T) -> Table {
    let mut table = Table::new([heading, if heading.is_empty() { "figure" } else { "value" }]);
    for column in columns {
        table.row([column.heading.to_owned(), column.cell(of)]);
    }
    table
}

pub(crate) const STEP: Column<Measured> = words("step", |row| row.step.clone());
pub(crate) const ENDPOINT: Column<Measured> = words("endpoint", |row| row.result.name.clone());
pub(crate) const RATE: Column<Measured> = figure("req/s", |row| significant(row.rate_per_s));
pub(crate) const P50: Column<Measured> =
    figure("p50", |row| short_quantile(row.result.latency(), 0.5));
pub(crate) const P95: Column<Measured> =
    figure("p95", |row| short_quantile(row.result.latency(), 0.95));
pub(crate) const P99: Column<Measured> =
    figure("p99", |row| short_quantile(row.result.latency(), 0.99));
pub(crate) const P999: Column<Measured> =
    figure("p99.9", |row| short_quantile(row.result.latency(), 0.999));
pub(crate) const MAX: Column<Measured> =
    figure("max", |row| optional_duration(row.result.latency().max_ns()));
pub(crate) const FAILURES: Column<Measured> =
    figure("failures", |row| tables::failures(row.failures, row.tried));
/// Of the runs of a step, their rate against its throughput: the mean of its runs.
pub(crate) const AGAINST_MEAN: Column<Measured> = figure("against mean", |row| {
    let rates: Vec<f64> = row.all().iter().map(|run| run.rate_per_s).collect();
    change(row.rate_per_s / stats::mean_of_runs(&rates).unwrap_or(f64::NAN))
});
/// Of the rows of a table, their rate against the median of all.
pub(crate) const AGAINST_MEDIAN: Column<Measured> = figure("against median", |row| {
    let rates: Vec<f64> = row.all().iter().map(|run| run.rate_per_s).collect();
    change(row.rate_per_s / stats::median(&rates).unwrap_or(f64::NAN))
});
