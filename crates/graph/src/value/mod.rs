//! Values of properties: never null, a map, or a list within a list.
//!
//! Temporal values are integers here. Arithmetic, parsing and formatting belong to the query
//! language; the text in events is in [`text`].

mod canonical;
mod codec;
mod equal;
#[cfg(test)]
mod tests;
pub mod text;

pub use canonical::{Canonical, PREFIX_BYTES};
pub(crate) use codec::{
    Reader, check_value, put_sized, put_value, put_varint, skip_value, take_value,
};

use std::sync::Arc;

/// A value of a property.
///
/// `==` compares stored values, so `Integer(1)` and `Float(1.0)` differ and NaN differs from
/// itself, unlike in Cypher.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `true` or `false`
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A 64-bit float.
    Float(f64),
    /// Text.
    String(Arc<str>),
    /// A list of values that are not lists.
    List(Arc<[Value]>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point.
    Point(Point),
    /// A calendar date.
    Date(Date),
    /// A time of day without an offset.
    LocalTime(LocalTime),
    /// A time of day with an offset.
    Time(Time),
    /// A day and a time without an offset.
    LocalDateTime(LocalDateTime),
    /// An instant with an offset and possibly a time zone.
    DateTime(DateTime),
    /// An amount of time.
    Duration(Duration),
}

impl Value {
    /// Whether a property can have this value: no list within a list, and temporal values within
    /// the range of their text form, so that events are read as they were written.
    #[must_use]
    pub fn is_storable(&self) -> bool {
        match self {
            Value::List(items) => {
                items.iter().all(|item| !matches!(item, Value::List(_)) && item.is_storable())
            }
            _ => text::is_in_range(self),
        }
    }

    /// Whether both are stored identically, bit by bit: all NaNs are identical, `0.0` and `-0.0`
    /// are not.
    #[must_use]
    pub fn is_identical(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => bits(*a) == bits(*b),
            (Value::Point(a), Value::Point(b)) => a.bits() == b.bits(),
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.is_identical(b))
            }
            _ => self == other,
        }
    }
}

/// The bits of a float. All NaNs have the same bits.
fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Boolean(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Integer(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.into())
    }
}

/// The coordinate system of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CoordinateSystem {
    /// Plane, SRID 7203.
    Cartesian,
    /// Space, SRID 9157.
    Cartesian3d,
    /// Longitude and latitude, SRID 4326.
    Wgs84,
    /// Longitude, latitude and height, SRID 4979.
    Wgs84With3d,
}

impl CoordinateSystem {
    /// The system's SRID.
    #[must_use]
    pub fn srid(self) -> u16 {
        match self {
            CoordinateSystem::Cartesian => 7203,
            CoordinateSystem::Cartesian3d => 9157,
            CoordinateSystem::Wgs84 => 4326,
            CoordinateSystem::Wgs84With3d => 4979,
        }
    }

    /// The system with this SRID.
    #[must_use]
    pub fn from_srid(srid: u16) -> Option<CoordinateSystem> {
        match srid {
            7203 => Some(CoordinateSystem::Cartesian),
            9157 => Some(CoordinateSystem::Cartesian3d),
            4326 => Some(CoordinateSystem::Wgs84),
            4979 => Some(CoordinateSystem::Wgs84With3d),
            _ => None,
        }
    }

    /// Whether its points have a third coordinate.
    #[must_use]
    pub fn has_z(self) -> bool {
        matches!(self, CoordinateSystem::Cartesian3d | CoordinateSystem::Wgs84With3d)
    }
}

/// A point. `z` is zero and unused in a system without a third coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The coordinate system.
    pub system: CoordinateSystem,
    /// First coordinate, or longitude.
    pub x: f64,
    /// Second coordinate, or latitude.
    pub y: f64,
    /// Third coordinate, or height.
    pub z: f64,
}

impl Point {
    fn bits(&self) -> (CoordinateSystem, [u64; 3]) {
        (self.system, [bits(self.x), bits(self.y), bits(self.z)])
    }
}

/// Nanoseconds in a second.
pub const NANOSECONDS: u64 = 1_000_000_000;
/// Seconds in a day.
pub const DAY_SECONDS: i64 = 86_400;

/// A date in the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    /// Days since 1970-01-01, −365,243,219,162 to 365,241,780,471 (years ±999,999,999).
    pub days: i64,
}

/// A time of day without an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalTime {
    /// Nanoseconds since midnight, less than a day.
    pub nanoseconds: u64,
}

/// A time of day with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    /// Nanoseconds since midnight at the offset, less than a day.
    pub nanoseconds: u64,
    /// Seconds east of Greenwich, ±18 hours.
    pub offset: i32,
}

/// A date and a time without an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalDateTime {
    /// Seconds since 1970-01-01T00:00:00 on the same clock.
    pub seconds: i64,
    /// Nanoseconds within the second, less than 10^9.
    pub nanoseconds: u32,
}

/// An instant with an offset and possibly a time zone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// Seconds since 1970-01-01T00:00:00Z: the instant, whatever the offset.
    pub seconds: i64,
    /// Nanoseconds within the second, less than 10^9.
    pub nanoseconds: u32,
    /// Seconds east of Greenwich, ±18 hours.
    pub offset: i32,
    /// The time zone's name, such as `Europe/Berlin`.
    pub zone: Option<Arc<str>>,
}

/// An amount of time. The parts stay separate, because a month has no fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duration {
    /// Months.
    pub months: i64,
    /// Days.
    pub days: i64,
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999 even in a negative duration.
    pub nanoseconds: u32,
}
