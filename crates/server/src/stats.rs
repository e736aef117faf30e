//! One source of figures. Counters are kept per serving thread, so that counting
//! a request touches no cache line another core writes to.

use crate::ingest::Account;
use crate::limits::{Refusals, Refused};
use crate::view::{Progress, State};
use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use wellspring_log::LogStats;
use wellspring_log::batcher::Amount;

/// Upper bounds of the latency buckets, µs.
const BUCKETS_US: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000,
];
/// Statuses counted by themselves; any other counts as the last.
const STATUSES: [u16; 27] = [
    200, 201, 202, 204, 302, 304, 400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 414, 415, 417,
    422, 429, 431, 500, 503, 505, 507, 0,
];

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(0) };
}

/// Names the calling thread's shard.
pub(crate) fn enter_thread(index: usize) {
    SHARD.set(index);
}

/// The calling thread's shard: each serving thread has its own.
pub(crate) fn thread() -> usize {
    SHARD.get()
}

/// Counts a connection as open.
pub(crate) struct OpenConnection(Arc<Stats>);

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenConnection")
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

#[derive(Default)]
struct RouteFigures {
    statuses: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// All counters of the process.
pub(crate) struct Stats {
    /// Per thread, per route; the route after the last counts what no route knows.
    shards: Vec<Vec<RouteFigures>>,
    /// Open connections.
    pub(crate) connections: AtomicI64,
    /// Connections refused because there were too many.
    pub(crate) refused: AtomicU64,
    /// Live subscriptions.
    pub(crate) subscribers: AtomicI64,
    /// Bytes of bodies being received.
    pub(crate) body_bytes: AtomicI64,
    /// What was refused for the sake of others.
    pub(crate) refusals: Refusals,
}

impl Stats {
    /// For so many threads and routes.
    pub(crate) fn new(threads: usize, routes: usize) -> Stats {
        let shard = || (0..=routes).map(|_| RouteFigures::default()).collect();
        Stats {
            shards: (0..threads.max(1)).map(|_| shard()).collect(),
            connections: AtomicI64::new(0),
            refused: AtomicU64::new(0),
            subscribers: AtomicI64::new(0),
            body_bytes: AtomicI64::new(0),
            refusals: Refusals::default(),
        }
    }

    /// Counts one answer. For a stream, the time until it began.
    pub(crate) fn answered(&self, route: usize, status: u16, took_us: u64) {
        self.answered_alike(route, status, took_us, 1);
    }

    /// Counts `count` answers that took the same time.
    pub(crate) fn answered_alike(&self, route: usize, status: u16, took_us: u64, count: u64) {
        let Some(figures) = self.shards.get(SHARD.get()).and_then(|s| s.get(route)) else { return };
        let status = STATUSES.iter().position(|&s| s == status).unwrap_or(STATUSES.len() - 1);
        figures.statuses[status].fetch_add(count, Relaxed);
        let bucket = BUCKETS_US.partition_point(|&bound| bound < took_us);
        figures.buckets[bucket].fetch_add(count, Relaxed);
        figures.sum_us.fetch_add(took_us * count, Relaxed);
    }

    /// Counts a connection as open for as long as what it returns lives; `None`,
    /// counted as refused, if `most` are.
    pub(crate) fn open(self: &Arc<Stats>, most: usize) -> Option<OpenConnection> {
        if self.connections.fetch_add(1, Relaxed) >= most as i64 {
            self.connections.fetch_sub(1, Relaxed);
            self.refuse_connection(Refused::Connection);
            return None;
        }
        Some(OpenConnection(Arc::clone(self)))
    }

    /// Counts a connection as refused.
    pub(crate) fn refuse_connection(&self, refused: Refused) {
        self.refused.fetch_add(1, Relaxed);
        self.refusals.count(refused);
    }

    fn sum(&self, route: usize, pick: impl Fn(&RouteFigures) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|shard| pick(&shard[route]).load(Relaxed)).sum()
    }

