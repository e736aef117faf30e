//! Dates and times as ISO 8601 text.

use crate::value::{
    DAY_SECONDS, Date, DateTime, LocalDateTime, LocalTime, NANOSECONDS, Time, Value,
};
use std::fmt::Write;
use std::sync::Arc;
use wellspring_types::moment::Date as CalendarDate;

const MAX_OFFSET: i32 = 18 * 3600;
const DAY_NANOSECONDS: u64 = DAY_SECONDS as u64 * NANOSECONDS;

fn put_date(out: &mut String, date: Date) {
    let CalendarDate { year, month, day } = CalendarDate::of_day(date.days);
    _ = match year {
        0..=9_999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{year:+010}-{month:02}-{day:02}"),
    };
}

fn put_time(out: &mut String, nanoseconds: u64) {
    let (seconds, fraction) = (nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS);
    _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let digits = format!("{fraction:09}");
        _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

fn put_offset(out: &mut String, offset: i32) {
    if offset == 0 {
        return out.push('Z');
    }
    let (sign, seconds) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
    _ = write!(out, "{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if !seconds.is_multiple_of(60) {
        _ = write!(out, ":{:02}", seconds % 60);
    }
}

fn put_local(out: &mut String, seconds: i64, nanoseconds: u32) {
    put_date(out, Date { days: seconds.div_euclid(DAY_SECONDS) });
    out.push('T');
    let of_day = seconds.rem_euclid(DAY_SECONDS) as u64;
    put_time(out, of_day * NANOSECONDS + u64::from(nanoseconds));
}

pub(super) fn date(date: Date) -> String {
    let mut out = String::new();
    put_date(&mut out, date);
    out
}

pub(super) fn local_time(time: LocalTime) -> String {
    let mut out = String::new();
    put_time(&mut out, time.nanoseconds);
    out
}

pub(super) fn time(time: Time) -> String {
    let mut out = String::new();
    put_time(&mut out, time.nanoseconds);
    put_offset(&mut out, time.offset);
    out
}

pub(super) fn local_date_time(at: LocalDateTime) -> String {
    let mut out = String::new();
    put_local(&mut out, at.seconds, at.nanoseconds);
    out
}

pub(super) fn date_time(at: &DateTime) -> String {
    let mut out = String::new();
    put_local(&mut out, at.seconds.saturating_add(at.offset.into()), at.nanoseconds);
    put_offset(&mut out, at.offset);
    if let Some(zone) = &at.zone {
        _ = write!(out, "[{zone}]");
    }
    out
}

/// Whether a text can be a time zone's name.
pub(super) fn is_zone(name: &str) -> bool {
    let is_odd = |letter: char| letter.is_control() || matches!(letter, '[' | ']');
    (1..=64).contains(&name.len()) && !name.contains(is_odd)
}

pub(super) fn is_in_range(value: &Value) -> bool {
    let is_day = |days: i64| {
        let (first, last) = (-365_243_219_162, 365_241_780_471);
        (first..=last).contains(&days)
    };
    let is_second = |seconds: i64| is_day(seconds.div_euclid(DAY_SECONDS));
    let is_offset = |offset: i32| offset.abs() <= MAX_OFFSET;
    match value {
        Value::Date(date) => is_day(date.days),
        Value::LocalTime(time) => time.nanoseconds < DAY_NANOSECONDS,
        Value::Time(time) => time.nanoseconds < DAY_NANOSECONDS && is_offset(time.offset),
        Value::LocalDateTime(at) => {
            is_second(at.seconds) && u64::from(at.nanoseconds) < NANOSECONDS
        }
        Value::DateTime(at) => {
            is_offset(at.offset)
                && is_second(at.seconds)
                && is_second(at.seconds.saturating_add(at.offset.into()))
                && at.zone.as_deref().is_none_or(is_zone)
                && u64::from(at.nanoseconds) < NANOSECONDS
        }
        Value::Duration(amount) => u64::from(amount.nanoseconds) < NANOSECONDS,
        Value::List(items) => items.iter().all(is_in_range),
        _ => true,
    }
}

/// A number with exactly this many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

pub(super) fn read_date(text: &str) -> Option<Date> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (0, text),
    };
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let year = if sign == 0 { digits(year, 4)? } else { sign * digits(year, 9)? };
    let days = CalendarDate::new(year, digits(month, 2)?, digits(day, 2)?)?.to_day();
    parts.next().is_none().then_some(Date { days })
}

/// Nanoseconds since midnight.
fn read_of_day(text: &str) -> Option<u64> {
    let (text, fraction) = match text.split_once('.') {
        None => (text, 0),
        Some((text, fraction)) => {
            let value = digits(fraction, fraction.len())?;
            let power = 9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
            (text, value as u64 * 10u64.pow(power))
        }
    };
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    let is_time = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    is_time.then_some((hour * 3600 + minute * 60 + second) as u64 * NANOSECONDS + fraction)
}

fn read_offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'-' => -1,
        b'+' => 1,
        _ => return None,
    };
    let mut parts = text[1..].split(':');
    let (hours, minutes) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let seconds = match parts.next() {
        None => 0,
        Some(seconds) => digits(seconds, 2)?,
    };
    let offset = sign * i32::try_from(hours * 3600 + minutes * 60 + seconds).ok()?;
    let is_offset = minutes < 60 && seconds < 60 && offset.abs() <= MAX_OFFSET;
    (is_offset && parts.next().is_none()).then_some(offset)
}

/// A time and the offset after it.
fn split_offset(text: &str) -> Option<(&str, i32)> {
    let at = text.find(['Z', '+', '-'])?;
    Some((&text[..at], read_offset(&text[at..])?))
}

pub(super) fn read_local_time(text: &str) -> Option<LocalTime> {
    Some(LocalTime { nanoseconds: read_of_day(text)? })
}

pub(super) fn read_time(text: &str) -> Option<Time> {
    let (time, offset) = split_offset(text)?;
    Some(Time { nanoseconds: read_of_day(time)?, offset })
}

fn local(date: &str, nanoseconds: u64) -> Option<LocalDateTime> {
    let seconds = read_date(date)?.days * DAY_SECONDS + (nanoseconds / NANOSECONDS) as i64;
    Some(LocalDateTime { seconds, nanoseconds: (nanoseconds % NANOSECONDS) as u32 })
}

pub(super) fn read_local_date_time(text: &str) -> Option<LocalDateTime> {
    let (date, time) = text.split_once('T')?;
    local(date, read_of_day(time)?)
}

pub(super) fn read_date_time(text: &str, zone: Option<Arc<str>>) -> Option<DateTime> {
    let (date, time) = text.split_once('T')?;
    let (time, offset) = split_offset(time)?;
    let LocalDateTime { seconds, nanoseconds } = local(date, read_of_day(time)?)?;
    let at = DateTime { seconds: seconds - i64::from(offset), nanoseconds, offset, zone };
    let value = Value::DateTime(at.clone());
    is_in_range(&value).then_some(at)
}
