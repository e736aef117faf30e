//! Parses dates, times, offsets and durations in ISO 8601. `None` if the text is invalid.

use super::calendar;
use super::duration::{Amounts, Unit};
use crate::value::Duration;

/// A number that consists of digits only.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// A number in a range of an ASCII text.
fn part(text: &str, range: std::ops::Range<usize>) -> Option<i64> {
    number(text.get(range)?)
}

/// A date: `2015-07-21`, `20150721`, `2015-07`, `2015-W30-2`, `2015W302`, `2015-202`, `2015` …
pub(super) fn date(text: &str) -> Option<i64> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    // A signed year has any number of digits, others have four.
    let digits = if text.len() == unsigned.len() {
        4
    } else {
        unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len())
    };
    let year = sign * part(unsigned, 0..digits)?;
    let rest = unsigned.get(digits..)?;
    calendar::YEARS.contains(&year).then_some(())?;
    let compact = rest.strip_prefix('-').unwrap_or(rest);
    let extended = compact.len() < rest.len();
    if let Some(week) = compact.strip_prefix('W') {
        return week_date(year, week, extended);
    }
    if let Some(quarter) = compact.strip_prefix('Q') {
        let (quarter, day) = (part(quarter, 0..1)?, optional(quarter.get(1..)?, extended, 1)?);
        return day_of_quarter(year, quarter, day);
    }
    match (compact.len(), extended) {
        (0, false) => month_day(year, 1, 1),
        (2, _) => month_day(year, number(compact)?, 1),
        (3, _) => ordinal(year, number(compact)?),
        (4, false) => month_day(year, part(compact, 0..2)?, part(compact, 2..4)?),
        (5, true) if compact.get(2..3) == Some("-") => {
            month_day(year, part(compact, 0..2)?, part(compact, 3..5)?)
        }
        _ => None,
    }
}

/// The rest, optionally after a hyphen; `otherwise` if there is none.
fn optional(rest: &str, extended: bool, otherwise: i64) -> Option<i64> {
    match (rest.is_empty(), extended) {
        (true, _) => Some(otherwise),
        (false, true) => number(rest.strip_prefix('-')?),
        (false, false) => number(rest),
    }
}

fn week_date(year: i64, rest: &str, extended: bool) -> Option<i64> {
    let week = part(rest, 0..2)?;
    day_of_week(year, week, optional(rest.get(2..)?, extended, 1)?)
}

/// The date of a year, month and day, if it exists.
pub(super) fn month_day(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_date = calendar::YEARS.contains(&year)
        && (1..=12).contains(&month)
        && (1..=calendar::month_length(year, month)).contains(&day);
    is_date.then(|| calendar::days(year, month, day))
}

/// The date of a week day, if it exists.
pub(super) fn day_of_week(year: i64, week: i64, day: i64) -> Option<i64> {
    let is_date =
        calendar::YEARS.contains(&year) && (1..=53).contains(&week) && (1..=7).contains(&day);
    let monday =
        calendar::week_start(if is_date { year } else { 0 }, if is_date { week } else { 1 });
    // In a year without a 53rd week, that week would be the first of the next year.
    (is_date && (week < 53 || calendar::week(monday).1 == 53)).then_some(monday + day - 1)
}

/// The date of a day of the year, if it exists.
pub(super) fn ordinal(year: i64, day: i64) -> Option<i64> {
    let is_date =
        calendar::YEARS.contains(&year) && (1..=calendar::year_length(year)).contains(&day);
    is_date.then(|| calendar::days(year, 1, 1) + day - 1)
}

/// The date of a day of the quarter, if it exists.
pub(super) fn day_of_quarter(year: i64, quarter: i64, day: i64) -> Option<i64> {
    if !calendar::YEARS.contains(&year) || !(1..=4).contains(&quarter) {
        return None;
    }
    let start = calendar::quarter_start(year, quarter);
    let length: i64 =
        (quarter * 3 - 2..=quarter * 3).map(|month| calendar::month_length(year, month)).sum();
    (1..=length).contains(&day).then_some(start + day - 1)
}

/// Nanoseconds since midnight: `21:40:32.142`, `2140`, `21` …
pub(super) fn time(text: &str) -> Option<u64> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let compact: String = whole.split(':').collect();
    let colons = whole.len() - compact.len();
    // Either all parts are separated by colons or none.
    if !compact.len().is_multiple_of(2)
        || compact.len() > 6
        || (colons > 0 && colons + 1 != compact.len() / 2)
    {
        return None;
    }
    let hour = part(&compact, 0..2)?;
    let minute = if compact.len() > 2 { part(&compact, 2..4)? } else { 0 };
    let second = if compact.len() > 4 { part(&compact, 4..6)? } else { 0 };
    let nanoseconds = match fraction {
        Some(digits) if compact.len() == 6 && digits.len() <= 9 => {
            number(digits)? * 10_i64.pow(9 - digits.len() as u32)
        }
        Some(_) => return None,
        None => 0,
    };
    clock(hour, minute, second, nanoseconds)
}

