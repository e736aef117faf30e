//! The wording of results. Throughput is compared as speed ("faster"), latency
//! as time ("shorter"): half the time is twice the speed, so the two are never mixed.

use super::effect::{Effect, MetricComparison, Range, Scale, Verdict};
use super::figures::Metric;
use super::quantity::{change_range, factor};
use crate::numbers::{decimals, signed, significant};

/// What a sentence must know in addition to the metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// Throughput is what was offered.
    pub(super) open_loop: bool,
    /// The fewest runs of a side.
    pub(super) runs: usize,
    /// How many p values were adjusted together.
    pub(super) questions: usize,
}

pub(super) fn sentence(comparison: &MetricComparison, context: Context) -> String {
    let Some(effect) = comparison.effect else {
        return missing(comparison);
    };
    if effect.interval.is_none() && context.runs < 2 {
        return single(comparison, &effect, context);
    }
    let main = match comparison.verdict {
        Verdict::Faster | Verdict::Slower | Verdict::MoreFailures | Verdict::FewerFailures => {
            difference(comparison.metric, &effect, context)
        }
        Verdict::NoDifferenceSeen | Verdict::NotComparable => no_difference(comparison, &effect),
    };
    let unlucky = comparison.verdict == Verdict::NoDifferenceSeen
        && comparison.p.is_some_and(|p| p <= 0.05)
        && context.questions > 1;
    let unlucky = if unlucky {
        format!(", not significant after correcting for {} comparisons", context.questions)
    } else {
        String::new()
    };
    let smallest = match comparison.detectable_share() {
        Some(smallest) => {
            format!("; {} would not have been detected", under(smallest, effect.scale))
        }
        None => String::new(),
    };
    format!("{main}{unlucky}{smallest}.")
}

fn under(smallest: f64, scale: Scale) -> String {
    let percent = smallest * 100.0;
    match scale {
        Scale::LogRatio if smallest >= 1.0 => {
            format!("differences under a factor of {}", factor(1.0 + smallest))
        }
        Scale::LogRatio => format!("differences under {}%", limit(percent)),
        Scale::Difference => format!("differences under {} percentage points", points(smallest)),
    }
}

/// A limit in per cent: one decimal below ten, none if it is 0.
fn limit(percent: f64) -> String {
    let text = format!("{percent:.digits$}", digits = decimals(percent));
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn points(share: f64) -> String {
    significant((share * 100.0).abs())
}

fn missing(comparison: &MetricComparison) -> String {
    let label = comparison.metric.label();
    match (comparison.metric.quantile(), comparison.a, comparison.b) {
        (Some(q), None, _) | (Some(q), _, None) => {
            let needed = (10.0 / (1.0 - q)).round();
            format!("{label} is not compared: it needs at least {needed} answers in every run.")
        }
        (_, None, _) | (_, _, None) => {
            format!("{label} is not compared: a run has no successful answer.")
        }
        (_, Some(_), Some(_)) => {
            format!("{label} is not compared: it is 0 in a run, and a ratio to 0 does not exist.")
        }
    }
}

fn single(comparison: &MetricComparison, effect: &Effect, context: Context) -> String {
    let change = difference(comparison.metric, effect, context);
    format!("In these runs {change}, but a single run per side gives no interval.")
}

fn no_difference(comparison: &MetricComparison, effect: &Effect) -> String {
    let label = comparison.metric.label();
    let change = match effect.scale {
        Scale::LogRatio => {
            let percent = |log: f64| (log.exp() - 1.0) * 100.0;
            let digits = decimals(percent(effect.estimate));
            let range = effect.interval.map_or(String::new(), |range| {
                format!(" ({})", change_range(range.low, range.high, digits))
            });
            format!("{}%{range}", signed(percent(effect.estimate), digits))
        }
        Scale::Difference => {
            if comparison.a == Some(0.0) && comparison.b == Some(0.0) {
                return "no request failed on either side".into();
            }
            format!("{} percentage points", signed(effect.estimate * 100.0, 2))
        }
    };
    format!("no difference detected in {label}: {change}")
}

/// "B is 12% faster (7…18%)". Written for either sign of the effect.
fn difference(metric: Metric, effect: &Effect, context: Context) -> String {
    let more = effect.estimate > 0.0;
    if effect.scale == Scale::Difference {
        let range = effect.interval.map_or(String::new(), |range| {
            let (low, high) = ordered(&range, points);
            format!(" ({low}…{high})")
        });
        let word = if more { "more" } else { "fewer" };
        let size = points(effect.estimate);
        return format!("B has {size} percentage points {word} failures{range}");
    }
    let by = how_much(effect);
    let label = metric.label();
    match (metric, by) {
        (Metric::Throughput, Size::Factor(by)) if context.open_loop => {
            format!("B answers {by} as many requests a second")
        }
        (Metric::Throughput, Size::Percent(by, range)) if context.open_loop => {
            let word = if more { "more" } else { "fewer" };
            format!("B answers {by} {word} requests a second{range}")
        }
        (Metric::Throughput, Size::Factor(by)) => format!("B is {by} as fast"),
        (Metric::Throughput, Size::Percent(by, range)) => {
            format!("B is {by} {}{range}", if more { "faster" } else { "slower" })
        }
        (_, Size::Factor(by)) => format!("B's {label} is {by} as long"),
        (_, Size::Percent(by, range)) => {
            format!("B's {label} is {by} {}{range}", if more { "longer" } else { "shorter" })
        }
    }
}

enum Size {
    /// `2.3 times (2.1…2.6)`.
    Factor(String),
    /// `12%` and ` (7…18%)`.
    Percent(String, String),
}

fn how_much(effect: &Effect) -> Size {
    let ratio = effect.estimate.exp();
    if ratio >= 2.0 {
        let range = effect.interval.map_or(String::new(), |range| {
            format!(" ({}…{})", factor(range.low.exp()), factor(range.high.exp()))
        });
        return Size::Factor(format!("{} times{range}", factor(ratio)));
    }
    let percent = (ratio - 1.0) * 100.0;
    let digits = decimals(percent);
    let sign = percent.signum();
    // Sizes are given without their sign, which the word has; one that crosses 0 keeps it.
    let size = |log: f64| {
        let size = (log.exp() - 1.0) * 100.0 * sign;
        if size < 0.0 { signed(size, digits) } else { format!("{size:.digits$}") }
    };
    let range = effect.interval.map_or(String::new(), |range| {
        let (low, high) =
            if sign < 0.0 { (range.high, range.low) } else { (range.low, range.high) };
        format!(" ({}…{}%)", size(low), size(high))
    });
    Size::Percent(format!("{}%", size(effect.estimate)), range)
}

fn ordered(range: &Range, written: impl Fn(f64) -> String) -> (String, String) {
    if range.low.abs() <= range.high.abs() {
        (written(range.low), written(range.high))
    } else {
        (written(range.high), written(range.low))
    }
}

/// A verdict in one or two words, right for the metric.
#[must_use]
pub(crate) fn verdict_words(metric: Metric, verdict: Verdict) -> &'static str {
    match (metric, verdict) {
        (Metric::Throughput, Verdict::Faster) => "faster",
        (Metric::Throughput, Verdict::Slower) => "slower",
        (_, Verdict::Faster) => "less time",
        (_, Verdict::Slower) => "more time",
        (_, Verdict::FewerFailures) => "fewer failures",
        (_, Verdict::MoreFailures) => "more failures",
        (_, Verdict::NoDifferenceSeen) => "no difference detected",
        (_, Verdict::NotComparable) => "not comparable",
    }
}

