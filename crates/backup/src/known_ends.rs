//! The ends of logs in earlier backups. A log of the same history that ends before that has lost
//! events: a snapshot of its disk was restored, or its last files are missing. The folder itself
//! may not show it.
//!
//! A damaged manifest proves no position, but names of segments do: a segment is named by history,
//! base, length and last checksum, and gets its name after its bytes are durable. So a segment that
//! no readable manifest names proves later events if it begins after the log's end, or is its last
//! segment with more bytes. No segment is removed while a manifest is damaged, because the segments
//! that it needs are unknown.

use crate::catalog::{Catalog, Manifests};
use crate::fault::{BackupResult, UnreadableManifest};
use crate::manifest::{LogBackup, Manifest, SegmentBackup};
use crate::names::SegmentFileName;
use crate::store::Store;
use std::collections::{HashMap, HashSet};
use wellspring_log::LostEnd;
use wellspring_types::Position;

/// The furthest known end of each history. Manifests contain positions; the names of segments in a
/// store prove later events even if the manifest of their backup is damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownEnds {
    by_manifests: HashMap<String, KnownEnd>,
    by_files: HashMap<String, KnownFile>,
    unreadable: Vec<UnreadableManifest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownEnd {
    head: Position,
    /// The backup that has it.
    backup: String,
}

/// The furthest segment of a history among those that no manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownFile {
    base: Position,
    bytes: u64,
    name: String,
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Its last position.
    pub head: Position,
    /// Position of the first event of its last segment.
    pub last_base: Position,
    /// Number of bytes of its last segment, up to the end of the last event.
    pub last_bytes: u64,
}

impl LogEnd {
    /// The end of a log with this last segment, if it has any.
    pub(crate) fn of(head: Position, last: Option<(Position, u64)>) -> LogEnd {
        let (last_base, last_bytes) = last.unwrap_or((1, 0));
        LogEnd { head, last_base, last_bytes }
    }

    /// The end of a log in a backup.
    pub(crate) fn in_backup(log: &LogBackup) -> LogEnd {
        let of = |segment: &SegmentBackup| (segment.base, segment.bytes);
        LogEnd::of(log.head, log.segments.last().map(of))
    }
}

impl KnownEnds {
    /// The ends in all finished backups in a store, and in segments there that no manifest names.
    ///
    /// # Errors
    /// [`BackupError`](crate::BackupError): the store cannot be listed.
    pub fn of(store: &mut dyn Store) -> BackupResult<KnownEnds> {
        let mut known = KnownEnds::default();
        let finished = Catalog::of(store)?.finished;
        let Manifests { read, unreadable } = Manifests::of(store, &finished);
        read.iter().for_each(|manifest| known.note(manifest));
        known.unreadable = unreadable;
        let named: HashSet<String> = read.iter().flat_map(Manifest::files).collect();
        for (file, _) in store.list("segments/")? {
            if !named.contains(&file) {
                known.note_file(&file);
            }
        }
        Ok(known)
    }

    /// The backups whose ends have no known position, because their manifests cannot be read.
    #[must_use]
    pub fn unreadable(&self) -> &[UnreadableManifest] {
        &self.unreadable
    }

    /// Adds the ends of the logs in a backup.
    pub fn note(&mut self, manifest: &Manifest) {
        for log in &manifest.logs {
            let known = self.by_manifests.get(&log.history);
            if known.is_none_or(|known| known.head < log.head) {
                let end = KnownEnd { head: log.head, backup: manifest.name.clone() };
                self.by_manifests.insert(log.history.clone(), end);
            }
        }
    }

    /// Adds the end proved by the name of a file that no manifest names.
    pub(crate) fn note_file(&mut self, name: &str) {
        let Some(SegmentFileName { history, base, bytes, anchor }) = SegmentFileName::parse(name)
        else {
            return;
        };
        let known = self.by_files.get(history);
        // A segment without a record proves no event.
        if anchor != 0 && known.is_none_or(|known| (known.base, known.bytes) < (base, bytes)) {
            let file = KnownFile { base, bytes, name: name.to_owned() };
            self.by_files.insert(history.to_owned(), file);
        }
    }

