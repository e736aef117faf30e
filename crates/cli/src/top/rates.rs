//! Computes rates, quantiles and means from two samples.
//!
//! A counter that went back belongs to a server (or a log) that restarted in between; it
//! then counts from 0, so what it shows happened in the interval, and nothing is negative.

use super::sample::{Connector, Consumer, Graphs, Log, Process, Route, Sample, UNBOUNDED, View};
use crate::cluster::document::{EngineDocument, NodeDocument};
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything over one interval. This is also the document of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Seconds between the two samples.
    pub(super) interval_s: f64,
    /// Whether the server restarted in between.
    pub(super) restarted: bool,
    pub(super) server: ServerFigures,
    /// Of a node of several: what orders its logs, and whether it reaches that.
    pub(super) journal: Option<EngineDocument>,
    /// Of a node of several: all of them, by name.
    pub(super) nodes: Vec<NodeDocument>,
    /// By name.
    pub(super) logs: Vec<LogFigures>,
    /// By log and name.
    pub(super) views: Vec<ViewFigures>,
    /// By kind and name.
    pub(super) connectors: Vec<ConnectorFigures>,
    /// By log and name.
    pub(super) consumers: Vec<ConsumerFigures>,
    /// Of all logs together; `None` where no graph is used.
    pub(super) graph: Option<GraphFigures>,
    /// By name; every route that was ever asked for.
    pub(super) routes: Vec<RouteFigures>,
}

/// Requests and their answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Answers {
    pub(super) requests_per_s: f64,
    /// Statuses 400 to 499.
    pub(super) client_errors_per_s: f64,
    /// Of these, 401, 403 and 429: not let in, or not now.
    pub(super) refusals_per_s: f64,
    /// Statuses 500 to 599.
    pub(super) server_errors_per_s: f64,
    /// Of what was answered in the interval; `None` if nothing was.
    pub(super) latency: Option<Latency>,
}

/// Response times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) mean_us: f64,
    pub(super) p50: Quantile,
    pub(super) p90: Quantile,
    pub(super) p99: Quantile,
}

/// A quantile as far as buckets tell it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Quantile {
    /// An estimate: the values of a bucket are taken as evenly spread. The highest bound if
    /// `at_most_us` is `None`.
    pub(super) about_us: f64,
    /// The bound of its bucket, which is certain; `None` above the highest.
    pub(super) at_most_us: Option<u64>,
}

/// The whole process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ServerFigures {
    /// All routes together.
    #[serde(flatten)]
    pub(super) answers: Answers,
    pub(super) connections: u64,
    pub(super) connections_refused_per_s: f64,
    pub(super) subscribers: u64,
    pub(super) body_bytes: u64,
    pub(super) resident_bytes: u64,
    pub(super) open_files: u64,
    /// Requests begun whose answer is not yet handed over.
    pub(super) in_flight: u64,
    pub(super) received_bytes_per_s: f64,
    pub(super) sent_bytes_per_s: f64,
    /// Processors busy with it, on the mean.
    pub(super) processors: f64,
    pub(super) threads: u64,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RouteFigures {
    pub(super) route: String,
    #[serde(flatten)]
    pub(super) answers: Answers,
}

/// One log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LogFigures {
    pub(super) log: String,
    pub(super) head: u64,
    pub(super) disk_bytes: u64,
    pub(super) segments: u64,
    pub(super) staged_bytes: u64,
    pub(super) subscribers: u64,
    pub(super) appends_per_s: f64,
    /// Everything stored, ingest included.
    pub(super) events_per_s: f64,
    pub(super) conflicts_per_s: f64,
    pub(super) replays_per_s: f64,
    pub(super) batches_per_s: f64,
    /// Mean; `None` if there was no batch.
    pub(super) events_per_batch: Option<f64>,
    /// As written, mean; `None` if there was no batch.
    pub(super) bytes_per_batch: Option<f64>,
    /// Mean; `None` if there was no batch.
    pub(super) barrier_us: Option<f64>,
    /// `None` if there was no barrier.
    pub(super) barrier_p99: Option<Quantile>,
    /// Share of the interval spent in barriers, 0 to about 1.
    pub(super) barrier_share: f64,
    /// Whether appends are refused for want of room on the device.
    pub(super) storage_full: bool,
    /// Whether it refuses appends until the server is restarted.
    pub(super) closed: bool,
    /// Segments in which reads have met damage.
    pub(super) damaged_segments: u64,
    /// The server's role in it, in a cluster.
    pub(super) role: Option<String>,
    pub(super) ingest: IngestFigures,
}

