//! Aggregations: functions over many rows.

use super::arguments::{number, unfit};
use crate::context::{Budget, sorted};
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::temporal;
use crate::value::{Distinct, DistinctSet, Duration, Value, order};
use std::cmp::Ordering;

/// Which aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// `count(*)`: counts rows. [`aggregate`] does not return it, because it has its own syntax.
    CountRows,
    /// `count(x)`: counts values that are not null.
    Count,
    /// `sum(x)`
    Sum,
    /// `avg(x)`
    Average,
    /// `min(x)`
    Minimum,
    /// `max(x)`
    Maximum,
    /// `collect(x)`
    Collect,
    /// `stDev(x)`: of a sample.
    Deviation,
    /// `stDevP(x)`: of the population.
    PopulationDeviation,
    /// `percentileCont(x, p)`: interpolates between the two nearest values.
    PercentileContinuous,
    /// `percentileDisc(x, p)`: the nearest value.
    PercentileDiscrete,
}

impl Aggregate {
    /// Number of arguments.
    pub fn arity(self) -> usize {
        match self {
            Self::CountRows => 0,
            Self::PercentileContinuous | Self::PercentileDiscrete => 2,
            _ => 1,
        }
    }
}

/// The names of the aggregations.
static NAMES: &[(&str, Aggregate)] = &[
    ("count", Aggregate::Count),
    ("sum", Aggregate::Sum),
    ("avg", Aggregate::Average),
    ("min", Aggregate::Minimum),
    ("max", Aggregate::Maximum),
    ("collect", Aggregate::Collect),
    ("stDev", Aggregate::Deviation),
    ("stDevP", Aggregate::PopulationDeviation),
    ("percentileCont", Aggregate::PercentileContinuous),
    ("percentileDisc", Aggregate::PercentileDiscrete),
];

/// The aggregation with this name, ignoring case.
pub fn aggregate(name: &str) -> Option<Aggregate> {
    let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, aggregate)| *aggregate)
}

/// The names of all aggregations and their numbers of arguments.
pub(crate) fn aggregates() -> impl Iterator<Item = (&'static str, usize)> {
    NAMES.iter().map(|(name, aggregate)| (*name, aggregate.arity()))
}

/// Overhead of a seen value in its table.
const SEEN_BYTES: u64 = 64;

/// An aggregation in progress: consumes values row by row and produces one.
#[derive(Debug, Clone)]
pub struct Accumulator {
    progress: Progress,
    /// The values seen, for `DISTINCT`.
    seen: Option<DistinctSet<[Value; 1]>>,
}

#[derive(Debug, Clone)]
enum Progress {
    Count(i64),
    Sum(Sum),
    Average {
        sum: Sum,
        count: i64,
    },
    /// The best value, with the bytes charged for it.
    Extreme {
        best: Value,
        bytes: u64,
        wanted: Ordering,
    },
    Collect(Vec<Value>),
    Deviation {
        count: f64,
        mean: f64,
        squares: f64,
        population: bool,
    },
    Percentile {
        values: Vec<Value>,
        fraction: Option<f64>,
        continuous: bool,
    },
}

impl Accumulator {
    /// An aggregation without values; counts equivalent values once if `distinct`.
    pub fn new(aggregate: Aggregate, distinct: bool) -> Self {
        let extreme = |wanted| Progress::Extreme { best: Value::Null, bytes: 0, wanted };
        let progress = match aggregate {
            Aggregate::CountRows | Aggregate::Count => Progress::Count(0),
            Aggregate::Sum => Progress::Sum(Sum::Integer(0)),
            Aggregate::Average => Progress::Average { sum: Sum::Integer(0), count: 0 },
            Aggregate::Minimum => extreme(Ordering::Less),
            Aggregate::Maximum => extreme(Ordering::Greater),
            Aggregate::Collect => Progress::Collect(Vec::new()),
            Aggregate::Deviation | Aggregate::PopulationDeviation => Progress::Deviation {
                count: 0.0,
                mean: 0.0,
                squares: 0.0,
                population: aggregate == Aggregate::PopulationDeviation,
            },
            Aggregate::PercentileContinuous | Aggregate::PercentileDiscrete => {
                Progress::Percentile {
                    values: Vec::new(),
                    fraction: None,
                    continuous: aggregate == Aggregate::PercentileContinuous,
                }
            }
        };
        Self { progress, seen: distinct.then(DistinctSet::default) }
    }

    /// Adds a row, for `count(*)`.
    pub fn add_row(&mut self) {
        if let Progress::Count(count) = &mut self.progress {
            *count = count.saturating_add(1);
        }
    }