    /// Whether any backup has a log of this history.
    #[must_use]
    pub fn has(&self, history: &str) -> bool {
        self.by_manifests.contains_key(history)
    }

    /// The evidence, from backups or segments in the store, that a log of this history with this
    /// end has lost events.
    #[must_use]
    pub fn lost_end(&self, history: &str, end: LogEnd) -> Option<LostEnd> {
        let LogEnd { head, last_base, last_bytes } = end;
        let by_file = || {
            let KnownFile { base, bytes, name } = self.by_files.get(history)?;
            let is_later = *base > head;
            let is_longer = *base == last_base && *bytes > last_bytes;
            let known_end = is_later.then_some(*base);
            let known_from = format!("{name}, of a backup that is damaged or unfinished");
            (is_later || is_longer).then_some(LostEnd { head, last_base, known_from, known_end })
        };
        let by_manifest = self.by_manifests.get(history).filter(|known| known.head > head);
        by_manifest.map_or_else(by_file, |known| {
            let known_from = format!("the backup {}", known.backup);
            Some(LostEnd { head, last_base, known_from, known_end: Some(known.head) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{FORMAT, LogBackup};

    fn backup(name: &str, logs: &[(&str, Position)]) -> Manifest {
        let log = |&(history, head): &(&str, Position)| LogBackup {
            name: "main".to_owned(),
            history: history.to_owned(),
            head,
            recorded_at_us: 0,
            removed_until_us: None,
            segments: Vec::new(),
        };
        Manifest {
            format: FORMAT,
            name: name.to_owned(),
            version: String::new(),
            taken_at_us: 0,
            has_accounts: false,
            logs: logs.iter().map(log).collect(),
        }
    }

    #[test]
    fn a_log_that_ends_before_the_furthest_backup_of_its_history_has_lost_events() {
        let mut known = KnownEnds::default();
        known.note(&backup("1", &[("a", 10), ("b", 5)]));
        known.note(&backup("2", &[("a", 20)]));
        // Taken of the folder that was put back.
        known.note(&backup("3", &[("a", 12)]));
        let at = |head, last_base| LogEnd { head, last_base, last_bytes: 64 };
        let lost = known.lost_end("a", at(19, 8)).expect("one event is lost");
        assert_eq!((lost.head, lost.last_base, lost.known_end), (19, 8, Some(20)));
        assert_eq!(lost.known_from, "the backup 2");
        for (history, head) in [("a", 20), ("a", 21), ("b", 5), ("c", 0)] {
            assert_eq!(known.lost_end(history, at(head, 1)), None, "{history} {head}");
        }
    }

    #[test]
    fn a_segment_in_the_place_tells_of_events_without_any_manifest() {
        let history = "4f1c09d2a87b4e6f";
        let mut known = KnownEnds::default();
        let file = |base: Position, bytes: u64, anchor: u32| {
            crate::manifest::segment_file(history, base, bytes, anchor)
        };
        for file in [file(1, 500, 7), file(9, 300, 8), file(9, 200, 9), file(12, 64, 0)] {
            known.note_file(&file);
        }
        known.note_file("segments/README");
        let lost = |head, last_base, last_bytes| {
            known.lost_end(history, LogEnd { head, last_base, last_bytes })
        };
        let later = lost(8, 1, 500).expect("the event at 9");
        assert_eq!((later.head, later.last_base, later.known_end), (8, 1, Some(9)));
        assert_eq!(
            later.known_from,
            format!("{}, of a backup that is damaged or unfinished", file(9, 300, 8))
        );
        let longer = lost(10, 9, 250).expect("100 bytes of it");
        assert_eq!((longer.head, longer.known_end), (10, None));
        // An empty segment and one that has grown since, or was sealed elsewhere, prove nothing.
        for (head, last_base, last_bytes) in [(11, 9, 300), (11, 9, 301), (15, 12, 64), (9, 1, 700)]
        {
            assert_eq!(lost(head, last_base, last_bytes), None, "{head} {last_base}");
        }
        let end = LogEnd { head: 0, last_base: 1, last_bytes: 0 };
        assert_eq!(known.lost_end("0000000000000001", end), None);
    }
}
