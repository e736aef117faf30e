//! Functions that create points in time and durations.

use super::arguments::{at, integer, text, unfit};
use super::catalogue::{Computation, Function};
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::temporal::{self, Kind, Measure};
use crate::value::{Entries, Value};

/// A type's constructor, clocks and truncation.
macro_rules! kind {
    ($kind:expr, $name:literal) => {
        [
            Function::new($name, 0, 1, |arguments, context| made($kind, arguments, context)),
            Function::new(concat!($name, ".transaction"), 0, 1, |arguments, context| {
                temporal::now($kind, arguments.first(), context.time)
            }),
            Function::new(concat!($name, ".statement"), 0, 1, |arguments, context| {
                temporal::now($kind, arguments.first(), context.time)
            }),
            Function::new(concat!($name, ".realtime"), 0, 1, |arguments, context| {
                temporal::now($kind, arguments.first(), context.time)
            }),
            Function::new(concat!($name, ".truncate"), 1, 3, |arguments, context| {
                truncated($kind, arguments, context)
            }),
        ]
    };
}

pub(super) static DATE: &[Function] = &kind!(Kind::Date, "date");
pub(super) static LOCAL_TIME: &[Function] = &kind!(Kind::LocalTime, "localtime");
pub(super) static TIME: &[Function] = &kind!(Kind::Time, "time");
pub(super) static LOCAL_DATE_TIME: &[Function] = &kind!(Kind::LocalDateTime, "localdatetime");
pub(super) static DATE_TIME: &[Function] = &kind!(Kind::DateTime, "datetime");

const BETWEEN: Computation = |arguments, _| difference(arguments, Measure::Mixed);
const IN_MONTHS: Computation = |arguments, _| difference(arguments, Measure::Months);
const IN_DAYS: Computation = |arguments, _| difference(arguments, Measure::Days);
const IN_SECONDS: Computation = |arguments, _| difference(arguments, Measure::Seconds);

pub(super) static TABLE: &[Function] = &[
    Function::new("datetime.fromEpoch", 2, 2, |arguments, _| {
        let seconds = integer("datetime.fromEpoch", at(arguments, 0))?;
        temporal::instant(seconds, integer("datetime.fromEpoch", at(arguments, 1))?)
    }),
    Function::new("datetime.fromEpochMillis", 1, 1, |arguments, _| {
        let milliseconds = integer("datetime.fromEpochMillis", at(arguments, 0))?;
        temporal::instant(
            milliseconds.div_euclid(1_000),
            milliseconds.rem_euclid(1_000) * 1_000_000,
        )
    }),
    Function::new("duration", 1, 1, |arguments, _| {
        temporal::duration(at(arguments, 0)).map(Value::duration)
    }),
    Function::new("duration.between", 2, 2, BETWEEN),
    Function::new("duration.inMonths", 2, 2, IN_MONTHS),
    Function::new("duration.inDays", 2, 2, IN_DAYS),
    Function::new("duration.inSeconds", 2, 2, IN_SECONDS),
    Function::new("timestamp", 0, 0, |_, context| {
        let milliseconds = i128::from(context.time.seconds) * 1_000
            + i128::from(context.time.nanoseconds / 1_000_000);
        let milliseconds =
            i64::try_from(milliseconds).map_err(|_| Error::defect("A clock out of range."))?;
        Ok(Value::Integer(milliseconds))
    }),
];

/// From an argument, or the current time.
fn made(kind: Kind, arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    match arguments.first() {
        None => temporal::now(kind, None, context.time),
        // A zone alone means the current time in that zone.
        Some(zone @ Value::Map(entries))
            if entries.len() == 1 && entries.contains_key("timezone") =>
        {
            temporal::now(kind, Some(zone), context.time)
        }
        Some(argument) => temporal::point_in_time(kind, argument),
    }
}

/// `kind.truncate(unit, value, fields)`; without a value, the current time.
fn truncated(kind: Kind, arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    let unit = text("truncate", at(arguments, 0))?;
    let none = Entries::new();
    let fields = match arguments.get(2) {
        None => &none,
        Some(Value::Map(entries)) => &**entries,
        Some(other) => return Err(unfit("truncate", other, "a Map of fields")),
    };
    match arguments.get(1) {
        Some(value) => temporal::truncate(kind, unit, value, fields),
        None => {
            let now = temporal::now(Kind::DateTime, None, context.time)?;
            temporal::truncate(kind, unit, &now, fields)
        }
    }
}

fn difference(arguments: &[Value], measure: Measure) -> Result<Value> {
    let (from, to) = (at(arguments, 0), at(arguments, 1));
    match (from, to) {
        (Value::Duration(_), _) | (_, Value::Duration(_)) => Err(Error::type_error(
            Detail::InvalidArgumentValue,
            "A duration cannot be computed between durations.",
        )),
        _ => temporal::between(from, to, measure).map(Value::duration),
    }
}
