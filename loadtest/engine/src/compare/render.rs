//! A comparison as text: for terminals and as Markdown.

use super::effect::{MetricComparison, Verdict};
use super::figures::Metric;
use super::interleave::Design;
use super::mismatch::{Mismatch, Weight};
use super::quantity::of_metric;
use super::sentence::{detectable_words, effect_words, range_words, verdict_words};
use super::{Comparison, StepComparison};
use crate::numbers::{NOT_AVAILABLE, counted, p_value};
use crate::result::{Finding, Outcome, Verdict as Trust};
use crate::table::{Cell, Color, Table, Tone, escape, paint, visible};
use std::fmt::Write as _;

/// How to read the figures.
pub(crate) const LEGEND: &str =
    "Changes are from A to B; 95 of 100 such intervals contain the true change.";

/// For a terminal.
#[must_use]
pub fn render_text(comparison: &Comparison, color: Color) -> String {
    let mut text = format!("A: {}\nB: {}\n", visible(&comparison.a), visible(&comparison.b));
    for step in &comparison.steps {
        let _ = write!(text, "\n{} · {}\n\n", visible(&step.step), design(step));
        for (heading, table) in tables(step) {
            if let Some(heading) = heading {
                let _ = writeln!(text, "{heading}");
            }
            text.push_str(&table.text(color));
            text.push('\n');
        }
        for sentence in sentences(step) {
            let _ = writeln!(text, "{sentence}");
        }
    }
    let differing = what_differs(comparison);
    if !differing.is_empty() {
        text.push_str("\nWhat differs\n");
    }
    for line in differing {
        let _ = writeln!(text, "  {line}");
    }
    let remarks = remarks(comparison);
    if !remarks.is_empty() {
        text.push_str("\nRemarks\n");
    }
    for remark in remarks {
        let _ = writeln!(text, "  {remark}");
    }
    let (word, tone, reasons) = trust(&comparison.trust);
    let _ = writeln!(text, "\n{}{reasons}", paint(word, tone, color));
    text
}

/// As Markdown: headings of the second level, tables.
#[must_use]
pub fn render_markdown(comparison: &Comparison) -> String {
    let mut text = format!(
        "# {} against {}\n\nA is {0}, B is {1}. {LEGEND}\n",
        escape(&comparison.a),
        escape(&comparison.b)
    );
    for step in &comparison.steps {
        let _ = write!(text, "\n## {}\n\n{}\n\n", escape(&step.step), design(step));
        for (heading, table) in tables(step) {
            if let Some(heading) = heading {
                let _ = write!(text, "### {heading}\n\n");
            }
            text.push_str(&table.markdown());
            text.push('\n');
        }
        for sentence in sentences(step) {
            let _ = writeln!(text, "- {}", escape(&sentence));
        }
    }
    let differing = what_differs(comparison);
    if !differing.is_empty() {
        text.push_str("\n## What differs\n\n");
    }
    for line in differing {
        let _ = writeln!(text, "- {}", escape(&line));
    }
    let remarks = remarks(comparison);
    if !remarks.is_empty() {
        text.push_str("\n## Remarks\n\n");
    }
    for remark in remarks {
        let _ = writeln!(text, "- {}", escape(&remark));
    }
    let (word, _, reasons) = trust(&comparison.trust);
    let _ = writeln!(text, "\n**{word}**{}", escape(&reasons));
    text
}

pub(crate) fn design(step: &StepComparison) -> String {
    let runs = match (step.design, step.runs_a, step.runs_b) {
        (Design::Paired, pairs, _) => {
            format!("{}, made in turns", counted(pairs, "pair of runs", "pairs of runs"))
        }
        (Design::Separate, a, b) => {
            format!(
                "{} of A, {} of B, not in turns",
                counted(a, "run", "runs"),
                counted(b, "run", "runs")
            )
        }
    };
    let load = if step.open_loop { "open loop" } else { "closed loop" };
    format!("{load}, {runs}")
}

/// The figures of a step: one table of all metrics or, with several endpoints, what can be said
/// over all of them and then each by itself. With a heading where there are two.
pub(crate) fn tables(step: &StepComparison) -> Vec<(Option<&'static str>, Table)> {
    if step.endpoints.is_empty() {
        let mut table = Table::new(COLUMNS).words(7);
        step.metrics.iter().for_each(|metric| table.row(row(None, metric)));
        return vec![(None, table)];
    }
    let mut whole = Table::new(COLUMNS).words(7);
    let pooled = step.metrics.iter().filter(|metric| !metric.metric.is_latency());
    pooled.for_each(|metric| whole.row(row(None, metric)));
    let mut each = Table::new(["endpoint"].into_iter().chain(COLUMNS)).words(1).words(8);
    for (endpoint, metric) in step.questions().filter(|(endpoint, _)| endpoint.is_some()) {
        each.row(row(endpoint, metric));
    }
    vec![(Some("All endpoints together"), whole), (Some("By endpoint"), each)]
}

