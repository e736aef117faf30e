//! Requests by route, status and time, and the bytes that carried them. Counted per serving
//! thread, so that counting a request touches no cache line that another core writes to.

use super::family::{Distribution, Family, Kind, scaled};
use super::thread;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Upper bounds of the latency buckets, µs: close together where answers from memory are.
const BUCKETS_US: [u64; 25] = [
    10, 20, 30, 40, 50, 75, 100, 150, 200, 250, 350, 500, 750, 1_000, 2_500, 5_000, 10_000, 25_000,
    50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
];
/// Statuses counted by themselves; any other counts as the last.
pub(super) const STATUSES: [u16; 27] = [
    200, 201, 202, 204, 302, 304, 400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 414, 415, 417,
    422, 429, 431, 500, 503, 505, 507, 0,
];

#[derive(Default)]
struct RouteFigures {
    statuses: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// What one thread counts. Two cache lines apart from the next one's, as processors fetch them in
/// pairs.
#[repr(align(128))]
struct Shard {
    /// One for each route, and a last one for requests without a route.
    routes: Vec<RouteFigures>,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    /// Requests begun less those ended on this thread: only the sum over all threads has a meaning.
    in_flight: AtomicI64,
    /// Connections of the lean loop that wait for an answer. Set, not counted.
    waiting: AtomicU64,
}

/// Requests of all threads.
pub(super) struct Requests {
    shards: Vec<Shard>,
    /// Labels of the routes, in the order in which shards count them.
    routes: Vec<String>,
}

impl Requests {
    pub(super) fn new(threads: usize, routes: Vec<String>) -> Requests {
        let shard = || Shard {
            routes: (0..=routes.len()).map(|_| RouteFigures::default()).collect(),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            in_flight: AtomicI64::new(0),
            waiting: AtomicU64::new(0),
        };
        Requests { shards: (0..threads.max(1)).map(|_| shard()).collect(), routes }
    }

    fn here(&self) -> Option<&Shard> {
        self.shards.get(thread())
    }

    pub(super) fn answered(&self, route: usize, status: u16, took_us: u64, count: u64) {
        let Some(figures) = self.here().and_then(|shard| shard.routes.get(route)) else { return };
        let status = STATUSES.iter().position(|&s| s == status).unwrap_or(STATUSES.len() - 1);
        figures.statuses[status].fetch_add(count, Relaxed);
        let bucket = BUCKETS_US.partition_point(|&bound| bound < took_us);
        figures.buckets[bucket].fetch_add(count, Relaxed);
        figures.sum_us.fetch_add(took_us * count, Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        if let Some(shard) = self.here() {
            shard.received_bytes.fetch_add(bytes as u64, Relaxed);
        }
    }

    pub(super) fn sent(&self, bytes: usize) {
        if let Some(shard) = self.here() {
            shard.sent_bytes.fetch_add(bytes as u64, Relaxed);
        }
    }

    pub(super) fn in_flight(&self, more: i64) {
        if let Some(shard) = self.here() {
            shard.in_flight.fetch_add(more, Relaxed);
        }
    }

    pub(super) fn waiting(&self, connections: usize) {
        if let Some(shard) = self.here() {
            shard.waiting.store(connections as u64, Relaxed);
        }
    }

    fn sum(&self, pick: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|shard| pick(shard).load(Relaxed)).sum()
    }

    fn of_route(&self, route: usize, pick: impl Fn(&RouteFigures) -> &AtomicU64) -> u64 {
        self.sum(|shard| pick(&shard.routes[route]))
    }

    pub(super) fn families(&self) -> Vec<Family> {
        let mut counts =
            Family::new(Kind::Counter, "wellspring_requests_total", "Requests answered.");
        let mut times = Family::new(
            Kind::Histogram,
            "wellspring_request_duration_seconds",
            "Time to the answer; for a stream, until it began.",
        );
        for route in 0..=self.routes.len() {
            let name = || self.routes.get(route).map_or("other", String::as_str).to_owned();
            for (i, status) in STATUSES.iter().enumerate() {
                let count = self.of_route(route, |figures| &figures.statuses[i]);
                if count > 0 {
                    let labels = vec![("route", name()), ("status", status.to_string())];
                    counts = counts.with(labels, count);
                }
            }
            let distribution = self.distribution(route);
            if distribution.counts.iter().any(|&count| count > 0) {
                times = times.with(vec![("route", name())], distribution);
            }
        }
        let in_flight: i64 = self.shards.iter().map(|shard| shard.in_flight.load(Relaxed)).sum();
        // The counters move while they are added up: an end may be seen without its beginning.
        let in_flight = u64::try_from(in_flight).unwrap_or(0) + self.sum(|shard| &shard.waiting);
        vec![
            counts,
            times,
            Family::gauge(
                "wellspring_requests_in_flight",
                "Requests begun whose answer is not yet handed over: streams and subscriptions too.",
                in_flight,
            ),
            Family::counter(
                "wellspring_received_bytes_total",
                "Bytes read from connections.",
                self.sum(|shard| &shard.received_bytes),
            ),
            Family::counter(
                "wellspring_sent_bytes_total",
                "Bytes written to connections.",
                self.sum(|shard| &shard.sent_bytes),
            ),
        ]
    }

    fn distribution(&self, route: usize) -> Distribution {
        Distribution {
            bounds: BUCKETS_US.iter().map(|&bound| scaled(bound, 1e-6)).collect(),
            counts: (0..=BUCKETS_US.len())
                .map(|i| self.of_route(route, |figures| &figures.buckets[i]))
                .collect(),
            sum: scaled(self.of_route(route, |figures| &figures.sum_us), 1e-6),
        }
    }
}
