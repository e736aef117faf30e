//! Arithmetic of durations; months, days and seconds stay separate.

use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::Duration;

/// Nanoseconds in a second.
pub(super) const SECOND: i128 = 1_000_000_000;
/// Nanoseconds in a day.
pub(super) const DAY: i128 = 86_400 * SECOND;
/// Nanoseconds in a month, taken as a twelfth of 365.2425 days.
const MONTH: f64 = 2_629_746e9;

#[cold]
pub(super) fn out_of_range() -> Error {
    let message = "The result is out of the range of times and durations.";
    Error::runtime(ErrorKind::ArithmeticError, Detail::NumberOutOfRange, message)
}

/// A duration with these parts; excess nanoseconds are carried to seconds.
pub(super) fn duration(months: i128, days: i128, nanoseconds: i128) -> Result<Duration> {
    let part = |part: i128| i64::try_from(part).map_err(|_| out_of_range());
    Ok(Duration {
        months: part(months)?,
        days: part(days)?,
        seconds: part(nanoseconds.div_euclid(SECOND))?,
        // Below 10⁹.
        nanoseconds: nanoseconds.rem_euclid(SECOND) as u32,
    })
}

/// The seconds and their fraction, in nanoseconds.
pub(super) fn clock_part(duration: &Duration) -> i128 {
    i128::from(duration.seconds) * SECOND + i128::from(duration.nanoseconds)
}

/// `a + b` or, with a `sign` of -1, `a - b`.
pub(super) fn sum(a: &Duration, b: &Duration, sign: i128) -> Result<Duration> {
    duration(
        i128::from(a.months) + sign * i128::from(b.months),
        i128::from(a.days) + sign * i128::from(b.days),
        clock_part(a) + sign * clock_part(b),
    )
}

/// `a + b`
///
/// # Errors
/// A part exceeds 64 bits.
pub fn add(a: &Duration, b: &Duration) -> Result<Duration> {
    sum(a, b, 1)
}

/// `duration * factor`. Fractions of months become days, those of days seconds.
///
/// # Errors
/// A part exceeds 64 bits, or the factor is not a number.
pub fn scale(duration: &Duration, factor: f64) -> Result<Duration> {
    let whole = factor as i64;
    if whole as f64 == factor && whole != i64::MAX {
        let factor = i128::from(whole);
        let clock = clock_part(duration).checked_mul(factor).ok_or_else(out_of_range)?;
        return self::duration(
            i128::from(duration.months) * factor,
            i128::from(duration.days) * factor,
            clock,
        );
    }
    of_fractions(
        duration.months as f64 * factor,
        duration.days as f64 * factor,
        clock_part(duration) as f64 * factor,
    )
}

/// A duration of fractional parts: fractions of months become days, those of days seconds.
pub(super) fn of_fractions(months: f64, days: f64, nanoseconds: f64) -> Result<Duration> {
    if ![months, days, nanoseconds].iter().all(|part| part.abs() < 1e28) {
        return Err(out_of_range());
    }
    let of_months = nearest(months.fract() * MONTH);
    let of_days = days.trunc() as i128 * DAY + nearest(days.fract() * DAY as f64);
    let day_nanoseconds = of_days.checked_add(of_months).ok_or_else(out_of_range)?;
    duration(
        months.trunc() as i128,
        day_nanoseconds / DAY,
        day_nanoseconds % DAY + nearest(nanoseconds),
    )
}

/// The nearest integer; half a nanosecond rounds to zero.
fn nearest(nanoseconds: f64) -> i128 {
    (nanoseconds.abs() - 0.5).ceil().copysign(nanoseconds) as i128
}

