//! Components of temporal values: `date.year`, `duration.minutesOfHour`.

use super::calendar;
use super::parts::{Parts, SECOND};
use super::text::offset_text;
use crate::value::{Duration, Value};

/// A component of a temporal value; `None` if it has no such component.
pub fn component(value: &Value, key: &str) -> Option<Value> {
    if let Value::Duration(duration) = value {
        return of_duration(duration, key).map(Value::Integer);
    }
    let parts = Parts::of(value)?;
    let of_date = parts.date.and_then(|date| of_date(date, key));
    let of_time = || parts.time.and_then(|time| of_time(time, key));
    match of_date.or_else(of_time) {
        Some(number) => Some(Value::Integer(number)),
        None if parts.zone.is_some() => of_zone(&parts, key),
        None => None,
    }
}

/// Whether the value has this component, but its number exceeds 64 bits.
pub fn is_beyond(value: &Value, key: &str) -> bool {
    let is_scaled = match value {
        Value::Duration(_) => matches!(key, "milliseconds" | "microseconds" | "nanoseconds"),
        Value::DateTime(_) => key == "epochMillis",
        _ => false,
    };
    is_scaled && component(value, key).is_none()
}

fn of_date(date: i64, key: &str) -> Option<i64> {
    let civil = calendar::civil(date);
    let quarter = calendar::quarter(civil.month);
    Some(match key {
        "year" => civil.year,
        "quarter" => quarter,
        "month" => civil.month,
        "week" => calendar::week(date).1,
        "weekYear" => calendar::week(date).0,
        "day" => civil.day,
        "ordinalDay" => calendar::ordinal_day(date),
        "weekDay" | "dayOfWeek" => calendar::day_of_week(date),
        "dayOfQuarter" => date - calendar::quarter_start(civil.year, quarter) + 1,
        _ => return None,
    })
}

fn of_time(time: u64, key: &str) -> Option<i64> {
    let (seconds, fraction) = (time / SECOND, time % SECOND);
    let number = match key {
        "hour" => seconds / 3600,
        "minute" => seconds / 60 % 60,
        "second" => seconds % 60,
        "millisecond" => fraction / 1_000_000,
        "microsecond" => fraction / 1_000,
        "nanosecond" => fraction,
        _ => return None,
    };
    // Less than the nanoseconds of a day.
    Some(number as i64)
}

fn of_zone(parts: &Parts, key: &str) -> Option<Value> {
    let offset = parts.offset();
    Some(match key {
        "timezone" => match parts.zone.as_ref().and_then(super::zone::Zone::name) {
            Some(name) => Value::String(name),
            None => Value::string(offset_text(offset)),
        },
        "offset" => Value::string(offset_text(offset)),
        "offsetMinutes" => Value::Integer(i64::from(offset / 60)),
        "offsetSeconds" => Value::Integer(i64::from(offset)),
        "epochSeconds" if parts.date.is_some() => Value::Integer(parts.instant()),
        "epochMillis" if parts.date.is_some() => {
            let milliseconds = i64::from(parts.fraction() / 1_000_000);
            Value::Integer(parts.instant().checked_mul(1000)?.checked_add(milliseconds)?)
        }
        _ => return None,
    })
}

/// `None` if the nanoseconds of a long duration exceed 64 bits.
fn of_duration(duration: &Duration, key: &str) -> Option<i64> {
    let Duration { months, days, seconds, nanoseconds } = *duration;
    let nanoseconds = i64::from(nanoseconds);
    let scaled =
        |units: i64| seconds.checked_mul(units)?.checked_add(nanoseconds / (1_000_000_000 / units));
    Some(match key {
        "years" => months / 12,
        "quarters" => months / 3,
        "months" => months,
        "weeks" => days / 7,
        "days" => days,
        "hours" => seconds / 3600,
        "minutes" => seconds / 60,
        "seconds" => seconds,
        "milliseconds" => scaled(1_000)?,
        "microseconds" => scaled(1_000_000)?,
        "nanoseconds" => scaled(1_000_000_000)?,
        "quartersOfYear" => months / 3 % 4,
        "monthsOfYear" => months % 12,
        "monthsOfQuarter" => months % 3,
        "daysOfWeek" => days % 7,
        "minutesOfHour" => seconds / 60 % 60,
        "secondsOfMinute" => seconds % 60,
        "millisecondsOfSecond" => nanoseconds / 1_000_000,
        "microsecondsOfSecond" => nanoseconds / 1_000,
        "nanosecondsOfSecond" => nanoseconds,
        _ => return None,
    })
}
