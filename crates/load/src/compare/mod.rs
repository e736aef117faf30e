//! Two sets of runs against each other: how much differs, how sure that is, and
//! what could not have been seen.
//!
//! The run is the unit. Runs that took turns are compared in neighbouring pairs,
//! others as two samples, with a warning: a machine drifts more than most servers
//! differ. Ratios are taken of raw values, never of rounded ones, as logarithms.
//! A difference is called only if it survives the adjustment for everything else
//! the same comparison asked.

mod effect;
mod figures;
mod findings;
mod interleave;
mod mismatch;
mod quantity;
mod render;
mod sentence;
mod table;

#[cfg(test)]
mod same_server;

pub use effect::{CONFIDENCE, Effect, MetricComparison, Range, Scale, Verdict};
pub use figures::{Figures, Metric};
pub(crate) use interleave::pairs_by_time;
pub use interleave::{Design, Side, abba};
pub use mismatch::{Mismatch, Weight, comparable_settings, machine, mismatches};
pub use quantity::of_metric;
pub use render::{render_markdown, render_text};
pub use table::Color;

use crate::result::{Finding, Report, Run, Step, Verdict as Trust};
use serde::{Deserialize, Serialize};

/// What the field `format` says of a comparison written as JSON.
pub const FORMAT: &str = "wellspring-compare/1";

/// Two reports, or two interleaved targets, compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`FORMAT`].
    pub format: String,
    /// What A is called.
    pub a: String,
    /// What B is called.
    pub b: String,
    /// Confidence of all intervals; [`CONFIDENCE`].
    pub confidence: f64,
    /// Seed of everything drawn at random; the same seed gives the same figures.
    pub seed: u64,
    /// The steps that both sides have, in the order of A.
    pub steps: Vec<StepComparison>,
    /// Names of steps that only A has.
    pub only_in_a: Vec<String>,
    /// Names of steps that only B has.
    pub only_in_b: Vec<String>,
    /// What is not the same on both sides.
    pub mismatches: Vec<Mismatch>,
    /// What has to be said about the comparison (checks C10, C11, C17).
    pub findings: Vec<Finding>,
    /// The last line: whether the comparison can be trusted.
    pub trust: Trust,
}

/// One step on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepComparison {
    /// Its name, in A.
    pub step: String,
    /// How the runs lie in time.
    pub design: Design,
    /// Runs of A that were compared.
    pub runs_a: usize,
    /// Runs of B that were compared.
    pub runs_b: usize,
    /// Runs left out because they (or their partner in a pair) were interrupted or aborted.
    pub left_out: usize,
    /// Whether requests were due at times of their own: then throughput is what was offered.
    pub open_loop: bool,
    /// Every metric.
    pub metrics: Vec<MetricComparison>,
    /// Why nothing is concluded; `None` if something is.
    pub refused: Option<String>,
}

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Seed of the resampling.
    pub seed: u64,
    /// How often the runs are dealt anew for the bootstrap intervals.
    pub resamples: u32,
    /// What to do with steps whose settings differ.
    pub unlike: Unlike,
}

impl Default for Options {
    fn default() -> Self {
        Options { seed: 1, resamples: 2_000, unlike: Unlike::Refuse }
    }
}

/// What to do with steps whose settings differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// Show both figures and conclude nothing.
    Refuse,
    /// Compare all the same; the report says that this was forced.
    Compare,
}

impl StepComparison {
    /// The comparison of one metric.
    #[must_use]
    pub fn metric(&self, metric: Metric) -> Option<&MetricComparison> {
        self.metrics.iter().find(|there| there.metric == metric)
    }

    /// Whether any metric was called different.
    #[must_use]
    pub fn any_difference(&self) -> bool {
        use Verdict::{Faster, FewerFailures, MoreFailures, Slower};
        let called = [Faster, Slower, FewerFailures, MoreFailures];
        self.metrics.iter().any(|metric| called.contains(&metric.verdict))
    }
}

/// Compares two result files. Steps are matched by name; if each report has a
/// single step, these are matched whatever they are called. Runs that took
/// turns, as the times at which they began show, are compared in pairs.
#[must_use]
pub fn compare_reports(a: &Report, b: &Report, options: &Options) -> Comparison {
    let mismatches = mismatches(a, b);
    let matched = matched_steps(a, b);
    let mut steps: Vec<StepComparison> = matched
        .iter()
        .map(|(step_a, step_b)| {
            let differing: Vec<&str> = mismatches
                .iter()
                .filter(|m| m.weight == Weight::Settings)
                .filter(|m| m.step.as_deref() == Some(step_a.name.as_str()))
                .map(|m| m.what.as_str())
                .collect();
            let mut step = by_time(&step_a.name, &step_a.runs, &step_b.runs, options);
            if !differing.is_empty() && options.unlike == Unlike::Refuse {
                refuse(&mut step, format!("the settings differ: {}", differing.join(", ")));
            }
            step
        })
        .collect();
    conclude(&mut steps);
    let only = |of: &Report, matched: &dyn Fn(&Step) -> bool| {
        of.steps.iter().filter(|step| !matched(step)).map(|step| step.name.clone()).collect()
    };
    let findings = findings::of(a, b, &matched, &steps, &mismatches, options);
    Comparison {
        format: FORMAT.into(),
        a: a.title.clone(),
        b: b.title.clone(),
        confidence: CONFIDENCE,
        seed: options.seed,
        only_in_a: only(a, &|step| matched.iter().any(|(there, _)| std::ptr::eq(*there, step))),
        only_in_b: only(b, &|step| matched.iter().any(|(_, there)| std::ptr::eq(*there, step))),
        steps,
        mismatches,
        trust: findings::trust(&findings),
        findings,
    }
}

