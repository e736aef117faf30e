//! Moments as RFC 3339 writes them.

/// The end of the year 9999, µs since 1970 UTC, where RFC 3339 ends.
pub const MAX_TIME_US: u64 = 253_402_300_799_999_999;

/// The times of the events that are wanted, in µs since 1970 UTC; `None`: any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// Recorded at this time or later.
    pub since_us: Option<u64>,
    /// Recorded before this time.
    pub until_us: Option<u64>,
}

/// Appends `us` (since 1970 UTC) as RFC 3339 with microseconds, e.g. `2026-11-21T01:43:26.952770Z`.
pub fn push_rfc3339(out: &mut Vec<u8>, us: u64) {
    let seconds = us / 1_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let Date { year, month, day } = Date::of_day(days as i64);
    let mut digits = |number: u64, width: u32, after: u8| {
        for place in (0..width).rev() {
            out.push(b'0' + (number / 10u64.pow(place) % 10) as u8);
        }
        out.push(after);
    };
    // Times past the year 9999 have no RFC 3339 form; no clock gives them.
    digits(year as u64, 4, b'-');
    digits(u64::from(month), 2, b'-');
    digits(u64::from(day), 2, b'T');
    digits(of_day / 3600, 2, b':');
    digits(of_day / 60 % 60, 2, b':');
    digits(of_day % 60, 2, b'.');
    digits(us % 1_000_000, 6, b'Z');
}

/// A day of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// Year; 0 is the one before 1.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Date {
    /// The first and the last year of the days that are counted here.
    pub const YEARS: std::ops::RangeInclusive<i64> = -999_999_999..=999_999_999;

    /// A date that exists.
    #[must_use]
    pub fn new(year: i64, month: i64, day: i64) -> Option<Date> {
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        let exists = Date::YEARS.contains(&year)
            && (1..=12).contains(&month)
            && (1..=month_length(year, month)).contains(&day);
        exists.then_some(Date { year, month, day })
    }

    /// The date of a day counted from 1970-01-01, in the years that are counted here. After
    /// H. Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so that the
    /// leap day is the last of its year.
    #[must_use]
    pub fn of_day(days: i64) -> Date {
        let shifted = days.saturating_add(719_468);
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * march_month + 2) / 5 + 1) as u8;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 } as u8;
        Date { year: era * 400 + year_of_era + i64::from(month <= 2), month, day }
    }

    /// Days from 1970-01-01; the inverse of [`Date::of_day`].
    #[must_use]
    pub fn to_day(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let march_year = self.year - i64::from(month <= 2);
        let (era, year_of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
        era * 146_097 + of_era - 719_468
    }
}

/// Whether a year has 366 days.
#[must_use]
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// How many days a month (1 to 12) has.
#[must_use]
pub fn month_length(year: i64, month: u8) -> u8 {
    match month {
        2 => 28 + u8::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads a moment as RFC 3339 writes it (`2026-11-21T01:43:26.95Z`, `…+01:00`), or a date
/// alone, which is its first moment in UTC; gives µs since 1970 UTC. What is finer than a µs
/// is cut off; a leap second, which only the last minute of a month in UTC can have, is the first
/// second of the next month. `None`: it is neither, has no zone, or lies before 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    expect(&mut rest, b"-")?;
    let month = digits(&mut rest, 2)?;
    expect(&mut rest, b"-")?;
    let day = digits(&mut rest, 2)?;
    let days = Date::new(year as i64, month as i64, day as i64)?.to_day();
    if rest.is_empty() {
        return u64::try_from(days * 86_400_000_000).ok();
    }
    expect(&mut rest, b"Tt ")?;
    let hour = digits(&mut rest, 2).filter(|&hour| hour < 24)?;
    expect(&mut rest, b":")?;
    let minute = digits(&mut rest, 2).filter(|&minute| minute < 60)?;
    expect(&mut rest, b":")?;
    let second = digits(&mut rest, 2).filter(|&second| second <= 60)?;
    let fraction_us = if expect(&mut rest, b".").is_some() { fraction_us(&mut rest)? } else { 0 };
    let offset_s = match expect(&mut rest, b"Zz+-")? {
        b'Z' | b'z' => 0,
        sign => {
            let hours = digits(&mut rest, 2).filter(|&hours| hours < 24)?;
            expect(&mut rest, b":")?;
            let minutes = digits(&mut rest, 2).filter(|&minutes| minutes < 60)?;
            let offset_s = (hours * 3600 + minutes * 60) as i64;
            if sign == b'+' { offset_s } else { -offset_s }
        }
    };
    if !rest.is_empty() {
        return None;
    }
    let of_day = (hour * 3600 + minute * 60 + second) as i64;
    let seconds = days * 86_400 + of_day - offset_s;
    if second == 60 && !begins_month(seconds) {
        return None;
    }
    let us = seconds * 1_000_000 + fraction_us as i64;
    u64::try_from(us).ok()
}

/// Whether a second since 1970 is the first of a month.
fn begins_month(seconds: i64) -> bool {
    seconds % 86_400 == 0 && Date::of_day(seconds / 86_400).day == 1
}

/// Takes exactly so many digits from the front.
fn digits(rest: &mut &[u8], count: usize) -> Option<u64> {
    let (front, after) = rest.split_at_checked(count)?;
    *rest = after;
    front.iter().try_fold(0, |number, &byte| {
        byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0'))
    })
}

/// Takes one byte from the front if it is one of these.
fn expect(rest: &mut &[u8], any: &[u8]) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    any.contains(&first).then(|| {
        *rest = after;
        first
    })
}