/// A range on the scale of its effect: `+7…+18%`, or percentage points.
pub(crate) fn range_words(scale: Scale, range: &Range) -> String {
    match scale {
        Scale::LogRatio => {
            let percent = |log: f64| (log.exp() - 1.0) * 100.0;
            let digits = decimals(percent(range.low)).max(decimals(percent(range.high)));
            change_range(range.low, range.high, digits)
        }
        Scale::Difference => {
            format!("{}…{} points", signed(range.low * 100.0, 2), signed(range.high * 100.0, 2))
        }
    }
}

/// An effect without its range.
pub(crate) fn effect_words(effect: &Effect) -> String {
    match effect.scale {
        Scale::LogRatio => super::quantity::change(effect.estimate),
        Scale::Difference if effect.estimate == 0.0 => "0 points".into(),
        Scale::Difference => format!("{} points", signed(effect.estimate * 100.0, 2)),
    }
}

/// The smallest effect that would have been detected.
pub(crate) fn detectable_words(comparison: &MetricComparison) -> Option<String> {
    let smallest = comparison.detectable_share()?;
    Some(match comparison.effect?.scale {
        Scale::LogRatio if smallest >= 1.0 => format!("× {}", factor(1.0 + smallest)),
        Scale::LogRatio => format!("{}%", limit(smallest * 100.0)),
        Scale::Difference => format!("{} points", points(smallest)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(metric: Metric, estimate: f64, low: f64, high: f64, verdict: Verdict) -> String {
        let log = |share: f64| share.ln_1p();
        let effect = Effect {
            scale: Scale::LogRatio,
            estimate: log(estimate),
            interval: Some(Range { low: log(low), high: log(high) }),
            bootstrap: None,
            standard_error: None,
            degrees_of_freedom: None,
        };
        let comparison = MetricComparison {
            metric,
            a: Some(1.0),
            b: Some(1.0),
            effect: Some(effect),
            p: Some(0.04),
            p_adjusted: Some(0.04),
            detectable: Some(log(0.05)),
            verdict,
            sentence: String::new(),
        };
        sentence(&comparison, Context { open_loop: false, runs: 10, questions: 6 })
    }

    #[test]
    fn faster_is_said_of_speed_and_shorter_of_time() {
        use Verdict::{Faster, NoDifferenceSeen, Slower};
        let cases = [
            (
                Metric::Throughput,
                0.12,
                0.07,
                0.18,
                Faster,
                "B is 12% faster (7…18%); differences under 5% would not have been detected.",
            ),
            (
                Metric::Throughput,
                -0.12,
                -0.18,
                -0.07,
                Slower,
                "B is 12% slower (7…18%); differences under 5% would not have been detected.",
            ),
            (
                Metric::P99,
                -0.5,
                -0.6,
                -0.4,
                Faster,
                "B's p99 is 50% shorter (40…60%); differences under 5% would not have been detected.",
            ),
            (
                Metric::P99,
                1.31,
                1.1,
                1.6,
                Slower,
                "B's p99 is 2.31 times (2.10…2.60) as long; differences under 5% would not have been detected.",
            ),
            (
                Metric::Mean,
                -0.012,
                -0.098,
                0.098,
                NoDifferenceSeen,
                "no difference detected in mean: −1.2% (−9.8…+9.8%), not significant after correcting for 6 comparisons; differences under 5% would not have been detected.",
            ),
        ];
        for (metric, estimate, low, high, verdict, expected) in cases {
            assert_eq!(compared(metric, estimate, low, high, verdict), expected);
        }
    }
}
