//! The state of a server at one moment: the figures of `/metrics` by name, and the words of
//! `/v1/views` and `/v1/ingest`.

use crate::cluster::document::ClusterDocument;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use wellspring_readable::prometheus::{Page, Series};

/// The bucket without an upper bound.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// One sample of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sample {
    /// When, on a monotonic clock.
    pub(super) at_ns: u64,
    pub(super) process: Process,
    pub(super) routes: BTreeMap<String, Route>,
    pub(super) logs: BTreeMap<String, Log>,
    /// By log and name.
    pub(super) views: BTreeMap<(String, String), View>,
    /// By kind and name.
    pub(super) connectors: BTreeMap<(&'static str, String), Connector>,
    /// By log and name.
    pub(super) consumers: BTreeMap<(String, String), Consumer>,
    pub(super) graphs: Graphs,
    pub(super) intake: Option<Intake>,
    /// Of a node of several, from `/v1/cluster`, if it was answered.
    pub(super) cluster: Option<ClusterDocument>,
}

/// Figures of the whole process.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Process {
    pub(super) connections: u64,
    /// A counter.
    pub(super) refused: u64,
    pub(super) subscribers: u64,
    pub(super) body_bytes: u64,
    pub(super) resident_bytes: u64,
    pub(super) open_files: u64,
    /// A counter.
    pub(super) cpu_us: u64,
    pub(super) threads: u64,
    pub(super) in_flight: u64,
    /// A counter.
    pub(super) received_bytes: u64,
    /// A counter.
    pub(super) sent_bytes: u64,
}

/// Counters of a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Route {
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Cumulative histogram of response times: upper bound in µs, count.
    pub(super) within_us: BTreeMap<u64, u64>,
    pub(super) sum_s: f64,
}

/// Figures of a log; counters unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Log {
    /// A gauge.
    pub(super) head: u64,
    /// A gauge.
    pub(super) disk_bytes: u64,
    /// A gauge.
    pub(super) segments: u64,
    /// A gauge.
    pub(super) staged_bytes: u64,
    /// Another one: the log has been opened again.
    pub(super) epoch: u64,
    pub(super) appends: u64,
    pub(super) events: u64,
    pub(super) conflicts: u64,
    pub(super) replays: u64,
    pub(super) batches: u64,
    pub(super) batch_bytes: u64,
    pub(super) barrier_us: u64,
    /// Cumulative histogram of barriers: upper bound in µs, count.
    pub(super) barriers_within_us: BTreeMap<u64, u64>,
    /// A gauge.
    pub(super) subscribers: u64,
    pub(super) accepted_events: u64,
    pub(super) stored_events: u64,
    pub(super) shed_events: u64,
    pub(super) dropped_events: u64,
    /// A gauge.
    pub(super) in_flight_events: u64,
    /// A gauge.
    pub(super) in_flight_bytes: u64,
    /// A gauge.
    pub(super) window_last_us: u64,
    /// A gauge.
    pub(super) window_longest_us: u64,
    /// A gauge.
    pub(super) partitions: u64,
    /// A gauge, 0 or 1: for ingest.
    pub(super) storage_full: u64,
    /// A gauge, 0 or 1: for appends.
    pub(super) appends_full: u64,
    /// A gauge, 0 or 1.
    pub(super) closed: u64,
    /// A gauge.
    pub(super) damaged_segments: u64,
    /// The server's role in it, in a cluster.
    pub(super) role: Option<String>,
}

/// Figures of a view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) position: u64,
    pub(super) lag_events: u64,
    pub(super) lag_us: u64,
    pub(super) answers: u64,
    /// From `/v1/views`, if the request succeeded.
    pub(super) state: Option<String>,
}

