//! The language of `--fail-if` and `--slo`: one figure of a step compared with a limit.
//!
//! ```text
//! [endpoint:]figure comparison limit        p99>5ms   GET /health:mean >= 300us   failures>0.1%
//! ```
//!
//! | figure | what it is | limit |
//! |---|---|---|
//! | `p50`, `p99.9`, any `p` between 0 and 100 | that quantile of the latency | a time: `ns`, `us`, `µs`, `ms`, `s` |
//! | `mean`, `min`, `max` | of the latency | a time |
//! | `rate`, `rps` | successes a second | a number, `/s` if you like |
//! | `errors` | requests without an answer | a number, or a share with `%` |
//! | `failures` | those and answers with a wrong status or failed check | a number, or a share with `%` |
//! | `failure_rate` | share of failures | `%`, or a number from 0 to 1 |
//!
//! Latency is what reports mean by it: response time in open loop, service time in closed, of
//! successes.
//!
//! **Repeats** are merged: the quantile is that of all answers of all repeats, counts are sums. The
//! worst repeat would fail more often the more one measures; a median over repeats would hide a bad
//! one. The rate is the throughput that every report gives, [`Step::throughput_per_s`].
//!
//! **Requests without an answer** (timed out, unanswered, never sent) count as slower than all
//! others in quantiles, so that a server cannot pass by not answering. `max` is then at least the
//! time limit; `mean` and `min` are of the answers alone. With an endpoint, requests never sent are
//! not counted, as they belong to none.

use crate::invalid::Invalid;
use crate::numbers::{count, counted, duration, percent, rate};
use crate::result::{EndpointResult, ErrorKind, Finish, Step};

/// What a threshold looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// A quantile of the latency, between 0 and 1.
    Quantile(f64),
    /// The mean latency.
    Mean,
    /// The shortest latency.
    Min,
    /// The longest latency.
    Max,
    /// Successes a second.
    Rate,
    /// Requests that ended without an answer.
    Errors,
    /// Errors and answers that do not count as success.
    Failures,
    /// Requests that ended without an answer, as a share of all.
    ErrorShare,
    /// Errors and answers that do not count as success, as a share of all.
    FailureShare,
}

/// How a figure is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// One expression, e.g. `p99>5ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As the user wrote it, without spaces around.
    pub expression: String,
    /// The endpoint it speaks of; `None` for all together.
    pub endpoint: Option<String>,
    /// What it looks at.
    pub metric: Metric,
    /// How it compares.
    pub comparison: Comparison,
    /// The limit: nanoseconds, requests a second, a count, or a share of 1.
    pub limit: f64,
}

/// A figure as a threshold sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// In the unit of [`Threshold::limit`]; infinite for a quantile among requests without an
    /// answer.
    pub value: f64,
    /// As printed, with its unit.
    pub text: String,
}

/// Whether an expression is true of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// It is; with what was measured.
    True(Measured),
    /// It is not; with what was measured.
    False(Measured),
    /// It cannot be said; the text says why.
    Unknown(String),
}

/// Why an expression was not understood. The text names it and says what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError(String);

impl std::fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ThresholdError {}

/// Several expressions that must all hold, separated by commas: the argument of `bench search
/// --slo`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// As the user wrote it.
    pub text: String,
    /// The expressions, at least one.
    pub conditions: Vec<Threshold>,
}

/// Whether an [`Slo`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SloOutcome {
    /// Every condition holds; the text gives what was measured.
    Holds(String),
    /// A condition does not; the text gives it and what was measured.
    Fails(String),
    /// No condition fails, but one could not be had, and the text says why: it has not been shown
    /// to hold.
    Unknown(String),
}

impl std::str::FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        Threshold::parse(text)
    }
}

