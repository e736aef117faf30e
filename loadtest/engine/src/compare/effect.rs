//! How much one metric differs, and how sure that is.

use super::Options;
use super::figures::{Figures, Metric};
use super::interleave::Design;
use crate::stats;
use serde::{Deserialize, Serialize};

/// Which confidence intervals have, and 1 − the share of wrong calls that is accepted.
pub const CONFIDENCE: f64 = 0.95;

/// What is concluded about one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is better: more throughput, or less time.
    Faster,
    /// B is worse: less throughput, or more time.
    Slower,
    /// B fails less often.
    FewerFailures,
    /// B fails more often.
    MoreFailures,
    /// Nothing that chance does not explain. Not the same as "equal": see
    /// [`MetricComparison::detectable`].
    NoDifferenceSeen,
    /// No statement is possible; the sentence says why.
    NotComparable,
}

impl Verdict {
    /// Whether a difference was called.
    #[must_use]
    pub fn is_difference(self) -> bool {
        match self {
            Verdict::Faster | Verdict::Slower => true,
            Verdict::FewerFailures | Verdict::MoreFailures => true,
            Verdict::NoDifferenceSeen | Verdict::NotComparable => false,
        }
    }
}

/// The scale of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// ln(B / A): 0 is no change, 0.113 is 12% more, −0.128 is 12% less.
    LogRatio,
    /// B − A, for shares, which may be 0.
    Difference,
}

/// Both ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    fn holds_zero(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

/// The change from A to B on its scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// What the numbers mean.
    pub scale: Scale,
    /// The estimate: of log ratios, the mean over pairs, or the difference of the mean logarithms.
    pub estimate: f64,
    /// The 95% interval: Student's over pairs, Welch's over separate runs; for
    /// shares the bootstrap's. `None` with a single run a side, or if nothing varied.
    pub interval: Option<Range>,
    /// The same by bootstrap over runs (BCa); `None` with fewer than four runs a side.
    pub bootstrap: Option<Range>,
    /// Standard error of the estimate, with which anyone can check the interval.
    pub standard_error: Option<f64>,
    /// Degrees of freedom that belong to it.
    pub degrees_of_freedom: Option<f64>,
}

impl Effect {
    /// B / A; `None` for differences of shares.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.scale == Scale::LogRatio).then(|| self.estimate.exp())
    }
}

/// One metric of one step on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricComparison {
    /// Which metric.
    pub metric: Metric,
    /// A: the geometric mean over its runs (shares: the arithmetic mean), in the
    /// metric's unit; `None` if a run could not give it.
    pub a: Option<f64>,
    /// The same of B. For ratios B / A is exactly the estimate.
    pub b: Option<f64>,
    /// The change; `None` if there is none to speak of.
    pub effect: Option<Effect>,
    /// p value of "there is no change", on its own.
    pub p: Option<f64>,
    /// The same, adjusted for everything else the comparison asked (Holm).
    pub p_adjusted: Option<f64>,
    /// The smallest true effect that these runs would have shown in four cases of
    /// five, on the effect's scale, above 0. It allows for the adjustment as well.
    pub detectable: Option<f64>,
    /// What is concluded.
    pub verdict: Verdict,
    /// In words.
    pub sentence: String,
}

impl MetricComparison {
    /// Takes every conclusion back and leaves the figures.
    pub(super) fn withdraw(&mut self) {
        (self.effect, self.p) = (None, None);
        self.verdict = Verdict::NotComparable;
    }

    /// How much the metric changed, as a share of A or as a difference of shares, without its sign;
    /// `None` if there is no change to speak of.
    pub(super) fn change_share(&self) -> Option<f64> {
        let effect = self.effect?;
        Some(match effect.scale {
            Scale::LogRatio => (effect.estimate.exp() - 1.0).abs(),
            Scale::Difference => effect.estimate.abs(),
        })
    }

    /// [`MetricComparison::detectable`] as a share: 0.05 if differences under 5% (or 5 points)
    /// would not have been detected.
    #[must_use]
    pub(crate) fn detectable_share(&self) -> Option<f64> {
        let smallest = self.detectable?;
        Some(match self.effect?.scale {
            Scale::LogRatio => smallest.exp() - 1.0,
            Scale::Difference => smallest,
        })
    }
}

/// Compares one metric without a verdict, which only [`conclude`] can give. With
/// [`Design::Paired`], `a[i]` and `b[i]` are neighbours.
pub(super) fn measure(
    metric: Metric,
    a: &[Figures],
    b: &[Figures],
    design: Design,
    options: &Options,
) -> MetricComparison {
    let of = |runs: &[Figures]| -> Option<Vec<f64>> {
        runs.iter().map(|run| run.get(metric).filter(|value| value.is_finite())).collect()
    };
    let values = of(a).zip(of(b)).filter(|(a, b)| !a.is_empty() && !b.is_empty());
    let mut comparison = MetricComparison {
        metric,
        a: None,
        b: None,
        effect: None,
        p: None,
        p_adjusted: None,
        detectable: None,
        verdict: Verdict::NotComparable,
        sentence: String::new(),
    };
    // What only one side can tell is shown all the same.
    let middle = |values: Vec<f64>| match metric {
        Metric::FailureShare => stats::mean(&values),
        _ => stats::mean_of_runs(&values),
    };
    (comparison.a, comparison.b) = (of(a).and_then(middle), of(b).and_then(middle));
    let Some((a, b)) = values else { return comparison };
    let measured = if metric == Metric::FailureShare {
        Some(share_effect(&a, &b, options))
    } else {
        ratio_effect(&a, &b, design, options)
    };
    if let Some((effect, p)) = measured {
        comparison.effect = Some(effect);
        comparison.p = p;
        if a.len() > 1 && b.len() > 1 {
            comparison.verdict = Verdict::NoDifferenceSeen;
        }
    }
    comparison
}

