//! The door through which time enters the server, and how it is written.

use std::sync::Arc;
use wellspring_log::{Clock, SystemClock};

/// The clock everything in this process shares, the logs included: a lease's
/// end is only meaningful on the clock that granted it.
pub(crate) fn system() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Appends `us` (since 1970 UTC) as RFC 3339 with microseconds, e.g. `2026-11-21T01:43:26.952770Z`.
pub(crate) fn push_rfc3339(out: &mut Vec<u8>, us: u64) {
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
}
