//! Adds durations to points in time.

use super::calendar;
use super::duration::{self, DAY, SECOND, clock_part, out_of_range};
use super::parts::{self, Kind, Parts};
use crate::error::Result;
use crate::value::{Duration, Value};

/// `value + duration`; `None` if the value is not temporal.
pub fn plus(value: &Value, duration: &Duration) -> Option<Result<Value>> {
    shifted(value, duration, 1)
}

/// `value - duration`; `None` if the value is not temporal.
pub fn minus(value: &Value, duration: &Duration) -> Option<Result<Value>> {
    shifted(value, duration, -1)
}

fn shifted(value: &Value, by: &Duration, sign: i128) -> Option<Result<Value>> {
    if let Value::Duration(duration) = value {
        return Some(duration::sum(duration, by, sign).map(Value::duration));
    }
    let kind = parts::kind_of(value)?;
    let parts = Parts::of(value)?;
    Some(later(parts, kind, by, sign).ok_or_else(out_of_range).and_then(|parts| parts.value(kind)))
}

/// Adds months first, then days, then the time part; `None` if out of range.
fn later(mut parts: Parts, kind: Kind, by: &Duration, sign: i128) -> Option<Parts> {
    let clock = sign * clock_part(by);
    if let Some(date) = parts.date {
        let months = i64::try_from(sign * i128::from(by.months)).ok()?;
        let date = i128::from(calendar::plus_months(date, months)?) + sign * i128::from(by.days);
        // A date has whole days only.
        let date = if kind == Kind::Date { date + clock / DAY } else { date };
        parts.date = Some(calendar::in_range(date)?);
    }
    if !kind.has_time() {
        return Some(parts);
    }
    let Some(date) = parts.date else {
        let time = i128::from(parts.time.unwrap_or(0)) + clock;
        parts.time = Some(time.rem_euclid(DAY) as u64);
        return Some(parts);
    };
    if let Some(zone) = parts.zone.clone() {
        // The time part is elapsed time, even across changes of daylight saving time.
        let nanoseconds =
            i128::from(parts.instant()) * SECOND + i128::from(parts.fraction()) + clock;
        let instant = i64::try_from(nanoseconds.div_euclid(SECOND)).ok()?;
        let (date, time) = parts::split(instant, nanoseconds.rem_euclid(SECOND) as u32);
        let greenwich = Parts { date: Some(date), time: Some(time), zone: None };
        return Some(greenwich.in_zone(zone));
    }
    let nanoseconds = i128::from(date) * DAY + i128::from(parts.time.unwrap_or(0)) + clock;
    parts.date = Some(calendar::in_range(nanoseconds.div_euclid(DAY))?);
    parts.time = Some(nanoseconds.rem_euclid(DAY) as u64);
    Some(parts)
}
