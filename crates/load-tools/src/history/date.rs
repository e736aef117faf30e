//! Dates for people, without a time zone database: UTC.

use wellspring_load::numbers::timestamp;

/// `2026-11-21 07:25`, of microseconds since 1970.
pub(super) fn minute(unix_us: u64) -> String {
    let mut text = timestamp(unix_us);
    text.truncate("2026-11-21 07:25".len());
    text
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
