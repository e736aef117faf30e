//! The manifest of a backup: its contents and their checksums.

use crate::fault::{BackupError, BackupResult};
use crate::names::check_names;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use wellspring_types::Position;

/// The version of the manifest's format.
pub const FORMAT: u32 = 1;

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The backup's name: the time when it was begun, as in `20261125T214438Z`.
    pub name: String,
    /// The version of its server.
    pub version: String,
    /// Its moment, µs since 1970 UTC.
    pub taken_at_us: u64,
    /// Whether the server had accounts.
    pub has_accounts: bool,
    /// The logs, by name.
    pub logs: Vec<LogBackup>,
}

/// One log in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogBackup {
    /// Its name.
    pub name: String,
    /// The id of its history.
    pub history: String,
    /// Its last position.
    pub head: Position,
    /// When the event there was recorded, µs since 1970 UTC; 0 if there is none.
    pub recorded_at_us: u64,
    /// If its beginning was removed: no event before its first segment was recorded later, µs since
    /// 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_until_us: Option<u64>,
    /// Its segments in order.
    pub segments: Vec<SegmentBackup>,
}

/// One segment in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentBackup {
    /// Position of its first event.
    pub base: Position,
    /// Position after its last event.
    pub next: Position,
    /// Number of bytes.
    pub bytes: u64,
    /// The checksum in its last record, 0 if it has none.
    pub anchor: u32,
    /// CRC32C of these bytes.
    pub crc32c: u32,
    /// When its last event was recorded, µs since 1970 UTC; 0 if it has none.
    pub recorded_at_us: u64,
}

impl LogBackup {
    /// Position of its first event, 1 unless the beginning was removed.
    #[must_use]
    pub fn first(&self) -> Position {
        let first = self.segments.first().filter(|_| self.removed_until_us.is_some());
        first.map_or(1, |segment| segment.base)
    }

    /// Checks that its segments are contiguous from its first position up to its head.
    ///
    /// # Errors
    /// [`BackupError::Damaged`].
    pub(crate) fn check(&self) -> BackupResult<()> {
        let damaged = |what: String| Err(BackupError::Damaged { file: self.name.clone(), what });
        let mut next = self.first();
        for segment in &self.segments {
            if segment.base != next || segment.next < segment.base {
                return damaged(format!(
                    "position {next} is missing: a segment begins at {} and ends before {}",
                    segment.base, segment.next
                ));
            }
            next = segment.next;
        }
        if self.head.checked_add(1) != Some(next) {
            return damaged(format!("it ends before position {next}, not at {}", self.head));
        }
        Ok(())
    }
}

impl SegmentBackup {
    /// Its name in the store.
    #[must_use]
    pub fn file(&self, history: &str) -> String {
        segment_file(history, self.base, self.bytes, self.anchor)
    }
}

/// The name of a segment's bytes in a store.
pub(crate) fn segment_file(history: &str, base: Position, bytes: u64, anchor: u32) -> String {
    format!("segments/{history}/{base:020}-{bytes}-{anchor:08x}.seg")
}

/// The name of a backup's manifest in a store.
pub(crate) fn manifest_file(name: &str) -> String {
    format!("backups/{name}.json")
}

/// The name of the mark of an unfinished backup in a store.
pub(crate) fn begun_file(name: &str) -> String {
    format!("backups/{name}.begun")
}

/// Checks that the sum of untrusted numbers does not overflow.
pub(crate) fn check_sum(
    numbers: impl IntoIterator<Item = u64>,
    of_what: &str,
    file: &str,
) -> BackupResult<()> {
    match numbers.into_iter().try_fold(0, u64::checked_add) {
        Some(_) => Ok(()),
        None => {
            let what = format!("it has more {of_what} than can be counted");
            Err(BackupError::Damaged { file: file.to_owned(), what })
        }
    }
}

/// The manifest with the checksum of its bytes, as it is stored.
#[derive(Serialize, Deserialize)]
struct Sealed<M> {
    manifest: M,
    /// CRC32C of the manifest's JSON without white space.
    crc32c: u32,
}

