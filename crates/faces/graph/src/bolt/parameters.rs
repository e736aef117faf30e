//! Parameters from PackStream, while accounting for their memory as for those from JSON.

use crate::parameters::{
    ENTRY_BYTES, LIST_BYTES, MAP_BYTES, ParameterRoom, STRING_BYTES, VALUE_BYTES,
};
use std::sync::Arc;
use wellspring_bolt::packstream::{Item, PackFault, Reader};
use wellspring_bolt::{Version, structure};
use wellspring_cypher::context::Parameters;
use wellspring_cypher::temporal::{Kind, point_in_time};
use wellspring_cypher::value::{
    CoordinateSystem, Date, DateTime, Duration, Entries, LocalDateTime, LocalTime, Point, Time,
    Value, to_property,
};
use wellspring_graph::value::text::is_in_range;
use wellspring_graph::value::{DAY_SECONDS, NANOSECONDS};

/// Why parameters cannot be read.
#[derive(Debug)]
pub(crate) enum ParameterFault {
    /// They are not PackStream.
    Malformed(PackFault),
    /// One has a form or a value that no parameter has, in a sentence.
    Unusable(String),
    /// They exceed their memory.
    TooLarge,
}

impl From<PackFault> for ParameterFault {
    fn from(fault: PackFault) -> ParameterFault {
        ParameterFault::Malformed(fault)
    }
}

fn unusable<T>(why: impl Into<String>) -> Result<T, ParameterFault> {
    Err(ParameterFault::Unusable(why.into()))
}

/// Reads a map of parameters.
///
/// # Errors
/// [`ParameterFault`]
pub(crate) fn read(
    packed: &[u8],
    version: Version,
    room: &ParameterRoom,
) -> Result<Parameters, ParameterFault> {
    let mut reader = ParameterReader { reader: Reader::new(packed), version, room };
    match reader.reader.item()? {
        Item::Map(count) => reader.entries(count),
        Item::Null => Ok(Parameters::new()),
        other => unusable(format!("parameters must be a map, not {}", other.type_name())),
    }
}

struct ParameterReader<'a> {
    reader: Reader<'a>,
    version: Version,
    room: &'a ParameterRoom,
}

impl ParameterReader<'_> {
    fn take(&self, bytes: usize) -> Result<(), ParameterFault> {
        if self.room.charge(bytes) { Ok(()) } else { Err(ParameterFault::TooLarge) }
    }

    fn entries(&mut self, count: usize) -> Result<Entries, ParameterFault> {
        self.take(MAP_BYTES)?;
        let mut entries = Entries::new();
        for _ in 0..count {
            let Item::Text(key) = self.reader.item()? else {
                return unusable("the keys of a map must be text");
            };
            let key: Arc<str> = key.into();
            self.take(ENTRY_BYTES + key.len())?;
            let value = self.value()?;
            if entries.insert(Arc::clone(&key), value).is_some() {
                return unusable(format!("the name {key:?} is repeated"));
            }
        }
        Ok(entries)
    }

    fn value(&mut self) -> Result<Value, ParameterFault> {
        self.take(VALUE_BYTES)?;
        Ok(match self.reader.item()? {
            Item::Null => Value::Null,
            Item::Bool(truth) => Value::Boolean(truth),
            Item::Int(integer) => Value::Integer(integer),
            Item::Float(float) => Value::Float(float),
            Item::Bytes(bytes) => {
                self.take(STRING_BYTES + bytes.len())?;
                Value::Bytes(bytes.into())
            }
            Item::Text(text) => {
                self.take(STRING_BYTES + text.len())?;
                Value::string(text)
            }
            Item::List(count) => {
                self.take(LIST_BYTES)?;
                let mut items = Vec::new();
                for _ in 0..count {
                    items.push(self.value()?);
                }
                Value::list(items)
            }
            Item::Map(count) => Value::Map(Arc::new(self.entries(count)?.into())),
            Item::Struct { tag, fields } => {
                let mut values = Vec::new();
                for _ in 0..fields {
                    values.push(self.value()?);
                }
                let read = structured(tag, &values, self.version);
                let read = read.filter(|value| {
                    to_property(value).ok().flatten().is_some_and(|value| is_in_range(&value))
                });
                let Some(value) = read else {
                    return unusable(format!(
                        "a parameter has an unknown structure, or a value out of range (tag {tag:#04x})"
                    ));
                };
                value
            }
        })
    }
}