    /// Adds a value; ignores null. `fraction` is the second argument of percentiles, and null for
    /// others.
    ///
    /// # Errors
    /// A value that cannot be added, a fraction outside 0 to 1, a sum beyond 64 bits, or exhausted
    /// memory.
    pub fn add(&mut self, value: Value, fraction: &Value, budget: &mut Budget) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen {
            // Charged before hashing.
            let bytes = SEEN_BYTES.saturating_add(value.share_of_outer_bytes());
            budget.charge_steps(value.steps())?;
            budget.charge_bytes(bytes)?;
            if !seen.insert(Distinct::of([value.clone()])) {
                budget.return_bytes(bytes);
                return Ok(());
            }
        }
        match &mut self.progress {
            Progress::Count(count) => *count = count.saturating_add(1),
            Progress::Sum(sum) => sum.add("sum", &value)?,
            Progress::Average { sum, count } => {
                sum.add("avg", &value)?;
                *count = count.saturating_add(1);
            }
            Progress::Extreme { best, bytes, wanted } => {
                budget.charge_steps(value.steps().min(best.steps()))?;
                if best.is_null() || order(&value, best) == *wanted {
                    budget.return_bytes(std::mem::take(bytes));
                    let share = value.share_of_outer_bytes();
                    budget.charge_bytes(share)?;
                    (*best, *bytes) = (value, share);
                }
            }
            Progress::Collect(values) => {
                budget.charge_bytes(value.share_of_bytes())?;
                values.push(value);
            }
            Progress::Deviation { count, mean, squares, .. } => {
                // Welford's algorithm avoids differences of large sums.
                let number = number("stDev", &value)?;
                *count += 1.0;
                let before = number - *mean;
                *mean += before / *count;
                *squares += before * (number - *mean);
            }
            Progress::Percentile { values, fraction: wanted, .. } => {
                if wanted.is_none() {
                    *wanted = Some(checked_fraction(fraction)?);
                }
                number("percentile", &value)?;
                budget.charge_bytes(size_of::<Value>() as u64)?;
                values.push(value);
            }
        }
        Ok(())
    }

    /// The result.
    ///
    /// # Errors
    /// A sum beyond 64 bits; an exhausted budget.
    pub fn finish(self, budget: &mut Budget) -> Result<Value> {
        Ok(match self.progress {
            Progress::Count(count) => Value::Integer(count),
            Progress::Sum(sum) => sum.value()?,
            Progress::Average { count: 0, .. } => Value::Null,
            Progress::Average { sum, count } => sum.average(count)?,
            Progress::Extreme { best, .. } => best,
            Progress::Collect(values) => Value::list(values).bounded()?,
            Progress::Deviation { count, squares, population, .. } => {
                let freedom = if population { count } else { count - 1.0 };
                Value::Float(if freedom > 0.0 { (squares / freedom).sqrt() } else { 0.0 })
            }
            Progress::Percentile { values, fraction, continuous } => {
                percentile(values, fraction.unwrap_or(0.0), continuous, budget)?
            }
        })
    }
}

/// A sum, in integers as long as all values are integers.
#[derive(Debug, Clone)]
enum Sum {
    Integer(i128),
    Float(f64),
    Duration(Duration),
}

impl Sum {
    fn add(&mut self, function: &str, value: &Value) -> Result<()> {
        *self = match (&*self, value) {
            // Overflowing 128 bits takes 2^64 integers of 64 bits.
            (Self::Integer(sum), Value::Integer(integer)) => {
                Self::Integer(sum.saturating_add(i128::from(*integer)))
            }
            (Self::Integer(sum), Value::Float(float)) => Self::Float(*sum as f64 + float),
            (Self::Float(sum), Value::Integer(integer)) => Self::Float(sum + *integer as f64),
            (Self::Float(sum), Value::Float(float)) => Self::Float(sum + float),
            (Self::Integer(0), Value::Duration(duration)) => Self::Duration(**duration),
            (Self::Duration(sum), Value::Duration(duration)) => {
                Self::Duration(temporal::add(sum, duration)?)
            }
            (_, other) => return Err(unfit(function, other, "numbers or Durations")),
        };
        Ok(())
    }

    fn value(self) -> Result<Value> {
        match self {
            Self::Integer(sum) => i64::try_from(sum).map(Value::Integer).map_err(|_| {
                Error::runtime(
                    ErrorKind::ArithmeticError,
                    Detail::IntegerOverflow,
                    format!("The sum {sum} does not fit into 64 bits."),
                )
            }),
            Self::Float(sum) => Ok(Value::Float(sum)),
            Self::Duration(sum) => Ok(Value::duration(sum)),
        }
    }

    fn average(self, count: i64) -> Result<Value> {
        Ok(match self {
            Self::Integer(sum) => Value::Float(sum as f64 / count as f64),
            Self::Float(sum) => Value::Float(sum / count as f64),
            Self::Duration(sum) => {
                return temporal::scale(&sum, 1.0 / count as f64).map(Value::duration);
            }
        })
    }
}

fn checked_fraction(fraction: &Value) -> Result<f64> {
    let float = number("percentile", fraction)?;
    if (0.0..=1.0).contains(&float) {
        return Ok(float);
    }
    let message = format!("A percentile must be a number from 0.0 to 1.0, not {float}.");
    Err(Error::argument(Detail::NumberOutOfRange, message))
}

/// The value at a fraction of the sorted values; null if there are none.
fn percentile(
    values: Vec<Value>,
    fraction: f64,
    continuous: bool,
    budget: &mut Budget,
) -> Result<Value> {
    let mut values = sorted(values, budget, |value| value.steps(), order)?;
    let Some(last) = values.len().checked_sub(1) else { return Ok(Value::Null) };
    if !continuous {
        let place = (fraction * values.len() as f64).ceil() as usize;
        return Ok(values.swap_remove(place.saturating_sub(1).min(last)));
    }
    let place = fraction * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let float = |index: usize| match values.get(index) {
        Some(Value::Integer(integer)) => *integer as f64,
        Some(Value::Float(float)) => *float,
        _ => f64::NAN,
    };
    let (low, high) = (float(below.min(last)), float(above.min(last)));
    Ok(Value::Float(low + (high - low) * (place - below as f64)))
}
