//! Values as bytes, in rows and snapshots. The input may be damaged, so every read can fail.

use super::{
    CoordinateSystem, DAY_SECONDS, Date, DateTime, Duration, LocalDateTime, LocalTime, NANOSECONDS,
    Point, Time, Value, bits,
};

const FALSE: u8 = 0;
const TRUE: u8 = 1;
const INTEGER: u8 = 2;
const FLOAT: u8 = 3;
const STRING: u8 = 4;
const LIST: u8 = 5;
const BYTES: u8 = 6;
const POINT: u8 = 7;
const DATE: u8 = 8;
const LOCAL_TIME: u8 = 9;
const TIME: u8 = 10;
const LOCAL_DATE_TIME: u8 = 11;
const DATE_TIME: u8 = 12;
const DURATION: u8 = 13;
/// An 8-byte integer, used where a varint would be longer.
const WIDE_INTEGER: u8 = 14;

/// Bytes that are read from the front. `None` means damage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(front)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn float(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.array()?))
    }

    /// Reads a length and that many bytes.
    pub(crate) fn sized(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok()?)
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Writes a length and the bytes.
pub(crate) fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_integer(out: &mut Vec<u8>, value: i64) {
    if value.unsigned_abs() < 1 << 48 {
        out.push(INTEGER);
        put_zigzag(out, value);
    } else {
        out.push(WIDE_INTEGER);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Writes `value` in self-delimiting form, for [`take_value`] and [`skip_value`].
pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Boolean(value) => out.push(if *value { TRUE } else { FALSE }),
        Value::Integer(value) => put_integer(out, *value),
        Value::Float(value) => {
            out.push(FLOAT);
            out.extend_from_slice(&bits(*value).to_le_bytes());
        }
        Value::String(text) => {
            out.push(STRING);
            put_sized(out, text.as_bytes());
        }
        Value::List(items) => {
            out.push(LIST);
            put_varint(out, items.len() as u64);
            items.iter().for_each(|item| put_value(out, item));
        }
        Value::Bytes(bytes) => {
            out.push(BYTES);
            put_sized(out, bytes);
        }
        Value::Point(point) => {
            out.push(POINT);
            out.extend_from_slice(&point.system.srid().to_le_bytes());
            for coordinate in [point.x, point.y, point.z] {
                out.extend_from_slice(&bits(coordinate).to_le_bytes());
            }
        }
        _ => put_temporal(out, value),
    }
}

fn put_temporal(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Date(date) => {
            out.push(DATE);
            put_zigzag(out, date.days);
        }
        Value::LocalTime(time) => {
            out.push(LOCAL_TIME);
            put_varint(out, time.nanoseconds);
        }
        Value::Time(time) => {
            out.push(TIME);
            put_varint(out, time.nanoseconds);
            put_zigzag(out, time.offset.into());
        }
        Value::LocalDateTime(at) => {
            out.push(LOCAL_DATE_TIME);
            put_zigzag(out, at.seconds);
            put_varint(out, at.nanoseconds.into());
        }
        Value::DateTime(at) => {
            out.push(DATE_TIME);
            put_zigzag(out, at.seconds);
            put_varint(out, at.nanoseconds.into());
            put_zigzag(out, at.offset.into());
            put_sized(out, at.zone.as_deref().unwrap_or_default().as_bytes());
        }
        Value::Duration(duration) => {
            out.push(DURATION);
            put_zigzag(out, duration.months);
            put_zigzag(out, duration.days);
            put_zigzag(out, duration.seconds);
            put_varint(out, duration.nanoseconds.into());
        }
        _ => {}
    }
}

/// Reads a value written by [`put_value`].
pub(crate) fn take_value(input: &mut Reader<'_>) -> Option<Value> {
    let tag = input.byte()?;
    if tag != LIST {
        return take_scalar(tag, input);
    }
    let count = input.varint()?;
    let mut items = Vec::with_capacity(usize::try_from(count).ok()?.min(input.bytes.len()));
    for _ in 0..count {
        let tag = input.byte()?;
        items.push(take_scalar(tag, input)?);
    }
    Some(Value::List(items.into()))
}

