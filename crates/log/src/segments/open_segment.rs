//! A segment of an open log: its file, and the damage found in it.

use crate::error::{Corruption, OpenError, ReadError};
use crate::recover;
use crate::storage::StorageFile;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use wellspring_format::segment::segment_name;
use wellspring_types::Position;

/// The file of one segment.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    base: Position,
    /// Set before any of its events is published.
    file: OnceLock<Arc<dyn StorageFile>>,
    /// When its first event was recorded, once that was read; µs since 1970 UTC.
    first_time_us: OnceLock<u64>,
    /// In the first segment of a log whose beginning was cut off: no event before it was recorded
    /// later, µs since 1970 UTC.
    removed_until_us: OnceLock<u64>,
    /// The first damage found in it, or in an index that could not be rebuilt.
    damage: OnceLock<Corruption>,
    /// How often the index that begins with this segment has been rebuilt.
    indexes_mended: AtomicU64,
    /// How many of these have been taken note of.
    mended_noted: AtomicU64,
}

impl OpenSegment {
    pub(crate) fn new(base: Position, file: Option<Arc<dyn StorageFile>>) -> Arc<OpenSegment> {
        let slot = OnceLock::new();
        if let Some(file) = file {
            let _ = slot.set(file);
        }
        Arc::new(OpenSegment {
            base,
            file: slot,
            first_time_us: OnceLock::new(),
            removed_until_us: OnceLock::new(),
            damage: OnceLock::new(),
            indexes_mended: AtomicU64::new(0),
            mended_noted: AtomicU64::new(0),
        })
    }

    pub(crate) fn base(&self) -> Position {
        self.base
    }

    pub(crate) fn name(&self) -> String {
        segment_name(self.base)
    }

    pub(crate) fn set_file(&self, file: Arc<dyn StorageFile>) {
        let _ = self.file.set(file);
    }

    /// When its first event was recorded, if that is known.
    pub(crate) fn first_time_us(&self) -> Option<u64> {
        self.first_time_us.get().copied()
    }

    /// Takes note of the time of its first event, which is published and so never changes.
    pub(crate) fn know_first_time(&self, recorded_us: u64) {
        let _ = self.first_time_us.set(recorded_us);
    }

    /// No event that was cut off before it was recorded later than this, if any was.
    pub(crate) fn removed_until_us(&self) -> Option<u64> {
        self.removed_until_us.get().copied()
    }

    /// Everything before it is cut off, and was recorded up to this time.
    pub(crate) fn begins_the_log(&self, removed_until_us: u64) {
        let _ = self.removed_until_us.set(removed_until_us);
    }

    /// The salt in its header.
    pub(crate) fn salt(&self) -> Result<u64, OpenError> {
        let file = self.file().map_err(|error| {
            let error = io::Error::other(error.to_string());
            OpenError::Io { doing: format!("reading {}", self.name()), error }
        })?;
        Ok(recover::read_header(&**file, &self.name())?.salt)
    }

    /// Records damage and returns it as an error. It is kept until the log is opened again.
    pub(crate) fn damaged(&self, corruption: Corruption) -> ReadError {
        let _ = self.damage.set(corruption.clone());
        ReadError::Corrupt(corruption)
    }

    /// The first damage found in it.
    pub(crate) fn damage(&self) -> Option<&Corruption> {
        self.damage.get()
    }

    /// How often the index that begins with it has been rebuilt because of damage.
    pub(crate) fn indexes_mended(&self) -> u64 {
        self.indexes_mended.load(Ordering::Relaxed)
    }

    /// As [`indexes_mended`](Self::indexes_mended), since this was last asked.
    pub(crate) fn take_mended(&self) -> u64 {
        let all = self.indexes_mended();
        all - self.mended_noted.swap(all, Ordering::Relaxed)
    }

    /// Counts a rebuilt index.
    pub(crate) fn count_mended(&self) {
        self.indexes_mended.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn file(&self) -> Result<&Arc<dyn StorageFile>, ReadError> {
        self.file.get().ok_or_else(|| ReadError::Io {
            doing: format!("reading {}", self.name()),
            error: "the segment has no file yet".into(),
        })
    }
}
