//! The audit as plain text for a terminal, and as Markdown.

use super::read::{Row, Table};
use super::{AuditFinding, AuditReport};
use crate::numbers::{counted, quantile_name};
use crate::result::{CheckId, Outcome};
use crate::table;
use std::fmt::Write as _;

/// How an outcome is called in an audit.
fn label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::NotChecked => "not checked",
        Outcome::Note => "worth knowing",
        Outcome::Care => "read with care",
        Outcome::Stop => "does not fit",
    }
}

/// For a terminal.
#[must_use]
pub fn render_text(report: &AuditReport) -> String {
    let published = &report.published;
    let mut text = format!("{}\n{}\n", published.title, published.source);
    if let Some(note) = &published.note {
        let _ = writeln!(text, "{note}");
    }
    for table in &published.tables {
        let _ = writeln!(text, "\n{}", table.name);
        for finding in said(report, table) {
            let place = finding.row.as_deref().map_or(String::new(), |row| format!("{row}: "));
            let _ = writeln!(
                text,
                "  {:<4}{:<15} {place}{}",
                finding.check.to_string(),
                label(finding.outcome),
                finding.sentence
            );
        }
        let _ = writeln!(text, "  {}", tally(report, table));
    }
    text
}

/// For a page: each table as entered, what the checks say of it, and how many passed.
#[must_use]
pub fn render_markdown(report: &AuditReport) -> String {
    let mut text = String::new();
    for table in &report.published.tables {
        let _ = writeln!(text, "### {}\n", table.name);
        if let Some(source) = &table.source {
            let _ = writeln!(text, "<{source}>\n");
        }
        if let Some(note) = &table.note {
            let _ = writeln!(text, "{note}\n");
        }
        let _ = writeln!(text, "{}", figures(table));
        let findings: Vec<&AuditFinding> = said(report, table).collect();
        for finding in &findings {
            let place = finding.row.as_deref().map_or(String::new(), |row| format!("**{row}**: "));
            let _ = writeln!(
                text,
                "- {} ({}) {place}{}",
                finding.check,
                label(finding.outcome),
                finding.sentence
            );
        }
        let _ = writeln!(
            text,
            "{}{}\n",
            if findings.is_empty() { "" } else { "\n" },
            tally(report, table)
        );
    }
    let shown = text.trim_end();
    format!("{shown}\n")
}

fn of<'a>(report: &'a AuditReport, table: &'a Table) -> impl Iterator<Item = &'a AuditFinding> {
    report.findings.iter().filter(|finding| finding.table == table.name)
}

/// The findings that say something.
fn said<'a>(report: &'a AuditReport, table: &'a Table) -> impl Iterator<Item = &'a AuditFinding> {
    of(report, table).filter(|finding| finding.outcome >= Outcome::Note)
}

/// How many questions were answered well, and which could not be put.
fn tally(report: &AuditReport, table: &Table) -> String {
    let passed = of(report, table).filter(|finding| finding.outcome == Outcome::Passed).count();
    let mut text = format!("{} passed", counted(passed as u64, "check", "checks"));
    let mut open: Vec<(CheckId, usize)> = Vec::new();
    for finding in of(report, table).filter(|finding| finding.outcome == Outcome::NotChecked) {
        match open.iter_mut().find(|(check, _)| *check == finding.check) {
            Some((_, count)) => *count += 1,
            None => open.push((finding.check, 1)),
        }
    }
    if !open.is_empty() {
        open.sort();
        let rows = |n: &usize| counted(*n as u64, "row", "rows");
        let parts: Vec<String> =
            open.iter().map(|(check, count)| format!("{check} in {}", rows(count))).collect();
        let _ = write!(text, "; the figures needed were not given for {}", parts.join(", "));
    }
    text + "."
}

/// A column: its heading, and what a row has in it.
type Column<'a> = (String, Box<dyn Fn(&'a Row) -> Option<&'a str>>);

fn columns(table: &Table) -> Vec<Column<'_>> {
    let cell = |name: &str, of: fn(&Row) -> Option<&super::Cell>| -> Column<'_> {
        (name.to_owned(), Box::new(move |row| of(row).map(|cell| cell.text.as_str())))
    };
    let mut columns = vec![
        cell("concurrency", |row| row.concurrency.as_ref()),
        cell("throughput", |row| row.throughput.as_ref()),
        cell("per connection", |row| row.per_connection.as_ref()),
        cell("mean", |row| row.mean.as_ref()),
        cell("min", |row| row.min.as_ref()),
    ];
    let mut quantiles: Vec<f64> =
        table.rows.iter().flat_map(|row| &row.percentiles).map(|(q, _)| *q).collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    for q in quantiles {
        let find = move |row: &'_ Row| row.percentiles.iter().position(|(there, _)| *there == q);
        columns.push((
            quantile_name(q),
            Box::new(move |row| find(row).map(|at| row.percentiles[at].1.text.as_str())),
        ));
    }
    columns.extend([
        cell("max", |row| row.max.as_ref()),
        cell("requests", |row| row.requests.as_ref()),
        cell("failures", |row| row.failures.as_ref()),
        cell("duration", |row| row.duration.as_ref()),
        cell("think time", |row| row.think.as_ref()),
    ]);
    columns.retain(|(_, of)| table.rows.iter().any(|row| of(row).is_some()));
    columns
}

/// The figures of a table as they were published.
fn figures(table: &Table) -> String {
    let columns = columns(table);
    let headings = columns.iter().map(|(name, _)| name.clone());
    let mut figures = table::Table::new([String::new()].into_iter().chain(headings));
    for row in &table.rows {
        let cells = columns.iter().map(|(_, of)| of(row).unwrap_or(""));
        figures.row([row.name.as_str()].into_iter().chain(cells));
    }
    figures.markdown()
}