/// Figures of a sink or source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Connector {
    /// 0 or 1.
    pub(super) running: u64,
    /// 0 or 1.
    pub(super) stopped: u64,
    /// Events or records still to come.
    pub(super) lag: u64,
    /// A counter, from 0 at each start of the connector.
    pub(super) events: u64,
    /// A counter, as `events`.
    pub(super) bytes: u64,
    /// A counter, as `events`.
    pub(super) restarts: u64,
    /// A counter, as `events`: dead letters, or rejects.
    pub(super) set_aside: u64,
}

/// Figures of a consumer; gauges unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Consumer {
    /// 0 or 1.
    pub(super) running: u64,
    pub(super) lag: u64,
    pub(super) oldest_us: u64,
    pub(super) in_flight: u64,
    pub(super) parked: u64,
    pub(super) workers: u64,
    /// A counter.
    pub(super) settled: u64,
    /// A counter: what failed and what expired.
    pub(super) failed: u64,
    /// A counter, as `failed`.
    pub(super) expired: u64,
}

/// Figures of graphs, of all logs together; counters unless said otherwise. All are 0 where none is
/// used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Graphs {
    pub(super) reading: u64,
    pub(super) writing: u64,
    pub(super) commits: u64,
    pub(super) overtaken: u64,
    pub(super) outdated: u64,
    pub(super) limited: u64,
    pub(super) expired: u64,
    pub(super) plan_hits: u64,
    pub(super) plan_misses: u64,
    /// A gauge.
    pub(super) open_transactions: u64,
    /// A gauge.
    pub(super) nodes: u64,
    /// A gauge.
    pub(super) relationships: u64,
    /// A gauge.
    pub(super) bolt_connections: u64,
    pub(super) bolt_messages: u64,
    pub(super) bolt_failures: u64,
}

/// What `/v1/ingest` says in addition to figures; the same for all logs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Intake {
    /// `block` or `shed`.
    pub(super) overflow: String,
    pub(super) partition_bytes: u64,
}

#[derive(Deserialize)]
struct Views {
    views: Vec<ViewState>,
}

#[derive(Deserialize)]
struct ViewState {
    log: String,
    view: String,
    state: String,
}

type Set<T> = fn(&mut T, &Series);
type Sum<T> = for<'a> fn(&'a mut T, &Series) -> &'a mut u64;

const PROCESS: [(&str, Set<Process>); 11] = [
    ("wellspring_connections", |p, v| p.connections = v.count()),
    ("wellspring_connections_refused_total", |p, v| p.refused = v.count()),
    ("wellspring_subscribers", |p, v| p.subscribers = v.count()),
    ("wellspring_body_bytes", |p, v| p.body_bytes = v.count()),
    ("process_resident_memory_bytes", |p, v| p.resident_bytes = v.count()),
    ("process_open_fds", |p, v| p.open_files = v.count()),
    ("process_cpu_seconds_total", |p, v| p.cpu_us = v.micros()),
    ("process_threads", |p, v| p.threads = v.count()),
    ("wellspring_requests_in_flight", |p, v| p.in_flight = v.count()),
    ("wellspring_received_bytes_total", |p, v| p.received_bytes = v.count()),
    ("wellspring_sent_bytes_total", |p, v| p.sent_bytes = v.count()),
];

