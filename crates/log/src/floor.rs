//! Where a log begins whose beginning was cut off: the file `floor`.
//!
//! ```text
//! history 4f1c…(16 hex digits)
//! first 1000001
//! removed_until_us 1790000000000000
//! check 9b2f01aa
//! ```
//!
//! The history is that of the first segment that the log ever had. The last line is the CRC32C of
//! those before it. Segments below `first` that are still in the folder are what a crash has left:
//! no reader sees them, and the next opening removes them.

use crate::error::{Corruption, OpenError};
use crate::storage::small_file::{checked_lines, overwrite_if_full, read_small_file, with_check};
use crate::storage::{DiskStorage, Storage, replace_file};
use std::io;
use std::path::Path;
use wellspring_types::{HistoryId, Position};

/// The name of the file that says where a log begins, if its beginning was cut off.
pub const FLOOR_FILE: &str = "floor";
const LARGEST_BYTES: usize = 256;

/// The beginning of a log; see the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// The log's history.
    pub history: HistoryId,
    /// Position of its first event, where its first segment begins; over 1.
    pub first: Position,
    /// No event before it was recorded later, µs since 1970 UTC.
    pub removed_until_us: u64,
}

impl Floor {
    /// Reads that of the log in `dir`; `None` if nothing was cut off.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_folder(dir: &Path) -> Result<Option<Floor>, OpenError> {
        let storage = DiskStorage::existing(dir).map_err(|error| OpenError::Io {
            doing: format!("opening {}", dir.display()),
            error,
        })?;
        Floor::read(&storage)
    }

    /// Reads that of the log in a storage.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`] if the file is damaged: nothing else tells the history.
    pub fn read(storage: &dyn Storage) -> Result<Option<Floor>, OpenError> {
        let failed = |error| OpenError::Io { doing: format!("reading {FLOOR_FILE}"), error };
        let bytes = read_small_file(storage, FLOOR_FILE, LARGEST_BYTES).map_err(failed)?;
        let Some(bytes) = bytes else { return Ok(None) };
        parse(&bytes).map(Some).ok_or_else(|| {
            let what = "it does not say where the log begins";
            OpenError::Corrupt(Corruption { file: FLOOR_FILE.into(), offset: 0, what: what.into() })
        })
    }

    /// Writes it durably.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn write(&self, storage: &dyn Storage) -> io::Result<()> {
        let Floor { history, first, removed_until_us } = self;
        // All floors have the same length.
        let text = with_check(format!(
            "history {history}\nfirst {first:020}\nremoved_until_us {removed_until_us:020}\n"
        ));
        replace_file(storage, FLOOR_FILE, text.as_bytes())
            .or_else(|error| overwrite_if_full(storage, FLOOR_FILE, text.as_bytes(), error))
    }
}

fn parse(bytes: &[u8]) -> Option<Floor> {
    let mut lines = checked_lines(bytes)?;
    let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let history = value("history")?.parse().ok()?;
    let first = value("first")?.parse().ok().filter(|&first| first > 1)?;
    let removed_until_us = value("removed_until_us")?.parse().ok()?;
    Some(Floor { history, first, removed_until_us })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::is_full;
    use crate::storage::simulated::{Faults, SimulatedStorage};

    #[test]
    fn a_floor_is_replaced_on_a_full_disk() {
        let storage = SimulatedStorage::new(1);
        let floor = |first| Floor { history: HistoryId(7), first, removed_until_us: first };
        floor(2).write(&storage).unwrap();
        storage.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
        floor(u64::MAX).write(&storage).unwrap();
        assert_eq!(Floor::read(&storage).unwrap(), Some(floor(u64::MAX)));
        storage.remove(FLOOR_FILE).unwrap();
        assert!(is_full(&floor(2).write(&storage).unwrap_err()));
    }

    #[test]
    fn a_floor_reads_back_and_a_damaged_one_is_refused() {
        let storage = SimulatedStorage::new(1);
        assert_eq!(Floor::read(&storage).unwrap(), None);
        let floor = Floor { history: HistoryId(7), first: 1_000_001, removed_until_us: 9 };
        floor.write(&storage).unwrap();
        assert_eq!(Floor::read(&storage).unwrap(), Some(floor));
        storage.open(FLOOR_FILE).unwrap().write_all_at(b"x", 3).unwrap();
        let damaged = Floor::read(&storage);
        assert!(matches!(damaged, Err(OpenError::Corrupt(of)) if of.file == FLOOR_FILE));
        assert_eq!(parse(b"history 0000000000000007\nfirst 1\nremoved_until_us 9\n"), None);
    }
}
