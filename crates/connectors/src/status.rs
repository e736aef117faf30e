//! The state and the counters of a connector.

use crate::fault::{Fault, StopCode};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use wellspring_types::Position;

/// What a connector is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ConnectorState {
    /// Connecting and determining where to continue.
    #[default]
    Starting,
    /// Running.
    Running,
    /// Waiting to retry after a fault that resolves by itself.
    Retrying {
        /// What went wrong.
        reason: String,
    },
    /// Stopped until an operator intervenes.
    Stopped {
        /// The reason.
        code: StopCode,
        /// What happened.
        reason: String,
        /// The event concerned, if any.
        position: Option<Position>,
    },
    /// Stopped on request.
    Ended,
}

impl ConnectorState {
    /// Its name in documents and figures.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ConnectorState::Starting => "starting",
            ConnectorState::Running => "running",
            ConnectorState::Retrying { .. } => "retrying",
            ConnectorState::Stopped { .. } => "stopped",
            ConnectorState::Ended => "ended",
        }
    }
}

/// A connector's counters since the process started.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events delivered (sink), or appended without cursors (source).
    pub events: AtomicU64,
    /// Size of their payloads, in bytes.
    pub bytes: AtomicU64,
    /// Batches: transactions, appends, or rounds of webhooks.
    pub batches: AtomicU64,
    /// Restarts after faults that resolve by themselves.
    pub restarts: AtomicU64,
    /// Retried webhook requests.
    pub retries: AtomicU64,
    /// Events written to the dead-letter log, or records written to the reject log.
    pub set_aside: AtomicU64,
    /// Events that an operator skipped.
    pub skipped: AtomicU64,
    /// Sources: conflicts because another server had moved the cursor.
    pub conflicts: AtomicU64,
}

impl Counters {
    /// Adds to a counter.
    pub fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }
}

/// The state of a connector. Written by its thread, read by any.
#[derive(Debug, Default)]
pub struct Status {
    state: Mutex<ConnectorState>,
    /// Sink: everything up to here is delivered or does not match. Source: position of its last
    /// append.
    position: AtomicU64,
    /// The counters.
    pub counters: Counters,
    /// Source: known number of unread records. Includes transaction markers.
    records_behind: AtomicU64,
    /// Why something is being sent again, while it runs.
    retrying_for: Mutex<Option<String>>,
}

impl Status {
    /// The current state.
    #[must_use]
    pub fn state(&self) -> ConnectorState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the state.
    pub fn set_state(&self, state: ConnectorState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Sets the state for a fault: retrying or stopped.
    pub fn set_fault(&self, fault: &Fault) {
        self.set_state(match fault.clone() {
            Fault::Transient(reason) => ConnectorState::Retrying { reason },
            Fault::Stop { code, detail, position } => {
                ConnectorState::Stopped { code, reason: detail, position }
            }
        });
    }

    /// Why something is being sent again at the moment.
    #[must_use]
    pub fn retrying_for(&self) -> Option<String> {
        self.retrying_for.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets why something is being sent again; `None`: nothing is. Returns whether that begins.
    pub fn set_retrying_for(&self, reason: Option<&str>) -> bool {
        let mut known = self.retrying_for.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = known.is_none() && reason.is_some();
        *known = reason.map(str::to_owned);
        begins
    }

    /// Sink: everything up to here is delivered or does not match. Source: position of its last
    /// append.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position.load(Relaxed)
    }

    /// Sets the position.
    pub fn set_position(&self, position: Position) {
        self.position.store(position, Relaxed);
    }

    /// Source: known number of unread records; partition ends are checked every ten seconds.
    /// Transaction markers count as records, so a fully read topic with transactions shows one or
    /// more.
    #[must_use]
    pub fn records_behind(&self) -> u64 {
        self.records_behind.load(Relaxed)
    }

    /// Sets the number of unread records.
    pub fn set_records_behind(&self, records: u64) {
        self.records_behind.store(records, Relaxed);
    }
}
