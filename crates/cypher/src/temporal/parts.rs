//! Splits temporal values into date, time of day and zone, and combines them.

use super::calendar;
use super::duration::out_of_range;
use super::zone::{UTC, Zone};
use crate::error::Result;
use crate::value::{Date, DateTime, LocalDateTime, LocalTime, Time, Value};
use std::sync::Arc;

/// Seconds in a day.
pub(super) const DAY_SECONDS: i64 = 86_400;
/// Nanoseconds in a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// The types of points in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A date.
    Date,
    /// A time of day without a zone.
    LocalTime,
    /// A time of day at an offset.
    Time,
    /// A date and a time without a zone.
    LocalDateTime,
    /// An instant in a zone.
    DateTime,
}

impl Kind {
    /// Whether it has a date.
    pub(super) fn has_date(self) -> bool {
        matches!(self, Self::Date | Self::LocalDateTime | Self::DateTime)
    }

    /// Whether it has a time of day.
    pub(super) fn has_time(self) -> bool {
        self != Self::Date
    }

    /// Whether it has a zone.
    pub(super) fn has_zone(self) -> bool {
        matches!(self, Self::Time | Self::DateTime)
    }

    /// The name of its constructor.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::LocalTime => "localtime",
            Self::Time => "time",
            Self::LocalDateTime => "localdatetime",
            Self::DateTime => "datetime",
        }
    }
}

/// The parts of a value in local time.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// Days since 1970-01-01.
    pub(super) date: Option<i64>,
    /// Nanoseconds since midnight.
    pub(super) time: Option<u64>,
    pub(super) zone: Option<Zone>,
}

impl Parts {
    /// The parts of a temporal value; `None` for durations and other values.
    pub(super) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Date(date) => Self { date: Some(date.days), time: None, zone: None },
            Value::LocalTime(time) => Self { date: None, time: Some(time.nanoseconds), zone: None },
            Value::Time(time) => Self {
                date: None,
                time: Some(time.nanoseconds),
                zone: Some(Zone::Offset(time.offset)),
            },
            Value::LocalDateTime(time) => {
                let (date, time) = split(time.seconds, time.nanoseconds);
                Self { date: Some(date), time: Some(time), zone: None }
            }
            Value::DateTime(time) => {
                let zone = Zone::stored(time.offset, time.zone.as_ref());
                let (date, clock) =
                    split(time.seconds.saturating_add(i64::from(time.offset)), time.nanoseconds);
                Self { date: Some(date), time: Some(clock), zone: Some(zone) }
            }
            _ => return None,
        })
    }

    /// Local seconds since 1970; missing parts are 1970-01-01 and midnight.
    pub(super) fn clock_seconds(&self) -> i64 {
        let time = self.time.unwrap_or(0) / SECOND;
        self.date.unwrap_or(0).saturating_mul(DAY_SECONDS).saturating_add(time as i64)
    }

    /// Nanoseconds within the second.
    pub(super) fn fraction(&self) -> u32 {
        (self.time.unwrap_or(0) % SECOND) as u32
    }

    /// The instant, in seconds since 1970; without a zone, in UTC.
    pub(super) fn instant(&self) -> i64 {
        self.zone.as_ref().unwrap_or(&UTC).instant(self.clock_seconds())
    }

    /// The offset at its instant.
    pub(super) fn offset(&self) -> i32 {
        self.zone.as_ref().map_or(0, |zone| zone.offset_at(self.instant()))
    }

    /// The same instant in another zone. Without a date, uses that zone's offset in 1970.
    #[must_use]
    pub(super) fn in_zone(&self, zone: Zone) -> Self {
        let instant = self.instant();
        let local = instant.saturating_add(i64::from(zone.offset_at(instant)));
        let (date, time) = split(local, self.fraction());
        Self { date: self.date.map(|_| date), time: Some(time), zone: Some(zone) }
    }

    /// A value of a type; missing parts are 1970-01-01, midnight, UTC.
    pub(super) fn value(&self, kind: Kind) -> Result<Value> {
        let date =
            calendar::in_range(i128::from(self.date.unwrap_or(0))).ok_or_else(out_of_range)?;
        let time = self.time.unwrap_or(0);
        Ok(match kind {
            Kind::Date => Value::Date(Date { days: date }),
            Kind::LocalTime => Value::LocalTime(LocalTime { nanoseconds: time }),
            Kind::Time => Value::Time(Time { nanoseconds: time, offset: self.offset() }),
            Kind::LocalDateTime => Value::LocalDateTime(LocalDateTime {
                seconds: self.clock_seconds(),
                nanoseconds: self.fraction(),
            }),
            Kind::DateTime => {
                let instant = self.instant();
                let zone = self.zone.as_ref().unwrap_or(&UTC);
                Value::DateTime(Arc::new(DateTime {
                    seconds: instant,
                    nanoseconds: self.fraction(),
                    offset: zone.offset_at(instant),
                    zone: zone.name(),
                }))
            }
        })
    }
}

/// The day and the nanoseconds since midnight of seconds since 1970.
pub(super) fn split(seconds: i64, nanoseconds: u32) -> (i64, u64) {
    let (day, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    (day, second as u64 * SECOND + u64::from(nanoseconds))
}

/// The type of a temporal value other than a duration.
pub(super) fn kind_of(value: &Value) -> Option<Kind> {
    Some(match value {
        Value::Date(_) => Kind::Date,
        Value::LocalTime(_) => Kind::LocalTime,
        Value::Time(_) => Kind::Time,
        Value::LocalDateTime(_) => Kind::LocalDateTime,
        Value::DateTime(_) => Kind::DateTime,
        _ => return None,
    })
}
