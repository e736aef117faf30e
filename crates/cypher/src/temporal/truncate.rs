//! Truncates points in time to the start of their century, week, hour …

use super::calendar;
use super::fields::{self, malformed, overridden};
use super::parts::{Kind, Parts, SECOND};
use super::zone::Zone;
use crate::error::Result;
use crate::value::{Entries, Value};

/// The start of the unit that contains a point in time, overridden by the fields of a map.
///
/// # Errors
/// Unknown units or units that the type lacks; values without a part that the type needs.
pub fn truncate(kind: Kind, unit: &str, value: &Value, entries: &Entries) -> Result<Value> {
    let unfit = || {
        malformed(format!(
            "{}.truncate() cannot truncate {} to a {unit}.",
            kind.name(),
            value.type_name()
        ))
    };
    let mut parts = Parts::of(value).ok_or_else(unfit)?;
    if kind == Kind::Time {
        // Without a date, a named zone has no offset of its own.
        parts.zone = Some(Zone::Offset(parts.offset()));
    }
    if let Some(nanoseconds) = clock_unit(unit) {
        let time = parts.time.filter(|_| kind.has_time()).ok_or_else(unfit)?;
        parts.time = Some(time - time % nanoseconds);
    } else if unit.eq_ignore_ascii_case("day") {
        parts.time = Some(0);
    } else {
        let date = parts.date.filter(|_| kind.has_date()).ok_or_else(unfit)?;
        parts.date = Some(start(date, unit).ok_or_else(unfit)?);
        parts.time = Some(0);
    }
    if kind.has_date() && parts.date.is_none() {
        return Err(unfit());
    }
    // The same local time in another zone.
    if let Some(zone) = fields::zone(entries)?.filter(|_| kind.has_zone()) {
        parts.zone = Some(zone);
    }
    overridden(kind, parts, entries)?.value(kind)
}

/// Nanoseconds in a unit of less than a day.
fn clock_unit(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "hour" => 3600 * SECOND,
        "minute" => 60 * SECOND,
        "second" => SECOND,
        "millisecond" => 1_000_000,
        "microsecond" => 1_000,
        _ => return None,
    })
}

/// The first day of a unit of days.
fn start(date: i64, unit: &str) -> Option<i64> {
    let civil = calendar::civil(date);
    let of_years = |years: i64| {
        let year = civil.year.div_euclid(years) * years;
        calendar::days(year.max(*calendar::YEARS.start()), 1, 1)
    };
    Some(match unit.to_ascii_lowercase().as_str() {
        "millennium" => of_years(1_000),
        "century" => of_years(100),
        "decade" => of_years(10),
        "year" => of_years(1),
        "weekyear" => calendar::week_start(calendar::week(date).0, 1),
        "quarter" => calendar::quarter_start(civil.year, calendar::quarter(civil.month)),
        "month" => date - civil.day + 1,
        "week" => date - calendar::day_of_week(date) + 1,
        _ => return None,
    })
}
