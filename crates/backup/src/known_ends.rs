//! Where logs ended in earlier backups. A log of the same history that ends before that has lost
//! events: a snapshot of its disk was put back, or its last files are gone. In the folder, nothing
//! may tell.

use crate::catalog::{self, Catalog};
use crate::fault::Outcome;
use crate::manifest::Manifest;
use crate::store::Store;
use std::collections::HashMap;
use wellspring_log::LostEnd;
use wellspring_types::Position;

/// The furthest known end of each history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownEnds(HashMap<String, KnownEnd>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownEnd {
    head: Position,
    /// The backup that has it.
    backup: String,
}

impl KnownEnds {
    /// Those of all finished backups in a store. One whose manifest is damaged counts for nothing.
    ///
    /// # Errors
    /// [`BackupError`](crate::BackupError): the store cannot be read.
    pub fn of(store: &mut dyn Store) -> Outcome<KnownEnds> {
        let mut known = KnownEnds::default();
        for name in Catalog::of(store)?.finished {
            if let Some(manifest) = catalog::readable(store, &name)? {
                known.note(&manifest);
            }
        }
        Ok(known)
    }

    /// Adds the ends of the logs in a backup.
    pub fn note(&mut self, manifest: &Manifest) {
        for log in &manifest.logs {
            let known = self.0.get(&log.history);
            if known.is_none_or(|known| known.head < log.head) {
                let end = KnownEnd { head: log.head, backup: manifest.name.clone() };
                self.0.insert(log.history.clone(), end);
            }
        }
    }

    /// Whether any backup has a log of this history.
    #[must_use]
    pub fn has(&self, history: &str) -> bool {
        self.0.contains_key(history)
    }

    /// The evidence that a log of this history, which ends at `head` with the segment that begins
    /// at `last_base`, has lost its end.
    #[must_use]
    pub fn lost_end(&self, history: &str, head: Position, last_base: Position) -> Option<LostEnd> {
        let known = self.0.get(history).filter(|known| known.head > head)?;
        let known_from = format!("the backup {}", known.backup);
        Some(LostEnd { head, last_base, known_from, known_end: Some(known.head) })
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
        let lost = known.lost_end("a", 19, 8).expect("one event is lost");
        assert_eq!((lost.head, lost.last_base, lost.known_end), (19, 8, Some(20)));
        assert_eq!(lost.known_from, "the backup 2");
        for (history, head) in [("a", 20), ("a", 21), ("b", 5), ("c", 0)] {
            assert_eq!(known.lost_end(history, head, 1), None, "{history} {head}");
        }
    }
}