const LOG: [(&str, Set<Log>); 26] = [
    ("wellspring_log_head", |l, v| l.head = v.count()),
    ("wellspring_log_disk_bytes", |l, v| l.disk_bytes = v.count()),
    ("wellspring_log_segments", |l, v| l.segments = v.count()),
    ("wellspring_log_staged_bytes", |l, v| l.staged_bytes = v.count()),
    ("wellspring_log_epoch", |l, v| l.epoch = v.count()),
    ("wellspring_log_appends_total", |l, v| l.appends = v.count()),
    ("wellspring_log_events_total", |l, v| l.events = v.count()),
    ("wellspring_log_conflicts_total", |l, v| l.conflicts = v.count()),
    ("wellspring_log_replays_total", |l, v| l.replays = v.count()),
    ("wellspring_log_batches_total", |l, v| l.batches = v.count()),
    ("wellspring_log_batch_bytes_sum", |l, v| l.batch_bytes = v.count()),
    ("wellspring_log_subscribers", |l, v| l.subscribers = v.count()),
    ("wellspring_log_barrier_seconds_sum", |l, v| l.barrier_us = v.micros()),
    ("wellspring_ingest_accepted_events_total", |l, v| l.accepted_events = v.count()),
    ("wellspring_ingest_stored_events_total", |l, v| l.stored_events = v.count()),
    ("wellspring_ingest_shed_events_total", |l, v| l.shed_events = v.count()),
    ("wellspring_ingest_dropped_events_total", |l, v| l.dropped_events = v.count()),
    ("wellspring_ingest_lost_possible_events", |l, v| l.in_flight_events = v.count()),
    ("wellspring_ingest_lost_possible_bytes", |l, v| l.in_flight_bytes = v.count()),
    ("wellspring_ingest_window_last_seconds", |l, v| l.window_last_us = v.micros()),
    ("wellspring_ingest_window_longest_seconds", |l, v| l.window_longest_us = v.micros()),
    ("wellspring_ingest_partitions", |l, v| l.partitions = v.count()),
    ("wellspring_ingest_storage_full", |l, v| l.storage_full = v.count()),
    ("wellspring_log_storage_full", |l, v| l.appends_full = v.count()),
    ("wellspring_log_closed", |l, v| l.closed = v.count()),
    ("wellspring_log_damaged_segments", |l, v| l.damaged_segments = v.count()),
];

const VIEW: [(&str, Set<View>); 4] = [
    ("wellspring_view_position", |view, v| view.position = v.count()),
    ("wellspring_view_lag_events", |view, v| view.lag_events = v.count()),
    ("wellspring_view_lag_seconds", |view, v| view.lag_us = v.micros()),
    ("wellspring_view_answers", |view, v| view.answers = v.count()),
];

/// By the kind of connector, the rest of the name, and what it sets.
const CONNECTOR: [(&str, &str, Set<Connector>); 14] = [
    ("sink", "running", |c, v| c.running = v.count()),
    ("sink", "stopped", |c, v| c.stopped = v.count()),
    ("sink", "lag_events", |c, v| c.lag = v.count()),
    ("sink", "events_total", |c, v| c.events = v.count()),
    ("sink", "bytes_total", |c, v| c.bytes = v.count()),
    ("sink", "restarts_total", |c, v| c.restarts = v.count()),
    ("sink", "dead_letters_total", |c, v| c.set_aside = v.count()),
    ("source", "running", |c, v| c.running = v.count()),
    ("source", "stopped", |c, v| c.stopped = v.count()),
    ("source", "lag_records", |c, v| c.lag = v.count()),
    ("source", "events_total", |c, v| c.events = v.count()),
    ("source", "bytes_total", |c, v| c.bytes = v.count()),
    ("source", "restarts_total", |c, v| c.restarts = v.count()),
    ("source", "rejects_total", |c, v| c.set_aside = v.count()),
];

const CONSUMER: [(&str, Set<Consumer>); 9] = [
    ("wellspring_consumer_running", |c, v| c.running = v.count()),
    ("wellspring_consumer_lag_events", |c, v| c.lag = v.count()),
    ("wellspring_consumer_oldest_age_seconds", |c, v| c.oldest_us = v.micros()),
    ("wellspring_consumer_in_flight", |c, v| c.in_flight = v.count()),
    ("wellspring_consumer_parked", |c, v| c.parked = v.count()),
    ("wellspring_consumer_workers", |c, v| c.workers = v.count()),
    ("wellspring_consumer_settled_total", |c, v| c.settled = v.count()),
    ("wellspring_consumer_failed_total", |c, v| c.failed = v.count()),
    ("wellspring_consumer_expired_total", |c, v| c.expired = v.count()),
];