impl Threshold {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`ThresholdError`], which quotes the expression and says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let expression = text.trim();
        let fail = |why: &str| ThresholdError(format!("`{expression}`: {why}"));
        // The last one: an endpoint's name may hold such a sign, a limit cannot.
        let Some(at) = expression.rfind(['<', '>']) else {
            return Err(fail("a comparison is missing; write for example p99>5ms"));
        };
        let (left, right) = expression.split_at(at);
        let (comparison, limit) = match (&right[..1], right[1..].strip_prefix('=')) {
            ("<", None) => (Comparison::Below, &right[1..]),
            ("<", Some(limit)) => (Comparison::AtMost, limit),
            (_, None) => (Comparison::Above, &right[1..]),
            (_, Some(limit)) => (Comparison::AtLeast, limit),
        };
        let (endpoint, figure) = match left.rsplit_once(':') {
            Some((name, figure)) => (Some(name.trim().to_owned()), figure.trim()),
            // An endpoint's name may hold spaces, a figure cannot.
            None => match left.trim().rsplit_once(char::is_whitespace) {
                Some((name, figure)) => (Some(name.trim().to_owned()), figure),
                None => (None, left.trim()),
            },
        };
        if endpoint.as_deref() == Some("") {
            return Err(fail("the endpoint's name before the colon is missing"));
        }
        let limit = limit.trim();
        if limit.is_empty() {
            return Err(fail(
                "the limit after the comparison is missing; write for example p99>5ms",
            ));
        }
        let mut metric = metric(figure).map_err(|why| fail(&why.to_string()))?;
        if limit.ends_with('%') {
            metric = match metric {
                Metric::Errors => Metric::ErrorShare,
                Metric::Failures => Metric::FailureShare,
                other => other,
            };
        }
        let limit = limit_of(metric, limit).map_err(|why| fail(&why.to_string()))?;
        Ok(Threshold { expression: expression.to_owned(), endpoint, metric, comparison, limit })
    }

    /// The figure it looks at.
    ///
    /// # Errors
    /// In words, why it cannot be had: the step was not run, has no such endpoint, or too few
    /// answers.
    pub fn measure(&self, step: &Step) -> Result<Measured, Invalid> {
        let (of, missing) = match &self.endpoint {
            None => {
                let figures = super::figures::Figures::of(step).ok_or("nothing was run")?;
                let missing = figures.missing();
                (figures.total, missing)
            }
            Some(name) => {
                let all = step.merged_endpoints();
                let of = all.into_iter().find(|endpoint| endpoint.name == *name);
                let of = of.ok_or_else(|| no_endpoint(name, step))?;
                let missing = of.counters.unanswered() + timeouts(&of);
                (of, missing)
            }
        };
        let timeout_ns = step.settings.timeout_ms as f64 * 1e6;
        let latency = of.latency();
        let time = |ns: f64| Measured { value: ns, text: duration(ns) };
        let some =
            |ns: Option<f64>| ns.map(time).ok_or_else(|| Invalid::new("no request succeeded"));
        let unanswered = self.unanswered(step, &of);
        let errors: u64 = of.counters.errors.values().sum::<u64>() + unanswered;
        let failures = of.counters.failures() + unanswered;
        let all = of.counters.successes + failures;
        match self.metric {
            Metric::Quantile(q) => quantile_with_missing(latency, q, missing),
            Metric::Mean => some(latency.mean_ns()),
            Metric::Min => some(latency.min_ns().map(|ns| ns as f64)),
            Metric::Max if missing > 0 => {
                let longest = latency.max_ns().unwrap_or(0) as f64;
                let value = longest.max(timeout_ns);
                Ok(Measured { value, text: format!("at least {}", duration(value)) })
            }
            Metric::Max => some(latency.max_ns().map(|ns| ns as f64)),
            Metric::Rate => {
                let ns: u64 = step.runs.iter().map(|run| run.measured_ns).sum();
                if ns == 0 {
                    return Err("nothing was measured".into());
                }
                let value = match &self.endpoint {
                    None => step.throughput_per_s(),
                    Some(name) => step.endpoint_throughput_per_s(name),
                };
                Ok(Measured { value, text: rate(value) })
            }
            Metric::Errors => {
                Ok(Measured { value: errors as f64, text: counted(errors, "error", "errors") })
            }
            Metric::Failures => Ok(Measured {
                value: failures as f64,
                text: counted(failures, "failure", "failures"),
            }),
            Metric::ErrorShare => share(errors, all),
            Metric::FailureShare => share(failures, all),
        }
    }

    /// Whether the expression is true of the step. Where a run could not go on and the others
    /// keep the limit, nothing is known.
    #[must_use]
    pub fn judge(&self, step: &Step) -> Truth {
        let aborted = step.runs.iter().find_map(|run| match &run.finish {
            Finish::Aborted(why) => Some(format!("run {} could not go on: {why}", run.order)),
            Finish::Time | Finish::Count | Finish::Interrupted => None,
        });
        match self.measure(step) {
            Ok(measured) if self.comparison.is_true(measured.value, self.limit) => {
                Truth::True(measured)
            }
            _ if aborted.is_some() => Truth::Unknown(aborted.unwrap_or_default()),
            Err(why) => Truth::Unknown(why.to_string()),
            Ok(measured) => Truth::False(measured),
        }
    }

    fn unanswered(&self, step: &Step, of: &EndpointResult) -> u64 {
        match self.endpoint {
            // A request that was due and never sent is an error to the caller it stands for.
            None => step
                .runs
                .iter()
                .map(|run| {
                    run.unanswered + run.open_loop.as_ref().map_or(0, |open| open.never_sent)
                })
                .sum(),
            Some(_) => of.counters.unanswered(),
        }
    }
}

