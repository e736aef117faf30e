//! A connector as clients see it: its definition and its state.

use crate::supervisor::Supervisor;
use crate::view::{Connector, ConnectorKey, ConnectorKind, Origin};
use serde::Serialize;
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;
use wellspring_connectors::{ConnectorState, Status};
use wellspring_host::http::Host;
use wellspring_host::names::MAIN;
use wellspring_types::Position;

/// A sink or source with its state.
#[derive(Debug, Serialize)]
pub(crate) struct ConnectorReport {
    name: String,
    definition: Value,
    defined_by: Origin,
    /// `starting`, `running`, `retrying`, `stopped`, `paused`, or `inactive`.
    pub(crate) state: &'static str,
    /// Why it is not running, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Why it stopped, as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_code: Option<&'static str>,
    /// The event concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<Position>,
    generation: u64,
    /// A sink: position up to which every matching event is delivered. A source: position of its
    /// last append.
    pub(crate) position: Position,
    /// A sink: the first event that it needs after a restart, that of its cursor.
    #[serde(skip)]
    pub(crate) needed: Position,
    /// The last position of its log.
    pub(crate) head: Position,
    /// A sink: positions of the log still to be examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lag: Option<u64>,
    /// A source: records of the topic still to be read, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) records_behind: Option<u64>,
    /// A warning while it works.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Events to skip.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skips: Vec<Position>,
    #[serde(flatten)]
    pub(crate) counts: ConnectorCounts,
}

/// What a connector has done since it was started on this node.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ConnectorCounts {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) batches: u64,
    pub(crate) restarts: u64,
    pub(crate) retries: u64,
    pub(crate) set_aside: u64,
    pub(crate) skipped: u64,
}

impl ConnectorCounts {
    fn of(status: &Status) -> ConnectorCounts {
        let counters = &status.counters;
        ConnectorCounts {
            events: counters.events.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            batches: counters.batches.load(Relaxed),
            restarts: counters.restarts.load(Relaxed),
            retries: counters.retries.load(Relaxed),
            set_aside: counters.set_aside.load(Relaxed),
            skipped: counters.skipped.load(Relaxed),
        }
    }
}

impl ConnectorReport {
    /// The log that it reads, or appends to.
    pub(crate) fn log(&self) -> &str {
        self.definition.get("log").and_then(Value::as_str).unwrap_or(MAIN)
    }
}

/// The report on a connector.
pub(crate) fn report(
    host: &Host,
    supervisor: &Supervisor,
    key: &ConnectorKey,
    connector: &Connector,
) -> ConnectorReport {
    let status = supervisor.status(key, connector);
    let log = connector.definition.get("log").and_then(Value::as_str).unwrap_or(MAIN);
    let kept = connector.cursor().map_or(connector.start, |cursor| cursor.position);
    let position = status.as_ref().map_or(0, |status| status.position()).max(kept);
    let head = host.node.get(log).map_or(0, |log| log.head());
    let (state, reason, stop_code, stopped_at) = state_of(supervisor, key, connector, &status);
    let is_sink = key.kind == ConnectorKind::Sink;
    let behind = || status.as_ref().map_or(0, |status| status.records_behind());
    ConnectorReport {
        name: key.name.clone(),
        definition: connector.definition.clone(),
        defined_by: connector.origin,
        state,
        reason,
        stop_code,
        stopped_at,
        generation: connector.generation,
        position,
        needed: match (connector.cursor(), connector.start) {
            (Some(cursor), _) if cursor.position > 0 => cursor.position,
            (_, 0) => host.node.get(log).map_or(1, |log| log.snapshot().first()),
            (_, start) => start + 1,
        },
        head,
        lag: is_sink.then(|| head.saturating_sub(position)),
        records_behind: (!is_sink).then(behind),
        warnings: supervisor.warnings(key),
        skips: connector.skip.iter().copied().collect(),
        counts: status.as_deref().map(ConnectorCounts::of).unwrap_or_default(),
    }
}

type StateWords = (&'static str, Option<String>, Option<&'static str>, Option<Position>);

fn state_of(
    supervisor: &Supervisor,
    key: &ConnectorKey,
    connector: &Connector,
    status: &Option<std::sync::Arc<Status>>,
) -> StateWords {
    if connector.is_paused {
        return ("paused", None, None, None);
    }
    if connector.origin == Origin::Configuration && !supervisor.is_configured(key) {
        let why = "the configuration no longer defines it";
        return ("inactive", Some(why.to_owned()), None, None);
    }
    let Some(status) = status else { return ("starting", None, None, None) };
    match status.state() {
        ConnectorState::Retrying { reason } => ("retrying", Some(reason), None, None),
        ConnectorState::Stopped { code, reason, position } => {
            ("stopped", Some(reason), Some(code.name()), position)
        }
        // It will be restarted soon.
        ConnectorState::Ended => ("starting", None, None, None),
        running => (running.name(), status.retrying_for(), None, None),
    }
}
