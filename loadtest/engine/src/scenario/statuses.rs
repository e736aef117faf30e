//! Which statuses count as success.

use crate::invalid::Invalid;

/// A set of HTTP statuses, 100 to 599, as a bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Statuses {
    bits: [u64; WORDS],
}

const LOWEST: u16 = 100;
const HIGHEST: u16 = 599;
const WORDS: usize = 8;

impl Default for Statuses {
    /// Everything below 400: what most load testers call success.
    fn default() -> Self {
        Statuses::range(LOWEST, 399)
    }
}

impl Statuses {
    /// No status at all.
    #[must_use]
    pub fn none() -> Self {
        Statuses { bits: [0; WORDS] }
    }

    /// All from `first` to `last`, both included; what lies outside 100 to 599 is left out.
    #[must_use]
    pub fn range(first: u16, last: u16) -> Self {
        let mut set = Statuses::none();
        for status in first.max(LOWEST)..=last.min(HIGHEST) {
            set.bits[usize::from(status - LOWEST) / 64] |= 1 << ((status - LOWEST) % 64);
        }
        set
    }

    /// What is in this set, in the other, or in both.
    #[must_use]
    pub fn or(mut self, other: Statuses) -> Self {
        for (mine, theirs) in self.bits.iter_mut().zip(other.bits) {
            *mine |= theirs;
        }
        self
    }

    /// Whether a status is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        (LOWEST..=HIGHEST).contains(&status)
            && self.bits[usize::from(status - LOWEST) / 64] >> ((status - LOWEST) % 64) & 1 == 1
    }

    /// Reads `201`, `2xx`, `200..299` (both included), `<400` or several of them with commas.
    ///
    /// # Errors
    /// A sentence that says what is expected.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut set = Statuses::none();
        for part in text.split(',').map(str::trim) {
            set = set.or(Self::parse_one(part).ok_or_else(|| {
                format!(
                    "expected statuses like 201, \"2xx\", \"200..299\" or \"<400\", found {part:?}"
                )
            })?);
        }
        Ok(set)
    }

    fn parse_one(part: &str) -> Option<Self> {
        let status = |text: &str| {
            let number: u16 = text.trim().parse().ok()?;
            (LOWEST..=HIGHEST).contains(&number).then_some(number)
        };
        if let Some(class) = part.strip_suffix("xx") {
            let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
            return Some(Self::range(class * 100, class * 100 + 99));
        }
        if let Some(bound) = part.strip_prefix('<') {
            return Some(Self::range(LOWEST, status(bound)? - 1));
        }
        if let Some((first, last)) = part.split_once("..") {
            let (first, last) = (status(first)?, status(last.trim_start_matches('='))?);
            return (first <= last).then(|| Self::range(first, last));
        }
        status(part).map(|one| Self::range(one, one))
    }
}

impl std::fmt::Display for Statuses {
    /// As [`Statuses::parse`] reads it, e.g. `200, 300..399`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut separator = "";
        let mut status = LOWEST;
        while status <= HIGHEST {
            if !self.contains(status) {
                status += 1;
                continue;
            }
            let first = status;
            while self.contains(status + 1) {
                status += 1;
            }
            match status - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}..{status}")?,
            }
            separator = ", ";
            status += 1;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Statuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Statuses({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_its_bounds_are_exact() {
        let set = Statuses::parse("201, 3xx,404..=405").unwrap();
        let inside: Vec<u16> = (0..=700).filter(|&s| set.contains(s)).collect();
        let mut expected = vec![201];
        expected.extend(300..400);
        expected.extend([404, 405]);
        assert_eq!(inside, expected);
        assert_eq!(set.to_string(), "201, 300..399, 404..405");
        assert_eq!(Statuses::parse("<400"), Ok(Statuses::default()));
        assert!(!Statuses::default().contains(400));
        assert!(Statuses::parse("5xx").unwrap().contains(599));
        assert!(!Statuses::none().contains(200));
    }

    #[test]
    fn what_is_no_status_is_refused_by_name() {
        for bad in ["", "99", "600", "abc", "6xx", "xx", "300..200", "200..", "<", "<1000", "é.."]
        {
            let error = Statuses::parse(bad).unwrap_err();
            assert!(error.to_string().contains("expected statuses like"), "{bad}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for set in [Statuses::default(), Statuses::range(599, 599), Statuses::range(100, 599)] {
            assert_eq!(Statuses::parse(&set.to_string()), Ok(set));
        }
    }
}
