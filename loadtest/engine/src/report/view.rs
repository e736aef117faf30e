//! Figures of a step that several renderers show, worked out once from the raw values.

use crate::numbers::{self, count, counted, elapsed, rate};
use crate::plan::{Arrivals, Load, Settings};
use crate::result::{
    CheckId, EndpointResult, Finding, Finish, Outcome, Report, Run, Step, Verdict,
};

/// A step with everything of its repeats and endpoints added up.
pub(crate) struct StepView<'a> {
    /// The step itself.
    pub(crate) step: &'a Step,
    /// All repeats and endpoints in one; empty if nothing was measured.
    pub(crate) total: EndpointResult,
}

impl<'a> StepView<'a> {
    /// Adds up a step.
    pub(crate) fn of(step: &'a Step) -> Self {
        StepView { step, total: step.total().unwrap_or_else(|| EndpointResult::new("total")) }
    }

    /// All steps of a report.
    pub(crate) fn all(report: &'a Report) -> Vec<Self> {
        report.steps.iter().map(StepView::of).collect()
    }

    /// Successes a second of each repeat.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.step.runs.iter().map(Run::throughput_per_s).collect()
    }

    /// Successes a second: [`Step::throughput_per_s`], never the best of the repeats.
    pub(crate) fn rate_per_s(&self) -> f64 {
        self.step.throughput_per_s()
    }

    /// Requests that ended badly or not at all.
    pub(crate) fn failures(&self) -> u64 {
        self.step.runs.iter().map(Run::failures).sum()
    }

    /// Requests sent and never answered.
    pub(crate) fn unanswered(&self) -> u64 {
        self.step.runs.iter().map(|run| run.unanswered).sum()
    }

    /// Everything that was tried: what failures are a share of.
    pub(crate) fn tried(&self) -> u64 {
        self.total.counters.sent.max(self.total.counters.successes + self.failures())
    }

    /// Measured time of all repeats, in nanoseconds.
    pub(crate) fn measured_ns(&self) -> u64 {
        self.step.runs.iter().map(|run| run.measured_ns).sum()
    }

    /// Whether requests were due at times of their own.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.step.settings.load, Load::Open { .. })
    }

    /// Requests in flight at most: connections times streams.
    pub(crate) fn in_flight(&self) -> u64 {
        let settings = &self.step.settings;
        u64::from(settings.connections) * u64::from(settings.streams.max(1))
    }

    /// What the check says of this step, or of the whole report.
    pub(crate) fn finding<'r>(&self, report: &'r Report, check: u8) -> Option<&'r Finding> {
        let about = |f: &&Finding| {
            f.check == CheckId(check) && f.step.as_ref().is_none_or(|step| *step == self.step.name)
        };
        let mut all = report.findings.iter().filter(about);
        all.clone().find(|f| f.step.is_some()).or_else(|| all.next())
    }
}

/// Smallest and largest value; `None` without any.
pub(crate) fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    let smallest = values.iter().copied().min_by(f64::total_cmp)?;
    let largest = values.iter().copied().max_by(f64::total_cmp)?;
    Some((smallest, largest))
}

/// What the two loops mean, in words: `closed loop, 16 connections`.
pub(crate) fn load(settings: &Settings) -> String {
    let connections = counted(u64::from(settings.connections), "connection", "connections");
    let streams = if settings.streams > 1 {
        format!(" of {} streams", count(u64::from(settings.streams)))
    } else {
        String::new()
    };
    match settings.load {
        Load::Closed { think_max_us: 0, .. } => format!("closed loop, {connections}{streams}"),
        Load::Closed { think_min_us, think_max_us } => format!(
            "closed loop, {connections}{streams}, thinking {} to {} between requests",
            numbers::duration(think_min_us as f64 * 1e3),
            numbers::duration(think_max_us as f64 * 1e3)
        ),
        Load::Open { rate_per_s, arrivals } => {
            let how = match arrivals {
                Arrivals::Constant => "evenly spaced",
                Arrivals::Poisson => "Poisson arrivals",
            };
            format!("open loop, {} {how}, {connections}{streams}", rate(rate_per_s))
        }
    }
}