/// The value of a structure; `None`: it is none of a parameter.
fn structured(tag: u8, fields: &[Value], version: Version) -> Option<Value> {
    use Value::{Float, Integer, String};
    Some(match (tag, fields) {
        (structure::DATE, [Integer(days)]) => Value::Date(Date { days: *days }),
        (structure::LOCAL_TIME, [Integer(of_day)]) => {
            Value::LocalTime(LocalTime { nanoseconds: u64::try_from(*of_day).ok()? })
        }
        (structure::TIME, [Integer(of_day), Integer(offset)]) => Value::Time(Time {
            nanoseconds: u64::try_from(*of_day).ok()?,
            offset: i32::try_from(*offset).ok()?,
        }),
        (structure::LOCAL_DATE_TIME, [Integer(seconds), Integer(nanoseconds)]) => {
            Value::LocalDateTime(LocalDateTime {
                seconds: *seconds,
                nanoseconds: u32::try_from(*nanoseconds).ok()?,
            })
        }
        (tag, [Integer(seconds), Integer(nanoseconds), Integer(offset)])
            if tag == version.date_time_tag() =>
        {
            let local = if version.has_utc() { 0 } else { *offset };
            Value::DateTime(Arc::new(DateTime {
                seconds: seconds.checked_sub(local)?,
                nanoseconds: u32::try_from(*nanoseconds).ok()?,
                offset: i32::try_from(*offset).ok()?,
                zone: None,
            }))
        }
        (tag, [Integer(seconds), Integer(nanoseconds), String(zone)])
            if tag == version.date_time_zone_id_tag() =>
        {
            let nanoseconds = u32::try_from(*nanoseconds).ok()?;
            zoned(*seconds, nanoseconds, zone, version)?
        }
        (
            structure::DURATION,
            [Integer(months), Integer(days), Integer(seconds), Integer(rest)],
        ) => {
            let unit = NANOSECONDS.cast_signed();
            Value::duration(Duration {
                months: *months,
                days: *days,
                seconds: seconds.checked_add(rest.div_euclid(unit))?,
                nanoseconds: u32::try_from(rest.rem_euclid(unit)).ok()?,
            })
        }
        (structure::POINT_2D, [Integer(srid), Float(x), Float(y)]) => {
            point(*srid, [*x, *y, 0.0], 2)?
        }
        (structure::POINT_3D, [Integer(srid), Float(x), Float(y), Float(z)]) => {
            point(*srid, [*x, *y, *z], 3)?
        }
        _ => return None,
    })
}

fn point(srid: i64, [x, y, z]: [f64; 3], dimensions: u8) -> Option<Value> {
    let system = CoordinateSystem::from_srid(u16::try_from(srid).ok()?)?;
    let fits = system.has_z() == (dimensions == 3);
    fits.then(|| Value::Point(Arc::new(Point { system, x, y, z })))
}

/// An instant in a zone: `seconds` in UTC, or on its clock before that.
fn zoned(seconds: i64, nanoseconds: u32, zone: &Arc<str>, version: Version) -> Option<Value> {
    if seconds.checked_div(DAY_SECONDS)?.abs() > 365_243_219_162 {
        return None;
    }
    let zone = ("timezone".into(), Value::String(Arc::clone(zone)));
    let local = Value::LocalDateTime(LocalDateTime { seconds, nanoseconds });
    let utc = [
        ("epochSeconds".into(), Value::Integer(seconds)),
        ("nanosecond".into(), Value::Integer(nanoseconds.into())),
    ];
    let fields = if version.has_utc() {
        Value::map(utc.into_iter().chain([zone]))
    } else {
        Value::map([("datetime".into(), local), zone])
    };
    point_in_time(Kind::DateTime, &fields).ok()
}