/// Events that a log accepted before they were durable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct IngestFigures {
    pub(super) accepted_per_s: f64,
    pub(super) stored_per_s: f64,
    pub(super) shed_per_s: f64,
    pub(super) dropped_per_s: f64,
    pub(super) in_flight_events: u64,
    pub(super) in_flight_bytes: u64,
    /// Most that may be in flight through partitions; `None` if the server does not say.
    pub(super) room_bytes: Option<u64>,
    pub(super) window_last_us: u64,
    pub(super) window_longest_us: u64,
    pub(super) storage_full: bool,
    /// What happens when there is no room: `block` or `shed`.
    pub(super) overflow: Option<String>,
}

/// One view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ViewFigures {
    pub(super) log: String,
    pub(super) view: String,
    /// `live`, `rebuilding`, `failed`.
    pub(super) state: Option<String>,
    pub(super) answers: bool,
    pub(super) position: u64,
    pub(super) lag_events: u64,
    /// Age of the oldest event that is not folded.
    pub(super) lag_s: f64,
    pub(super) folded_per_s: f64,
}

/// A sink or source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ConnectorFigures {
    /// `sink` or `source`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) running: bool,
    /// Until a person decides.
    pub(super) stopped: bool,
    /// Events or records still to come.
    pub(super) lag: u64,
    pub(super) events_per_s: f64,
    pub(super) bytes_per_s: f64,
    /// Fresh starts since it was started.
    pub(super) restarts: u64,
    /// Dead letters or rejects since it was started.
    pub(super) set_aside: u64,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ConsumerFigures {
    pub(super) log: String,
    pub(super) name: String,
    pub(super) running: bool,
    /// Positions of the log that it has not looked at.
    pub(super) lag: u64,
    /// Age of the oldest event that is looked at and neither settled nor parked.
    pub(super) oldest_us: u64,
    pub(super) in_flight: u64,
    /// Events settled.
    pub(super) settled_per_s: f64,
    /// Deliveries that failed or expired.
    pub(super) again_per_s: f64,
    pub(super) parked: u64,
    pub(super) workers: u64,
}

/// The graphs of all logs together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct GraphFigures {
    /// Statements that only read.
    pub(super) reads_per_s: f64,
    /// Statements that may change something.
    pub(super) writes_per_s: f64,
    pub(super) commits_per_s: f64,
    /// Executions restarted because of conflicts.
    pub(super) overtaken_per_s: f64,
    /// Transactions refused because others had changed what they read.
    pub(super) outdated_per_s: f64,
    /// Statements and transactions refused by a limit.
    pub(super) limited_per_s: f64,
    /// Open transactions that timed out.
    pub(super) expired_per_s: f64,
    pub(super) open_transactions: u64,
    /// Share of the statements whose plan was kept; `None` if there was no statement.
    pub(super) plan_share: Option<f64>,
    pub(super) nodes: u64,
    pub(super) relationships: u64,
    /// Open connections of Neo4j's drivers.
    pub(super) bolt_connections: u64,
    pub(super) bolt_messages_per_s: f64,
    /// Messages answered by a failure.
    pub(super) bolt_failures_per_s: f64,
}

/// The figures between two samples of one server.
pub(super) fn between(before: &Sample, now: &Sample) -> Figures {
    let restarted = has_restarted(before, now);
    let nothing = Sample::default();
    let counted = if restarted { &nothing } else { before };
    let interval_s = now.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e9;
    let empty = Route::default();
    let mut all = RouteCount::default();
    let mut routes = Vec::with_capacity(now.routes.len());
    for (name, route) in &now.routes {
        let counts = RouteCount::of(counted.routes.get(name).unwrap_or(&empty), route);
        routes.push(RouteFigures { route: name.clone(), answers: counts.answers(interval_s) });
        all.add(&counts);
    }
    let process = &now.process;
    let rate = |pick: fn(&Process) -> u64| per_s(pick(&counted.process), pick(process), interval_s);
    Figures {
        interval_s,
        restarted,
        server: ServerFigures {
            answers: all.answers(interval_s),
            connections: process.connections,
            connections_refused_per_s: rate(|p| p.refused),
            subscribers: process.subscribers,
            body_bytes: process.body_bytes,
            resident_bytes: process.resident_bytes,
            open_files: process.open_files,
            in_flight: process.in_flight,
            received_bytes_per_s: rate(|p| p.received_bytes),
            sent_bytes_per_s: rate(|p| p.sent_bytes),
            processors: rate(|p| p.cpu_us) / 1e6,
            threads: process.threads,
        },
        journal: now.cluster.as_ref().and_then(|cluster| cluster.engine.clone()),
        nodes: now.cluster.as_ref().map(|cluster| cluster.nodes.clone()).unwrap_or_default(),
        logs: logs(counted, now, interval_s),
        views: views(counted, now, interval_s),
        connectors: connectors(counted, now, interval_s),
        consumers: consumers(counted, now, interval_s),
        graph: graph(&counted.graphs, &now.graphs, interval_s),
        routes,
    }
}

