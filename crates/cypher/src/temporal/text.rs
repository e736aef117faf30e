//! Formats temporal values as ISO 8601; seconds are omitted if they are zero.

use super::calendar::{Civil, civil};
use super::parts::{SECOND, split};
use crate::value::{DateTime, Value};

/// The text that `toString()` returns; `None` for values that are not temporal.
pub fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Date(date) => date_text(date.days),
        Value::LocalTime(time) => clock_text(time.nanoseconds),
        Value::Time(time) => clock_text(time.nanoseconds) + &offset_text(time.offset),
        Value::LocalDateTime(time) => local_text(time.seconds, time.nanoseconds),
        Value::DateTime(time) => instant_text(time),
        Value::Duration(duration) => super::duration::text(duration),
        _ => return None,
    })
}

fn date_text(days: i64) -> String {
    let Civil { year, month, day } = civil(days);
    // Years of more than four digits have a sign.
    let year = match year {
        0..=9_999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", year.unsigned_abs()),
    };
    format!("{year}-{month:02}-{day:02}")
}

/// The fraction has three, six or nine digits.
fn clock_text(nanoseconds: u64) -> String {
    let (seconds, fraction) = (nanoseconds / SECOND, nanoseconds % SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let start = format!("{hour:02}:{minute:02}");
    match fraction {
        0 if second == 0 => start,
        0 => format!("{start}:{second:02}"),
        _ if fraction % 1_000_000 == 0 => {
            format!("{start}:{second:02}.{:03}", fraction / 1_000_000)
        }
        _ if fraction % 1_000 == 0 => format!("{start}:{second:02}.{:06}", fraction / 1_000),
        _ => format!("{start}:{second:02}.{fraction:09}"),
    }
}

/// `Z`, `+01:00`, `-02:05:07`
pub(super) fn offset_text(offset: i32) -> String {
    if offset == 0 {
        return "Z".to_owned();
    }
    let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
    let (hours, minutes, seconds) = (size / 3600, size / 60 % 60, size % 60);
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

fn local_text(seconds: i64, nanoseconds: u32) -> String {
    let (date, time) = split(seconds, nanoseconds);
    format!("{}T{}", date_text(date), clock_text(time))
}

fn instant_text(time: &DateTime) -> String {
    let local = time.seconds.saturating_add(i64::from(time.offset));
    let start = local_text(local, time.nanoseconds) + &offset_text(time.offset);
    match &time.zone {
        Some(zone) => format!("{start}[{zone}]"),
        None => start,
    }
}