/// What every step has in common, if they differ in nothing but connections and
/// rate, which their names tell: `closed loop, 10.0 s after 2.00 s of warm-up`.
pub(crate) fn common_load(steps: &[Step]) -> Option<String> {
    let plain = |step: &Step| {
        let kind = match step.settings.load {
            Load::Closed { think_max_us: 0, .. } => "closed loop".to_owned(),
            Load::Closed { think_min_us, think_max_us } => format!(
                "closed loop, thinking {} to {} between requests",
                numbers::duration(think_min_us as f64 * 1e3),
                numbers::duration(think_max_us as f64 * 1e3)
            ),
            Load::Open { arrivals: Arrivals::Constant, .. } => {
                "open loop, evenly spaced".to_owned()
            }
            Load::Open { arrivals: Arrivals::Poisson, .. } => {
                "open loop, Poisson arrivals".to_owned()
            }
        };
        let streams = match step.settings.streams {
            0 | 1 => String::new(),
            more => format!(", {more} streams a connection"),
        };
        format!("{kind}{streams}, {}", length(step))
    };
    let first = plain(steps.first()?);
    steps.iter().all(|step| plain(step) == first).then_some(first)
}

/// How long it was measured: `3 runs of 10.0 s after 2.00 s of warm-up`.
pub(crate) fn length(step: &Step) -> String {
    let runs = step.runs.len() as u64;
    let Some(total_ns) = step.runs.iter().map(|run| run.measured_ns).reduce(|a, b| a + b) else {
        return "not run".to_owned();
    };
    let mut text = elapsed(total_ns / runs);
    if runs > 1 {
        text = format!("{} runs of {text}", count(runs));
    }
    if step.settings.warmup_ms > 0 {
        text += &format!(" after {} of warm-up", elapsed(step.settings.warmup_ms * 1_000_000));
    }
    text
}

/// What stopped runs before their time, one sentence each; nothing for an ordinary end.
pub(crate) fn early_ends(step: &Step) -> Vec<String> {
    let tell = |run: &Run| match &run.finish {
        Finish::Time | Finish::Count => None,
        Finish::Interrupted => Some(format!(
            "{}, run {}: interrupted after {}; the figures are of that part.",
            step.name,
            run.repeat,
            elapsed(run.measured_ns)
        )),
        Finish::Aborted(why) => Some(format!(
            "{}, run {}: could not go on after {}: {why}",
            step.name,
            run.repeat,
            elapsed(run.measured_ns)
        )),
    };
    step.runs.iter().filter_map(tell).collect()
}

/// The word for a finding's outcome.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::NotChecked => "not checked",
        Outcome::Note => "note",
        Outcome::Care => "care",
        Outcome::Stop => "stop",
    }
}

/// What one check says, with the steps of which it says it.
pub(crate) struct ShownFinding<'a> {
    /// Which check.
    pub(crate) check: CheckId,
    /// What came out.
    pub(crate) outcome: Outcome,
    /// The steps, empty where the finding is of the whole report or the report has one step only.
    pub(crate) steps: Vec<&'a str>,
    /// The sentence.
    pub(crate) sentence: &'a str,
}

impl ShownFinding<'_> {
    /// The steps as a prefix of the sentence: `[c=1, c=2] `, or nothing.
    pub(crate) fn place(&self) -> String {
        match self.steps.as_slice() {
            [] => String::new(),
            [first, .., last] if self.steps.len() > 3 => {
                format!("[{first} … {last}, {} steps] ", self.steps.len())
            }
            steps => format!("[{}] ", steps.join(", ")),
        }
    }
}

