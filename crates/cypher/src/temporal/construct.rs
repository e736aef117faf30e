//! Constructs points in time and durations from function arguments.

use super::fields::{self, malformed};
use super::parse;
use super::parts::{self, DAY_SECONDS, Kind, Parts, SECOND};
use super::zone::{UTC, Zone};
use crate::context::StatementTime;
use crate::error::Result;
use crate::value::{Duration, Value};

/// A point in time from an argument: a text, a map of fields, or another point in time.
///
/// # Errors
/// The argument is invalid or incomplete.
pub fn point_in_time(kind: Kind, argument: &Value) -> Result<Value> {
    match argument {
        Value::String(text) => parsed(kind, text),
        Value::Map(entries) => fields::built(kind, entries),
        other => {
            let parts = Parts::of(other).filter(|parts| {
                let lacks_date = kind.has_date() && parts.date.is_none();
                let lacks_time = kind.has_time() && !kind.has_date() && parts.time.is_none();
                !lacks_date && !lacks_time
            });
            match parts {
                Some(parts) => parts.value(kind),
                None => Err(malformed(format!(
                    "{}() does not accept {}.",
                    kind.name(),
                    other.type_name()
                ))),
            }
        }
    }
}

/// The time at which the statement began, in a zone if one is named.
///
/// # Errors
/// The zone is invalid.
pub fn now(kind: Kind, zone: Option<&Value>, time: StatementTime) -> Result<Value> {
    let zone = match zone {
        None => UTC,
        Some(Value::String(text)) => Zone::parse(text)?,
        Some(Value::Map(entries)) => fields::zone(entries)?.unwrap_or(UTC),
        Some(other) => {
            return Err(malformed(format!(
                "A time zone must be a String, not {}.",
                other.type_name()
            )));
        }
    };
    from_epoch(time.seconds, time.nanoseconds).in_zone(zone).value(kind)
}

fn from_epoch(seconds: i64, nanoseconds: u32) -> Parts {
    let (date, time) = parts::split(seconds, nanoseconds);
    Parts { date: Some(date), time: Some(time), zone: Some(UTC) }
}

/// The instant this many seconds and nanoseconds after 1970-01-01T00:00Z.
///
/// # Errors
/// The instant is out of range.
pub fn instant(seconds: i64, nanoseconds: i64) -> Result<Value> {
    let carried = seconds.checked_add(nanoseconds.div_euclid(1_000_000_000));
    let seconds = carried.ok_or_else(super::duration::out_of_range)?;
    from_epoch(seconds, nanoseconds.rem_euclid(1_000_000_000) as u32).value(Kind::DateTime)
}

/// Parses a point in time.
pub(super) fn parsed(kind: Kind, text: &str) -> Result<Value> {
    let text = text.trim();
    let unreadable = || malformed(format!("Text cannot be parsed to a {}: '{text}'", kind.name()));
    let (date, clock) = match (kind.has_date(), kind.has_time()) {
        (true, false) => (Some(text), None),
        (false, _) => (None, Some(text)),
        (true, true) => match text.split_once('T') {
            Some((date, clock)) => (Some(date), Some(clock)),
            None => (Some(text), None),
        },
    };
    let mut parts = Parts::default();
    if let Some(date) = date {
        parts.date = Some(parse::date(date).ok_or_else(unreadable)?);
    }
    match clock {
        Some(clock) if kind.has_zone() => {
            let (time, offset, name) = parse::zoned_time(clock).ok_or_else(unreadable)?;
            parts.time = Some(time);
            parts.zone = match (name, offset) {
                (Some(name), offset) => {
                    let zone = Zone::named(name, offset)?;
                    if let (Some(date), Some(offset)) = (parts.date, offset) {
                        let local = date * DAY_SECONDS + (time / SECOND) as i64;
                        check_offset(&zone, local, offset, text)?;
                    }
                    Some(zone)
                }
                (None, offset) => offset.map(Zone::Offset),
            };
        }
        Some(clock) => parts.time = Some(parse::time(clock).ok_or_else(unreadable)?),
        None => {}
    }
    parts.value(kind)
}

/// Refuses an offset that the zone does not have at this local time: it is not known then which of
/// the two was meant, and the instants differ. A local time that clocks skip has no offset of its
/// own, and may be written with the one before.
fn check_offset(zone: &Zone, local: i64, offset: i32, text: &str) -> Result<()> {
    let instant = local.saturating_sub(i64::from(offset));
    if zone.offset_at(instant) == offset || zone.instant(local) == instant {
        return Ok(());
    }
    let message = format!(
        "In '{text}' the offset is not that of the time zone, which has {} then.",
        super::text::offset_text(zone.offset_at(instant))
    );
    Err(malformed(message))
}

/// A duration from a text or a map of amounts.
///
/// # Errors
/// The argument is invalid.
pub fn duration(argument: &Value) -> Result<Duration> {
    match argument {
        Value::String(text) => parse::duration(text.trim())
            .ok_or_else(|| malformed(format!("Text cannot be parsed to a Duration: '{text}'"))),
        Value::Map(entries) => fields::duration(entries),
        Value::Duration(duration) => Ok(**duration),
        other => Err(malformed(format!("duration() does not accept {}.", other.type_name()))),
    }
}
