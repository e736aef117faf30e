//! The settings of the logs and their files.

use crate::settings::section;
use crate::setup::SetupError;
use std::time::Duration;

section! {
    /// Settings of the logs and their files.
    StorageConfig from StorageConfigArgs under "Logs and their files":
    /// When an append counts as durable: always, or interval=MS (a power failure may lose that
    /// much).
    sync: String = "WELLSPRING_SYNC", "always".to_owned();
    /// Maximum number of logs.
    max_logs: usize = "WELLSPRING_MAX_LOGS", 256;
    /// Maximum size of a segment file, in bytes.
    segment_bytes: u32 = "WELLSPRING_SEGMENT_BYTES", 256 << 20;
    /// Maximum size of the events of a log that wait to become durable, in bytes.
    staged_bytes: usize = "WELLSPRING_STAGED_BYTES", 64 << 20;
    /// Memory per log for the index of the active segment, in bytes. When it is full, the next
    /// segment starts; this bounds the startup time after a crash.
    active_index_bytes: usize = "WELLSPRING_ACTIVE_INDEX_BYTES", 8 << 20;
    /// Memory for the filters, directories and offsets of all other indexes together, in bytes.
    sealed_index_bytes: usize = "WELLSPRING_SEALED_INDEX_BYTES", 32 << 20;
}

impl StorageConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        self.sync()?;
        if !(64 << 10..=2 << 30).contains(&self.segment_bytes) {
            return Err("segment_bytes must be from 65536 to 2147483648".into());
        }
        Ok(())
    }

    /// When an append counts as durable.
    ///
    /// # Errors
    /// A sentence about `sync`.
    pub fn sync(&self) -> Result<wellspring_log::Sync, SetupError> {
        let interval = || {
            self.sync.strip_prefix("interval=")?.parse().ok().filter(|ms| (1..=60_000).contains(ms))
        };
        match (self.sync.as_str(), interval()) {
            ("always", _) => Ok(wellspring_log::Sync::Always),
            (_, Some(ms)) => Ok(wellspring_log::Sync::Interval(Duration::from_millis(ms))),
            _ => Err(format!(
                "--sync must be `always` or `interval=<ms>` with 1 to 60000 ms, not {:?}",
                self.sync
            )
            .into()),
        }
    }
}
