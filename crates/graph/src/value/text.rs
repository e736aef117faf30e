//! Values that JSON cannot represent, as typed text: the form of Neo4j's Query API (`$type` and
//! `_value`), which events also use. Dates and times are ISO 8601.

mod base64;
mod clock;
mod duration;
mod point;

use super::Value;
use std::sync::Arc;

/// The type name and text of a value that JSON cannot represent. `None` for a boolean, an integer,
/// a finite float, a string or a list.
#[must_use]
pub fn typed(value: &Value) -> Option<(&'static str, String)> {
    Some(match value {
        Value::Boolean(_) | Value::Integer(_) | Value::String(_) | Value::List(_) => return None,
        Value::Float(value) if value.is_finite() => return None,
        Value::Float(value) if value.is_nan() => ("Float", "NaN".to_owned()),
        Value::Float(value) if *value > 0.0 => ("Float", "Infinity".to_owned()),
        Value::Float(_) => ("Float", "-Infinity".to_owned()),
        Value::Bytes(bytes) => ("Base64", base64::encode(bytes)),
        Value::Point(place) => ("Point", point::write(place)),
        Value::Date(date) => ("Date", clock::date(*date)),
        Value::LocalTime(time) => ("LocalTime", clock::local_time(*time)),
        Value::Time(time) => ("Time", clock::time(*time)),
        Value::LocalDateTime(at) => ("LocalDateTime", clock::local_date_time(*at)),
        Value::DateTime(at) => {
            let name = if at.zone.is_some() { "ZonedDateTime" } else { "OffsetDateTime" };
            (name, clock::date_time(at))
        }
        Value::Duration(amount) => ("Duration", duration::write(amount)),
    })
}

/// Parses what [`typed`] wrote. `None` for anything else.
#[must_use]
pub fn from_typed(name: &str, text: &str) -> Option<Value> {
    Some(match name {
        "Float" => Value::Float(match text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => text.parse().ok()?,
        }),
        "Base64" => Value::Bytes(base64::decode(text)?.into()),
        "Point" => Value::Point(point::read(text)?),
        "Date" => Value::Date(clock::read_date(text)?),
        "LocalTime" => Value::LocalTime(clock::read_local_time(text)?),
        "Time" => Value::Time(clock::read_time(text)?),
        "LocalDateTime" => Value::LocalDateTime(clock::read_local_date_time(text)?),
        "OffsetDateTime" => Value::DateTime(clock::read_date_time(text, None)?),
        "ZonedDateTime" => {
            let (text, zone) = text.strip_suffix(']')?.split_once('[')?;
            let zone: Arc<str> = Some(zone).filter(|zone| clock::is_zone(zone))?.into();
            Value::DateTime(clock::read_date_time(text, Some(zone))?)
        }
        "Duration" => Value::Duration(duration::read(text)?),
        _ => return None,
    })
}

/// Whether a temporal value can be written: years ±999,999,999, offsets ±18 hours, valid times of
/// day, zone names without brackets.
#[must_use]
pub fn is_in_range(value: &Value) -> bool {
    clock::is_in_range(value)
}
