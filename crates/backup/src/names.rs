//! Checks of names that come from a manifest or a server and become paths.

use crate::fault::{BackupError, BackupResult};
use std::collections::HashSet;
use wellspring_types::{HistoryId, Position};

/// Maximum length of the name of a log or a backup.
const MOST_BYTES: usize = 63;

/// Whether a text can be the name of a log.
fn is_log_name(name: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_later = |byte: u8| is_first(byte) || byte == b'_' || byte == b'-';
    (1..=MOST_BYTES).contains(&name.len())
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().all(is_later)
}

/// Checks that names of logs are valid and unique, and their histories valid. `file` is where they
/// come from.
///
/// # Errors
/// [`BackupError::Damaged`].
pub(crate) fn check_names<'a>(
    logs: impl Iterator<Item = (&'a str, &'a str)>,
    file: &str,
) -> BackupResult<()> {
    let damaged = |what: String| Err(BackupError::Damaged { file: file.to_owned(), what });
    let mut seen = HashSet::new();
    for (name, history) in logs {
        if !is_log_name(name) {
            return damaged(format!("{name:?} is not the name of a log"));
        }
        if history.parse::<HistoryId>().is_err() {
            return damaged(format!("{history:?} is not the id of a history"));
        }
        if !seen.insert(name) {
            return damaged(format!("it names the log {name} twice"));
        }
    }
    Ok(())
}

/// Whether a text can be the name of a backup, as in `20261125T214438Z-002`.
pub(crate) fn is_backup_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=MOST_BYTES).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(is_plain)
}

/// The parts of the name of a segment's file in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentFileName<'a> {
    /// The id of its log's history.
    pub(crate) history: &'a str,
    /// Position of its first event.
    pub(crate) base: Position,
    pub(crate) bytes: u64,
    /// The checksum in its last record, 0 if it has none.
    pub(crate) anchor: u32,
}

impl SegmentFileName<'_> {
    /// Parses a name; `None` if it is not that of a segment's file.
    pub(crate) fn parse(name: &str) -> Option<SegmentFileName<'_>> {
        let (history, file) = name.strip_prefix("segments/")?.split_once('/')?;
        history.parse::<HistoryId>().ok()?;
        let mut numbers = file.strip_suffix(".seg")?.split('-');
        let (base, bytes) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let anchor = u32::from_str_radix(numbers.next()?, 16).ok()?;
        numbers.next().is_none().then_some(SegmentFileName { history, base, bytes, anchor })
    }
}

/// Whether a name is that of a segment's file in a store.
pub(crate) fn is_segment_file(name: &str) -> bool {
    SegmentFileName::parse(name).is_some()
}

/// Whether a backup writes files with such a name.
pub(crate) fn is_own_file(name: &str) -> bool {
    let of_backup = |name: &str| {
        name.strip_suffix(".json").or(name.strip_suffix(".begun")).is_some_and(is_backup_name)
    };
    name.strip_prefix("backups/").is_some_and(of_backup) || is_segment_file(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        let check =
            |name: &str, history: &str| check_names([(name, history)].into_iter(), "m").is_ok();
        assert!(check("main", "4f1c09d2a87b4e6f"));
        for name in ["", "../x", "/x", "a/b", "A", "-a", "a\n", &"a".repeat(64)] {
            assert!(!check(name, "4f1c09d2a87b4e6f"), "{name:?}");
        }
        for history in ["", "..", "../../../../../x", "4f1c09d2a87b4e6/"] {
            assert!(!check("main", history), "{history:?}");
        }
        let twice = [("a", "4f1c09d2a87b4e6f"); 2];
        assert!(check_names(twice.into_iter(), "m").is_err());
        assert!(is_backup_name("20261125T214438Z") && is_backup_name("20261125T214438Z-002"));
        for bad in ["", "../../x", "2/x", "2\u{1b}[2J", "latest", &"2".repeat(64)] {
            assert!(!is_backup_name(bad), "{bad:?}");
        }
        let good = "segments/4f1c09d2a87b4e6f/00000000000000000001-342-0badc0de.seg";
        let (history, anchor) = ("4f1c09d2a87b4e6f", 0x0bad_c0de);
        assert_eq!(
            SegmentFileName::parse(good),
            Some(SegmentFileName { history, base: 1, bytes: 342, anchor })
        );
        for bad in [
            "segments/other",
            "segments/4f1c09d2a87b4e6f/x.seg",
            "segments/x/1-2-3.seg",
            "segments/4f1c09d2a87b4e6f/1-2.seg",
            "segments/4f1c09d2a87b4e6f/1-2-3-4.seg",
            "segments/4f1c09d2a87b4e6f/a-2-3.seg",
        ] {
            assert!(!is_segment_file(bad), "{bad}");
        }
    }
}
