//! The order of ORDER BY: total, over values of all types (openCypher's CIP2016-06-14).

use super::compare::cmp_integer_float;
use super::{DateTime, Duration, Entries, Path, Point, Time, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// The ascending order of two values. Null comes last, before it NaN, before that numbers. Values
/// that are equal here are equivalent.
pub fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        // Avoids comparing a value shared by many rows for each pair of them.
        (Value::String(a), Value::String(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => cmp_floats(*a, *b),
        // NaN is greater than every other number.
        (Value::Integer(a), Value::Float(b)) => cmp_integer_float(*a, *b).unwrap_or(Ordering::Less),
        (Value::Float(a), Value::Integer(b)) => {
            cmp_integer_float(*b, *a).map_or(Ordering::Greater, Ordering::reverse)
        }
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
        (Value::Map(a), Value::Map(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
        (Value::List(a), Value::List(b)) => cmp_lists(a, b),
        (Value::Map(a), Value::Map(b)) => cmp_maps(a, b),
        (Value::Node(a), Value::Node(b)) => a.cmp(b),
        (Value::Relationship(a), Value::Relationship(b)) => a.cmp(b),
        (Value::Path(a), Value::Path(b)) => cmp_paths(a, b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::LocalTime(a), Value::LocalTime(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => cmp_times(a, b),
        (Value::LocalDateTime(a), Value::LocalDateTime(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => cmp_instants(a, b),
        (Value::Duration(a), Value::Duration(b)) => cmp_durations(a, b),
        (Value::Point(a), Value::Point(b)) => cmp_points(a, b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// The rank of a type.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Map(_) => 0,
        Value::Node(_) => 1,
        Value::Relationship(_) => 2,
        Value::List(_) => 3,
        Value::Path(_) => 4,
        Value::Point(_) => 5,
        Value::DateTime(_) => 6,
        Value::LocalDateTime(_) => 7,
        Value::Date(_) => 8,
        Value::Time(_) => 9,
        Value::LocalTime(_) => 10,
        Value::Duration(_) => 11,
        Value::Bytes(_) => 12,
        Value::String(_) => 13,
        Value::Boolean(_) => 14,
        Value::Integer(_) | Value::Float(_) => 15,
        Value::Null => 16,
    }
}

fn cmp_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn cmp_lists(left: &[Value], right: &[Value]) -> Ordering {
    let differing = left.iter().zip(right).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| left.len().cmp(&right.len()))
}

/// By size, then by keys, then by values in key order.
fn cmp_maps(left: &Entries, right: &Entries) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.keys().cmp(right.keys())).then_with(|| {
        let mut values = left.values().zip(right.values()).map(|(a, b)| order(a, b));
        values.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

/// As lists of nodes and relationships, nodes before relationships.
fn cmp_paths(left: &Path, right: &Path) -> Ordering {
    left.start.cmp(&right.start).then_with(|| left.steps.cmp(&right.steps))
}

/// By the instant (a time of day at its offset, on a fixed day), then by the offset.
pub(super) fn cmp_times(left: &Time, right: &Time) -> Ordering {
    let instant =
        |time: &Time| i128::from(time.nanoseconds) - i128::from(time.offset) * 1_000_000_000;
    instant(left).cmp(&instant(right)).then(left.offset.cmp(&right.offset))
}

/// By the instant, then by the offset, then by the zone's name.
pub(super) fn cmp_instants(left: &DateTime, right: &DateTime) -> Ordering {
    let key = |time: &DateTime| (time.seconds, time.nanoseconds, time.offset);
    key(left).cmp(&key(right)).then_with(|| left.zone.cmp(&right.zone))
}

/// By the length, with a month as a twelfth of 365.2425 days; then by months, days and seconds.
fn cmp_durations(left: &Duration, right: &Duration) -> Ordering {
    const MONTH: i128 = 2_629_746;
    let length = |duration: &Duration| {
        let seconds = i128::from(duration.months) * MONTH + i128::from(duration.days) * 86_400;
        (seconds + i128::from(duration.seconds)) * 1_000_000_000 + i128::from(duration.nanoseconds)
    };
    let parts = |duration: &Duration| {
        (duration.months, duration.days, duration.seconds, duration.nanoseconds)
    };
    length(left).cmp(&length(right)).then_with(|| parts(left).cmp(&parts(right)))
}

/// By the coordinate system, then by the coordinates.
fn cmp_points(left: &Point, right: &Point) -> Ordering {
    let plane = left.system.cmp(&right.system).then(cmp_floats(left.x, right.x));
    plane.then(cmp_floats(left.y, right.y)).then(cmp_floats(left.z, right.z))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_types_stand_in_one_order() {
        let ascending = [
            Value::map([]),
            Value::list(vec![]),
            Value::list(vec![Value::from(1)]),
            Value::list(vec![Value::Null]),
            Value::from("a"),
            Value::from("b"),
            Value::from(false),
            Value::from(true),
            Value::from(f64::NEG_INFINITY),
            Value::from(1),
            Value::from(1.5),
            Value::from(2),
            Value::from(f64::INFINITY),
            Value::from(f64::NAN),
            Value::Null,
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(order(a, b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
    }
}
