//! The plan of a backup: everything that is durable at one moment. The answer of
//! `GET /v1/backup`.

use crate::fault::BackupResult;
use crate::manifest::check_sum;
use crate::names::check_names;
use serde::{Deserialize, Serialize};
use wellspring_log::{Extent, Log, ReadError};
use wellspring_types::Position;

/// The durable part of all logs at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPlan {
    /// The version of the server.
    pub version: String,
    /// The moment, µs since 1970 UTC.
    pub taken_at_us: u64,
    /// Whether the server has accounts. If so, a restored folder must not run without any.
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
    /// If its beginning was removed: no event before its first segment was recorded later, µs since
    /// 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_until_us: Option<u64>,
    /// Its segments in order.
    pub segments: Vec<PlannedSegment>,
}

/// The durable part of one segment. Its bytes never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSegment {
    /// Position of its first event.
    pub base: Position,
    /// Position after its last event.
    pub next: Position,
    /// Number of bytes.
    pub bytes: u64,
    /// The checksum in its last record, 0 if it has none. Distinguishes the segment from one of the
    /// same length in a log that was rolled back and appended to again.
    pub anchor: u32,
}

impl BackupPlan {
    /// Checks the plan of a server, which is not trusted with paths outside of the store.
    ///
    /// # Errors
    /// [`BackupError::Damaged`](crate::BackupError::Damaged).
    pub fn check(&self) -> BackupResult<()> {
        let logs = self.logs.iter().map(|log| (log.name.as_str(), log.history.as_str()));
        let file = "the plan of the server";
        check_names(logs, file)?;
        let segments = || self.logs.iter().flat_map(|log| &log.segments);
        check_sum(segments().map(|segment| segment.bytes), "bytes", file)?;
        check_sum(self.logs.iter().map(|log| log.head), "events", file)
    }

    /// The bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.logs.iter().flat_map(|log| &log.segments).map(|segment| segment.bytes).sum()
    }
}

impl PlannedLog {
    /// The plan of a log, from its durable extent.
    ///
    /// # Errors
    /// A length cannot be read; a retry may help.
    pub fn of(
        name: String,
        history: String,
        log: &Log,
        extent: &Extent,
    ) -> Result<PlannedLog, ReadError> {
        let snapshot = log.snapshot();
        let segments = extent.segments.iter().map(|segment| {
            let bytes = segment.byte_len()?;
            let (base, next) = (segment.base(), segment.next());
            let anchor = if next > base {
                snapshot.at(next - 1, |record| record.checksum())?.unwrap_or(0)
            } else {
                0
            };
            Ok(PlannedSegment { base, next, bytes, anchor })
        });
        let segments: Vec<PlannedSegment> = segments.collect::<Result<_, ReadError>>()?;
        let is_trimmed = segments.first().is_some_and(|segment| segment.base > 1);
        let removed_until_us = log.floor().filter(|_| is_trimmed).map(|f| f.removed_until_us);
        Ok(PlannedLog { name, history, head: extent.head, removed_until_us, segments })
    }
}
