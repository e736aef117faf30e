//! The outcomes as text.

use super::{CaseOutcome, Outcome, Verdict};
use std::fmt::Write as _;

/// A table of all outcomes, the verdict in its last line.
#[must_use]
pub fn render_text(outcomes: &[CaseOutcome]) -> String {
    let mut text = String::new();
    let width = outcomes.iter().map(|one| one.name.len()).max().unwrap_or(0);
    for CaseOutcome { name, about, outcome, measured, tries, took_ms, .. } in outcomes {
        let word = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed { .. } => "FAILED",
            Outcome::Skipped(_) => "skipped",
        };
        let again = if *tries > 1 { format!(" (try {tries})") } else { String::new() };
        let line = format!("{word:<7}  {name:<width$}  {took_ms:>6} ms  {measured}{again}");
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
        let _ = match outcome {
            Outcome::Passed => Ok(()),
            Outcome::Failed { expected, got } => writeln!(
                text,
                "         the case: {about}\n         expected: {expected}\n         got:      {got}"
            ),
            Outcome::Skipped(why) => writeln!(text, "         because: {why}"),
        };
    }
    let _ = writeln!(text, "\n{}", last_line(outcomes));
    text
}

/// The verdict and the numbers behind it.
fn last_line(outcomes: &[CaseOutcome]) -> String {
    let count =
        |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|one| wanted(&one.outcome)).count();
    let cases = |count: usize| if count == 1 { "1 case".into() } else { format!("{count} cases") };
    let failed = count(|outcome| matches!(outcome, Outcome::Failed { .. }));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let passed = outcomes.len() - failed - skipped;
    let expectations: u64 = outcomes.iter().map(|one| one.expectations).sum();
    let verdict = Verdict::of(outcomes);
    let rest = match verdict {
        Verdict::Passed => format!(
            "{} passed, {expectations} single expectations. What this build reports is what happened.",
            cases(passed)
        ),
        Verdict::Incomplete if outcomes.is_empty() => "no case was run.".to_owned(),
        Verdict::Incomplete => format!(
            "{} passed, {skipped} could not be judged on this machine. None failed.",
            cases(passed)
        ),
        Verdict::Failed => format!(
            "{} failed, {passed} passed, {skipped} could not be judged. Do not trust this build's reports.",
            cases(failed)
        ),
    };
    format!("{verdict}: {rest}")
}
