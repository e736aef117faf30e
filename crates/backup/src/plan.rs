//! What a backup will hold: everything that was durable at one moment. The answer of
//! `GET /v1/backup`.

use serde::{Deserialize, Serialize};
use wellspring_log::{Extent, ReadError};
use wellspring_types::Position;

/// What is durable in all logs at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPlan {
    /// The version of the server.
    pub version: String,
    /// The moment, µs since 1970 UTC.
    pub taken_at_us: u64,
    /// Whether the server has accounts. A restored folder must not run without any then.
    pub has_accounts: bool,
    /// The logs, by name.
    pub logs: Vec<PlannedLog>,
}

/// One log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLog {
    /// Its name.
    pub name: String,
    /// The id of its history.
    pub history: String,
    /// Its last position.
    pub head: Position,
    /// Its segments in order.
    pub segments: Vec<PlannedSegment>,
}

/// The durable bytes of one segment. They never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSegment {
    /// Position of its first event.
    pub base: Position,
    /// Position after its last event.
    pub next: Position,
    /// Number of bytes.
    pub bytes: u64,
}

impl BackupPlan {
    /// The bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.logs.iter().flat_map(|log| &log.segments).map(|segment| segment.bytes).sum()
    }
}

impl PlannedLog {
    /// The plan of a log, from what is durable of it.
    ///
    /// # Errors
    /// A length cannot be read; a retry may help.
    pub fn of(name: String, history: String, extent: &Extent) -> Result<PlannedLog, ReadError> {
        let segments = extent.segments.iter().map(|segment| {
            let bytes = segment.byte_len()?;
            Ok(PlannedSegment { base: segment.base(), next: segment.next(), bytes })
        });
        let segments = segments.collect::<Result<_, ReadError>>()?;
        Ok(PlannedLog { name, history, head: extent.head, segments })
    }
}