/// Where the series of a name are added up.
const GRAPHS: [(&str, Sum<Graphs>); 14] = [
    ("wellspring_graph_statements_total", |g, v| match v.label("access") {
        Some("write") => &mut g.writing,
        _ => &mut g.reading,
    }),
    ("wellspring_graph_commits_total", |g, _| &mut g.commits),
    ("wellspring_graph_overtaken_total", |g, _| &mut g.overtaken),
    ("wellspring_graph_outdated_total", |g, _| &mut g.outdated),
    ("wellspring_graph_limited_total", |g, _| &mut g.limited),
    ("wellspring_graph_expired_transactions_total", |g, _| &mut g.expired),
    ("wellspring_graph_plan_hits_total", |g, _| &mut g.plan_hits),
    ("wellspring_graph_plan_misses_total", |g, _| &mut g.plan_misses),
    ("wellspring_graph_open_transactions", |g, _| &mut g.open_transactions),
    ("wellspring_graph_nodes", |g, _| &mut g.nodes),
    ("wellspring_graph_relationships", |g, _| &mut g.relationships),
    ("wellspring_bolt_connections", |g, _| &mut g.bolt_connections),
    ("wellspring_bolt_messages_total", |g, _| &mut g.bolt_messages),
    ("wellspring_bolt_failures_total", |g, _| &mut g.bolt_failures),
];

/// Why a page of figures is not that of a server.
#[derive(Debug)]
pub(super) enum FiguresError {
    /// It is not in the Prometheus text format: why.
    NotPrometheus(String),
    /// A figure that every server has is missing.
    Missing(String),
    /// A figure lacks a label.
    NoLabel {
        /// The figure.
        name: String,
        label: String,
    },
    /// The label of a figure has a wrong value.
    Value {
        /// The figure.
        name: String,
        value: String,
        /// The expected value.
        wanted: &'static str,
    },
}

impl FiguresError {
    fn value(name: &str, value: &str, wanted: &'static str) -> FiguresError {
        FiguresError::Value { name: name.to_owned(), value: value.to_owned(), wanted }
    }
}

impl fmt::Display for FiguresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPrometheus(fault) => {
                write!(f, "not in the Prometheus text format ({fault})")
            }
            Self::Missing(name) => write!(
                f,
                "{name} is not among the figures: either this is no Wellspring server, or one of \
                 another version"
            ),
            Self::NoLabel { name, label } => write!(f, "{name} has no label {label}"),
            Self::Value { name, value, wanted } => write!(f, "{name}: {value:?} is no {wanted}"),
        }
    }
}

impl Sample {
    /// Picks the figures out of a page.
    ///
    /// # Errors
    /// A sentence: the page is not one, or a figure that every server has is missing.
    pub(super) fn read(at_ns: u64, metrics: &str) -> Result<Sample, FiguresError> {
        let page =
            Page::parse(metrics).map_err(|fault| FiguresError::NotPrometheus(fault.to_string()))?;
        let mut sample = Sample { at_ns, ..Sample::default() };
        for (name, set) in PROCESS {
            set(&mut sample.process, &some(&page, name)?[0]);
        }
        for (name, set) in LOG {
            for series in some(&page, name)? {
                set(sample.logs.entry(label(series, name, "log")?).or_default(), series);
            }
        }
        for (name, set) in VIEW {
            for series in page.series(name) {
                let key = (label(series, name, "log")?, label(series, name, "view")?);
                set(sample.views.entry(key).or_default(), series);
            }
        }
        for (name, set) in CONSUMER {
            for series in page.series(name) {
                let key = (label(series, name, "log")?, label(series, name, "consumer")?);
                set(sample.consumers.entry(key).or_default(), series);
            }
        }
        let name = "wellspring_shared_role";
        for series in page.series(name).iter().filter(|series| series.count() == 1) {
            let log = sample.logs.entry(label(series, name, "log")?).or_default();
            log.role = Some(label(series, name, "role")?);
        }
        for (kind, rest, set) in CONNECTOR {
            let name = format!("wellspring_{kind}_{rest}");
            for series in page.series(&name) {
                let key = (kind, label(series, &name, kind)?);
                set(sample.connectors.entry(key).or_default(), series);
            }
        }
        for (name, sum_of) in GRAPHS {
            for series in page.series(name) {
                let sum = sum_of(&mut sample.graphs, series);
                *sum = sum.saturating_add(series.count());
            }
        }
        let name = "wellspring_log_barrier_seconds_bucket";
        for series in page.series(name) {
            let log = sample.logs.entry(label(series, name, "log")?).or_default();
            log.barriers_within_us.insert(bound_us(series, name)?, series.count());
        }
        sample.routes = routes(&page)?;
        Ok(sample)
    }

