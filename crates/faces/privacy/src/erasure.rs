//! An erasure, as the facts tell it.

use crate::facts::{self, ErasedInLog, ErasureOrder, ErasureResult};
use std::collections::BTreeMap;
use wellspring_log::{Log, Order, ReadError, RecordView};
use wellspring_subject_keys::KeyId;
use wellspring_types::{Query, hex};

/// An erasure of one or more data subjects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Erasure {
    pub(crate) subjects: Vec<String>,
    pub(crate) by: Option<String>,
    pub(crate) requested_at_us: u64,
    pub(crate) erases_at_us: u64,
    pub(crate) stage: ErasureStage,
    /// The keys of its subjects when it was requested.
    pub(crate) keys: Vec<KeyId>,
    pub(crate) completed_at_us: Option<u64>,
    /// Where its subjects had events.
    pub(crate) logs: Vec<ErasedInLog>,
    /// Whether this process has replaced the backups of the keys since.
    pub(crate) is_backed_up: bool,
    /// When it is tried again.
    pub(crate) again_us: u64,
}

/// How far an erasure is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ErasureStage {
    /// It can still be cancelled.
    #[default]
    Waiting,
    Cancelled,
    /// Its keys are being destroyed.
    Begun,
    Complete,
}

impl ErasureStage {
    pub(crate) fn word(self) -> &'static str {
        match self {
            ErasureStage::Waiting => "waiting",
            ErasureStage::Cancelled => "cancelled",
            ErasureStage::Begun => "begun",
            ErasureStage::Complete => "complete",
        }
    }
}

impl Erasure {
    /// Folds a fact about it. Nonsense is ignored: only the server writes that log.
    fn apply(&mut self, event: &RecordView<'_>) {
        let data = event.data();
        match event.event_type() {
            facts::REQUESTED => {
                let Ok(requested) = serde_json::from_slice::<ErasureOrder>(data) else { return };
                self.subjects.extend(requested.subjects);
                let keys = requested.keys.iter().filter_map(|key| hex::read(key)).map(KeyId);
                self.keys.extend(keys);
                self.by = requested.by;
                self.erases_at_us = requested.erases_at_us;
                self.requested_at_us = event.recorded_at_us();
            }
            facts::CANCELLED => self.stage = ErasureStage::Cancelled,
            facts::BEGUN => self.stage = ErasureStage::Begun,
            facts::COMPLETED => {
                let Ok(ErasureResult { logs }) = serde_json::from_slice(data) else { return };
                self.logs = logs;
                self.completed_at_us = Some(event.recorded_at_us());
                self.stage = ErasureStage::Complete;
            }
            _ => {}
        }
    }

    /// Whether its keys are to be gone, whatever store is in place.
    pub(crate) fn has_begun(&self) -> bool {
        matches!(self.stage, ErasureStage::Begun | ErasureStage::Complete)
    }

    /// Whether something is still to be done.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, ErasureStage::Waiting | ErasureStage::Begun)
    }
}

/// The erasures of the log `system` by id: all, or one.
///
/// # Errors
/// That log cannot be read.
pub(crate) fn read(
    system: &Log,
    only: Option<&str>,
) -> Result<BTreeMap<String, Erasure>, ReadError> {
    let snapshot = system.snapshot();
    let tag = only.map(facts::tag);
    let query = Query::item(&facts::ALL, &tag.iter().map(String::as_str).collect::<Vec<_>>());
    let mut events = snapshot.read_kept(&query, Order::Ascending);
    let mut erasures: BTreeMap<String, Erasure> = BTreeMap::new();
    while let Some(event) = events.next()? {
        if let Some(id) = event.tags().find_map(|tag| tag.strip_prefix("erasure:")) {
            erasures.entry(id.to_owned()).or_default().apply(&event);
        }
    }
    Ok(erasures)
}
