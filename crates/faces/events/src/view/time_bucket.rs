//! Groups by time: minutes, hours and days of a time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use wellspring_types::moment::push_rfc3339;

/// How long a bucket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Minute,
    Hour,
    Day,
}

impl TimeUnit {
    /// Their names in a request.
    pub(super) const NAMED: [(&str, TimeUnit); 3] =
        [("minute", TimeUnit::Minute), ("hour", TimeUnit::Hour), ("day", TimeUnit::Day)];
}

/// Buckets of a length, as clocks of a zone show them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TimeBuckets {
    pub(super) unit: TimeUnit,
    /// A zone of the IANA database that is bundled with the program; `None`: UTC.
    pub(super) zone: Option<TimeZone>,
}

impl TimeBuckets {
    /// The beginning of the bucket of a moment: `2026-11-28T23:00:00Z`, in a zone
    /// `2026-11-29T00:00:00+01:00`.
    pub(super) fn beginning(&self, us: u64) -> String {
        let zoned = self.zone.as_ref().and_then(|zone| self.zoned_beginning(zone, us));
        zoned.unwrap_or_else(|| self.utc_beginning(us))
    }

    fn utc_beginning(&self, us: u64) -> String {
        let length_us = match self.unit {
            TimeUnit::Minute => 60_000_000,
            TimeUnit::Hour => 3_600_000_000,
            TimeUnit::Day => 86_400_000_000,
        };
        let mut text = Vec::new();
        push_rfc3339(&mut text, us - us % length_us);
        let mut text = String::from_utf8(text).unwrap_or_default();
        // Nothing that begins a minute has a fraction.
        text.truncate("2026-11-28T23:00:00".len());
        text.push('Z');
        text
    }

    /// `None` beyond the year 9999, which no event has.
    fn zoned_beginning(&self, zone: &TimeZone, us: u64) -> Option<String> {
        let moment = Timestamp::from_microsecond(i64::try_from(us).ok()?).ok()?;
        let zoned = moment.to_zoned(zone.clone());
        // Minutes and hours by the offset of the moment: an hour in which clocks change is one for
        // each offset.
        let (begins, form) = match self.unit {
            TimeUnit::Minute => (zoned, "%Y-%m-%dT%H:%M:00%:z"),
            TimeUnit::Hour => (zoned, "%Y-%m-%dT%H:00:00%:z"),
            TimeUnit::Day => (zoned.start_of_day().ok()?, "%Y-%m-%dT%H:%M:%S%:z"),
        };
        Some(begins.strftime(form).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(unit: TimeUnit, zone: &str) -> TimeBuckets {
        TimeBuckets { unit, zone: Some(TimeZone::get(zone).unwrap()) }
    }

    fn us(time: &str) -> u64 {
        time.parse::<Timestamp>().unwrap().as_microsecond().try_into().unwrap()
    }

    #[test]
    fn a_day_is_as_long_as_its_zone_says() {
        let berlin = buckets(TimeUnit::Day, "Europe/Berlin");
        for (time, beginning) in [
            ("2026-11-28T22:59:59.999999Z", "2026-11-28T00:00:00+01:00"),
            ("2026-11-28T23:00:00Z", "2026-11-29T00:00:00+01:00"),
            // 23 and 25 hours.
            ("2026-03-29T21:59:59Z", "2026-03-29T00:00:00+01:00"),
            ("2026-03-29T22:00:00Z", "2026-03-30T00:00:00+02:00"),
            ("2026-10-24T22:00:00Z", "2026-10-25T00:00:00+02:00"),
            ("2026-10-25T22:59:59Z", "2026-10-25T00:00:00+02:00"),
        ] {
            assert_eq!(berlin.beginning(us(time)), beginning, "{time}");
        }
    }

    /// Clocks that are changed at one minute past midnight.
    #[test]
    fn no_bucket_begins_after_its_events() {
        let hours = buckets(TimeUnit::Hour, "America/Goose_Bay");
        assert_eq!(hours.beginning(us("1994-04-03T04:01:00Z")), "1994-04-03T01:00:00-03:00");
        let days = buckets(TimeUnit::Day, "America/Goose_Bay");
        for (time, beginning) in [
            ("1993-10-31T03:00:30Z", "1993-10-31T00:00:00-03:00"),
            ("1993-10-31T03:01:00Z", "1993-10-30T00:00:00-03:00"),
            ("1993-10-31T04:00:00Z", "1993-10-31T00:00:00-03:00"),
        ] {
            assert_eq!(days.beginning(us(time)), beginning, "{time}");
        }
    }

    #[test]
    fn the_two_hours_of_one_name_are_two() {
        let hours = buckets(TimeUnit::Hour, "Europe/Berlin");
        assert_eq!(hours.beginning(us("2026-10-25T00:30:00Z")), "2026-10-25T02:00:00+02:00");
        assert_eq!(hours.beginning(us("2026-10-25T01:30:00Z")), "2026-10-25T02:00:00+01:00");
        let half = buckets(TimeUnit::Hour, "Asia/Kolkata");
        assert_eq!(half.beginning(us("2026-11-28T18:29:00Z")), "2026-11-28T23:00:00+05:30");
        assert_eq!(half.beginning(us("2026-11-28T18:30:00Z")), "2026-11-29T00:00:00+05:30");
    }
}
