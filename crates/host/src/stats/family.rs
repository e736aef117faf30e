//! Figures as data: what `/metrics` writes, what is exported, and what a console will show are
//! made of the same families.

use std::borrow::Cow;

/// How a figure is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start.
    Counter,
    /// As it is now.
    Gauge,
    /// How many values there were of which size, since the start.
    Histogram,
}

/// Label names with their values.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A count of something that has no halves.
    Whole(u64),
    /// Seconds, a share.
    Real(f64),
    /// A distribution.
    Distribution(Distribution),
}

/// How many values there were of which size.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Upper bounds, rising; a value belongs to the first that is not below it.
    pub(crate) bounds: Vec<f64>,
    /// One for each bound, not cumulative, and one for what lies above them all.
    pub(crate) counts: Vec<u64>,
    /// All values added.
    pub(crate) sum: f64,
}

/// One value with its labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) labels: Labels,
    pub(crate) value: Value,
}

/// A figure of several things of one kind.
pub struct FigureOf<T> {
    /// How it is to be read.
    pub kind: Kind,
    /// Its name, as that of a [`Family`].
    pub name: &'static str,
    /// What it says, in a sentence.
    pub help: &'static str,
    /// The value of one thing.
    pub value: fn(&T) -> u64,
}

impl<T> FigureOf<T> {
    /// Its family, with a series for each thing, which these labels tell apart.
    pub fn of_every<'a, const N: usize>(
        &self,
        labels: [&'static str; N],
        things: impl IntoIterator<Item = ([String; N], &'a T)>,
    ) -> Family
    where
        T: 'a,
    {
        let series = things.into_iter().map(|(of, thing)| (of, (self.value)(thing)));
        Family::of_every(self.kind, self.name, self.help, labels, series)
    }
}

/// All series of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Its name, with the base unit as its last word, or as the one before `total`.
    pub name: Cow<'static, str>,
    /// What it says, in a sentence.
    pub help: Cow<'static, str>,
    /// How it is to be read.
    pub kind: Kind,
    /// Its series; none if there is nothing to tell.
    pub(crate) series: Vec<Series>,
}

impl Family {
    /// A family of a kind, without series yet.
    pub(crate) fn new(
        kind: Kind,
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
    ) -> Family {
        Family { name: name.into(), help: help.into(), kind, series: Vec::new() }
    }

    /// One gauge of the whole process.
    pub fn gauge(name: &'static str, help: &'static str, value: impl Into<Value>) -> Family {
        Family::new(Kind::Gauge, name, help).with(Labels::new(), value)
    }

    /// One counter of the whole process.
    pub fn counter(name: &'static str, help: &'static str, value: impl Into<Value>) -> Family {
        Family::new(Kind::Counter, name, help).with(Labels::new(), value)
    }

    /// A figure of several things, with a series for each: `label` says of which.
    pub fn of_each<V: Into<Value>>(
        kind: Kind,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        series: impl IntoIterator<Item = (String, V)>,
    ) -> Family {
        let series = series.into_iter().map(|(of, value)| ([of], value));
        Family::of_every(kind, name, help, [label], series)
    }

    /// The same, where several labels say of which.
    pub fn of_every<V: Into<Value>, const N: usize>(
        kind: Kind,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        series: impl IntoIterator<Item = ([String; N], V)>,
    ) -> Family {
        let empty = Family::new(kind, name, help);
        let with = |family: Family, (of, value): ([String; N], V)| {
            family.with(labels.into_iter().zip(of).collect(), value)
        };
        series.into_iter().fold(empty, with)
    }

    /// The same with one more series.
    pub(crate) fn with(mut self, labels: Labels, value: impl Into<Value>) -> Family {
        self.series.push(Series { labels, value: value.into() });
        self
    }

    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The sum over the series with such labels, given as name and value. A distribution counts as
    /// the number of its values.
    pub fn sum(&self, is: impl Fn(&str, &str) -> bool) -> f64 {
        let values = self.chosen(is).map(|value| match value {
            Value::Whole(count) => *count as f64,
            Value::Real(value) => *value,
            Value::Distribution(of) => of.counts.iter().sum::<u64>() as f64,
        });
        // The sum of no numbers is -0.
        values.sum::<f64>() + 0.0
    }

    /// The distributions of the series with such labels, added up: upper bounds, the last one
    /// infinite, each with its count.
    pub fn counts(&self, is: impl Fn(&str, &str) -> bool) -> Vec<(f64, u64)> {
        let mut sum: Vec<(f64, u64)> = Vec::new();
        for value in self.chosen(is) {
            let Value::Distribution(of) = value else { continue };
            let bounds = of.bounds.iter().copied().chain([f64::INFINITY]);
            if sum.is_empty() {
                sum = bounds.map(|bound| (bound, 0)).collect();
            }
            // The series of one family have the same bounds.
            debug_assert_eq!(sum.len(), of.counts.len());
            for ((_, total), count) in sum.iter_mut().zip(&of.counts) {
                *total += count;
            }
        }
        sum
    }

    fn chosen(&self, is: impl Fn(&str, &str) -> bool) -> impl Iterator<Item = &Value> {
        let fits = move |series: &&Series| series.labels.iter().all(|(name, of)| is(name, of));
        self.series.iter().filter(fits).map(|series| &series.value)
    }

    /// The unit that the name says, as UCUM writes it: `s`, `By` or `1`.
    #[cfg(feature = "otlp")]
    pub(crate) fn unit(&self) -> &'static str {
        let name = self.name.strip_suffix("_total").unwrap_or(&self.name);
        match name.rsplit('_').next() {
            Some("seconds") => "s",
            Some("bytes") => "By",
            _ => "1",
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Whole(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl From<Distribution> for Value {
    fn from(distribution: Distribution) -> Value {
        Value::Distribution(distribution)
    }
}

impl Distribution {
    /// A log's, of values in `unit`s of what the name says: 1e-6 for µs under a name in seconds.
    pub(crate) fn of(histogram: &wellspring_log::Histogram, unit: f64) -> Distribution {
        let (bounds, counts): (Vec<_>, Vec<_>) = histogram.buckets().unzip();
        Distribution {
            bounds: bounds.into_iter().flatten().map(|bound| scaled(bound, unit)).collect(),
            counts,
            sum: scaled(histogram.sum(), unit),
        }
    }
}

/// `value` times `unit`, rounded as a person would write it: 50 µs are 0.00005 s, not
/// 0.000049999999999999996.
pub(crate) fn scaled(value: u64, unit: f64) -> f64 {
    value as f64 / (1.0 / unit).round()
}
