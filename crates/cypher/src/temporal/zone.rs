//! Time zones: offsets, and names with rules. Only this module uses the crate with the rules.

use super::parse;
use crate::error::{Detail, Error, Result};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, civil};
use std::sync::{Arc, LazyLock};

static RULES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Debug, Clone)]
pub(super) enum Zone {
    /// A fixed number of seconds east of Greenwich.
    Offset(i32),
    /// A named zone with its rules. The preferred offset decides where a local time is ambiguous.
    Named { name: Arc<str>, rules: TimeZone, preferred: Option<i32> },
}

pub(super) const UTC: Zone = Zone::Offset(0);

impl Zone {
    /// Parses a zone: `+01:00`, `Z`, `Europe/Stockholm`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        match parse::offset(text) {
            Some(offset) => Ok(Self::Offset(offset)),
            None => Self::named(text, None),
        }
    }

    /// The zone with this name; the offset decides where a local time is ambiguous.
    pub(super) fn named(name: &str, preferred: Option<i32>) -> Result<Self> {
        let rules = RULES.get(name).or_else(|_| RULES.get(&name.replace(' ', "_")));
        let rules = rules.map_err(|_| {
            Error::argument(Detail::InvalidArgumentValue, format!("Unknown time zone '{name}'."))
        })?;
        let name = rules.iana_name().unwrap_or(name).into();
        Ok(Self::Named { name, rules, preferred })
    }

    /// The zone of a stored value. If its name is no longer known, it keeps the offset.
    pub(super) fn stored(offset: i32, name: Option<&Arc<str>>) -> Self {
        let zone = name.and_then(|name| Self::named(name, Some(offset)).ok());
        zone.unwrap_or(Self::Offset(offset))
    }

    /// Its name, if it has one.
    pub(super) fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Offset(_) => None,
            Self::Named { name, .. } => Some(name.clone()),
        }
    }

    /// The offset at an instant, in seconds since 1970.
    pub(super) fn offset_at(&self, instant: i64) -> i32 {
        match self {
            Self::Offset(offset) => *offset,
            Self::Named { rules, .. } => {
                let bounded = instant.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
                Timestamp::from_second(bounded)
                    .map_or(0, |instant| rules.to_offset(instant).seconds())
            }
        }
    }

    /// The instant, in seconds since 1970, of the local time `local`, in local seconds since 1970.
    /// A local time skipped in spring is interpreted as if clocks had not been put forward; of two
    /// in autumn the first applies.
    pub(super) fn instant(&self, local: i64) -> i64 {
        let offset = match self {
            Self::Offset(offset) => *offset,
            Self::Named { rules, preferred, .. } => {
                match rules.to_ambiguous_timestamp(clock(local)).offset() {
                    AmbiguousOffset::Unambiguous { offset } => offset.seconds(),
                    AmbiguousOffset::Gap { before, .. } => before.seconds(),
                    AmbiguousOffset::Fold { before, after } => {
                        if *preferred == Some(after.seconds()) {
                            after.seconds()
                        } else {
                            before.seconds()
                        }
                    }
                }
            }
        };
        local.saturating_sub(i64::from(offset))
    }
}

/// A local time for the crate with the rules, clamped to its range of years.
fn clock(local: i64) -> civil::DateTime {
    let (day, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let date = super::calendar::civil(day);
    if !(-9_999..=9_999).contains(&date.year) {
        return if date.year < 0 { civil::DateTime::MIN } else { civil::DateTime::MAX };
    }
    // All parts are in range.
    let (year, month, day) = (date.year as i16, date.month as i8, date.day as i8);
    let (hour, minute, second) =
        ((second / 3600) as i8, (second / 60 % 60) as i8, (second % 60) as i8);
    civil::DateTime::new(year, month, day, hour, minute, second, 0).unwrap_or(civil::DateTime::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::calendar::days;

    fn stockholm(preferred: Option<i32>) -> Zone {
        Zone::named("Europe/Stockholm", preferred).expect("a zone")
    }

    #[test]
    fn clocks_are_put_forward_and_back() {
        let summer = days(2017, 7, 1) * 86_400;
        assert_eq!(stockholm(None).offset_at(summer), 7200);
        // Half past two occurs twice in the night when clocks go back.
        let twice = days(2017, 10, 29) * 86_400 + 9_000;
        assert_eq!(stockholm(None).instant(twice), twice - 7200);
        assert_eq!(stockholm(Some(3600)).instant(twice), twice - 3600);
        // And not at all when they go forward.
        let never = days(2017, 3, 26) * 86_400 + 9_000;
        assert_eq!(stockholm(None).instant(never), never - 3600);
    }

    #[test]
    fn times_beyond_the_rules_have_an_offset() {
        assert_eq!(
            stockholm(None).offset_at(i64::MIN),
            stockholm(None).offset_at(days(-9_000, 1, 1) * 86_400)
        );
        assert!(Zone::parse("Nowhere/Land").is_err());
    }
}
