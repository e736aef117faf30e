//! Values of every kind, for the tests of several rooms.

use crate::value::{
    CoordinateSystem, DAY_SECONDS, Date, DateTime, Duration, LocalDateTime, LocalTime, NANOSECONDS,
    Point, Time, Value,
};
use proptest::prelude::*;

fn any_float() -> impl Strategy<Value = f64> {
    let special = [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
    prop_oneof![prop::sample::select(special.to_vec()), any::<f64>()]
}

fn any_point() -> impl Strategy<Value = Value> {
    let system = prop::sample::select(vec![7203u16, 9157, 4326, 4979]);
    (system, any_float(), any_float(), any_float()).prop_map(|(srid, x, y, z)| {
        let system = CoordinateSystem::from_srid(srid).expect("a system");
        let number = |value: f64| if value.is_nan() { 0.0 } else { value };
        let z = if system.has_z() { number(z) } else { 0.0 };
        Value::Point(Point { system, x: number(x), y: number(y), z })
    })
}

fn any_temporal() -> impl Strategy<Value = Value> {
    let of_day = 0..DAY_SECONDS as u64 * NANOSECONDS;
    let days = || -365_243_219_162i64..=365_241_780_471;
    let seconds = || (days(), 0..DAY_SECONDS).prop_map(|(day, second)| day * DAY_SECONDS + second);
    let of_second = 0..NANOSECONDS as u32;
    let offset = -18 * 3600..=18 * 3600;
    let zone = prop::option::of(prop::sample::select(vec!["Europe/Berlin", "UTC"]));
    prop_oneof![
        days().prop_map(|days| Value::Date(Date { days })),
        of_day.clone().prop_map(|nanoseconds| Value::LocalTime(LocalTime { nanoseconds })),
        (of_day, offset.clone())
            .prop_map(|(nanoseconds, offset)| Value::Time(Time { nanoseconds, offset })),
        (seconds(), of_second.clone()).prop_map(|(seconds, nanoseconds)| {
            Value::LocalDateTime(LocalDateTime { seconds, nanoseconds })
        }),
        (-1i64 << 40..1 << 40, of_second.clone(), offset, zone).prop_map(
            |(seconds, nanoseconds, offset, zone)| {
                let zone = zone.map(Into::into);
                Value::DateTime(DateTime { seconds, nanoseconds, offset, zone })
            }
        ),
        (any::<i64>(), any::<i64>(), any::<i64>(), of_second).prop_map(
            |(months, days, seconds, nanoseconds)| {
                Value::Duration(Duration { months, days, seconds, nanoseconds })
            }
        ),
    ]
}

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        (0i64..4).prop_map(Value::Integer),
        any::<i64>().prop_map(Value::Integer),
        any_float().prop_map(Value::Float),
        ".{0,12}".prop_map(|text| Value::from(&*text)),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Bytes(bytes.into())),
        any_point(),
        any_temporal(),
    ]
}

/// Any value that a property can have.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => any_scalar(),
        1 => prop::collection::vec(any_scalar(), 0..4).prop_map(|items| Value::List(items.into())),
        1 => (500usize..1500).prop_map(|length| Value::from(&*"long".repeat(length / 4))),
    ]
}