    /// Whether the server is one of several nodes.
    pub(super) fn is_of_cluster(&self) -> bool {
        self.logs.values().any(|log| log.role.is_some())
    }

    /// Adds what `/v1/cluster` says; what cannot be understood is left out.
    pub(super) fn with_cluster(mut self, cluster: Option<&[u8]>) -> Sample {
        self.cluster = cluster.and_then(|body| serde_json::from_slice(body).ok());
        self
    }

    /// Adds the words of `/v1/views` and `/v1/ingest`. They are an extra: what cannot be
    /// understood is left out.
    pub(super) fn with_words(mut self, views: Option<&[u8]>, ingest: Option<&[u8]>) -> Sample {
        let listed = views.and_then(|body| serde_json::from_slice::<Views>(body).ok());
        for ViewState { log, view, state } in listed.into_iter().flat_map(|listed| listed.views) {
            if let Some(view) = self.views.get_mut(&(log, view)) {
                view.state = Some(state);
            }
        }
        self.intake = ingest.and_then(|body| serde_json::from_slice(body).ok());
        self
    }
}

fn some<'a>(page: &'a Page, name: &str) -> Result<&'a [Series], FiguresError> {
    match page.series(name) {
        [] => Err(FiguresError::Missing(name.to_owned())),
        series => Ok(series),
    }
}

fn label(series: &Series, name: &str, label: &str) -> Result<String, FiguresError> {
    let no_label = || FiguresError::NoLabel { name: name.to_owned(), label: label.to_owned() };
    series.label(label).map(str::to_owned).ok_or_else(no_label)
}

/// The bound of a bucket, in µs.
fn bound_us(series: &Series, name: &str) -> Result<u64, FiguresError> {
    let le = label(series, name, "le")?;
    let bound_s: f64 = le.parse().map_err(|_| FiguresError::value(name, &le, "bound"))?;
    Ok(if bound_s.is_finite() { (bound_s * 1e6).round() as u64 } else { UNBOUNDED })
}