/// Whether a counter of requests went back, or a log was opened a later time.
fn has_restarted(before: &Sample, now: &Sample) -> bool {
    let went_back = before.routes.iter().any(|(name, earlier)| {
        let later = now.routes.get(name).map(|route| &route.statuses);
        earlier.statuses.iter().any(|(status, count)| {
            later.and_then(|statuses| statuses.get(status)).unwrap_or(&0) < count
        })
    });
    let opened_again = before
        .logs
        .iter()
        .any(|(name, earlier)| now.logs.get(name).is_some_and(|log| is_opened_again(earlier, log)));
    went_back || opened_again || now.process.refused < before.process.refused
}

/// Whether a log was opened a later time. Of several nodes its epoch is that of the leader, and
/// leaders change.
fn is_opened_again(before: &Log, now: &Log) -> bool {
    now.role.is_none() && now.epoch > before.epoch
}

/// What happened a second. A counter that went back counts from 0.
fn per_s(before: u64, now: u64, interval_s: f64) -> f64 {
    now.checked_sub(before).unwrap_or(now) as f64 / interval_s
}

/// The counts of a route in the interval.
#[derive(Default)]
struct RouteCount {
    requests: u64,
    client_errors: u64,
    refusals: u64,
    server_errors: u64,
    within_us: BTreeMap<u64, u64>,
    sum_s: f64,
}

impl RouteCount {
    fn of(before: &Route, now: &Route) -> RouteCount {
        let mut counted =
            RouteCount { sum_s: (now.sum_s - before.sum_s).max(0.0), ..RouteCount::default() };
        for (status, count) in &now.statuses {
            let new = count.saturating_sub(*before.statuses.get(status).unwrap_or(&0));
            counted.requests = counted.requests.saturating_add(new);
            if matches!(status, 401 | 403 | 429) {
                counted.refusals = counted.refusals.saturating_add(new);
            }
            match status {
                400..=499 => counted.client_errors = counted.client_errors.saturating_add(new),
                500..=599 => counted.server_errors = counted.server_errors.saturating_add(new),
                _ => {}
            }
        }
        counted.within_us = since(&before.within_us, &now.within_us);
        counted
    }

