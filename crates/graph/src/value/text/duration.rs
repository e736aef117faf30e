//! Durations as ISO 8601 text: `P14M3DT3.5S`.

use crate::value::{Duration, NANOSECONDS};
use std::fmt::Write;

pub(super) fn write(amount: &Duration) -> String {
    let mut out = String::from("P");
    if amount.months != 0 {
        _ = write!(out, "{}M", amount.months);
    }
    if amount.days != 0 {
        _ = write!(out, "{}D", amount.days);
    }
    let unit = i128::from(NANOSECONDS);
    let total = i128::from(amount.seconds) * unit + i128::from(amount.nanoseconds);
    if total != 0 || out.len() == 1 {
        let sign = if total < 0 { "-" } else { "" };
        let (seconds, fraction) = (total.abs() / unit, total.abs() % unit);
        _ = write!(out, "T{sign}{seconds}");
        if fraction > 0 {
            let digits = format!("{fraction:09}");
            _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        out.push('S');
    }
    out
}

/// A number with its unit, and the rest.
fn part(text: &str) -> Option<((&str, u8), &str)> {
    let end = text.find(|letter: char| letter.is_ascii_uppercase())?;
    Some(((&text[..end], text.as_bytes()[end]), &text[end + 1..]))
}

fn nanoseconds(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    if unsigned.is_empty() || fraction.len() > 9 || !is_digits(unsigned) || !is_digits(fraction) {
        return None;
    }
    let seconds = i128::from(unsigned.parse::<u64>().ok()?);
    let fraction: i128 = format!("{fraction:0<9}").parse().ok()?;
    let total = seconds * i128::from(NANOSECONDS) + fraction;
    Some(if whole.starts_with('-') { -total } else { total })
}

pub(super) fn read(text: &str) -> Option<Duration> {
    let (dates, times) = text.strip_prefix('P')?.split_once('T').unwrap_or((&text[1..], ""));
    let (mut months, mut days, mut total) = (0i64, 0i64, 0i128);
    let mut rest = dates;
    while !rest.is_empty() {
        let ((number, unit), following) = part(rest)?;
        let number: i64 = number.parse().ok()?;
        let (sum, factor) = match unit {
            b'Y' => (&mut months, 12),
            b'M' => (&mut months, 1),
            b'W' => (&mut days, 7),
            b'D' => (&mut days, 1),
            _ => return None,
        };
        *sum = sum.checked_add(number.checked_mul(factor)?)?;
        rest = following;
    }
    rest = times;
    while !rest.is_empty() {
        let ((number, unit), following) = part(rest)?;
        let factor = match unit {
            b'H' => 3600,
            b'M' => 60,
            b'S' => 1,
            _ => return None,
        };
        total = total.checked_add(nanoseconds(number)?.checked_mul(factor)?)?;
        rest = following;
    }
    let unit = i128::from(NANOSECONDS);
    let seconds = i64::try_from(total.div_euclid(unit)).ok()?;
    let nanoseconds = total.rem_euclid(unit) as u32;
    (text.len() > 1 && !text.ends_with('T')).then_some(Duration {
        months,
        days,
        seconds,
        nanoseconds,
    })
}
