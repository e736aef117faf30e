//! Maps of fields: `{year: 1984, week: 10}`, alone or overriding those of another value.

use super::calendar;
use super::duration::{Amounts, Unit};
use super::parse;
use super::parts::{Kind, Parts, SECOND, split};
use super::zone::{UTC, Zone};
use crate::error::{Detail, Error, Result};
use crate::value::{Duration, Entries, Value};

pub(super) fn malformed(message: String) -> Error {
    Error::argument(Detail::InvalidArgumentValue, message)
}

fn integer(entries: &Entries, name: &str) -> Result<Option<i64>> {
    match entries.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Integer(integer)) => Ok(Some(*integer)),
        Some(other) => {
            Err(malformed(format!("{name} must be an Integer, not {}.", other.type_name())))
        }
    }
}

/// The zone of the field `timezone`.
pub(super) fn zone(entries: &Entries) -> Result<Option<Zone>> {
    match entries.get("timezone") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Zone::parse(text).map(Some),
        Some(other) => {
            Err(malformed(format!("timezone must be a String, not {}.", other.type_name())))
        }
    }
}

/// A value of a type from the fields of a map; `date`, `time` and `datetime` copy from other
/// values.
pub(super) fn built(kind: Kind, entries: &Entries) -> Result<Value> {
    if let Some(instant) = epoch(entries)? {
        let zone = zone(entries)?.unwrap_or(UTC);
        return instant.in_zone(zone).value(kind);
    }
    let parts = selected(kind, entries)?;
    let lacks_date = kind.has_date() && parts.date.is_none();
    let lacks_time = !kind.has_date() && parts.time.is_none();
    if lacks_date && integer(entries, "year")?.is_none() {
        return Err(malformed(format!("{}() needs a year.", kind.name())));
    }
    if lacks_time && integer(entries, "hour")?.is_none() {
        return Err(malformed(format!("{}() needs an hour.", kind.name())));
    }
    let mut parts = overridden(kind, parts, entries)?;
    if let Some(zone) = zone(entries)?.filter(|_| kind.has_zone()) {
        // A value that already has a zone keeps its instant in the new one.
        parts = match parts.zone {
            Some(_) => parts.in_zone(zone),
            None => Parts { zone: Some(zone), ..parts },
        };
    }
    parts.value(kind)
}

/// The instant of the fields `epochSeconds` or `epochMillis`, in UTC.
fn epoch(entries: &Entries) -> Result<Option<Parts>> {
    let (seconds, nanoseconds) =
        match (integer(entries, "epochSeconds")?, integer(entries, "epochMillis")?) {
            (Some(seconds), _) => (seconds, 0),
            (None, Some(milliseconds)) => {
                (milliseconds.div_euclid(1_000), milliseconds.rem_euclid(1_000) * 1_000_000)
            }
            (None, None) => return Ok(None),
        };
    let fraction =
        subsecond(nanoseconds, entries)?.and_then(|fraction| u32::try_from(fraction).ok());
    let fraction = fraction.filter(|fraction| u64::from(*fraction) < SECOND);
    let fraction =
        fraction.ok_or_else(|| malformed("This time of day does not exist.".to_owned()))?;
    let (date, time) = split(seconds, fraction);
    Ok(Some(Parts { date: Some(date), time: Some(time), zone: Some(UTC) }))
}

/// The parts of the values under `date`, `time` and `datetime`.
fn selected(kind: Kind, entries: &Entries) -> Result<Parts> {
    let selected = |name: &str| match entries.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match Parts::of(value) {
            Some(parts) => Ok(Some(parts)),
            None => Err(malformed(format!(
                "{name} must be a point in time, not {}.",
                value.type_name()
            ))),
        },
    };
    if let Some(parts) = selected("datetime")? {
        if parts.date.is_none() || parts.time.is_none() {
            return Err(malformed("datetime must have a day and a time.".to_owned()));
        }
        return Ok(parts);
    }
    let mut parts = Parts::default();
    if let Some(source) = selected("date")? {
        let Some(date) = source.date else {
            return Err(malformed("date must have a day.".to_owned()));
        };
        parts.date = Some(date);
    }
    if let Some(source) = selected("time")? {
        let Some(time) = source.time else {
            return Err(malformed("time must have a time of day.".to_owned()));
        };
        parts.time = Some(time);
        // The offset of a time in a named zone depends on its date.
        parts.zone = source.zone.clone();
        if !kind.has_date() {
            parts.date = source.date;
        }
    }
    Ok(parts)
}

/// Overrides the parts with the fields of a map.
pub(super) fn overridden(kind: Kind, mut parts: Parts, entries: &Entries) -> Result<Parts> {
    if kind.has_date() {
        parts.date = Some(date(parts.date, entries)?);
    }
    if kind.has_time() {
        parts.time = Some(time(parts.time.unwrap_or(0), entries)?);
    }
    Ok(parts)
}