impl Comparison {
    fn is_true(self, value: f64, limit: f64) -> bool {
        match self {
            Comparison::Below => value < limit,
            Comparison::AtMost => value <= limit,
            Comparison::Above => value > limit,
            Comparison::AtLeast => value >= limit,
        }
    }
}

fn timeouts(of: &EndpointResult) -> u64 {
    of.counters.errors.get(&ErrorKind::Timeout).copied().unwrap_or(0)
}

fn share(part: u64, all: u64) -> Result<Measured, Invalid> {
    if all == 0 {
        return Err("no request ended".into());
    }
    let value = part as f64 / all as f64;
    Ok(Measured { value, text: percent(value) })
}

fn quantile_with_missing(
    latency: &crate::histogram::Histogram,
    q: f64,
    missing: u64,
) -> Result<Measured, Invalid> {
    let (answered, all) = (latency.count() as f64, (latency.count() + missing) as f64);
    if all * (1.0 - q) < 10.0 - 1e-6 {
        return Err(format!(
            "{} needs {} answers, and there were {}",
            crate::numbers::quantile_name(q),
            count(crate::histogram::Histogram::values_needed(q)),
            count(latency.count())
        )
        .into());
    }
    let rank = q * all;
    if rank > answered {
        let longest = latency.max_ns().unwrap_or(0) as f64;
        return Ok(Measured {
            value: f64::INFINITY,
            text: format!(
                "more than {} ({} without an answer)",
                duration(longest),
                counted(missing, "request", "requests")
            ),
        });
    }
    let ns = latency.quantile_ns(rank / answered).unwrap_or(0) as f64;
    Ok(Measured { value: ns, text: duration(ns) })
}

/// That a step has no such endpoint, and which it has.
fn no_endpoint(name: &str, step: &Step) -> String {
    let all = step.merged_endpoints();
    let known: Vec<String> = all.iter().map(|endpoint| format!("{:?}", endpoint.name)).collect();
    format!("there is no endpoint {name:?}; there are {}", known.join(", "))
}