    fn add(&mut self, other: &RouteCount) {
        self.requests = self.requests.saturating_add(other.requests);
        self.client_errors = self.client_errors.saturating_add(other.client_errors);
        self.refusals = self.refusals.saturating_add(other.refusals);
        self.server_errors = self.server_errors.saturating_add(other.server_errors);
        self.sum_s += other.sum_s;
        for (bound_us, count) in &other.within_us {
            let sum = self.within_us.entry(*bound_us).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    fn answers(&self, interval_s: f64) -> Answers {
        Answers {
            requests_per_s: self.requests as f64 / interval_s,
            client_errors_per_s: self.client_errors as f64 / interval_s,
            refusals_per_s: self.refusals as f64 / interval_s,
            server_errors_per_s: self.server_errors as f64 / interval_s,
            latency: self.latency(),
        }
    }

    fn latency(&self) -> Option<Latency> {
        let count = self.within_us.values().copied().max().filter(|&count| count > 0)?;
        Some(Latency {
            mean_us: self.sum_s * 1e6 / count as f64,
            p50: quantile(&self.within_us, 0.5)?,
            p90: quantile(&self.within_us, 0.9)?,
            p99: quantile(&self.within_us, 0.99)?,
        })
    }
}

/// What buckets have counted since.
fn since(before: &BTreeMap<u64, u64>, now: &BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
    let new = |(bound_us, count): (&u64, &u64)| {
        (*bound_us, count.saturating_sub(*before.get(bound_us).unwrap_or(&0)))
    };
    now.iter().map(new).collect()
}

/// The quantile `q` (0 to 1) of cumulative counts by upper bound; `None` without counts.
/// Within its bucket values are taken as evenly spread, as Prometheus' `histogram_quantile` does.
fn quantile(within_us: &BTreeMap<u64, u64>, q: f64) -> Option<Quantile> {
    let total = within_us.values().copied().max().filter(|&total| total > 0)?;
    let rank = q * total as f64;
    let (mut lower_us, mut below) = (0, 0);
    for (&bound_us, &count) in within_us {
        if count > below && count as f64 >= rank {
            if bound_us == UNBOUNDED {
                break;
            }
            let share = (rank - below as f64) / (count - below) as f64;
            let about_us = lower_us as f64 + (bound_us - lower_us) as f64 * share.clamp(0.0, 1.0);
            return Some(Quantile { about_us, at_most_us: Some(bound_us) });
        }
        if bound_us != UNBOUNDED {
            lower_us = bound_us;
        }
        below = below.max(count);
    }
    Some(Quantile { about_us: lower_us as f64, at_most_us: None })
}

fn graph(before: &Graphs, now: &Graphs, interval_s: f64) -> Option<GraphFigures> {
    let rate = |pick: fn(&Graphs) -> u64| per_s(pick(before), pick(now), interval_s);
    let (hits, misses) = (rate(|g| g.plan_hits), rate(|g| g.plan_misses));
    (*now != Graphs::default()).then(|| GraphFigures {
        reads_per_s: rate(|g| g.reading),
        writes_per_s: rate(|g| g.writing),
        commits_per_s: rate(|g| g.commits),
        overtaken_per_s: rate(|g| g.overtaken),
        outdated_per_s: rate(|g| g.outdated),
        limited_per_s: rate(|g| g.limited),
        expired_per_s: rate(|g| g.expired),
        open_transactions: now.open_transactions,
        plan_share: (hits + misses > 0.0).then(|| hits / (hits + misses)),
        nodes: now.nodes,
        relationships: now.relationships,
        bolt_connections: now.bolt_connections,
        bolt_messages_per_s: rate(|g| g.bolt_messages),
        bolt_failures_per_s: rate(|g| g.bolt_failures),
    })
}

/// The node that leads a log, if another server was asked for it, too.
fn leader_of<'a>(sample: &'a Sample, log: &str) -> Option<&'a str> {
    let cluster = sample.cluster.as_ref()?;
    cluster.logs.iter().find(|known| known.log == log)?.leader.as_deref()
}

fn logs(before: &Sample, now: &Sample, interval_s: f64) -> Vec<LogFigures> {
    let empty = Log::default();
    let figures = |(name, log): (&String, &Log)| {
        let earlier = before.logs.get(name).filter(|earlier| continues(earlier, log));
        let earlier = earlier.unwrap_or(&empty);
        let rate = |pick: fn(&Log) -> u64| per_s(pick(earlier), pick(log), interval_s);
        let batches = log.batches - earlier.batches;
        let a_batch = |count: u64| (batches > 0).then(|| count as f64 / batches as f64);
        let barrier_us = log.barrier_us - earlier.barrier_us;
        let barriers = since(&earlier.barriers_within_us, &log.barriers_within_us);
        let partition_bytes = now.intake.as_ref().map(|intake| intake.partition_bytes);
        LogFigures {
            log: name.clone(),
            head: log.head,
            disk_bytes: log.disk_bytes,
            segments: log.segments,
            staged_bytes: log.staged_bytes,
            subscribers: log.subscribers,
            appends_per_s: rate(|l| l.appends),
            events_per_s: rate(|l| l.events),
            conflicts_per_s: rate(|l| l.conflicts),
            replays_per_s: rate(|l| l.replays),
            batches_per_s: rate(|l| l.batches),
            events_per_batch: a_batch(log.events - earlier.events),
            bytes_per_batch: a_batch(log.batch_bytes - earlier.batch_bytes),
            barrier_us: a_batch(barrier_us),
            barrier_p99: quantile(&barriers, 0.99),
            barrier_share: barrier_us as f64 / 1e6 / interval_s,
            storage_full: log.appends_full > 0,
            closed: log.closed > 0,
            damaged_segments: log.damaged_segments,
            role: log.role.as_ref().map(|role| match leader_of(now, name) {
                Some(leader) if role == "following" => format!("{role} {leader}"),
                _ => role.clone(),
            }),
            ingest: IngestFigures {
                accepted_per_s: rate(|l| l.accepted_events),
                stored_per_s: rate(|l| l.stored_events),
                shed_per_s: rate(|l| l.shed_events),
                dropped_per_s: rate(|l| l.dropped_events),
                in_flight_events: log.in_flight_events,
                in_flight_bytes: log.in_flight_bytes,
                room_bytes: partition_bytes.map(|bytes| bytes.saturating_mul(log.partitions)),
                window_last_us: log.window_last_us,
                window_longest_us: log.window_longest_us,
                storage_full: log.storage_full > 0,
                overflow: now.intake.as_ref().map(|intake| intake.overflow.clone()),
            },
        }
    };
    now.logs.iter().map(figures).collect()
}