impl Manifest {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let bare = serde_json::to_vec(self).expect("numbers and texts only");
        let sealed = Sealed { manifest: self, crc32c: crc32c::crc32c(&bare) };
        serde_json::to_vec_pretty(&sealed).expect("numbers and texts only")
    }

    /// Reads it. `file` is for errors.
    ///
    /// # Errors
    /// [`BackupError::Damaged`], [`BackupError::UnknownVersion`].
    pub fn decode(bytes: &[u8], file: &str) -> BackupResult<Manifest> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = |what: String| BackupError::Damaged { file: file.to_owned(), what };
        let version = serde_json::from_slice::<Sealed<Version>>(bytes)
            .map_err(|error| damaged(format!("it is not the manifest of a backup ({error})")))?;
        if version.manifest.format != FORMAT {
            let version = version.manifest.format;
            return Err(BackupError::UnknownVersion { file: file.to_owned(), version });
        }
        let sealed = serde_json::from_slice::<Sealed<Manifest>>(bytes)
            .map_err(|error| damaged(format!("it is not the manifest of a backup ({error})")))?;
        let bare = serde_json::to_vec(&sealed.manifest).expect("numbers and texts only");
        if crc32c::crc32c(&bare) != sealed.crc32c {
            return Err(damaged("its checksum does not match".into()));
        }
        sealed.manifest.check(file)?;
        Ok(sealed.manifest)
    }

    /// Checks what its checksum does not cover: names that become paths, and that the segments of
    /// each log are contiguous up to its head.
    fn check(&self, file: &str) -> BackupResult<()> {
        let logs = self.logs.iter().map(|log| (log.name.as_str(), log.history.as_str()));
        check_names(logs, file)?;
        self.logs.iter().try_for_each(LogBackup::check)?;
        let sizes = self.logs.iter().flat_map(|log| &log.segments).map(|segment| segment.bytes);
        check_sum(sizes, "bytes", file)?;
        check_sum(self.logs.iter().map(|log| log.head), "events", file)
    }

    /// The log of this name.
    ///
    /// # Errors
    /// [`BackupError::Unfit`].
    pub fn log(&self, name: &str) -> BackupResult<&LogBackup> {
        self.logs.iter().find(|log| log.name == name).ok_or_else(|| {
            BackupError::Unfit(format!("the backup {} has no log {name}", self.name))
        })
    }

    /// The ids of the histories of its logs.
    #[must_use]
    pub fn histories(&self) -> HashSet<&str> {
        self.logs.iter().map(|log| log.history.as_str()).collect()
    }

    /// The names of all files that it needs.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        let of = |log: &'_ LogBackup| {
            log.segments.iter().map(|segment| segment.file(&log.history)).collect::<Vec<_>>()
        };
        self.logs.iter().flat_map(of)
    }

    /// The bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.logs.iter().flat_map(|log| &log.segments).map(|segment| segment.bytes).sum()
    }

    /// The number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.logs.iter().map(|log| log.head + 1 - log.first()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let segment =
            SegmentBackup { base: 1, next: 9, bytes: 900, anchor: 3, crc32c: 7, recorded_at_us: 5 };
        let log = LogBackup {
            name: "main".into(),
            history: "4f1c09d2a87b4e6f".into(),
            head: 8,
            recorded_at_us: 5,
            removed_until_us: None,
            segments: vec![segment],
        };
        Manifest {
            format: FORMAT,
            name: "20261125T214438Z".into(),
            version: "0.1.0".into(),
            taken_at_us: 6,
            has_accounts: true,
            logs: vec![log],
        }
    }

    #[test]
    fn numbers_that_have_no_sum_are_refused() {
        let many = || {
            let mut many = manifest();
            many.logs.push(LogBackup { name: "other".into(), ..many.logs[0].clone() });
            many
        };
        let refused = |manifest: &Manifest| {
            let bytes = manifest.encode();
            Manifest::decode(&bytes, "m").unwrap_err().to_string()
        };
        let mut large = many();
        large.logs[0].segments[0].bytes = u64::MAX;
        assert!(refused(&large).contains("more bytes than"), "{}", refused(&large));
        let mut long = many();
        (long.logs[0].head, long.logs[0].segments[0].next) = (u64::MAX - 1, u64::MAX);
        assert!(refused(&long).contains("more events than"), "{}", refused(&long));
    }

    #[test]
    fn a_manifest_reads_back_and_no_change_of_it_passes() {
        let bytes = manifest().encode();
        assert_eq!(Manifest::decode(&bytes, "m").unwrap(), manifest());
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            // White space and the names of members aside, nothing may change unseen.
            if let Ok(read) = Manifest::decode(&bad, "m") {
                assert_eq!(read, manifest(), "byte {at}");
            }
            assert!(Manifest::decode(&bytes[..at], "m").is_err());
        }
        let newer = String::from_utf8(bytes).unwrap().replace("\"format\": 1", "\"format\": 2");
        assert!(matches!(
            Manifest::decode(newer.as_bytes(), "m"),
            Err(BackupError::UnknownVersion { version: 2, .. })
        ));
    }
}
