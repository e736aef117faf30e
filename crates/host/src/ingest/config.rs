//! The settings of taking events in.

use crate::kept_types::KeptTypes;
use crate::names::MAIN;
use crate::settings::section;
use crate::setup::SetupError;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wellspring_log::batcher::Overflow;
use wellspring_types::limits;
use wellspring_types::valid::check_text;

/// What happens to events that find no room in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IngestOverflow {
    /// Their clients are read more slowly.
    Block,
    /// They are refused with 429.
    Shed,
}

section! {
    /// Settings of ingest.
    IngestConfig from IngestConfigArgs under "Ingest":
    /// Type of events from POST /e that name none.
    ingest_type: String = "WELLSPRING_INGEST_TYPE", "Ingested".to_owned();
    /// What happens when the ingest memory is full: block (read clients more slowly) or shed (429).
    ingest_overflow: IngestOverflow = "WELLSPRING_INGEST_OVERFLOW", IngestOverflow::Block;
    /// Memory per serving thread and log for accepted events not yet stored, in bytes: a power of
    /// two from 4194304 to 1073741824.
    ingest_partition_bytes: usize = "WELLSPRING_INGEST_PARTITION_BYTES", 8 << 20;
    /// Store accepted events as soon as a serving thread has this many bytes of them. A value above
    /// --ingest-partition-bytes means by time only.
    ingest_flush_bytes: usize = "WELLSPRING_INGEST_FLUSH_BYTES", 1 << 20;
    /// Maximum time between two flushes of accepted events, in ms.
    ingest_flush_ms: u64 = "WELLSPRING_INGEST_FLUSH_MS", 2;
}

impl IngestConfig {
    /// Checks the settings. `kept`: types that clients may not send.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self, kept: &KeptTypes) -> Result<(), SetupError> {
        let partition = self.ingest_partition_bytes;
        if !partition.is_power_of_two() || !((4 << 20)..=(1 << 30)).contains(&partition) {
            return Err(format!(
                "ingest_partition_bytes must be a power of two from 4194304 to 1073741824, not {partition}"
            ).into());
        }
        if !(1..=60_000).contains(&self.ingest_flush_ms) {
            return Err(format!(
                "ingest_flush_ms must be from 1 to 60000, not {}",
                self.ingest_flush_ms
            )
            .into());
        }
        if self.ingest_flush_bytes == 0 {
            return Err("ingest_flush_bytes must be at least 1".into());
        }
        check_text(&self.ingest_type, limits::MAX_TYPE_BYTES)
            .map_err(|reason| format!("ingest_type {reason}"))?;
        // Otherwise each `POST /e` without a type would be refused.
        match kept.in_log(MAIN).fault(&self.ingest_type) {
            None => Ok(()),
            Some(fault) => {
                Err(format!("ingest_type {fault}; otherwise choose another type").into())
            }
        }
    }

    /// The batcher's settings.
    pub(crate) fn batcher(&self) -> wellspring_log::batcher::Options {
        wellspring_log::batcher::Options {
            partition_bytes: self.ingest_partition_bytes,
            flush_bytes: self.ingest_flush_bytes,
            flush_age: Duration::from_millis(self.ingest_flush_ms),
            overflow: match self.ingest_overflow {
                IngestOverflow::Block => Overflow::Block,
                IngestOverflow::Shed => Overflow::Shed,
            },
        }
    }
}
