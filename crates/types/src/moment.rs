//! Moments as RFC 3339 writes them.

/// Appends `us` (since 1970 UTC) as RFC 3339 with microseconds, e.g. `2026-11-21T01:43:26.952770Z`.
pub fn push_rfc3339(out: &mut Vec<u8>, us: u64) {
    let seconds = us / 1_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let mut digits = |number: u64, width: u32, after: u8| {
        for place in (0..width).rev() {
            out.push(b'0' + (number / 10u64.pow(place) % 10) as u8);
        }
        out.push(after);
    };
    // Times past the year 9999 have no RFC 3339 form; no clock gives them.
    digits(year, 4, b'-');
    digits(month, 2, b'-');
    digits(day, 2, b'T');
    digits(of_day / 3600, 2, b':');
    digits(of_day / 60 % 60, 2, b':');
    digits(of_day % 60, 2, b'.');
    digits(us % 1_000_000, 6, b'Z');
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
/// Years begin in March here, so that the leap day is the last of its year.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Days from 1970-01-01 to a date that exists; the inverse of [`civil_from_days`].
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(leap),
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Shifted by one era, so that January and February of the year 0 have a year before them.
    let march_year = 400 + year - u64::from(month <= 2);
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let days = march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400 + of_year;
    Some(days as i64 - 719_468 - 146_097)
}

/// Reads a moment as RFC 3339 writes it (`2026-11-21T01:43:26.95Z`, `…+01:00`), or a date
/// alone, which is its first moment in UTC; gives µs since 1970 UTC. What is finer than a µs
/// is cut off; a leap second is the first of the next minute. `None`: it is neither, has no
/// zone, or lies before 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    expect(&mut rest, b"-")?;
    let month = digits(&mut rest, 2)?;
    expect(&mut rest, b"-")?;
    let day = digits(&mut rest, 2)?;
    let days = days_from_civil(year, month, day)?;
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
    let us = (days * 86_400 + of_day - offset_s) * 1_000_000 + fraction_us as i64;
    u64::try_from(us).ok()
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
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(civil_from_days(days), (year, month, day));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = lengths[month as usize - 1] + u64::from(leap && month == 2);
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
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
            ("2026-11-21T01:43:60Z", 1_795_225_440_000_000),
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
