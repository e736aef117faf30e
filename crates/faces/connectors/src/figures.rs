//! Figures of sinks and sources.

use crate::report::ConnectorReport;
use wellspring_host::stats::family::{Family, FigureOf, Kind};

/// What connectors of one kind have done, and their states.
pub(crate) struct ReportFigures<'a> {
    /// The reports, by name.
    pub(crate) reports: &'a [(String, ConnectorReport)],
}

const SINK: [FigureOf<ConnectorReport>; 10] = [
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_sink_running",
        help: "1 while the sink delivers, 0 while it does not: see state of GET /v1/sinks/{name}.",
        value: |report| u64::from(report.state == "running"),
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_sink_stopped",
        help: "1 if the sink has stopped and needs an operator.",
        value: |report| u64::from(report.state == "stopped"),
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_sink_position",
        help: "Position up to which every matching event is delivered.",
        value: |report| report.position,
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_sink_lag_events",
        help: "Positions of the log that the sink has not examined yet.",
        value: |report| report.lag.unwrap_or(0),
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_sink_events_total",
        help: "Events delivered.",
        value: |report| report.counts.events,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_sink_bytes_total",
        help: "Bytes of data of the events delivered.",
        value: |report| report.counts.bytes,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_sink_batches_total",
        help: "Transactions, or rounds of requests.",
        value: |report| report.counts.batches,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_sink_restarts_total",
        help: "Restarts after transient faults.",
        value: |report| report.counts.restarts,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_sink_retries_total",
        help: "Webhook requests that were retried.",
        value: |report| report.counts.retries,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_sink_dead_letters_total",
        help: "Events put into the dead-letter log.",
        value: |report| report.counts.set_aside,
    },
];

const SOURCE: [FigureOf<ConnectorReport>; 8] = [
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_source_running",
        help: "1 while the source reads, 0 while it does not: see state of GET /v1/sources/{name}.",
        value: |report| u64::from(report.state == "running"),
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_source_stopped",
        help: "1 if the source has stopped and needs an operator.",
        value: |report| u64::from(report.state == "stopped"),
    },
    FigureOf {
        kind: Kind::Gauge,
        name: "wellspring_source_lag_records",
        help: "Records of the topic not yet read, as far as known.",
        value: |report| report.records_behind.unwrap_or(0),
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_source_events_total",
        help: "Records appended as events.",
        value: |report| report.counts.events,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_source_bytes_total",
        help: "Bytes of data of the events appended.",
        value: |report| report.counts.bytes,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_source_batches_total",
        help: "Appends.",
        value: |report| report.counts.batches,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_source_restarts_total",
        help: "Restarts after transient faults.",
        value: |report| report.counts.restarts,
    },
    FigureOf {
        kind: Kind::Counter,
        name: "wellspring_source_rejects_total",
        help: "Records put into the reject log.",
        value: |report| report.counts.set_aside,
    },
];

impl ReportFigures<'_> {
    pub(crate) fn sinks(&self) -> Vec<Family> {
        self.families(&SINK, "sink")
    }

    pub(crate) fn sources(&self) -> Vec<Family> {
        self.families(&SOURCE, "source")
    }

    fn families(&self, figures: &[FigureOf<ConnectorReport>], label: &'static str) -> Vec<Family> {
        let series = || self.reports.iter().map(|(name, report)| ([name.clone()], report));
        figures.iter().map(|figure| figure.of_every([label], series())).collect()
    }
}
