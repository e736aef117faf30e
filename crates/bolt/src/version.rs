//! A version of the protocol, and what differs between versions.

use crate::structure;
use std::fmt;

/// A version that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u8,
    minor: u8,
    /// Whether 4.4 carries moments in UTC, which `HELLO` may ask for.
    is_patched: bool,
}

/// The versions that are served, from the newest: major, highest and lowest minor.
pub(crate) const SERVED: [(u8, u8, u8); 3] = [(5, 8, 6), (5, 4, 0), (4, 4, 4)];

impl Version {
    /// The version with these numbers, if it is served.
    #[must_use]
    pub fn new(major: u8, minor: u8) -> Option<Version> {
        let is_served = |&(of, highest, lowest): &(u8, u8, u8)| {
            of == major && (lowest..=highest).contains(&minor)
        };
        let version = Version { major, minor, is_patched: false };
        SERVED.iter().any(is_served).then_some(version)
    }

    /// Every served version, from the newest.
    pub fn all() -> impl Iterator<Item = Version> {
        let of = |(major, highest, lowest): (u8, u8, u8)| {
            (lowest..=highest).rev().filter_map(move |minor| Version::new(major, minor))
        };
        SERVED.into_iter().flat_map(of)
    }

    /// The first number.
    #[must_use]
    pub fn major(self) -> u8 {
        self.major
    }

    /// The second number.
    #[must_use]
    pub fn minor(self) -> u8 {
        self.minor
    }

    /// The same version with moments in UTC: what 4.4 is after `HELLO` asked for the patch `utc`.
    #[must_use]
    pub fn with_utc(self) -> Version {
        Version { is_patched: !self.since(5, 0), ..self }
    }

    fn since(self, major: u8, minor: u8) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Whether nodes and relationships carry element ids besides numbers (5.0).
    #[must_use]
    pub fn has_element_ids(self) -> bool {
        self.since(5, 0)
    }

    /// Whether moments are seconds since 1970 in UTC (5.0, or 4.4 with the patch) and not in local
    /// time.
    #[must_use]
    pub fn has_utc(self) -> bool {
        self.is_patched || self.since(5, 0)
    }

    /// Whether authentication has messages of its own (5.1) and is not a part of `HELLO`.
    #[must_use]
    pub fn has_logon(self) -> bool {
        self.since(5, 1)
    }

    /// Whether clients may filter notifications (5.2).
    #[must_use]
    pub fn has_notification_filters(self) -> bool {
        self.since(5, 2)
    }

    /// Whether clients tell which of their functions they use (5.4).
    #[must_use]
    pub fn has_telemetry(self) -> bool {
        self.since(5, 4)
    }

    /// Whether a summary has `statuses` (5.6) and not `notifications`.
    #[must_use]
    pub fn has_statuses(self) -> bool {
        self.since(5, 6)
    }

    /// Whether failures have a GQL status, and their code the name `neo4j_code` (5.7).
    #[must_use]
    pub fn has_gql_errors(self) -> bool {
        self.since(5, 7)
    }

    /// Whether `BEGIN` and `RUN` answer with the database that the server chose (5.8).
    #[must_use]
    pub fn has_home_database(self) -> bool {
        self.since(5, 8)
    }

    /// Fields of [`structure::NODE`].
    #[must_use]
    pub fn node_fields(self) -> u8 {
        if self.has_element_ids() { 4 } else { 3 }
    }

    /// Fields of [`structure::RELATIONSHIP`].
    #[must_use]
    pub fn relationship_fields(self) -> u8 {
        if self.has_element_ids() { 8 } else { 5 }
    }

    /// Fields of [`structure::UNBOUND_RELATIONSHIP`].
    #[must_use]
    pub fn unbound_relationship_fields(self) -> u8 {
        if self.has_element_ids() { 4 } else { 3 }
    }

    /// The tag of a moment with an offset.
    #[must_use]
    pub fn date_time_tag(self) -> u8 {
        if self.has_utc() { structure::DATE_TIME } else { structure::LEGACY_DATE_TIME }
    }

    /// The tag of a moment with the name of a zone.
    #[must_use]
    pub fn date_time_zone_id_tag(self) -> u8 {
        if self.has_utc() {
            structure::DATE_TIME_ZONE_ID
        } else {
            structure::LEGACY_DATE_TIME_ZONE_ID
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_was_never_published_is_not_served() {
        let served: Vec<String> = Version::all().map(|version| version.to_string()).collect();
        let expected = ["5.8", "5.7", "5.6", "5.4", "5.3", "5.2", "5.1", "5.0", "4.4"];
        assert_eq!(served, expected);
        assert_eq!(Version::new(5, 5), None);
        assert_eq!(Version::new(6, 0), None);
    }

    #[test]
    fn moments_are_in_local_time_only_before_5_without_the_patch() {
        let old = Version::new(4, 4).expect("served");
        assert_eq!((old.date_time_tag(), old.date_time_zone_id_tag()), (0x46, 0x66));
        let patched = old.with_utc();
        assert_eq!((patched.date_time_tag(), patched.date_time_zone_id_tag()), (0x49, 0x69));
        assert_eq!(patched.node_fields(), 3);
        let new = Version::new(5, 0).expect("served");
        assert_eq!((new.date_time_tag(), new.with_utc()), (0x49, new));
    }
}