/// `None` if a value is not above 0: a ratio to nothing is no ratio.
fn ratio_effect(
    a: &[f64],
    b: &[f64],
    design: Design,
    options: &Options,
) -> Option<(Effect, Option<f64>)> {
    if a.iter().chain(b).any(|&value| value <= 0.0) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(a), logs(b));
    let gap = |samples: &[Vec<f64>]| mean(&samples[1]) - mean(&samples[0]);
    let (interval, bootstrap) = match design {
        Design::Paired => {
            let changes: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
            let centre = |samples: &[Vec<f64>]| mean(&samples[0]);
            (
                stats::one_sample_t(&changes, CONFIDENCE),
                stats::bootstrap_bca(
                    &[&changes],
                    centre,
                    CONFIDENCE,
                    options.resamples,
                    options.seed,
                ),
            )
        }
        Design::Separate => (
            stats::welch_t(&a, &b, CONFIDENCE),
            stats::bootstrap_bca(&[&a, &b], gap, CONFIDENCE, options.resamples, options.seed),
        ),
    };
    let estimate = mean(&b) - mean(&a);
    // Figures with three digits can be the same in every run: no spread to go by,
    // but the ways of dealing them can still be counted.
    let point = a.len() > 1 && b.len() > 1 && interval.is_none();
    let counted = point.then(|| stats::permutation_p(&a, &b, options.seed));
    let range = interval.map(|interval| Range { low: interval.low, high: interval.high });
    let effect = Effect {
        scale: Scale::LogRatio,
        estimate,
        interval: range.or(point.then_some(Range { low: estimate, high: estimate })),
        bootstrap: bootstrap.map(|(low, high)| Range { low, high }),
        standard_error: interval.map(|interval| interval.standard_error),
        degrees_of_freedom: interval.map(|interval| interval.df),
    };
    Some((effect, interval.map(|interval| interval.p).or(counted)))
}

/// Shares are mostly 0 and anything but normal: the test deals the runs anew.
fn share_effect(a: &[f64], b: &[f64], options: &Options) -> (Effect, Option<f64>) {
    let gap = |samples: &[Vec<f64>]| mean(&samples[1]) - mean(&samples[0]);
    let bootstrap = stats::bootstrap_bca(&[a, b], gap, CONFIDENCE, options.resamples, options.seed)
        .map(|(low, high)| Range { low, high });
    let welch = stats::welch_t(a, b, CONFIDENCE);
    // Where nothing failed nothing is asked, and nothing has to be adjusted for it.
    let asked = a.len() > 1 && b.len() > 1 && a.iter().chain(b).any(|&share| share > 0.0);
    let bootstrap = bootstrap.filter(|_| asked);
    let effect = Effect {
        scale: Scale::Difference,
        estimate: mean(b) - mean(a),
        interval: bootstrap,
        bootstrap,
        standard_error: welch.map(|welch| welch.standard_error),
        degrees_of_freedom: welch.map(|welch| welch.df),
    };
    (effect, asked.then(|| stats::permutation_p(a, b, options.seed)))
}

fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(0.0)
}

/// Gives verdicts to everything one comparison asked: a difference is called if
/// its Holm-adjusted p value is at most 5% and the bootstrap agrees. So a
/// comparison of a thing with itself is wrong about *anything* in at most 5% of cases.
pub(super) fn conclude(asked: &mut [&mut MetricComparison]) {
    let p_values: Vec<f64> = asked.iter().filter_map(|metric| metric.p).collect();
    let mut adjusted = stats::holm(&p_values).into_iter();
    for metric in asked.iter_mut() {
        let (Some(effect), Some(_)) = (metric.effect, metric.p) else { continue };
        metric.p_adjusted = adjusted.next();
        metric.detectable = detectable(&effect, p_values.len());
        let certain = metric.p_adjusted.is_some_and(|p| p <= 1.0 - CONFIDENCE)
            && effect.bootstrap.is_none_or(|range| !range.holds_zero());
        if certain {
            metric.verdict = direction(metric.metric, effect.estimate);
        }
    }
}

/// At the level that Holm's procedure asks of the first difference it calls.
fn detectable(effect: &Effect, questions: usize) -> Option<f64> {
    let alpha = (1.0 - CONFIDENCE) / questions as f64;
    let (error, df) = (effect.standard_error?, effect.degrees_of_freedom?);
    Some(stats::detectable(error, df, alpha, stats::DESIGN_POWER))
}

fn direction(metric: Metric, change: f64) -> Verdict {
    match (metric, change > 0.0) {
        (Metric::FailureShare, true) => Verdict::MoreFailures,
        (Metric::FailureShare, false) => Verdict::FewerFailures,
        (Metric::Throughput, true) => Verdict::Faster,
        (Metric::Throughput, false) => Verdict::Slower,
        (_, true) => Verdict::Slower,
        (_, false) => Verdict::Faster,
    }
}
