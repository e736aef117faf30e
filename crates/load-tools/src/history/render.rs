//! A history as text: for terminals and as Markdown.

use super::date::minute;
use super::series::{Change, Entry, History, Series, Skipped, Standing, VERDICT_CONFIDENCE};
use wellspring_load::compare::{Metric, Verdict, of_metric};
use wellspring_load::numbers::{NOT_AVAILABLE, change, counted};
use wellspring_load::page::Page;
use wellspring_load::table::{Cell, Color, Table, Tone};

/// What has to be said of every history.
const CAVEAT: &str = "Results of different days also show what the machine did. Confirm a change with `bench compare`, which lets both sides take turns.";

/// For a terminal.
#[must_use]
pub fn render_text(history: &History, color: Color) -> String {
    page(history).terminal(color)
}

/// As Markdown.
#[must_use]
pub fn render_markdown(history: &History) -> String {
    page(history).markdown()
}

fn page(history: &History) -> Page {
    let mut page = Page::titled("Results over time");
    page.text(counts(history));
    for series in &history.series {
        page.heading(heading(series));
        page.table(table(series));
        let changes = series.changes.iter().map(|found| (sentence(series, found), tone(found)));
        let remarks = remarks(series).into_iter().map(|line| (line, Tone::Neutral));
        page.toned_list(changes.chain(remarks));
    }
    if !history.skipped.is_empty() {
        page.heading("Skipped");
        let line = |skipped: &Skipped| format!("{}: {}", skipped.file, skipped.reason);
        page.list(history.skipped.iter().map(line));
    }
    page.text(CAVEAT);
    page
}

fn counts(history: &History) -> String {
    let mut text = format!(
        "{}, {}",
        counted(history.files, "result file", "result files"),
        counted(history.series.len(), "series", "series"),
    );
    if !history.skipped.is_empty() {
        text += &format!(", {} skipped", counted(history.skipped.len(), "file", "files"));
    }
    text
}

/// Workload, step and what the load was; the hash and limits nobody set are left out.
fn heading(series: &Series) -> String {
    let shown = |name: &str, value: &str| match name {
        "workload" | "timeout" => None,
        _ if value == "no limit" || value == "0 ms" => None,
        "keep-alive" if value == "on" => None,
        "streams" if value == "1" => None,
        "load" | "protocol" => Some(value.to_owned()),
        "connections" if value == "1" => Some("1 connection".into()),
        "connections" | "requests" => Some(format!("{value} {name}")),
        _ => Some(format!("{name} {value}")),
    };
    let load: Vec<String> =
        series.settings.iter().filter_map(|(name, value)| shown(name, value)).collect();
    format!("{} · {} · {}", series.workload, series.step, load.join(", "))
}

fn table(series: &Series) -> Table {
    let change_of = if series.lead() == Metric::P99 { "change of p99" } else { "change" };
    let columns = ["date (UTC)", "revision", "runs", "throughput", "p50", "p99", change_of];
    let columns = columns.into_iter().chain(["verdict", "report"]);
    let mut table = Table::new(columns).words(1).words(7).words(8);
    for entry in &series.entries {
        let (verdict, tone) = verdict(series.lead(), entry);
        let report = match entry.standing {
            Standing::NotMeasurable => Tone::Bad,
            Standing::Trusted | Standing::UseWithCare | Standing::Unchecked => Tone::Quiet,
        };
        table.row([
            Cell::new(minute(entry.started_unix_us)),
            Cell::new(revision(entry.git_revision.as_ref())),
            Cell::new(entry.runs.to_string()),
            Cell::new(of_metric(Metric::Throughput, entry.throughput_per_s)),
            Cell::new(of_metric(Metric::P50, entry.p50_ns)),
            Cell::new(of_metric(Metric::P99, entry.p99_ns)),
            Cell::new(entry.change_log_ratio.map_or(NOT_AVAILABLE.into(), changed)),
            Cell::toned(verdict, tone),
            Cell::toned(entry.standing.label(), report),
        ]);
    }
    table
}

fn verdict(lead: Metric, entry: &Entry) -> (&'static str, Tone) {
    match (entry.verdict, lead) {
        (None, _) => (NOT_AVAILABLE, Tone::Quiet),
        (Some(Verdict::Faster), Metric::Throughput) => ("faster", Tone::Good),
        (Some(Verdict::Slower), Metric::Throughput) => ("slower", Tone::Bad),
        (Some(Verdict::Faster), _) => ("less time", Tone::Good),
        (Some(Verdict::Slower), _) => ("more time", Tone::Bad),
        (Some(Verdict::NotComparable), _) => ("too few runs", Tone::Quiet),
        (Some(_), _) => ("no difference seen", Tone::Quiet),
    }
}

fn revision(revision: Option<&String>) -> String {
    revision.map_or_else(|| NOT_AVAILABLE.into(), |text| text.chars().take(24).collect())
}

fn sentence(series: &Series, found: &Change) -> String {
    let named = |at: usize, revision: &Option<String>| {
        let date = minute(series.entries[at].started_unix_us);
        match revision {
            Some(revision) => format!("{revision} ({date})"),
            None => format!("{} ({date})", series.entries[at].file),
        }
    };
    format!(
        "{} changed by {} between {} and {}; confidence {}%.",
        found.metric.label(),
        changed(found.log_ratio),
        named(found.before, &found.revision_before),
        named(found.after, &found.revision_after),
        floor_percent(found.confidence)
    )
}

fn changed(log_ratio: f64) -> String {
    change(log_ratio.exp())
}

/// Never more certain by rounding: 0.999 is 99.9%, not 100%.
fn floor_percent(share: f64) -> String {
    let tenths = (share * 1_000.0 + 1e-6).floor() / 10.0;
    format!("{tenths:.1}").trim_end_matches(".0").to_owned()
}

fn tone(found: &Change) -> Tone {
    let better = (found.metric == Metric::Throughput) == (found.log_ratio > 0.0);
    if better { Tone::Good } else { Tone::Bad }
}

fn remarks(series: &Series) -> Vec<String> {
    let mut remarks = Vec::new();
    for entry in &series.entries {
        if !entry.machine_changes.is_empty() {
            let when = minute(entry.started_unix_us);
            let what = entry.machine_changes.join(", ");
            remarks.push(format!("From {when} on the conditions were others: {what}."));
        }
    }
    if series.targets.len() > 1 {
        remarks.push(format!("Several targets are in this series: {}.", series.targets.join(", ")));
    }
    if series.entries.len() >= 2 && series.entries.iter().all(|entry| entry.runs < 2) {
        let percent = VERDICT_CONFIDENCE * 100.0;
        remarks.push(format!(
            "With one run a file no neighbours can be told apart at {percent:.0}%; measure with --repeat 5 or more."
        ));
    }
    if series.entries.len() < 6 {
        remarks.push("Lasting changes are sought from six results on.".into());
    }
    remarks
}