    /// Everything in the Prometheus text format. `routes` in the order of the table.
    pub(crate) fn prometheus(
        &self,
        routes: &[String],
        logs: &[(String, LogStats, Account)],
        views: &[(String, &'static str, Progress)],
        links: Option<u64>,
    ) -> String {
        let mut out = String::with_capacity(16 << 10);
        self.write_requests(&mut out, routes);
        write_logs(&mut out, logs);
        write_ingest(&mut out, logs);
        write_views(&mut out, views);
        let mut gauge = |name: &str, help: &str, value: i64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        };
        gauge("wellspring_connections", "Open connections.", self.connections.load(Relaxed));
        if let Some(links) = links {
            gauge("wellspring_links", "Links ever made.", links.cast_signed());
        }
        gauge("wellspring_subscribers", "Live subscriptions.", self.subscribers.load(Relaxed));
        gauge(
            "wellspring_body_bytes",
            "Memory held by bodies being received.",
            self.body_bytes.load(Relaxed),
        );
        gauge("process_resident_memory_bytes", "Resident memory.", resident_bytes());
        gauge("process_open_fds", "Open file descriptors.", open_fds());
        let _ = writeln!(
            out,
            "# HELP wellspring_connections_refused_total Connections refused as too many.\n\
             # TYPE wellspring_connections_refused_total counter\n\
             wellspring_connections_refused_total {}",
            self.refused.load(Relaxed)
        );
        self.refusals.write(&mut out);
        out
    }

    fn write_requests(&self, out: &mut String, routes: &[String]) {
        let name_of = |route: usize| routes.get(route).map_or("other", String::as_str);
        let _ = writeln!(
            out,
            "# HELP wellspring_requests_total Requests answered.\n# TYPE wellspring_requests_total counter"
        );
        for route in 0..=routes.len() {
            for (i, status) in STATUSES.iter().enumerate() {
                let count = self.sum(route, |figures| &figures.statuses[i]);
                if count > 0 {
                    let _ = writeln!(
                        out,
                        "wellspring_requests_total{{route=\"{}\",status=\"{status}\"}} {count}",
                        name_of(route)
                    );
                }
            }
        }
        let name = "wellspring_request_duration_seconds";
        let _ = writeln!(out, "# HELP {name} Time to the answer.\n# TYPE {name} histogram");
        for route in 0..=routes.len() {
            let counts: Vec<u64> = (0..=BUCKETS_US.len())
                .map(|i| self.sum(route, |figures| &figures.buckets[i]))
                .collect();
            let total: u64 = counts.iter().sum();
            if total == 0 {
                continue;
            }
            let route_name = name_of(route);
            let mut below = 0;
            for (bound, count) in BUCKETS_US.iter().zip(&counts) {
                below += count;
                let le = *bound as f64 / 1e6;
                let _ =
                    writeln!(out, "{name}_bucket{{route=\"{route_name}\",le=\"{le}\"}} {below}");
            }
            let sum = self.sum(route, |figures| &figures.sum_us) as f64 / 1e6;
            let _ = writeln!(out, "{name}_bucket{{route=\"{route_name}\",le=\"+Inf\"}} {total}");
            let _ = writeln!(out, "{name}_sum{{route=\"{route_name}\"}} {sum}");
            let _ = writeln!(out, "{name}_count{{route=\"{route_name}\"}} {total}");
        }
    }
}

fn write_logs(out: &mut String, logs: &[(String, LogStats, Account)]) {
    type Pick = fn(&LogStats) -> u64;
    let figures: [(&str, &str, &str, Pick); 11] = [
        ("head", "gauge", "Last durable position.", |s| s.head),
        ("disk_bytes", "gauge", "Bytes of segments and indexes.", |s| s.disk_bytes),
        ("segments", "gauge", "Segment files.", |s| s.segments),
        ("staged_bytes", "gauge", "Bytes staged and not yet durable.", |s| s.staged_bytes),
        ("epoch", "gauge", "Single-writer epoch.", |s| s.epoch),
        ("appends_total", "counter", "Appends made.", |s| s.appends),
        ("events_total", "counter", "Events appended.", |s| s.events),
        ("conflicts_total", "counter", "Append conditions that failed.", |s| s.conflicts),
        ("replays_total", "counter", "Appends answered as replays.", |s| s.replays),
        ("batches_total", "counter", "Group commits made durable.", |s| s.batches),
        ("barrier_microseconds_total", "counter", "Time in barriers.", |s| s.barrier_us),
    ];
    for (name, kind, help, pick) in figures {
        let _ = writeln!(
            out,
            "# HELP wellspring_log_{name} {help}\n# TYPE wellspring_log_{name} {kind}"
        );
        for (log, stats, _) in logs {
            let _ = writeln!(out, "wellspring_log_{name}{{log=\"{log}\"}} {}", pick(stats));
        }
    }
}

fn write_views(out: &mut String, views: &[(String, &'static str, Progress)]) {
    type Pick = fn(&Progress) -> u64;
    let figures: [(&str, &str, Pick); 3] = [
        ("position", "Everything up to here is folded.", |p| p.position),
        ("lag_events", "Durable events not folded yet.", |p| p.head.saturating_sub(p.position)),
        ("answers", "1 while it answers.", |p| u64::from(p.state == State::Live)),
    ];
    for (name, help, pick) in figures {
        let _ = writeln!(
            out,
            "# HELP wellspring_view_{name} {help}\n# TYPE wellspring_view_{name} gauge"
        );
        for (log, view, progress) in views {
            let _ = writeln!(
                out,
                "wellspring_view_{name}{{log=\"{log}\",view=\"{view}\"}} {}",
                pick(progress)
            );
        }
    }
}

fn write_ingest(out: &mut String, logs: &[(String, LogStats, Account)]) {
    type Pick = fn(&Account) -> Amount;
    let figures: [(&str, &str, &str, &str, Pick); 5] = [
        ("accepted", "_total", "counter", "accepted before they were durable", |a| a.accepted),
        ("stored", "_total", "counter", "accepted and then made durable", |a| a.stored),
        ("shed", "_total", "counter", "refused because memory for them was full", |a| a.shed),
        ("dropped", "_total", "counter", "accepted and then dropped by a full disk", |a| a.dropped),
        ("lost_possible", "", "gauge", "that a crash right now would lose", Account::in_flight),
    ];
    for (name, suffix, kind, what, pick) in figures {
        for (unit, title) in [("events", "Events"), ("bytes", "Encoded bytes of events")] {
            let name = format!("wellspring_ingest_{name}_{unit}{suffix}");
            let _ = writeln!(out, "# HELP {name} {title} {what}.\n# TYPE {name} {kind}");
            for (log, _, account) in logs {
                let amount = pick(account);
                let value = if unit == "events" { amount.events } else { amount.bytes };
                let _ = writeln!(out, "{name}{{log=\"{log}\"}} {value}");
            }
        }
    }
    for (at, (name, what, _)) in Account::default().gauges().iter().enumerate() {
        let name = format!("wellspring_ingest_{name}");
        let _ = writeln!(out, "# HELP {name} {what}\n# TYPE {name} gauge");
        for (log, _, account) in logs {
            let _ = writeln!(out, "{name}{{log=\"{log}\"}} {}", account.gauges()[at].2);
        }
    }
}

/// Resident memory of this process in bytes; 0 where it cannot be told.
fn resident_bytes() -> i64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: i64 = statm.split(' ').nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as i64
}

/// Open file descriptors; 0 where they cannot be told.
fn open_fds() -> i64 {
    // The listing itself holds one.
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as i64 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_there_is_has_a_counter() {
        for kind in crate::http::problem::ALL {
            assert!(STATUSES.contains(&kind.status), "{}", kind.status);
        }
    }

    #[test]
    fn answers_are_counted_by_route_status_and_time() {
        let stats = Stats::new(2, 1);
        stats.answered(0, 200, 70);
        stats.answered(0, 409, 3_000_000);
        enter_thread(1);
        stats.answered(0, 200, 70);
        stats.answered(1, 418, 1);
        let log = LogStats { head: 9, ..LogStats::default() };
        let accepted = Amount { events: 7, bytes: 70 };
        let account = Account::of_accepted(accepted);
        let text =
            stats.prometheus(&["GET /x".into()], &[("main".into(), log, account)], &[], Some(3));
        for line in [
            "wellspring_requests_total{route=\"GET /x\",status=\"200\"} 2",
            "wellspring_requests_total{route=\"GET /x\",status=\"409\"} 1",
            "wellspring_requests_total{route=\"other\",status=\"0\"} 1",
            "wellspring_request_duration_seconds_bucket{route=\"GET /x\",le=\"0.0001\"} 2",
            "wellspring_request_duration_seconds_bucket{route=\"GET /x\",le=\"+Inf\"} 3",
            "wellspring_log_head{log=\"main\"} 9",
            "wellspring_ingest_accepted_events_total{log=\"main\"} 7",
            "wellspring_ingest_lost_possible_bytes{log=\"main\"} 70",
            "wellspring_links 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
