//! Micro-benchmarks as text: for terminals and as Markdown.

use super::report::{Basis, MicroBenchmark, MicroReport, Source};
use crate::numbers::{NOT_AVAILABLE, duration, significant};
use crate::page::Page;
use crate::table::{Color, Table};

type Column = (&'static str, fn(&MicroBenchmark) -> Option<String>);

/// All columns; those of which no benchmark has anything are left out.
const COLUMNS: [Column; 8] = [
    ("ops/s", |b| b.ops_per_s.map(significant)),
    ("time per op", |b| b.time_ns.map(duration)),
    ("interval", |b| {
        b.spread.map(|spread| format!("{} … {}", duration(spread.low_ns), duration(spread.high_ns)))
    }),
    ("B/op", |b| b.bytes_per_op.map(number)),
    ("allocs/op", |b| b.allocs_per_op.map(number)),
    ("MB/s", |b| b.bytes_per_s.map(|per_s| number(per_s / 1e6))),
    ("other", |b| {
        let all: Vec<String> =
            b.other.iter().map(|(unit, value)| format!("{} {unit}", number(*value))).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }),
    ("n", |b| Some(b.n.to_string())),
];

/// For a terminal.
#[must_use]
pub fn render_text(report: &MicroReport, color: Color) -> String {
    page(report).terminal(color)
}

/// As Markdown.
#[must_use]
pub fn render_markdown(report: &MicroReport) -> String {
    page(report).markdown()
}

fn page(report: &MicroReport) -> Page {
    let mut page = Page::titled("Micro-benchmarks");
    page.text(heading(report));
    page.table(table(report));
    page.list(basis(report).into_iter().chain(report.notes.iter().cloned()));
    page
}

fn heading(report: &MicroReport) -> String {
    let tool = match report.source {
        Source::GoBench => "go test -bench",
        Source::Criterion => "Criterion",
    };
    let context: Vec<String> =
        report.context.iter().map(|(key, value)| format!("{key} {value}")).collect();
    if context.is_empty() { tool.into() } else { format!("{tool} · {}", context.join(" · ")) }
}

fn table(report: &MicroReport) -> Table {
    let used: Vec<&Column> = COLUMNS
        .iter()
        .filter(|(_, cell)| report.benchmarks.iter().any(|benchmark| cell(benchmark).is_some()))
        .collect();
    let mut table = Table::new(["benchmark"].into_iter().chain(used.iter().map(|(name, _)| *name)));
    for benchmark in &report.benchmarks {
        let cells = used.iter().map(|(_, of)| of(benchmark).unwrap_or(NOT_AVAILABLE.into()));
        table.row([benchmark.full_name()].into_iter().chain(cells));
    }
    table
}

/// What the intervals are, each kind once.
fn basis(report: &MicroReport) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for benchmark in &report.benchmarks {
        let line = match benchmark.spread.map(|spread| spread.basis) {
            None => continue,
            Some(Basis::Repeats { confidence }) => {
                format!("Intervals hold the median with {:.0}% confidence, over repeats.", confidence * 100.0)
            }
            Some(Basis::Extremes) => {
                "With fewer than six repeats the interval is from the fastest to the slowest; use -count 10.".into()
            }
            Some(Basis::SamplesOfOneRun { confidence }) => format!(
                "Intervals are Criterion's own ({:.0}%), over samples of a single run: runs differ by more.",
                confidence * 100.0
            ),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A figure of unknown size: whole numbers as they are.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1_000.0 {
        return format!("{value:.0}");
    }
    significant(value)
}