/// Compares runs that were made in turns: `a_runs[i]` and `b_runs[i]` are
/// neighbours, in the order of [`abba`]. What is beyond the shorter side (after an
/// interruption) is left out, and so is a pair of which one run did not finish.
#[must_use]
pub fn compare_paired(
    step: &str,
    a_runs: &[Run],
    b_runs: &[Run],
    options: &Options,
) -> StepComparison {
    let pairs: Vec<(usize, usize)> =
        (0..a_runs.len().min(b_runs.len())).map(|pair| (pair, pair)).collect();
    let mut steps = [paired(step, a_runs, b_runs, &pairs, options)];
    conclude(&mut steps);
    let [step] = steps;
    step
}

/// Compares bare figures, for those who keep no result files. With
/// [`Design::Paired`], `a[i]` and `b[i]` are neighbours and the longer side is cut.
#[must_use]
pub fn compare_figures(
    step: &str,
    a: &[Figures],
    b: &[Figures],
    design: Design,
    options: &Options,
) -> StepComparison {
    let mut steps = [measured(step, a, b, design, options)];
    conclude(&mut steps);
    let [step] = steps;
    step
}

/// Compares one metric of each result in a series with the one before, adjusted
/// over the whole series: of series without a change at most 5% show one.
#[must_use]
pub fn compare_neighbours(
    metric: Metric,
    series: &[&[Figures]],
    options: &Options,
) -> Vec<MetricComparison> {
    let mut compared: Vec<MetricComparison> = series
        .windows(2)
        .map(|two| effect::measure(metric, two[0], two[1], Design::Separate, options))
        .collect();
    effect::conclude(&mut compared.iter_mut().collect::<Vec<_>>());
    compared
}

/// The steps of both reports that belong together, in the order of A.
fn matched_steps<'a>(a: &'a Report, b: &'a Report) -> Vec<(&'a Step, &'a Step)> {
    if let ([a], [b]) = (a.steps.as_slice(), b.steps.as_slice()) {
        return vec![(a, b)];
    }
    a.steps
        .iter()
        .filter_map(|step| Some((step, b.steps.iter().find(|there| there.name == step.name)?)))
        .collect()
}

fn by_time(step: &str, a: &[Run], b: &[Run], options: &Options) -> StepComparison {
    if let Some(pairs) = pairs_by_time(a, b) {
        return paired(step, a, b, &pairs, options);
    }
    let of = |runs: &[Run]| runs.iter().filter_map(Figures::of).collect::<Vec<_>>();
    let (figures_a, figures_b) = (of(a), of(b));
    let mut compared = measured(step, &figures_a, &figures_b, Design::Separate, options);
    compared.left_out = a.len() + b.len() - compared.runs_a - compared.runs_b;
    compared
}

fn paired(
    step: &str,
    a: &[Run],
    b: &[Run],
    pairs: &[(usize, usize)],
    options: &Options,
) -> StepComparison {
    let both: (Vec<Figures>, Vec<Figures>) = pairs
        .iter()
        .filter_map(|&(at_a, at_b)| Figures::of(&a[at_a]).zip(Figures::of(&b[at_b])))
        .unzip();
    let mut compared = measured(step, &both.0, &both.1, Design::Paired, options);
    compared.left_out = a.len() + b.len() - compared.runs_a - compared.runs_b;
    compared
}

fn measured(
    step: &str,
    a: &[Figures],
    b: &[Figures],
    design: Design,
    options: &Options,
) -> StepComparison {
    let (a, b) = match design {
        Design::Paired => (&a[..a.len().min(b.len())], &b[..a.len().min(b.len())]),
        Design::Separate => (a, b),
    };
    let mut compared = StepComparison {
        step: step.into(),
        design,
        runs_a: a.len(),
        runs_b: b.len(),
        left_out: 0,
        open_loop: a.iter().chain(b).any(|run| run.open_loop),
        metrics: Metric::ALL
            .iter()
            .map(|&metric| effect::measure(metric, a, b, design, options))
            .collect(),
        refused: None,
    };
    if a.is_empty() || b.is_empty() {
        let side = if a.is_empty() { "A" } else { "B" };
        refuse(&mut compared, format!("{side} has no run that came to its end"));
    }
    compared
}

fn refuse(step: &mut StepComparison, why: String) {
    for metric in &mut step.metrics {
        (metric.effect, metric.p) = (None, None);
        metric.verdict = Verdict::NotComparable;
    }
    step.refused = Some(why);
}

/// Verdicts and sentences, adjusted over all steps and metrics together.
fn conclude(steps: &mut [StepComparison]) {
    let mut asked: Vec<&mut MetricComparison> =
        steps.iter_mut().flat_map(|step| &mut step.metrics).collect();
    effect::conclude(&mut asked);
    let questions = asked.iter().filter(|metric| metric.p.is_some()).count();
    for step in steps {
        let runs = step.runs_a.min(step.runs_b);
        let context = sentence::Context { open_loop: step.open_loop, runs, questions };
        for metric in &mut step.metrics {
            metric.sentence = match &step.refused {
                Some(why) => format!("{} is not compared: {why}.", metric.metric.label()),
                None => sentence::sentence(metric, context),
            };
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