fn take_scalar(tag: u8, input: &mut Reader<'_>) -> Option<Value> {
    Some(match tag {
        FALSE => Value::Boolean(false),
        TRUE => Value::Boolean(true),
        INTEGER => Value::Integer(input.zigzag()?),
        WIDE_INTEGER => Value::Integer(i64::from_le_bytes(input.array()?)),
        FLOAT => Value::Float(input.float()?),
        STRING => Value::String(std::str::from_utf8(input.sized()?).ok()?.into()),
        BYTES => Value::Bytes(input.sized()?.into()),
        POINT => {
            let system = CoordinateSystem::from_srid(u16::from_le_bytes(input.array()?))?;
            let (x, y, z) = (input.float()?, input.float()?, input.float()?);
            Value::Point(Point { system, x, y, z })
        }
        _ => take_temporal(tag, input)?,
    })
}

fn take_temporal(tag: u8, input: &mut Reader<'_>) -> Option<Value> {
    let of_day = |input: &mut Reader<'_>| {
        input.varint().filter(|&nanoseconds| nanoseconds < DAY_SECONDS as u64 * NANOSECONDS)
    };
    let of_second = |input: &mut Reader<'_>| {
        let nanoseconds = input.varint().filter(|&nanoseconds| nanoseconds < NANOSECONDS)?;
        u32::try_from(nanoseconds).ok()
    };
    let offset = |input: &mut Reader<'_>| i32::try_from(input.zigzag()?).ok();
    Some(match tag {
        DATE => Value::Date(Date { days: input.zigzag()? }),
        LOCAL_TIME => Value::LocalTime(LocalTime { nanoseconds: of_day(input)? }),
        TIME => Value::Time(Time { nanoseconds: of_day(input)?, offset: offset(input)? }),
        LOCAL_DATE_TIME => {
            let (seconds, nanoseconds) = (input.zigzag()?, of_second(input)?);
            Value::LocalDateTime(LocalDateTime { seconds, nanoseconds })
        }
        DATE_TIME => {
            let (seconds, nanoseconds) = (input.zigzag()?, of_second(input)?);
            let offset = offset(input)?;
            let zone = std::str::from_utf8(input.sized()?).ok()?;
            let zone = Some(zone).filter(|zone| !zone.is_empty()).map(Into::into);
            Value::DateTime(DateTime { seconds, nanoseconds, offset, zone })
        }
        DURATION => {
            let (months, days) = (input.zigzag()?, input.zigzag()?);
            let (seconds, nanoseconds) = (input.zigzag()?, of_second(input)?);
            Value::Duration(Duration { months, days, seconds, nanoseconds })
        }
        _ => return None,
    })
}

/// Skips a value without building it.
pub(crate) fn skip_value(input: &mut Reader<'_>) -> Option<()> {
    match input.byte()? {
        LIST => (0..input.varint()?).try_for_each(|_| {
            let tag = input.byte()?;
            skip_scalar(tag, input)
        }),
        tag => skip_scalar(tag, input),
    }
}

fn skip_scalar(tag: u8, input: &mut Reader<'_>) -> Option<()> {
    match tag {
        FALSE | TRUE => Some(()),
        INTEGER => input.varint().map(|_| ()),
        WIDE_INTEGER | FLOAT => input.take(8).map(|_| ()),
        STRING | BYTES => input.sized().map(|_| ()),
        _ => take_scalar(tag, input).map(|_| ()),
    }
}

/// Skips a possibly damaged value. `None` if it is damaged.
pub(crate) fn check_value(input: &mut Reader<'_>) -> Option<()> {
    match input.byte()? {
        LIST => (0..input.varint()?).try_for_each(|_| {
            let tag = input.byte()?;
            check_scalar(tag, input)
        }),
        tag => check_scalar(tag, input),
    }
}

fn check_scalar(tag: u8, input: &mut Reader<'_>) -> Option<()> {
    match tag {
        STRING => std::str::from_utf8(input.sized()?).ok().map(|_| ()),
        _ => skip_scalar(tag, input),
    }
}
