//! The settings of the logs and their files.

use crate::settings::section;
use std::time::Duration;

section! {
    /// Settings of the logs and their files.
    StorageConfig from StorageConfigArgs:
    /// When an append counts as durable: `always`, or `interval=<ms>` (a power loss may lose that
    /// much).
    sync: String = "WELLSPRING_SYNC", "always".to_owned();
    /// Maximum number of logs.
    max_logs: usize = "WELLSPRING_MAX_LOGS", 256;
    /// Largest segment file, in bytes.
    segment_bytes: u32 = "WELLSPRING_SEGMENT_BYTES", 256 << 20;
    /// Maximum bytes of a log that may wait to become durable.
    staged_bytes: usize = "WELLSPRING_STAGED_BYTES", 64 << 20;
    /// Memory of the index of the active segment, per log, in bytes; a new segment begins when it
    /// is full. Bounds the time of a start after a crash.
    active_index_bytes: usize = "WELLSPRING_ACTIVE_INDEX_BYTES", 8 << 20;
    /// Memory for the filters and directories of all other segments' indexes, for all logs
    /// together, in bytes.
    sealed_index_bytes: usize = "WELLSPRING_SEALED_INDEX_BYTES", 32 << 20;
}

impl StorageConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.sync()?;
        if !(64 << 10..=2 << 30).contains(&self.segment_bytes) {
            return Err("segment_bytes must be from 65536 to 2147483648".to_owned());
        }
        Ok(())
    }

    /// When an append counts as durable.
    ///
    /// # Errors
    /// A sentence about `sync`.
    pub fn sync(&self) -> Result<wellspring_log::Sync, String> {
        let interval = || {
            self.sync.strip_prefix("interval=")?.parse().ok().filter(|ms| (1..=60_000).contains(ms))
        };
        match (self.sync.as_str(), interval()) {
            ("always", _) => Ok(wellspring_log::Sync::Always),
            (_, Some(ms)) => Ok(wellspring_log::Sync::Interval(Duration::from_millis(ms))),
            _ => Err(format!(
                "--sync must be `always` or `interval=<ms>` with 1 to 60000 ms, not {:?}",
                self.sync
            )),
        }
    }
}
