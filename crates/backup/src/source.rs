//! Sources of backups: a server over HTTP, or the process that has the logs open.

use crate::fault::{BackupError, BackupResult};
use crate::plan::{BackupPlan, PlannedLog, PlannedSegment};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use wellspring_log::{Clock, Extent, ExtentMark, HeadGate, Log, ReadError};

/// A source of backups.
pub trait Source {
    /// What is durable now, in all logs at one moment.
    ///
    /// # Errors
    /// [`BackupError`].
    fn plan(&mut self) -> BackupResult<BackupPlan>;

    /// The bytes of one segment of the plan.
    ///
    /// # Errors
    /// [`BackupError::LogDeleted`] if the log was deleted since, even if another one has its name
    /// now; or another [`BackupError`].
    fn open(
        &mut self,
        log: &PlannedLog,
        segment: &PlannedSegment,
    ) -> BackupResult<Box<dyn Read + '_>>;
}

/// The logs that this process has open. The segments of a plan can be read until the next plan,
/// even after the log was closed or deleted.
pub struct OpenLogs {
    gate: HeadGate,
    clock: Arc<dyn Clock>,
    version: String,
    list: Box<dyn Fn() -> Vec<(String, Log)> + Send>,
    has_accounts: bool,
    extents: BTreeMap<String, Extent>,
}

impl OpenLogs {
    /// The logs that `list` returns, which share this gate.
    pub fn new(
        gate: HeadGate,
        clock: Arc<dyn Clock>,
        version: impl Into<String>,
        list: impl Fn() -> Vec<(String, Log)> + Send + 'static,
    ) -> OpenLogs {
        let (version, list) = (version.into(), Box::new(list));
        OpenLogs { gate, clock, version, list, has_accounts: false, extents: BTreeMap::new() }
    }

    /// Sets whether the server has accounts.
    #[must_use]
    pub fn with_accounts(self, has_accounts: bool) -> OpenLogs {
        OpenLogs { has_accounts, ..self }
    }
}

/// Logs by name, what is durable of each, and the moment, µs since 1970 UTC.
type Marked = (BTreeMap<String, Log>, Vec<(String, ExtentMark)>, u64);

impl OpenLogs {
    /// Marks all logs at one moment. A log created after the listing may have caused events in
    /// others, so the listing is repeated until it is complete.
    fn marked(&self) -> Marked {
        let mut listed: BTreeMap<_, _> = (self.list)().into_iter().collect();
        loop {
            let (marks, taken_at_us) = {
                let held = self.gate.hold();
                let mark = |(name, log): (&String, &Log)| (name.clone(), log.mark_extent(&held));
                (listed.iter().map(mark).collect(), self.clock.wall_us())
            };
            let now: BTreeMap<_, _> = (self.list)().into_iter().collect();
            if now.keys().all(|name| listed.contains_key(name)) {
                return (listed, marks, taken_at_us);
            }
            listed = now;
        }
    }
}

fn of_read(error: ReadError) -> BackupError {
    match error {
        ReadError::Corrupt(corruption) => {
            BackupError::DamagedSource { detail: corruption.to_string() }
        }
        other => BackupError::Refused { detail: other.to_string(), status: None },
    }
}

impl Source for OpenLogs {
    fn plan(&mut self) -> BackupResult<BackupPlan> {
        let (logs, marks, taken_at_us) = self.marked();
        self.extents = marks.into_iter().map(|(name, mark)| (name, mark.resolve())).collect();
        let mut planned = Vec::with_capacity(self.extents.len());
        for (name, extent) in &self.extents {
            let Some(history) = extent.history.filter(|_| !extent.is_copy) else {
                return Err(BackupError::Refused {
                    detail: format!(
                        "the log {name} is a copy of a shared log: back up the database that its \
                         journal is in"
                    ),
                    status: Some(409),
                });
            };
            let log = &logs[name];
            let log = PlannedLog::of(name.clone(), history.to_string(), log, extent);
            planned.push(log.map_err(of_read)?);
        }
        let (version, has_accounts) = (self.version.clone(), self.has_accounts);
        Ok(BackupPlan { version, taken_at_us, has_accounts, logs: planned })
    }

    fn open(
        &mut self,
        log: &PlannedLog,
        segment: &PlannedSegment,
    ) -> BackupResult<Box<dyn Read + '_>> {
        let extent = self
            .extents
            .get(&log.name)
            .and_then(|extent| extent.segments.iter().find(|known| known.base() == segment.base));
        let Some(extent) = extent else {
            let what = format!("the log {} has no segment {}", log.name, segment.base);
            return Err(BackupError::NotFound { what });
        };
        Ok(Box::new(extent.read_from(0).map_err(of_read)?))
    }
}
