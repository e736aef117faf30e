//! Weeks, quarters and ordinal days, over the calendar of `wellspring_types`: days since 1970-01-01
//! and calendar dates.

use wellspring_types::moment::{self, Date, is_leap};

/// The range of years.
pub(super) const YEARS: std::ops::RangeInclusive<i64> = Date::YEARS;

/// A date as year, month and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: i64,
    /// 1 to 31.
    pub(super) day: i64,
}

/// The day number of a date, which must be in range.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    Date { year, month: month as u8, day: day as u8 }.to_day()
}

/// The date of a day number.
pub(super) fn civil(days: i64) -> Civil {
    let Date { year, month, day } = Date::of_day(days);
    Civil { year, month: month.into(), day: day.into() }
}

/// Number of days in a year.
pub(super) fn year_length(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

/// Number of days in a month.
pub(super) fn month_length(year: i64, month: i64) -> i64 {
    moment::month_length(year, month as u8).into()
}

/// 1 for Monday to 7 for Sunday.
pub(super) fn day_of_week(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// The day of the year, from 1.
pub(super) fn ordinal_day(day: i64) -> i64 {
    day - days(civil(day).year, 1, 1) + 1
}

/// The quarter of a month.
pub(super) fn quarter(month: i64) -> i64 {
    (month - 1) / 3 + 1
}

/// The first day of a quarter.
pub(super) fn quarter_start(year: i64, quarter: i64) -> i64 {
    days(year, quarter * 3 - 2, 1)
}

/// The ISO week of a day, and its week year.
pub(super) fn week(day: i64) -> (i64, i64) {
    let thursday = day - day_of_week(day) + 4;
    let year = civil(thursday).year;
    (year, (thursday - days(year, 1, 1)) / 7 + 1)
}

/// The Monday of an ISO week.
pub(super) fn week_start(year: i64, week: i64) -> i64 {
    let fourth = days(year, 1, 4);
    fourth - day_of_week(fourth) + 1 + (week - 1) * 7
}

/// The same day this many months later, or the last day of that month. `None` if out of range.
pub(super) fn plus_months(day: i64, months: i64) -> Option<i64> {
    let civil = civil(day);
    let month = civil.year.checked_mul(12)?.checked_add(civil.month - 1)?.checked_add(months)?;
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    YEARS.contains(&year).then(|| days(year, month, civil.day.min(month_length(year, month))))
}

/// A day in range; otherwise `None`.
pub(super) fn in_range(day: i128) -> Option<i64> {
    let day = i64::try_from(day).ok()?;
    (days(*YEARS.start(), 1, 1)..=days(*YEARS.end(), 12, 31)).contains(&day).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_one_to_one() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 2, 29), 11_016);
        for day in (-800_000..800_000)
            .step_by(97)
            .chain([days(-999_999_999, 1, 1), days(999_999_999, 12, 31)])
        {
            let date = civil(day);
            assert_eq!(days(date.year, date.month, date.day), day);
        }
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        assert_eq!(week(days(1816, 12, 30)), (1817, 1));
        assert_eq!(week(days(1984, 1, 1)), (1983, 52));
        assert_eq!(week_start(1818, 53), days(1818, 12, 28));
        assert_eq!(day_of_week(days(1984, 10, 11)), 4);
    }

    #[test]
    fn months_are_added_to_the_last_day_of_a_shorter_one() {
        assert_eq!(plus_months(days(2019, 1, 31), 1), Some(days(2019, 2, 28)));
        assert_eq!(plus_months(days(2020, 3, 31), -13), Some(days(2019, 2, 28)));
        assert_eq!(plus_months(0, i64::MAX), None);
    }
}