/// Nanoseconds since midnight, if the time exists.
pub(super) fn clock(hour: i64, minute: i64, second: i64, nanoseconds: i64) -> Option<u64> {
    let is_time = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (0..1_000_000_000).contains(&nanoseconds);
    is_time
        .then(|| ((hour * 60 + minute) * 60 + second) as u64 * 1_000_000_000 + nanoseconds as u64)
}

/// Seconds east of Greenwich: `Z`, `+01:00`, `-0130`, `+18`, `+02:05:59`.
pub(super) fn offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => return None,
    };
    let compact: String = rest.split(':').collect();
    if !compact.len().is_multiple_of(2) || compact.len() > 6 {
        return None;
    }
    let hours = part(&compact, 0..2)?;
    let minutes = if compact.len() > 2 { part(&compact, 2..4)? } else { 0 };
    let seconds = if compact.len() > 4 { part(&compact, 4..6)? } else { 0 };
    let total = hours * 3600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= 18 * 3600).then_some(sign * total as i32)
}

/// A time with its suffix: an offset, a zone name in brackets, or both.
pub(super) fn zoned_time(text: &str) -> Option<(u64, Option<i32>, Option<&str>)> {
    let (rest, name) = match text.split_once('[') {
        Some((rest, name)) => (rest, Some(name.strip_suffix(']')?)),
        None => (text, None),
    };
    let end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    let offset = if zone.is_empty() { None } else { Some(offset(zone)?) };
    Some((time(clock)?, offset, name))
}

/// A duration: `P1Y2M3W4DT5H6M7.8S`, any part with a sign, the last with a fraction;
/// `P2012-02-02T14:37:21.545`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (negated, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let body = body.strip_prefix('P')?;
    let (date, time) = match body.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (body, ""),
    };
    if body.is_empty() {
        return None;
    }
    if let Some(parts) = like_a_date(date, time) {
        return Some(parts);
    }
    let mut amounts = Amounts::default();
    let date_units =
        [('Y', Unit::Years), ('M', Unit::Months), ('W', Unit::Weeks), ('D', Unit::Days)];
    let clock_units = [('H', Unit::Hours), ('M', Unit::Minutes), ('S', Unit::Seconds)];
    for (mut units, text) in [(&date_units[..], date), (&clock_units[..], time)] {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let letter = rest.get(end..)?.chars().next()?;
            // Units come in a fixed order, each once.
            let place = units.iter().position(|unit| unit.0 == letter)?;
            let (whole, fraction) = amount(rest.get(..end)?, negated)?;
            amounts.add(units.get(place)?.1, whole, fraction);
            units = units.get(place + 1..)?;
            rest = rest.get(end + 1..)?;
        }
    }
    amounts.total().ok()
}

/// A number as integer part and fraction.
fn amount(text: &str, negated: bool) -> Option<(i64, f64)> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let sign = if whole.starts_with('-') != negated { -1 } else { 1 };
    // The least integer has no opposite, so the sign is parsed with the digits.
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let starts_well = digits.starts_with(|c: char| c.is_ascii_digit());
    let whole = if sign < 0 { format!("-{digits}") } else { digits.to_owned() };
    let whole = if starts_well { whole.parse().ok()? } else { return None };
    if fraction.is_empty() {
        return Some((whole, 0.0));
    }
    number(fraction)?;
    Some((whole, format!("0.{fraction}").parse::<f64>().ok()? * sign as f64))
}

/// `2012-02-02` and `14:37:21.545` as amounts.
fn like_a_date(date: &str, clock: &str) -> Option<Duration> {
    let (year, month, day) = (part(date, 0..4)?, part(date, 5..7)?, part(date, 8..10)?);
    let separated = date.get(4..5) == Some("-") && date.get(7..8) == Some("-") && date.len() == 10;
    separated.then_some(())?;
    let nanoseconds = if clock.is_empty() { 0 } else { time(clock)? };
    super::duration::duration(
        i128::from(year * 12 + month),
        i128::from(day),
        i128::from(nanoseconds),
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn a_time_without_digits_is_no_time() {
        for text in ["", ":", "::", ":.5"] {
            assert_eq!(time(text), None, "{text:?}");
        }
        assert_eq!(time("21:40:32"), Some(78_032_000_000_000));
    }
}