fn routes(page: &Page) -> Result<BTreeMap<String, Route>, FiguresError> {
    let mut routes: BTreeMap<String, Route> = BTreeMap::new();
    let name = "wellspring_requests_total";
    for series in page.series(name) {
        let status = label(series, name, "status")?;
        let status = status.parse().map_err(|_| FiguresError::value(name, &status, "status"))?;
        let route = routes.entry(label(series, name, "route")?).or_default();
        route.statuses.insert(status, series.count());
    }
    let name = "wellspring_request_duration_seconds_bucket";
    for series in page.series(name) {
        let route = routes.entry(label(series, name, "route")?).or_default();
        route.within_us.insert(bound_us(series, name)?, series.count());
    }
    let name = "wellspring_request_duration_seconds_sum";
    for series in page.series(name) {
        routes.entry(label(series, name, "route")?).or_default().sum_s = series.value;
    }
    Ok(routes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_found_on_a_real_page() {
        let views = br#"{"views":[{"view":"links","log":"main","state":"live","position":6}]}"#;
        let ingest = br#"{"overflow":"block","partitions":1,"partition_bytes":8388608}"#;
        let sample = Sample::read(7, include_str!("metrics.txt"))
            .unwrap()
            .with_words(Some(views), Some(ingest));
        assert_eq!((sample.at_ns, sample.process.open_files), (7, 32));
        let log = &sample.logs["main"];
        assert_eq!((log.head, log.appends, log.events, log.batches), (6, 3, 6, 6));
        assert_eq!((log.barrier_us, log.window_longest_us, log.epoch), (1568, 1051, 1));
        let view = &sample.views[&("main".to_owned(), "links".to_owned())];
        assert_eq!((view.position, view.state.as_deref()), (6, Some("live")));
        let route = &sample.routes["POST /e"];
        assert_eq!(route.statuses[&202], 3);
        assert_eq!((route.within_us[&10_000_000], route.within_us[&UNBOUNDED]), (3, 3));
        assert_eq!(sample.intake.unwrap().partition_bytes, 8 << 20);
    }

    #[test]
    fn figures_of_graphs_are_added_up() {
        let page = include_str!("metrics.txt");
        assert_eq!(Sample::read(0, page).unwrap().graphs, Graphs::default());
        let graphs = "# TYPE wellspring_graph_statements_total counter\n\
            wellspring_graph_statements_total{access=\"read\"} 3\n\
            wellspring_graph_statements_total{access=\"write\"} 4\n\
            # TYPE wellspring_graph_nodes gauge\n\
            wellspring_graph_nodes{log=\"a\"} 5\n\
            wellspring_graph_nodes{log=\"b\"} 6\n";
        let graphs = Sample::read(0, &format!("{page}{graphs}")).unwrap().graphs;
        assert_eq!((graphs.reading, graphs.writing, graphs.nodes), (3, 4, 11));
    }

    #[test]
    fn sinks_and_sources_are_told_apart() {
        let page = include_str!("metrics.txt");
        let figures = "# TYPE wellspring_sink_lag_events gauge\n\
            wellspring_sink_lag_events{sink=\"a\"} 5\n\
            # TYPE wellspring_source_rejects_total counter\n\
            wellspring_source_rejects_total{source=\"a\"} 2\n";
        let sample = Sample::read(0, &format!("{page}{figures}")).unwrap();
        assert_eq!(sample.connectors[&("sink", "a".to_owned())].lag, 5);
        assert_eq!(sample.connectors[&("source", "a".to_owned())].set_aside, 2);
    }

    #[test]
    fn a_node_of_several_has_roles() {
        let page = include_str!("metrics.txt");
        assert!(!Sample::read(0, page).unwrap().is_of_cluster());
        let roles = "# TYPE wellspring_shared_role gauge\n\
            wellspring_shared_role{log=\"main\",role=\"leading\"} 0\n\
            wellspring_shared_role{log=\"main\",role=\"following\"} 1\n";
        let sample = Sample::read(0, &format!("{page}{roles}")).unwrap();
        assert_eq!(sample.logs["main"].role.as_deref(), Some("following"));
        assert!(sample.is_of_cluster() && sample.with_cluster(Some(b"<")).cluster.is_none());
    }

    #[test]
    fn what_is_no_wellspring_is_told() {
        let told = |text: &str| Sample::read(0, text).unwrap_err().to_string();
        assert!(told("<html>").contains("line 1"), "{}", told("<html>"));
        assert!(told("go_goroutines 8\n").contains("another version"));
        let unlabelled = include_str!("metrics.txt").replace("{log=\"main\"}", "");
        assert!(told(&unlabelled).contains("no label log"), "{}", told(&unlabelled));
        let words = Sample::default().with_words(Some(b"<"), Some(b"{}"));
        assert_eq!(words, Sample::default());
    }
}
