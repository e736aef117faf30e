//! Every value survives a round trip, as a row and as text.

use super::*;
use crate::tests::any_value;
use proptest::prelude::*;

fn read(name: &str, text: &str) -> Value {
    text::from_typed(name, text).unwrap_or_else(|| panic!("{name} {text}"))
}

proptest! {
    #[test]
    fn rows_and_texts_read_back(value in any_value()) {
        let mut bytes = Vec::new();
        put_value(&mut bytes, &value);
        let mut input = Reader::new(&bytes);
        prop_assert!(take_value(&mut input).is_some_and(|back| back.is_identical(&value)));
        prop_assert!(input.is_empty());
        let mut input = Reader::new(&bytes);
        prop_assert_eq!(skip_value(&mut input), Some(()));
        prop_assert!(input.is_empty());
        for end in 0..bytes.len() {
            prop_assert!(take_value(&mut Reader::new(&bytes[..end])).is_none());
        }
        if let Some((name, text)) = text::typed(&value) {
            let back = text::from_typed(name, &text);
            prop_assert!(back.as_ref().is_some_and(|back| back.is_identical(&value)), "{name} {text} {back:?} {value:?}");
        }
    }

    #[test]
    fn what_is_storable_is_read_back(
        (seconds, nanoseconds, offset) in (any::<i64>(), prop_oneof![0u32..9, any::<u32>()], prop_oneof![-9..9i32, any::<i32>()]),
        zone in prop::option::of("[A-Z\\[\\]\n/]{0,70}"),
        small in any::<bool>(),
    ) {
        let seconds = if small { seconds >> 20 } else { seconds };
        let zone = zone.map(Into::into);
        for value in [
            Value::Date(Date { days: seconds }),
            Value::LocalTime(LocalTime { nanoseconds: seconds as u64 }),
            Value::Time(Time { nanoseconds: seconds as u64, offset }),
            Value::LocalDateTime(LocalDateTime { seconds, nanoseconds }),
            Value::DateTime(DateTime { seconds, nanoseconds, offset, zone }),
            Value::Duration(Duration { months: seconds, days: seconds, seconds, nanoseconds }),
        ] {
            let Some((name, text)) = text::typed(&value).filter(|_| value.is_storable()) else { continue };
            prop_assert_eq!(text::from_typed(name, &text), Some(value), "{} {}", name, text);
        }
    }

    #[test]
    fn nonsense_is_no_text(name in prop::sample::select(vec![
        "Float", "Base64", "Point", "Date", "LocalTime", "Time", "LocalDateTime", "OffsetDateTime", "ZonedDateTime", "Duration",
    ]), text in "[-+0-9TPZSRID=;:. (\\[\\]éMHWY]{0,24}") {
        if let Some(value) = text::from_typed(name, &text) {
            prop_assert!(text::is_in_range(&value));
        }
    }
}

#[test]
fn texts_are_those_that_others_write() {
    assert_eq!(read("Date", "2020-01-02"), Value::Date(Date { days: 18_263 }));
    assert_eq!(read("Duration", "P1D"), read("Duration", "PT0S").with_days(1));
    assert_eq!(
        read("Duration", "P1Y2M1W3DT4H5M6.7S"),
        Value::Duration(Duration {
            months: 14,
            days: 10,
            seconds: 14_706,
            nanoseconds: 700_000_000,
        })
    );
    let point = Point { system: CoordinateSystem::Cartesian, x: 1.0, y: 2.0, z: 0.0 };
    assert_eq!(read("Point", "SRID=7203;POINT (1.0 2.0)"), Value::Point(point));
    let minus =
        Value::Duration(Duration { months: 0, days: 0, seconds: -1, nanoseconds: 500_000_000 });
    assert_eq!(text::typed(&minus), Some(("Duration", "PT-0.5S".to_owned())));
    for (name, text) in [
        ("OffsetDateTime", "2020-01-02T03:04:05Z"),
        ("ZonedDateTime", "2015-11-21T21:40:32.142+01:00[Europe/Berlin]"),
        ("LocalDateTime", "-000000001-02-28T23:59:59.999999999"),
        ("Time", "12:50:35.556+01:00"),
        ("LocalTime", "00:00:00"),
    ] {
        assert_eq!(text::typed(&read(name, text)), Some((name, text.to_owned())));
    }
    for (name, text) in
        [("Date", "2021-02-29"), ("LocalTime", "24:00:00"), ("Time", "10:00:00+19:00")]
    {
        assert_eq!(text::from_typed(name, text), None, "{text}");
    }
}

impl Value {
    fn with_days(self, days: i64) -> Value {
        match self {
            Value::Duration(amount) => Value::Duration(Duration { days, ..amount }),
            other => other,
        }
    }
}