const COLUMNS: [&str; 8] =
    ["", "A", "B", "change", "95% interval", "p (Holm)", "smallest detectable", "verdict"];

fn row(endpoint: Option<&str>, metric: &MetricComparison) -> Vec<Cell> {
    let effect = metric.effect;
    let range = effect.and_then(|e| Some(range_words(e.scale, &e.interval?)));
    let or_nothing = |text: Option<String>| Cell::new(text.unwrap_or(NOT_AVAILABLE.into()));
    let mut cells: Vec<Cell> = endpoint.map(Cell::new).into_iter().collect();
    cells.extend([
        Cell::new(metric.metric.label()),
        Cell::new(of_metric(metric.metric, metric.a)),
        Cell::new(of_metric(metric.metric, metric.b)),
        or_nothing(effect.map(|effect| effect_words(&effect))),
        or_nothing(range),
        or_nothing(metric.p_adjusted.map(p_value)),
        or_nothing(detectable_words(metric)),
        Cell::toned(verdict_words(metric.metric, metric.verdict), tone(metric.verdict)),
    ]);
    cells
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Faster | Verdict::FewerFailures => Tone::Good,
        Verdict::Slower | Verdict::MoreFailures => Tone::Bad,
        Verdict::NoDifferenceSeen | Verdict::NotComparable => Tone::Quiet,
    }
}

/// The leading metric of the loop always; if it was called different, what that does to median,
/// tail and failures, otherwise everything that was called. With several endpoints, the throughput
/// and what was called of each of them, or what was not detected.
pub(crate) fn sentences(step: &StepComparison) -> Vec<String> {
    if let Some(why) = &step.refused {
        return vec![format!("Not compared: {}.", visible(why))];
    }
    let called = |metric: &MetricComparison| metric.verdict.is_difference();
    if !step.endpoints.is_empty() {
        let throughput = step.metric(Metric::Throughput).map(|m| capitalised(&m.sentence));
        let mut told: Vec<String> = throughput.into_iter().collect();
        for each in &step.endpoints {
            let differing: Vec<&MetricComparison> =
                each.metrics.iter().filter(|metric| called(metric)).collect();
            let shown = if differing.is_empty() {
                each.metric(Metric::P50).into_iter().collect()
            } else {
                differing
            };
            let name = visible(&each.endpoint);
            told.extend(shown.iter().map(|metric| format!("{name}: {}", metric.sentence)));
        }
        return told;
    }
    let lead = if step.open_loop { Metric::P99 } else { Metric::Throughput };
    let told = [Metric::P50, Metric::P99, Metric::FailureShare];
    let led = step.metric(lead).is_some_and(called);
    step.metrics
        .iter()
        .filter(|m| m.metric == lead || called(m) && (!led || told.contains(&m.metric)))
        .map(|metric| capitalised(&metric.sentence))
        .collect()
}

fn capitalised(sentence: &str) -> String {
    // Names of quantiles stay as they are written everywhere.
    if sentence.starts_with('p') {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// What may be the subject of the comparison, a line each.
pub(crate) fn what_differs(comparison: &Comparison) -> Vec<String> {
    let subject = comparison.mismatches.iter().filter(|m| m.weight == Weight::WhatDiffers);
    subject.map(|mismatch| visible(&mismatch_line(mismatch))).collect()
}

fn mismatch_line(mismatch: &Mismatch) -> String {
    let step = mismatch.step.as_ref().map_or(String::new(), |step| format!(" ({step})"));
    format!("{}{step}: {} → {}", mismatch.what, mismatch.a, mismatch.b)
}

/// What the last line does not say already.
pub(crate) fn remarks(comparison: &Comparison) -> Vec<String> {
    let said = |finding: &Finding| match finding.outcome {
        Outcome::Passed | Outcome::NotChecked | Outcome::Note => false,
        Outcome::Care => matches!(comparison.trust, Trust::UseWithCare(_)),
        Outcome::Stop => true,
    };
    let mut remarks: Vec<String> = comparison
        .findings
        .iter()
        .filter(|finding| !said(finding))
        .map(|finding| format!("{} {}", finding.check, visible(&finding.sentence)))
        .collect();
    for (side, names) in [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)] {
        if !names.is_empty() {
            remarks.push(visible(&format!("Only {side} has: {}.", names.join(", "))));
        }
    }
    remarks
}

fn trust(trust: &Trust) -> (&'static str, Tone, String) {
    let listed = |reasons: &[String]| format!(": {}", visible(&reasons.join(" ")));
    match trust {
        Trust::Trusted => ("TRUSTED", Tone::Good, String::new()),
        Trust::UseWithCare(reasons) => ("USE WITH CARE", Tone::Bad, listed(reasons)),
        Trust::NotMeasurable(reasons) => ("NOT MEASURABLE", Tone::Bad, listed(reasons)),
    }
}
