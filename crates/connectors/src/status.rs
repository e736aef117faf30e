//! The state and the counters of a connector.

use crate::fault::{Fault, StopCode};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use wellspring_types::Position;

/// What a connector is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ConnectorState {
    /// It connects and finds out where to go on.
    #[default]
    Starting,
    /// It works.
    Running,
    /// Something that goes away by itself: it tries again after a while.
    Retrying {
        /// What is in the way.
        reason: String,
    },
    /// It stopped until a person decides.
    Stopped {
        /// Why.
        code: StopCode,
        /// What happened.
        reason: String,
        /// The event it is about, where it is about one.
        position: Option<Position>,
    },
    /// It was told to stop, and has.
    Ended,
}

impl ConnectorState {
    /// The word for it in documents and figures.
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

/// What a connector has done since this process began.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events delivered (a sink), or appended besides cursors (a source).
    pub events: AtomicU64,
    /// Bytes of their payloads.
    pub bytes: AtomicU64,
    /// Batches: transactions, appends, or rounds of webhooks.
    pub batches: AtomicU64,
    /// Times it began again after a fault that goes away by itself.
    pub restarts: AtomicU64,
    /// Requests of webhooks that were tried again.
    pub retries: AtomicU64,
    /// Events put into the dead-letter log, or records put into the reject log.
    pub set_aside: AtomicU64,
    /// Events that a person had skipped.
    pub skipped: AtomicU64,
    /// A source: times the cursor in the log was not where it was left, as another server had moved
    /// it.
    pub conflicts: AtomicU64,
}

impl Counters {
    /// Adds to one of them.
    pub fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }
}

/// How a connector is doing; written by its thread, read by anybody.
#[derive(Debug, Default)]
pub struct Status {
    state: Mutex<ConnectorState>,
    /// A sink: everything up to here is delivered or does not match. A source: position of its last
    /// append.
    position: AtomicU64,
    /// What it has done.
    pub counters: Counters,
    /// A source: records in the topic that are not read yet, as far as known. Markers of
    /// transactions count, too.
    records_behind: AtomicU64,
}

impl Status {
    /// What it is doing.
    #[must_use]
    pub fn state(&self) -> ConnectorState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells what it is doing.
    pub fn set_state(&self, state: ConnectorState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Tells of a fault: it tries again, or has stopped.
    pub fn set_fault(&self, fault: &Fault) {
        self.set_state(match fault.clone() {
            Fault::Transient(reason) => ConnectorState::Retrying { reason },
            Fault::Stop { code, detail, position } => {
                ConnectorState::Stopped { code, reason: detail, position }
            }
        });
    }

    /// A sink: everything up to here is delivered or does not match. A source: position of its last
    /// append.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position.load(Relaxed)
    }

    /// Tells how far it is.
    pub fn set_position(&self, position: Position) {
        self.position.store(position, Relaxed);
    }

    /// A source: records that are not read yet, as far as known: ends of partitions are looked up
    /// every ten seconds. Markers of transactions count as records, so a topic of transactions that
    /// is read to its end shows one or more.
    #[must_use]
    pub fn records_behind(&self) -> u64 {
        self.records_behind.load(Relaxed)
    }

    /// Tells how many records are not read yet.
    pub fn set_records_behind(&self, records: u64) {
        self.records_behind.store(records, Relaxed);
    }
}