fn date(base: Option<i64>, entries: &Entries) -> Result<i64> {
    let year = integer(entries, "year")?;
    let known = base.map(|base| (base, calendar::civil(base)));
    let week = (integer(entries, "week")?, integer(entries, "dayOfWeek")?);
    let quarter = (integer(entries, "quarter")?, integer(entries, "dayOfQuarter")?);
    let month = (integer(entries, "month")?, integer(entries, "day")?);
    let calendar_year = year.or(known.map(|(_, civil)| civil.year)).unwrap_or(0);
    let date = if week != (None, None) {
        let known = known.map(|(base, _)| (calendar::week(base), calendar::day_of_week(base)));
        parse::day_of_week(
            year.or(known.map(|known| known.0.0)).unwrap_or(0),
            week.0.or(known.map(|known| known.0.1)).unwrap_or(1),
            week.1.or(known.map(|known| known.1)).unwrap_or(1),
        )
    } else if let Some(day) = integer(entries, "ordinalDay")? {
        parse::ordinal(calendar_year, day)
    } else if quarter != (None, None) {
        let known = known.map(|(base, civil)| {
            let quarter = calendar::quarter(civil.month);
            (quarter, base - calendar::quarter_start(civil.year, quarter) + 1)
        });
        let number = quarter.0.or(known.map(|known| known.0)).unwrap_or(1);
        parse::day_of_quarter(
            calendar_year,
            number,
            quarter.1.or(known.map(|known| known.1)).unwrap_or(1),
        )
    } else {
        parse::month_day(
            calendar_year,
            month.0.or(known.map(|(_, civil)| civil.month)).unwrap_or(1),
            month.1.or(known.map(|(_, civil)| civil.day)).unwrap_or(1),
        )
    };
    date.ok_or_else(|| malformed("This day does not exist.".to_owned()))
}

fn time(base: u64, entries: &Entries) -> Result<u64> {
    // Less than the nanoseconds of a day.
    let (seconds, fraction) = ((base / SECOND) as i64, (base % SECOND) as i64);
    let hour = integer(entries, "hour")?.unwrap_or(seconds / 3600);
    let minute = integer(entries, "minute")?.unwrap_or(seconds / 60 % 60);
    let second = integer(entries, "second")?.unwrap_or(seconds % 60);
    let fraction = subsecond(fraction, entries)?;
    let time = fraction.and_then(|fraction| parse::clock(hour, minute, second, fraction));
    time.ok_or_else(|| malformed("This time of day does not exist.".to_owned()))
}

/// Nanoseconds within the second. The largest given unit can exceed a thousand; larger units are
/// taken from the base only if there is room for them.
fn subsecond(base: i64, entries: &Entries) -> Result<Option<i64>> {
    let milliseconds = integer(entries, "millisecond")?;
    let microseconds = integer(entries, "microsecond")?;
    let nanoseconds = integer(entries, "nanosecond")?;
    // Units that are not given come from the base, unless a smaller given unit covers them.
    let covered = |value: Option<i64>, from: i64| value.is_some_and(|value| value >= from);
    let covers_milliseconds = covered(microseconds, 1_000) || covered(nanoseconds, 1_000_000);
    let covers_microseconds = covered(nanoseconds, 1_000);
    let milliseconds =
        milliseconds.unwrap_or(if covers_milliseconds { 0 } else { base / 1_000_000 });
    let microseconds =
        microseconds.unwrap_or(if covers_microseconds { 0 } else { base / 1_000 % 1_000 });
    let nanoseconds = nanoseconds.unwrap_or(base % 1_000);
    let in_range = milliseconds >= 0 && microseconds >= 0 && nanoseconds >= 0;
    let total = || {
        milliseconds
            .checked_mul(1_000_000)?
            .checked_add(microseconds.checked_mul(1_000)?)?
            .checked_add(nanoseconds)
    };
    Ok(if in_range { total() } else { None })
}

/// A duration from a map: any units, any numbers.
pub(super) fn duration(entries: &Entries) -> Result<Duration> {
    let mut amounts = Amounts::default();
    for (name, value) in entries {
        let unit = match &**name {
            "years" => Unit::Years,
            "quarters" => Unit::Quarters,
            "months" => Unit::Months,
            "weeks" => Unit::Weeks,
            "days" => Unit::Days,
            "hours" => Unit::Hours,
            "minutes" => Unit::Minutes,
            "seconds" => Unit::Seconds,
            "milliseconds" => Unit::Milliseconds,
            "microseconds" => Unit::Microseconds,
            "nanoseconds" => Unit::Nanoseconds,
            other => return Err(malformed(format!("A duration has no field {other}."))),
        };
        match value {
            Value::Null => {}
            Value::Integer(integer) => amounts.add(unit, *integer, 0.0),
            // Beyond 2^63 the conversion saturates, and the sum is out of range.
            Value::Float(float) if float.is_finite() => {
                amounts.add(unit, float.trunc() as i64, float.fract());
            }
            other => {
                return Err(malformed(format!(
                    "{name} must be a number, not {}.",
                    other.type_name()
                )));
            }
        }
    }
    amounts.total()
}
