//! A comparison as text: for terminals and as Markdown.

use super::effect::{MetricComparison, Verdict};
use super::figures::Metric;
use super::interleave::Design;
use super::mismatch::{Mismatch, Weight};
use super::quantity::{NOTHING, clean, counted, of_metric, p_value};
use super::sentence::{detectable_words, effect_words, range_words, verdict_words};
use super::table::{Cell, Color, Table, Tone, escaped, paint};
use super::{Comparison, StepComparison};
use crate::result::{Finding, Outcome, Verdict as Trust};
use std::fmt::Write as _;

/// For a terminal.
#[must_use]
pub fn render_text(comparison: &Comparison, color: Color) -> String {
    let mut text = format!("A: {}\nB: {}\n", clean(&comparison.a), clean(&comparison.b));
    for step in &comparison.steps {
        let _ = write!(text, "\n{} · {}\n\n", clean(&step.step), design(step));
        text.push_str(&table(step).text(color));
        text.push('\n');
        for sentence in sentences(step) {
            let _ = writeln!(text, "{sentence}");
        }
    }
    let differing = what_differs(&comparison.mismatches);
    if !differing.is_empty() {
        text.push_str("\nWhat differs\n");
    }
    for mismatch in differing {
        let _ = writeln!(text, "  {}", clean(&mismatch_line(mismatch)));
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
        "# {} against {}\n\nA is {0}, B is {1}. Changes are from A to B; intervals hold the truth in 95 of 100 cases.\n",
        escaped(&comparison.a),
        escaped(&comparison.b)
    );
    for step in &comparison.steps {
        let _ = write!(text, "\n## {}\n\n{}\n\n", escaped(&step.step), design(step));
        text.push_str(&table(step).markdown());
        text.push('\n');
        for sentence in sentences(step) {
            let _ = writeln!(text, "- {}", escaped(&sentence));
        }
    }
    let differing = what_differs(&comparison.mismatches);
    if !differing.is_empty() {
        text.push_str("\n## What differs\n\n");
    }
    for mismatch in differing {
        let _ = writeln!(text, "- {}", escaped(&mismatch_line(mismatch)));
    }
    let remarks = remarks(comparison);
    if !remarks.is_empty() {
        text.push_str("\n## Remarks\n\n");
    }
    for remark in remarks {
        let _ = writeln!(text, "- {}", escaped(&remark));
    }
    let (word, _, reasons) = trust(&comparison.trust);
    let _ = writeln!(text, "\n**{word}**{}", escaped(&reasons));
    text
}

fn design(step: &StepComparison) -> String {
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

fn table(step: &StepComparison) -> Table {
    let mut table = Table::new([
        "",
        "A",
        "B",
        "change",
        "95% interval",
        "p (Holm)",
        "smallest visible",
        "verdict",
    ])
    .words(7);
    for metric in &step.metrics {
        let effect = metric.effect;
        let range = effect.and_then(|e| Some(range_words(e.scale, &e.interval?)));
        let or_nothing = |text: Option<String>| Cell::new(text.unwrap_or(NOTHING.into()));
        table.row(vec![
            Cell::new(metric.metric.label()),
            Cell::new(of_metric(metric.metric, metric.a)),
            Cell::new(of_metric(metric.metric, metric.b)),
            or_nothing(effect.map(|effect| effect_words(&effect))),
            or_nothing(range),
            or_nothing(metric.p_adjusted.map(p_value)),
            or_nothing(detectable_words(metric)),
            Cell::toned(verdict_words(metric.metric, metric.verdict), tone(metric.verdict)),
        ]);
    }
    table
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Faster | Verdict::FewerFailures => Tone::Good,
        Verdict::Slower | Verdict::MoreFailures => Tone::Bad,
        Verdict::NoDifferenceSeen | Verdict::NotComparable => Tone::Quiet,
    }
}

/// The leading metric of the loop always; if it was called different, what that
/// does to median, tail and failures, otherwise everything that was called.
fn sentences(step: &StepComparison) -> Vec<String> {
    if let Some(why) = &step.refused {
        return vec![format!("Not compared: {}.", clean(why))];
    }
    let lead = if step.open_loop { Metric::P99 } else { Metric::Throughput };
    let called = |metric: &MetricComparison| {
        !matches!(metric.verdict, Verdict::NoDifferenceSeen | Verdict::NotComparable)
    };
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

fn what_differs(mismatches: &[Mismatch]) -> Vec<&Mismatch> {
    mismatches.iter().filter(|mismatch| mismatch.weight == Weight::WhatDiffers).collect()
}

fn mismatch_line(mismatch: &Mismatch) -> String {
    let step = mismatch.step.as_ref().map_or(String::new(), |step| format!(" ({step})"));
    format!("{}{step}: {} → {}", mismatch.what, mismatch.a, mismatch.b)
}

/// What the last line does not say already.
fn remarks(comparison: &Comparison) -> Vec<String> {
    let said = |finding: &Finding| match finding.outcome {
        Outcome::Passed | Outcome::NotChecked | Outcome::Note => false,
        Outcome::Care => matches!(comparison.trust, Trust::UseWithCare(_)),
        Outcome::Stop => true,
    };
    let mut remarks: Vec<String> = comparison
        .findings
        .iter()
        .filter(|finding| !said(finding))
        .map(|finding| format!("{} {}", finding.check, clean(&finding.sentence)))
        .collect();
    for (side, names) in [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)] {
        if !names.is_empty() {
            remarks.push(clean(&format!("Only {side} has: {}.", names.join(", "))));
        }
    }
    remarks
}

fn trust(trust: &Trust) -> (&'static str, Tone, String) {
    let listed = |reasons: &[String]| format!(": {}", clean(&reasons.join(" ")));
    match trust {
        Trust::Trusted => ("TRUSTED", Tone::Good, String::new()),
        Trust::UseWithCare(reasons) => ("USE WITH CARE", Tone::Bad, listed(reasons)),
        Trust::NotMeasurable(reasons) => ("NOT MEASURABLE", Tone::Bad, listed(reasons)),
    }
}