/// The findings to show, the same sentence about several steps once.
pub(crate) fn findings(report: &Report, all: bool) -> Vec<ShownFinding<'_>> {
    let mut shown: Vec<ShownFinding<'_>> = Vec::new();
    let several = report.steps.len() > 1;
    for finding in report.findings.iter().filter(|f| all || f.outcome != Outcome::Passed) {
        let step = finding.step.as_deref().filter(|_| several);
        let same = shown.iter_mut().find(|there| {
            there.check == finding.check
                && there.outcome == finding.outcome
                && there.sentence == finding.sentence
                && there.steps.is_empty() == step.is_none()
        });
        match same {
            Some(there) => there.steps.extend(step),
            None => shown.push(ShownFinding {
                check: finding.check,
                outcome: finding.outcome,
                steps: step.into_iter().collect(),
                sentence: &finding.sentence,
            }),
        }
    }
    shown
}

/// The last line of every report.
#[must_use]
pub(crate) fn verdict(verdict: Option<&Verdict>) -> String {
    let text = match verdict {
        None => "NOT CHECKED: the checks have not been applied to this report".to_owned(),
        Some(Verdict::Trusted) => "TRUSTED".to_owned(),
        Some(Verdict::UseWithCare(reasons)) => with_reasons("USE WITH CARE", reasons),
        Some(Verdict::NotMeasurable(reasons)) => with_reasons("NOT MEASURABLE", reasons),
    };
    crate::table::visible(&text)
}

fn with_reasons(word: &str, reasons: &[String]) -> String {
    if reasons.is_empty() {
        return word.to_owned();
    }
    let reasons: Vec<&str> = reasons.iter().map(|r| r.trim_end_matches('.')).collect();
    format!("{word}: {}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_throughput_is_that_of_comparisons_and_never_the_best() {
        assert_eq!(extremes(&[3.0, 1.0, 2.0]), Some((1.0, 3.0)));
        let report = sample::repeated();
        let view = StepView::of(&report.steps[0]);
        let rates = view.rates();
        assert!(view.rate_per_s() < extremes(&rates).unwrap().1);
        let compared = crate::compare::compare_reports(&report, &report, &Default::default());
        let metric = compared.steps[0].metric(crate::compare::Metric::Throughput).unwrap();
        assert_eq!(metric.a, Some(view.rate_per_s()));
    }

    #[test]
    fn the_same_sentence_about_several_steps_is_said_once() {
        let mut report = sample::ladder();
        let finding = |step: Option<&str>| Finding {
            check: CheckId(3),
            step: step.map(str::to_owned),
            outcome: Outcome::Care,
            sentence: "Few distinct values.".to_owned(),
        };
        report.findings = vec![finding(Some("c=1")), finding(None), finding(Some("c=4"))];
        let shown = findings(&report, false);
        assert_eq!(shown.len(), 2);
        assert_eq!(shown[0].place(), "[c=1, c=4] ");
        assert_eq!(shown[1].place(), "");
        report.findings[0].outcome = Outcome::Passed;
        assert_eq!(findings(&report, false)[1].place(), "[c=4] ");
        assert_eq!(findings(&report, true).len(), 3);
    }

    #[test]
    fn the_verdict_is_one_line() {
        assert_eq!(verdict(Some(&Verdict::Trusted)), "TRUSTED");
        let care = Verdict::UseWithCare(vec!["one.".into(), "two\nlines".into()]);
        assert_eq!(verdict(Some(&care)), "USE WITH CARE: one; two\u{fffd}lines");
        assert_eq!(verdict(Some(&Verdict::NotMeasurable(vec![]))), "NOT MEASURABLE");
        assert!(verdict(None).starts_with("NOT CHECKED"));
    }

    #[test]
    fn an_early_end_is_told() {
        let mut report = sample::closed();
        assert!(early_ends(&report.steps[0]).is_empty());
        report.steps[0].runs[0].finish = Finish::Aborted("the server is gone".into());
        assert_eq!(
            early_ends(&report.steps[0]),
            ["c=16, run 1: could not go on after 10.0 s: the server is gone"]
        );
    }
}
