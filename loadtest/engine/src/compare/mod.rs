//! Two sets of runs against each other: how much differs, how sure that is, and
//! what would not have been detected.
//!
//! The run is the unit. Runs that took turns are compared in neighbouring pairs,
//! others as two samples, with a warning: a machine drifts more than most servers
//! differ. Ratios are taken of raw values, never of rounded ones, as logarithms.
//! Where a step has several endpoints, the latencies of each are compared by themselves.
//! A difference is called only if it survives the adjustment for everything else
//! the same comparison asked, all endpoints included.

mod effect;
mod figures;
mod findings;
mod interleave;
mod mismatch;
mod quantity;
pub(crate) mod render;
mod sentence;
mod sides;

#[cfg(test)]
mod endpoint_tests;
#[cfg(test)]
mod same_server;

pub use crate::table::Color;
pub use effect::{CONFIDENCE, Effect, MetricComparison, Range, Scale, Verdict};
pub use figures::{Figures, Metric};
pub(crate) use interleave::pairs_by_time;
pub use interleave::{Design, Side, abba};
pub use mismatch::{Mismatch, Weight, comparable_settings, machine, mismatches};
pub use quantity::of_metric;
pub use render::{render_markdown, render_text};

use crate::result::{Finding, Report, Run, Step, Verdict as Trust};
use serde::{Deserialize, Serialize};
use sides::Sides;

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
    /// Every metric over all endpoints together. Of the latencies nothing is concluded if
    /// `endpoints` holds any.
    pub metrics: Vec<MetricComparison>,
    /// Each endpoint by itself, if a side has several: those that both have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointComparison>,
    /// Why nothing is concluded; `None` if something is.
    pub refused: Option<String>,
}

/// One endpoint of a step on both sides: [`Metric::OF_ENDPOINTS`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointComparison {
    /// Its name: a step of the scenario, or method and path.
    pub endpoint: String,
    /// Its metrics.
    pub metrics: Vec<MetricComparison>,
}

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Seed of the resampling.
    pub seed: u64,
    /// How often the runs are dealt anew for the bootstrap intervals.
    pub resamples: u32,
    /// What to do with steps whose settings differ.
    pub mismatch_policy: MismatchPolicy,
}

impl Default for Options {
    fn default() -> Self {
        Options { seed: 1, resamples: 2_000, mismatch_policy: MismatchPolicy::Refuse }
    }
}

/// What to do with steps whose settings differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchPolicy {
    /// Show both figures and conclude nothing.
    Refuse,
    /// Compare them nevertheless; the report says that this was forced.
    Compare,
}

impl StepComparison {
    /// The comparison of one metric.
    #[must_use]
    pub fn metric(&self, metric: Metric) -> Option<&MetricComparison> {
        self.metrics.iter().find(|there| there.metric == metric)
    }

    /// The comparison of one endpoint.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> Option<&EndpointComparison> {
        self.endpoints.iter().find(|there| there.endpoint == name)
    }

    /// Everything that was asked: the metrics of the whole, then those of each endpoint with its
    /// name.
    pub fn questions(&self) -> impl Iterator<Item = (Option<&str>, &MetricComparison)> {
        let whole = self.metrics.iter().map(|metric| (None, metric));
        whole.chain(self.endpoints.iter().flat_map(|each| {
            each.metrics.iter().map(|metric| (Some(each.endpoint.as_str()), metric))
        }))
    }

    fn questions_mut(&mut self) -> impl Iterator<Item = &mut MetricComparison> {
        let endpoints = self.endpoints.iter_mut().flat_map(|each| &mut each.metrics);
        self.metrics.iter_mut().chain(endpoints)
    }

    /// Whether any metric was called different, of the whole or of an endpoint.
    #[must_use]
    pub fn any_difference(&self) -> bool {
        self.questions().any(|(_, metric)| metric.verdict.is_difference())
    }

    /// Where B is slower or fails more by more than `tolerance` (a share, or of failures the
    /// difference of the shares), each as a sentence.
    #[must_use]
    pub fn worsenings(&self, tolerance: f64) -> Vec<String> {
        use Verdict::{MoreFailures, Slower};
        self.questions()
            .filter(|(_, metric)| matches!(metric.verdict, Slower | MoreFailures))
            .filter(|(_, metric)| metric.change_share().is_none_or(|change| change > tolerance))
            .map(|(_, metric)| metric.sentence.clone())
            .collect()
    }
}