fn metric(figure: &str) -> Result<Metric, Invalid> {
    Ok(match figure {
        "mean" => Metric::Mean,
        "min" => Metric::Min,
        "max" => Metric::Max,
        "rate" | "rps" => Metric::Rate,
        "errors" => Metric::Errors,
        "failures" => Metric::Failures,
        "failure_rate" => Metric::FailureShare,
        other => {
            let percentile = other.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
            match percentile {
                Some(percentile) if percentile > 0.0 && percentile < 100.0 => {
                    Metric::Quantile(percentile / 100.0)
                }
                Some(_) => {
                    return Err(format!(
                        "the percentile {other} must lie between p0 and p100; the largest value is max"
                    ).into());
                }
                None => {
                    return Err(format!(
                        "there is no figure {other:?}; use p50, p99.9, mean, min, max, rate, rps, errors, failures or failure_rate"
                    ).into());
                }
            }
        }
    })
}

fn limit_of(metric: Metric, text: &str) -> Result<f64, Invalid> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || ".+-eE_".contains(c))).unwrap_or(text.len());
    // `5e` would take the e of nothing; units begin with other letters than e.
    let (digits, unit) = text.split_at(end);
    let number: f64 = digits
        .replace('_', "")
        .parse()
        .map_err(|_| format!("the limit {text:?} does not begin with a number"))?;
    if !number.is_finite() || number < 0.0 {
        return Err(format!("the limit {text:?} must be zero or more").into());
    }
    let unit = unit.trim();
    let wrong = |expected: &str| {
        Err(Invalid::new(format!("the limit {text:?} has the wrong unit; {expected}")))
    };
    match metric {
        Metric::Quantile(_) | Metric::Mean | Metric::Min | Metric::Max => match unit {
            "ns" => Ok(number),
            "us" | "µs" | "μs" => Ok(number * 1e3),
            "ms" => Ok(number * 1e6),
            "s" => Ok(number * 1e9),
            "" => Err(format!(
                "the time {text:?} needs a unit: ns, us, ms or s, for example {text}ms"
            ).into()),
            _ => wrong("a time has ns, us, ms or s"),
        },
        Metric::Rate => match unit {
            "" | "/s" => Ok(number),
            _ => wrong("a rate has /s or none"),
        },
        Metric::Errors | Metric::Failures => match unit {
            "" => Ok(number),
            _ => wrong("a number of requests has none, a share of them has %"),
        },
        Metric::ErrorShare | Metric::FailureShare => match unit {
            "%" if number <= 100.0 => Ok(number / 100.0),
            "" if number <= 1.0 => Ok(number),
            "" | "%" => Err(format!(
                "the share {text:?} is more than all; write a number from 0 to 1, or a percentage like 1%"
            ).into()),
            _ => wrong("a share has %, or none if it is a number from 0 to 1"),
        },
    }
}

impl Slo {
    /// Reads one or more expressions separated by commas.
    ///
    /// # Errors
    /// [`ThresholdError`] of the first that was not understood, or that there is none.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let conditions = parts.map(Threshold::parse).collect::<Result<Vec<_>, _>>()?;
        if conditions.is_empty() {
            return Err(ThresholdError(
                "the condition is empty; write for example p99<10ms".into(),
            ));
        }
        Ok(Slo { text: text.trim().to_owned(), conditions })
    }

    /// Whether every condition holds in the step.
    #[must_use]
    pub fn judge(&self, step: &Step) -> SloOutcome {
        let (mut held, mut unknown) = (Vec::new(), None);
        for condition in &self.conditions {
            match condition.judge(step) {
                Truth::True(measured) => {
                    held.push(format!("{}: {}", condition.expression, measured.text))
                }
                Truth::False(measured) => {
                    return SloOutcome::Fails(format!(
                        "{}: {}",
                        condition.expression, measured.text
                    ));
                }
                Truth::Unknown(why) => {
                    unknown = unknown.or(Some(format!("{}: {why}", condition.expression)))
                }
            }
        }
        unknown.map_or_else(|| SloOutcome::Holds(held.join(", ")), SloOutcome::Unknown)
    }
}
