//! Maps of fields: `{year: 1984, week: 10}`, alone or over what another value has.

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

/// A value of a type of the fields of a map; `date`, `time` and `datetime` select from other
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
        // What has a zone already is the same instant in the new one.
        parts = match parts.zone {
            Some(_) => parts.in_zone(zone),
            None => Parts { zone: Some(zone), ..parts },
        };
    }
    parts.value(kind)
}

/// The instant of the fields `epochSeconds` or `epochMillis`, in Greenwich.
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
    let fraction = fraction.ok_or_else(|| malformed("There is no such time of day.".to_owned()))?;
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
        // The offset of a time that has a place depends on its day.
        parts.zone = source.zone.clone();
        if !kind.has_date() {
            parts.date = source.date;
        }
    }
    Ok(parts)
}

/// The parts with the fields of a map in place of theirs.
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
    date.ok_or_else(|| malformed("There is no such day.".to_owned()))
}

fn time(base: u64, entries: &Entries) -> Result<u64> {
    // Less than a day of nanoseconds.
    let (seconds, fraction) = ((base / SECOND) as i64, (base % SECOND) as i64);
    let hour = integer(entries, "hour")?.unwrap_or(seconds / 3600);
    let minute = integer(entries, "minute")?.unwrap_or(seconds / 60 % 60);
    let second = integer(entries, "second")?.unwrap_or(seconds % 60);
    let fraction = subsecond(fraction, entries)?;
    let time = fraction.and_then(|fraction| parse::clock(hour, minute, second, fraction));
    time.ok_or_else(|| malformed("There is no such time of day.".to_owned()))
}

/// Nanoseconds of the second. The largest unit that is given may be more than a thousand; larger
/// ones are then of the base only if it leaves room for them.
fn subsecond(base: i64, entries: &Entries) -> Result<Option<i64>> {
    let milliseconds = integer(entries, "millisecond")?;
    let microseconds = integer(entries, "microsecond")?;
    let nanoseconds = integer(entries, "nanosecond")?;
    // What is not given is the base's, unless a smaller unit that is given covers it.
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

/// A duration of a map: any units, any numbers.
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
            other => return Err(malformed(format!("A duration has no {other}."))),
        };
        match value {
            Value::Null => {}
            Value::Integer(integer) => amounts.add(unit, *integer, 0.0),
            // Beyond 2^63 the conversion stops there, and the sum is out of range.
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