impl EndpointComparison {
    /// The comparison of one metric.
    #[must_use]
    pub fn metric(&self, metric: Metric) -> Option<&MetricComparison> {
        self.metrics.iter().find(|there| there.metric == metric)
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
            if !differing.is_empty() && options.mismatch_policy == MismatchPolicy::Refuse {
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
    let sides = Sides { a: a.to_vec(), b: b.to_vec(), ..Sides::default() };
    let mut steps = [measured(step, sides, design, options)];
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
    let of = |runs: &[Run]| -> Vec<usize> {
        (0..runs.len()).filter(|&at| runs[at].is_whole()).collect()
    };
    let (whole_a, whole_b) = (of(a), of(b));
    let picked = [picked(a, &whole_a), picked(b, &whole_b)];
    of_runs(step, [a, b], &picked, Design::Separate, options)
}

fn paired(
    step: &str,
    a: &[Run],
    b: &[Run],
    pairs: &[(usize, usize)],
    options: &Options,
) -> StepComparison {
    let whole = pairs.iter().filter(|&&(at_a, at_b)| a[at_a].is_whole() && b[at_b].is_whole());
    let (whole_a, whole_b): (Vec<usize>, Vec<usize>) = whole.copied().unzip();
    let picked = [picked(a, &whole_a), picked(b, &whole_b)];
    of_runs(step, [a, b], &picked, Design::Paired, options)
}

fn picked<'a>(runs: &'a [Run], which: &[usize]) -> Vec<&'a Run> {
    which.iter().map(|&at| &runs[at]).collect()
}

/// Compares the picked ones of all runs of both sides; those that are left out are counted.
fn of_runs(
    step: &str,
    all: [&[Run]; 2],
    [a, b]: &[Vec<&Run>; 2],
    design: Design,
    options: &Options,
) -> StepComparison {
    let mut compared = measured(step, Sides::of(a, b), design, options);
    compared.left_out = all[0].len() + all[1].len() - compared.runs_a - compared.runs_b;
    compared
}

fn measured(step: &str, sides: Sides, design: Design, options: &Options) -> StepComparison {
    let Sides { a, b, endpoints } = sides.cut_to(design);
    let measure = |metrics: &[Metric], a: &[Figures], b: &[Figures]| -> Vec<MetricComparison> {
        metrics.iter().map(|&metric| effect::measure(metric, a, b, design, options)).collect()
    };
    let mut compared = StepComparison {
        step: step.into(),
        design,
        runs_a: a.len(),
        runs_b: b.len(),
        left_out: 0,
        open_loop: a.iter().chain(&b).any(|run| run.open_loop),
        metrics: measure(&Metric::ALL, &a, &b),
        endpoints: endpoints
            .iter()
            .map(|each| EndpointComparison {
                endpoint: each.name.clone(),
                metrics: measure(&Metric::OF_ENDPOINTS, &each.a, &each.b),
            })
            .collect(),
        refused: None,
    };
    if !compared.endpoints.is_empty() {
        let mixed = compared.metrics.iter_mut().filter(|metric| metric.metric.is_latency());
        mixed.for_each(MetricComparison::withdraw);
    }
    if a.is_empty() || b.is_empty() {
        let side = if a.is_empty() { "A" } else { "B" };
        refuse(&mut compared, format!("{side} has no run that came to its end"));
    }
    compared
}

fn refuse(step: &mut StepComparison, why: String) {
    step.questions_mut().for_each(MetricComparison::withdraw);
    step.refused = Some(why);
}

/// Verdicts and sentences, adjusted over all steps, endpoints and metrics together.
fn conclude(steps: &mut [StepComparison]) {
    let mut asked: Vec<&mut MetricComparison> =
        steps.iter_mut().flat_map(StepComparison::questions_mut).collect();
    effect::conclude(&mut asked);
    let questions = asked.iter().filter(|metric| metric.p.is_some()).count();
    for step in steps {
        let runs = step.runs_a.min(step.runs_b);
        let context = sentence::Context { open_loop: step.open_loop, runs, questions };
        let (refused, endpoints) = (step.refused.clone(), step.endpoints.len());
        let say = |metric: &MetricComparison, mixed: usize| match &refused {
            Some(why) => format!("{} is not compared: {why}.", metric.metric.label()),
            None if mixed > 0 && metric.metric.is_latency() => format!(
                "{} over all endpoints is not compared: it would mix {mixed} endpoints, each of which is compared by itself.",
                metric.metric.label()
            ),
            None => sentence::sentence(metric, context),
        };
        for metric in &mut step.metrics {
            metric.sentence = say(metric, endpoints);
        }
        for metric in step.endpoints.iter_mut().flat_map(|each| &mut each.metrics) {
            metric.sentence = say(metric, 0);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
