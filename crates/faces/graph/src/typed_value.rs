//! Typed values in parameters of the Query API: `{"$type":"Date","_value":"2020-01-02"}`.

use std::sync::Arc;
use wellspring_cypher::temporal::{Kind, duration, point_in_time};
use wellspring_cypher::value::{CoordinateSystem, Entries, Point, Value, from_property};
use wellspring_graph::value::text::from_typed;

/// Why a typed value cannot be read, in a sentence.
pub(crate) type Unreadable = String;

/// The value of this type; lists and maps have read values in them.
///
/// # Errors
/// The type is unknown, or the value is none of it.
pub(crate) fn read(name: &str, mut entries: Entries) -> Result<Value, Unreadable> {
    let given = entries.remove("_value").filter(|_| entries.len() == 1);
    let Some(given) = given else {
        return Err(format!("a value of $type {name:?} has _value and no other member"));
    };
    let read = match (name, &given) {
        ("Null", Value::Null) | ("Boolean", Value::Boolean(_)) | ("String", Value::String(_)) => {
            Some(given.clone())
        }
        ("List", Value::List(_)) | ("Map", Value::Map(_)) => Some(given.clone()),
        ("Integer", Value::Integer(_)) | ("Float", Value::Float(_)) => Some(given.clone()),
        (_, Value::String(text)) => of_text(name, text),
        _ => None,
    };
    read.ok_or_else(|| {
        let shown = match &given {
            Value::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
            other => other.type_name().to_owned(),
        };
        format!("{shown} is no value of $type {name:?}")
    })
}

fn of_text(name: &str, text: &str) -> Option<Value> {
    let moment = |kind| point_in_time(kind, &Value::string(text)).ok();
    match name {
        "Integer" => text.parse().ok().map(Value::Integer),
        "Date" => moment(Kind::Date),
        "LocalTime" => moment(Kind::LocalTime),
        "Time" => moment(Kind::Time),
        "LocalDateTime" => moment(Kind::LocalDateTime),
        "OffsetDateTime" | "ZonedDateTime" | "DateTime" => moment(Kind::DateTime),
        "Duration" => duration(&Value::string(text)).ok().map(Value::duration),
        "Point" => point(text),
        // Floats and bytes, as in events.
        "Float" | "Base64" => from_typed(name, text).map(from_property),
        _ => None,
    }
}

/// A point as extended well-known text, with and without a blank before the bracket: drivers
/// differ.
fn point(text: &str) -> Option<Value> {
    let (srid, rest) = text.strip_prefix("SRID=")?.split_once(';')?;
    let system = CoordinateSystem::from_srid(srid.trim().parse().ok()?)?;
    let rest = rest.trim_start().strip_prefix("POINT")?.trim_start();
    let rest = if system.has_z() { rest.strip_prefix('Z')?.trim_start() } else { rest };
    let mut numbers = rest.strip_prefix('(')?.strip_suffix(')')?.split_ascii_whitespace();
    let mut coordinate = || numbers.next()?.parse::<f64>().ok();
    let (x, y) = (coordinate()?, coordinate()?);
    let z = if system.has_z() { coordinate()? } else { 0.0 };
    let point = Point { system, x, y, z };
    numbers.next().is_none().then(|| Value::Point(Arc::new(point)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str, value: Value) -> Result<Value, Unreadable> {
        read(name, [("$type".into(), Value::string(name)), ("_value".into(), value)].into())
    }

    #[test]
    fn text_of_every_type_is_read() {
        for (name, text, kind) in [
            ("Integer", "-42", "Integer"),
            ("Float", "NaN", "Float"),
            ("Float", "1e3", "Float"),
            ("Base64", "AQI=", "ByteArray"),
            ("Date", "2020-02-29", "Date"),
            ("Time", "12:30+01:00", "Time"),
            ("LocalTime", "12:30:01.5", "LocalTime"),
            ("LocalDateTime", "2020-02-29T12:30", "LocalDateTime"),
            ("OffsetDateTime", "2020-02-29T12:30:00Z", "DateTime"),
            ("ZonedDateTime", "2020-02-29T12:30:00+01:00[Europe/Berlin]", "DateTime"),
            ("Duration", "P1M2DT3.5S", "Duration"),
            ("Point", "SRID=4326;POINT (8.4 49.0)", "Point"),
            ("Point", "SRID=9157;POINT Z(1 2.0 3e0)", "Point"),
            ("Point", "SRID=7203;POINT(1.0 2.0)", "Point"),
        ] {
            let value = typed(name, Value::string(text));
            assert_eq!(value.map(|value| value.type_name()), Ok(kind), "{name} {text}");
        }
    }

    #[test]
    fn what_is_no_value_of_its_type_is_told() {
        for (name, text) in [
            ("Integer", "1.5"),
            ("Float", "one"),
            ("Date", "2021-02-29"),
            ("Point", "SRID=1;POINT (1 2)"),
            ("Point", "SRID=4326;POINT (1 2 3)"),
            ("Node", "x"),
            ("Vector", "x"),
        ] {
            let why = typed(name, Value::string(text)).unwrap_err();
            assert!(why.contains(name), "{why}");
        }
        assert!(typed("List", Value::Integer(1)).is_err());
        assert!(read("Null", [("$type".into(), Value::string("Null"))].into()).is_err());
    }
}
