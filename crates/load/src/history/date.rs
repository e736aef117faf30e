//! Dates for people, without a time zone database: UTC.

/// `2026-11-21 07:25`, of microseconds since 1970. The calendar by Howard
/// Hinnant's "chrono-compatible low-level date algorithms" (`civil_from_days`).
pub(super) fn minute(unix_us: u64) -> String {
    let minutes = unix_us / 60_000_000;
    let (days, minute) = (minutes / 1_440, minutes % 1_440);
    // Years begin in March, so that the leap day is the last day of one.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_calendars_get_wrong() {
        let cases = [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (1_709_251_199, "2024-02-29 23:59"),
            (1_795_246_163, "2026-11-21 07:29"),
            (4_107_542_400, "2100-03-01 00:00"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(minute(seconds * 1_000_000), expected);
        }
    }
}
