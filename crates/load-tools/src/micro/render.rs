//! Micro-benchmarks as text: for terminals and as Markdown.

use super::report::{Basis, MicroBenchmark, MicroReport, Source};
use std::fmt::Write as _;
use wellspring_load::compare::Color;
use wellspring_load::compare::quantity::{NOTHING, clean, duration, grouped, rate, three_digits};
use wellspring_load::compare::table::{Align, Cell, Table, escaped};

type Column = (&'static str, fn(&MicroBenchmark) -> Option<String>);

/// All columns; those of which no benchmark has anything are left out.
const COLUMNS: [Column; 8] = [
    ("ops/s", |b| b.ops_per_s.map(rate)),
    ("time per op", |b| b.time_ns.map(duration)),
    ("interval", |b| {
        b.spread.map(|spread| format!("{} … {}", duration(spread.low_ns), duration(spread.high_ns)))
    }),
    ("B/op", |b| b.bytes_per_op.map(grouped)),
    ("allocs/op", |b| b.allocs_per_op.map(grouped)),
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
    let mut text = format!("{}\n\n{}", clean(&heading(report)), table(report).text(color));
    let mut lines = basis(report);
    lines.extend(report.notes.iter().cloned());
    if !lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        let _ = writeln!(text, "{}", clean(&line));
    }
    text
}

/// As Markdown.
#[must_use]
pub fn render_markdown(report: &MicroReport) -> String {
    let mut text = format!(
        "# Micro-benchmarks\n\n{}\n\n{}",
        escaped(&heading(report)),
        table(report).markdown()
    );
    let mut lines = basis(report);
    lines.extend(report.notes.iter().cloned());
    if !lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        let _ = writeln!(text, "- {}", escaped(&line));
    }
    text
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
    let mut heads = vec![("benchmark", Align::Left)];
    heads.extend(used.iter().map(|(name, _)| (*name, Align::Right)));
    let mut table = Table::new(&heads);
    for benchmark in &report.benchmarks {
        let mut row = vec![Cell::new(benchmark.full_name())];
        row.extend(
            used.iter().map(|(_, cell)| Cell::new(cell(benchmark).unwrap_or(NOTHING.into()))),
        );
        table.row(row);
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
                format!("Intervals hold the median with {:.0} % confidence, over repeats.", confidence * 100.0)
            }
            Some(Basis::Extremes) => {
                "With fewer than six repeats the interval is from the fastest to the slowest; use -count 10.".into()
            }
            Some(Basis::SamplesOfOneRun { confidence }) => format!(
                "Intervals are Criterion's own ({:.0} %), over samples of a single run: runs differ by more.",
                confidence * 100.0
            ),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A figure of unknown size and sign.
fn number(value: f64) -> String {
    match value {
        value if value < 0.0 => format!("−{}", number(-value)),
        value if value >= 999.5 => grouped(value),
        value if value.fract() == 0.0 => format!("{value:.0}"),
        value => three_digits(value),
    }
}
