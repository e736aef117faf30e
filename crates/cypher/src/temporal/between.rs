//! The duration between two points in time.

use super::calendar;
use super::duration::{SECOND, duration, out_of_range};
use super::parts::Parts;
use super::zone::UTC;
use crate::error::{Detail, Error, Result};
use crate::value::{Duration, Value};

/// The unit of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Months, then days, then the time part.
    Mixed,
    /// Whole months.
    Months,
    /// Whole days.
    Days,
    /// The time part alone.
    Seconds,
}

/// The duration from one to the other.
///
/// If one has no date, both get the same date; if one has no zone, both get the same zone; a date
/// without a time means midnight.
///
/// # Errors Values that are not points in time.
pub fn between(from: &Value, to: &Value, measure: Measure) -> Result<Duration> {
    let unfit = |value: &Value| {
        let message =
            format!("duration.between() takes points in time, not {}.", value.type_name());
        Error::type_error(Detail::InvalidArgumentValue, message)
    };
    let mut from = Parts::of(from).ok_or_else(|| unfit(from))?;
    let mut to = Parts::of(to).ok_or_else(|| unfit(to))?;
    let dated = from.date.is_some() && to.date.is_some();
    let date = from.date.or(to.date).unwrap_or(0);
    from.date = from.date.or(Some(date));
    to.date = to.date.or(Some(date));
    let zone = from.zone.clone().or_else(|| to.zone.clone()).unwrap_or(UTC);
    from.zone = from.zone.or_else(|| Some(zone.clone()));
    to.zone = to.zone.or_else(|| Some(zone.clone()));
    let elapsed = |from: &Parts| {
        let seconds = i128::from(to.instant()) - i128::from(from.instant());
        seconds * SECOND + i128::from(to.fraction()) - i128::from(from.fraction())
    };
    if measure == Measure::Seconds || (measure == Measure::Mixed && !dated) {
        return duration(0, 0, elapsed(&from));
    }
    if !dated {
        return duration(0, 0, 0);
    }
    // Months and days follow the calendar of the first one's zone.
    let local = to.in_zone(zone);
    if measure == Measure::Days {
        return duration(0, i128::from(whole_days(&from, &local)), 0);
    }
    let months = whole_months(&from, &local);
    if measure == Measure::Months {
        return duration(i128::from(months), 0, 0);
    }
    let start = from.date.unwrap_or(0);
    from.date = Some(calendar::plus_months(start, months).ok_or_else(out_of_range)?);
    let days = whole_days(&from, &local);
    from.date = from.date.map(|date| date + days);
    duration(i128::from(months), i128::from(days), elapsed(&from))
}

/// The last date reached when going from one to the other.
fn last_day(from: &Parts, to: &Parts) -> (i64, i64) {
    let (start, end) = (from.date.unwrap_or(0), to.date.unwrap_or(0));
    let (early, late) = (from.time.unwrap_or(0), to.time.unwrap_or(0));
    if end > start && late < early {
        return (start, end - 1);
    }
    if end < start && late > early {
        return (start, end + 1);
    }
    (start, end)
}

fn whole_days(from: &Parts, to: &Parts) -> i64 {
    let (start, end) = last_day(from, to);
    end - start
}

fn whole_months(from: &Parts, to: &Parts) -> i64 {
    let (start, end) = last_day(from, to);
    let (start, end) = (calendar::civil(start), calendar::civil(end));
    // Months of 32 days keep dates distinct.
    let packed = |date: calendar::Civil| (date.year * 12 + date.month) * 32 + date.day;
    (packed(end) - packed(start)) / 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{construct, text};

    fn told(from: &str, to: &str, measure: Measure) -> String {
        let parse = |text: &str| {
            construct::parsed(super::super::Kind::DateTime, text).expect("a date and time")
        };
        let difference = between(&parse(from), &parse(to), measure).expect("a duration");
        text(&Value::duration(difference)).expect("temporal")
    }

    #[test]
    fn differences_have_one_sign_and_follow_the_calendar() {
        let (early, late) = ("2014-07-21T21:40:36.143+0200", "2015-07-21T21:40:32.142+0100");
        assert_eq!(told(early, late, Measure::Mixed), "P1YT59M55.999S");
        assert_eq!(told(early, late, Measure::Days), "P365D");
        let (late, early) = ("2018-07-21T21:40:36.143+0500", "1984-07-21T22:40:36.143+0200");
        assert_eq!(told(late, early, Measure::Months), "P-33Y-11M");
        let night = (
            "2017-10-28T23:00+02:00[Europe/Stockholm]",
            "2017-10-29T04:00+01:00[Europe/Stockholm]",
        );
        assert_eq!(told(night.0, night.1, Measure::Mixed), "PT6H");
    }
}