/// The units of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Years,
    Quarters,
    Months,
    Weeks,
    Days,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Unit {
    /// Its months, days and nanoseconds.
    fn parts(self) -> (i128, i128, i128) {
        match self {
            Self::Years => (12, 0, 0),
            Self::Quarters => (3, 0, 0),
            Self::Months => (1, 0, 0),
            Self::Weeks => (0, 7, 0),
            Self::Days => (0, 1, 0),
            Self::Hours => (0, 0, 3600 * SECOND),
            Self::Minutes => (0, 0, 60 * SECOND),
            Self::Seconds => (0, 0, SECOND),
            Self::Milliseconds => (0, 0, 1_000_000),
            Self::Microseconds => (0, 0, 1_000),
            Self::Nanoseconds => (0, 0, 1),
        }
    }
}

/// A sum of amounts: integer parts exactly, fractions separately.
#[derive(Debug, Default)]
pub(super) struct Amounts {
    whole: (i128, i128, i128),
    fractions: (f64, f64, f64),
}

impl Amounts {
    /// Adds an amount of a unit.
    pub(super) fn add(&mut self, unit: Unit, whole: i64, fraction: f64) {
        let (months, days, nanoseconds) = unit.parts();
        let times = i128::from(whole);
        // A few products of 64 bits by less than 43 bits: far from 128.
        self.whole.0 += months * times;
        self.whole.1 += days * times;
        self.whole.2 += nanoseconds * times;
        self.fractions.0 += months as f64 * fraction;
        self.fractions.1 += days as f64 * fraction;
        self.fractions.2 += nanoseconds as f64 * fraction;
    }

    pub(super) fn total(self) -> Result<Duration> {
        let (months, days, nanoseconds) = self.whole;
        let whole = duration(months, days, nanoseconds)?;
        let rest = of_fractions(self.fractions.0, self.fractions.1, self.fractions.2)?;
        sum(&whole, &rest, 1)
    }
}

/// ISO 8601: `P1Y2M3DT4H5M6.7S`, every part with its own sign.
pub(super) fn text(duration: &Duration) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("P");
    let mut part = |number: i128, unit: char| {
        if number != 0 {
            // Writing to a string cannot fail.
            _ = write!(text, "{number}{unit}");
        }
    };
    part(i128::from(duration.months / 12), 'Y');
    part(i128::from(duration.months % 12), 'M');
    part(i128::from(duration.days), 'D');
    let clock = clock_part(duration);
    if clock == 0 {
        return if text.len() == 1 { "PT0S".to_owned() } else { text };
    }
    text.push('T');
    let (whole, fraction) = (clock / SECOND, (clock % SECOND).unsigned_abs());
    let mut part = |number: i128, unit: char| {
        if number != 0 {
            _ = write!(text, "{number}{unit}");
        }
    };
    part(whole / 3600, 'H');
    part(whole / 60 % 60, 'M');
    let seconds = whole % 60;
    if fraction != 0 {
        let sign = if clock < 0 { "-" } else { "" };
        let digits = format!("{fraction:09}");
        _ = write!(text, "{sign}{}.{}S", seconds.unsigned_abs(), digits.trim_end_matches('0'));
    } else {
        part(seconds, 'S');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_with_their_own_signs() {
        let cases = [
            (duration(14, -3, 3_661 * SECOND), "P1Y2M-3DT1H1M1S"),
            (duration(0, 0, -(SECOND / 2)), "PT-0.5S"),
            (duration(0, 0, 0), "PT0S"),
            (duration(0, 1, 0), "P1D"),
            (duration(-1, 0, -61 * SECOND - 1), "P-1MT-1M-1.000000001S"),
        ];
        for (duration, expected) in cases {
            assert_eq!(text(&duration.expect("in range")), expected);
        }
    }

    #[test]
    fn fractions_of_months_become_days_and_those_of_days_seconds() {
        let scaled = of_fractions(0.75, 0.0, 0.0).expect("in range");
        assert_eq!(text(&scaled), "P22DT19H51M49.5S");
        assert!(of_fractions(f64::NAN, 0.0, 0.0).is_err());
    }
}