/// Takes the digits of a fraction of a second, one at least, as µs.
fn fraction_us(rest: &mut &[u8]) -> Option<u64> {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (front, after) = rest.split_at(count);
    *rest = after;
    let us = (0..6)
        .fold(0, |us, place| us * 10 + front.get(place).map_or(0, |&byte| u64::from(byte - b'0')));
    (count > 0).then_some(us)
}

/// What a moment must be, in words.
pub const MOMENT_RULE: &str = "must be a moment since 1970 as RFC 3339 writes it, \
     e.g. 2027-01-31T12:00:00Z, or a date";

#[cfg(test)]
mod tests {
    use super::*;

    fn written(us: u64) -> String {
        let mut out = Vec::new();
        push_rfc3339(&mut out, us);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_moments_are_written_right() {
        assert_eq!(written(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(written(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(written(1_709_251_199_999_999), "2024-02-29T23:59:59.999999Z");
        assert_eq!(written(4_107_542_400_000_000), "2100-03-01T00:00:00.000000Z");
        assert_eq!(written(1_795_225_406_952_770), "2026-11-21T01:43:26.952770Z");
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let first = Date { year: -1, month: 1, day: 1 };
        let mut date = first;
        for days in first.to_day()..400_000 {
            assert_eq!((Date::of_day(days), date.to_day()), (date, days));
            let Date { year, month, day } = date;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = lengths[usize::from(month) - 1] + u8::from(leap && month == 2);
            assert_eq!((is_leap(year), month_length(year, month)), (leap, length));
            date = match (day < length, month < 12) {
                (true, _) => Date { day: day + 1, ..date },
                (false, true) => Date { month: month + 1, day: 1, ..date },
                (false, false) => Date { year: year + 1, month: 1, day: 1 },
            };
        }
        assert_eq!(Date { year: 1970, month: 1, day: 1 }.to_day(), 0);
    }

    #[test]
    fn only_dates_that_exist_are_made() {
        for (year, month, day) in [
            (2023, 2, 29),
            (2023, 0, 1),
            (2023, 13, 1),
            (2023, 4, 31),
            (2023, 1, 0),
            (1 << 40, 1, 1),
        ] {
            assert_eq!(Date::new(year, month, day), None, "{year}-{month}-{day}");
        }
        for year in [*Date::YEARS.start(), -1, 0, *Date::YEARS.end()] {
            for (month, day) in [(1, 1), (12, 31)] {
                let date = Date::new(year, month, day).unwrap();
                assert_eq!(Date::of_day(date.to_day()), date);
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for us in (0..4_000_000_000_000_000).step_by(987_654_321_234_567 / 7919) {
            assert_eq!(parse_rfc3339(&written(us)), Some(us), "{}", written(us));
        }
    }

    #[test]
    fn dates_zones_and_fractions_are_read() {
        let moment = 1_795_225_406_952_770;
        for (text, us) in [
            ("2026-11-21T01:43:26.952770Z", moment),
            ("2026-11-21t01:43:26.952770z", moment),
            ("2026-11-21 01:43:26.9527709999Z", moment),
            ("2026-11-21T02:43:26.95277+01:00", moment),
            ("2026-11-20T20:13:26.952770-05:30", moment),
            ("2026-11-21T01:43:26Z", moment - 952_770),
            ("2026-11-21T01:43:26.9Z", moment - 52_770),
            ("2026-11-21", 1_795_219_200_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
            ("2016-12-31T15:59:60.5-08:00", 1_483_228_800_500_000),
            ("2017-01-01T01:29:60+01:30", 1_483_228_800_000_000),
            ("1970-01-01", 0),
            ("1969-12-31T23:30:00-00:30", 0),
            ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ] {
            assert_eq!(parse_rfc3339(text), Some(us), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for bad in [
            "",
            "2026",
            "2026-1-1",
            "2026-13-01",
            "2026-00-01",
            "2026-02-29",
            "2100-02-29",
            "2026-04-31",
            "2026-01-00",
            "1969-12-31",
            "0000-01-01",
            "1970-01-01T00:00:00+00:01",
            "2026-11-21T",
            "2026-11-21T01:43",
            "2026-11-21T01:43:26",
            "2026-11-21T24:00:00Z",
            "2026-11-21T01:60:00Z",
            "2026-11-21T01:43:61Z",
            "2029-06-30T12:00:60Z",
            "2029-06-30T23:59:60+01:00",
            "2029-06-15T23:59:60Z",
            "2029-06-30T23:58:60Z",
            "2026-11-21T01:43:26.Z",
            "2026-11-21T01:43:26Z ",
            "2026-11-21T01:43:26+0100",
            "2026-11-21T01:43:26+24:00",
            "2026-11-21Z",
            "+026-11-21",
            "2026-11-2é",
            "tomorrow",
        ] {
            assert_eq!(parse_rfc3339(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_moment_or_none(text in r"[0-9TZtz:.+\- é]{0,30}") {
            if let Some(us) = parse_rfc3339(&text) {
                proptest::prop_assert_eq!(parse_rfc3339(&written(us)), Some(us));
            }
        }
    }
}
