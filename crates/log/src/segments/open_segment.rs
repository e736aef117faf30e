//! One segment of an open log: its file, and the damage that was met in it.

use crate::error::{Corruption, ReadError};
use crate::segment::segment_name;
use crate::storage::StorageFile;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use wellspring_types::Position;

/// The file of one segment.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    base: Position,
    /// Set before any of its events is published.
    file: OnceLock<Arc<dyn StorageFile>>,
    /// The first damage that was met in it, or in an index that could not be made anew.
    damage: OnceLock<Corruption>,
    /// How often an index whose first segment this is has been made anew.
    indexes_mended: AtomicU64,
}

impl OpenSegment {
    pub(crate) fn new(base: Position, file: Option<Arc<dyn StorageFile>>) -> Arc<OpenSegment> {
        let slot = OnceLock::new();
        if let Some(file) = file {
            let _ = slot.set(file);
        }
        let (damage, indexes_mended) = (OnceLock::new(), AtomicU64::new(0));
        Arc::new(OpenSegment { base, file: slot, damage, indexes_mended })
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

    /// Remembers damage and tells of it. It stays until the log is opened again.
    pub(crate) fn damaged(&self, corruption: Corruption) -> ReadError {
        let _ = self.damage.set(corruption.clone());
        ReadError::Corrupt(corruption)
    }

    /// The first damage that was met in it.
    pub(crate) fn damage(&self) -> Option<&Corruption> {
        self.damage.get()
    }

    /// How often an index that begins with it has been made anew because it was damaged.
    pub(crate) fn indexes_mended(&self) -> u64 {
        self.indexes_mended.load(Ordering::Relaxed)
    }

    /// Counts an index as made anew.
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