/// Whether a log's counters continued, and did not restart (dropped and created again).
fn continues(before: &Log, now: &Log) -> bool {
    let counters: [fn(&Log) -> u64; 11] = [
        |l| l.appends,
        |l| l.events,
        |l| l.conflicts,
        |l| l.replays,
        |l| l.batches,
        |l| l.batch_bytes,
        |l| l.barrier_us,
        |l| l.accepted_events,
        |l| l.stored_events,
        |l| l.shed_events,
        |l| l.dropped_events,
    ];
    let same_epoch = before.epoch == now.epoch || now.role.is_some();
    same_epoch && counters.iter().all(|count| count(before) <= count(now))
}

fn views(before: &Sample, now: &Sample, interval_s: f64) -> Vec<ViewFigures> {
    let figures = |(key, view): (&(String, String), &View)| {
        // A new view, or one that was reset, has a position but no rate yet.
        let folded = before.views.get(key).map_or(0, |v| view.position.saturating_sub(v.position));
        ViewFigures {
            log: key.0.clone(),
            view: key.1.clone(),
            state: view.state.clone(),
            answers: view.answers > 0,
            position: view.position,
            lag_events: view.lag_events,
            lag_s: view.lag_us as f64 / 1e6,
            folded_per_s: folded as f64 / interval_s,
        }
    };
    now.views.iter().map(figures).collect()
}

fn consumers(before: &Sample, now: &Sample, interval_s: f64) -> Vec<ConsumerFigures> {
    let figures = |(key, consumer): (&(String, String), &Consumer)| {
        // One that was opened meanwhile counts from 0 again.
        let earlier = before.consumers.get(key).filter(|c| c.settled <= consumer.settled);
        let earlier = earlier.cloned().unwrap_or_default();
        let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / interval_s;
        let again = |of: &Consumer| of.failed.saturating_add(of.expired);
        ConsumerFigures {
            log: key.0.clone(),
            name: key.1.clone(),
            running: consumer.running > 0,
            lag: consumer.lag,
            oldest_us: consumer.oldest_us,
            in_flight: consumer.in_flight,
            settled_per_s: rate(consumer.settled, earlier.settled),
            again_per_s: rate(again(consumer), again(&earlier)),
            parked: consumer.parked,
            workers: consumer.workers,
        }
    };
    now.consumers.iter().map(figures).collect()
}

fn connectors(before: &Sample, now: &Sample, interval_s: f64) -> Vec<ConnectorFigures> {
    let figures = |(key, connector): (&(&'static str, String), &Connector)| {
        // One that was started meanwhile counts from 0 again.
        let earlier = before.connectors.get(key).filter(|c| c.events <= connector.events);
        let (events, bytes) = earlier.map_or((0, 0), |c| (c.events, c.bytes));
        let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / interval_s;
        ConnectorFigures {
            kind: key.0,
            name: key.1.clone(),
            running: connector.running > 0,
            stopped: connector.stopped > 0,
            lag: connector.lag,
            events_per_s: rate(connector.events, events),
            bytes_per_s: rate(connector.bytes, bytes),
            restarts: connector.restarts,
            set_aside: connector.set_aside,
        }
    };
    now.connectors.iter().map(figures).collect()
}
