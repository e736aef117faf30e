//! The counters of the server, and figures as data. Counted per thread where requests count, so
//! that no core waits for another. The room names no room that counts: these hold a [`Stats`], and
//! `figures` gathers what `/metrics` and the export show.

pub mod family;
pub mod prometheus;
mod refusals;
mod requests;

pub use refusals::RefusalReason;

use crate::record::{RequestRecord, RouteName};
use crate::trouble::Troubles;
use family::Family;
use refusals::RefusalCounts;
use requests::Requests;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

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

impl OpenConnection {
    /// Counts bytes read from it.
    pub(crate) fn received(&self, bytes: usize) {
        self.0.requests.received(bytes);
    }

    /// Counts bytes written to it.
    pub(crate) fn sent(&self, bytes: usize) {
        self.0.requests.sent(bytes);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// Counts a request as in flight.
pub(crate) struct InFlight(Arc<Stats>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.requests.in_flight(-1);
    }
}

/// Counts a subscription as live.
pub struct Subscriber {
    stats: Arc<Stats>,
    log: String,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.stats.subscribers.fetch_sub(1, Relaxed);
        let mut by_log = self.stats.by_log();
        if let Some(count) = by_log.get_mut(&self.log) {
            *count -= 1;
            if *count == 0 {
                by_log.remove(&self.log);
            }
        }
    }
}

/// All counters of the process.
pub struct Stats {
    requests: Requests,
    /// Open connections.
    pub(crate) connections: AtomicI64,
    /// Connections refused because there were too many.
    pub(crate) refused: AtomicU64,
    /// Live subscriptions.
    pub(crate) subscribers: AtomicI64,
    /// Live subscriptions of each log that has any. They come and go seldom, so a lock will do.
    subscribers_by_log: Mutex<BTreeMap<String, u64>>,
    /// Bytes of bodies being received.
    pub(crate) body_bytes: AtomicI64,
    /// What the server refused to protect its other clients.
    pub refusals: RefusalCounts,
    /// The server's own failures.
    pub(crate) troubles: Troubles,
    /// When the server was ready to start, on the monotonic clock.
    started_us: u64,
}

impl Stats {
    /// Counters of `threads` threads, all zero. `routes` are the labels of the routes: a request
    /// is counted under the place of its route in this list. `now_us` is on the monotonic clock.
    pub(crate) fn new(threads: usize, routes: Vec<String>, now_us: u64) -> Stats {
        Stats {
            requests: Requests::new(threads, routes),
            connections: AtomicI64::new(0),
            refused: AtomicU64::new(0),
            subscribers: AtomicI64::new(0),
            subscribers_by_log: Mutex::default(),
            body_bytes: AtomicI64::new(0),
            refusals: RefusalCounts::default(),
            troubles: Troubles::default(),
            started_us: now_us,
        }
    }

    /// Counts one answer.
    pub(crate) fn answered(&self, record: &RequestRecord<'_>) {
        self.answered_alike(record.route, record.status, record.took_us(), 1);
    }

    /// Counts `count` answers that took the same time and are recorded no further.
    pub(crate) fn answered_alike(&self, route: RouteName, status: u16, took_us: u64, count: u64) {
        self.requests.answered(route.index, status, took_us, count);
    }

    /// Counts a request as in flight while the returned guard lives.
    pub(crate) fn begin(self: &Arc<Stats>) -> InFlight {
        self.requests.in_flight(1);
        InFlight(Arc::clone(self))
    }

    /// Sets how many connections of this thread's lean loop wait for an answer now.
    pub(crate) fn waiting(&self, connections: usize) {
        self.requests.waiting(connections);
    }

    /// Counts bytes read from a connection.
    pub(crate) fn received(&self, bytes: usize) {
        self.requests.received(bytes);
    }

    /// Counts bytes written to a connection.
    pub(crate) fn sent(&self, bytes: usize) {
        self.requests.sent(bytes);
    }

    /// Counts a connection as open while the returned guard lives; `None`, counted as refused, if
    /// `most` are open.
    pub(crate) fn open(self: &Arc<Stats>, most: usize) -> Option<OpenConnection> {
        if self.connections.fetch_add(1, Relaxed) >= most as i64 {
            self.connections.fetch_sub(1, Relaxed);
            self.refuse_connection(RefusalReason::Connection);
            return None;
        }
        Some(OpenConnection(Arc::clone(self)))
    }

    /// Counts a connection as refused.
    pub(crate) fn refuse_connection(&self, refused: RefusalReason) {
        self.refused.fetch_add(1, Relaxed);
        self.refusals.count(refused);
    }

    /// Counts a subscription to a log as live while the returned guard lives.
    pub fn subscribe(self: &Arc<Stats>, log: &str) -> Subscriber {
        self.subscribers.fetch_add(1, Relaxed);
        *self.by_log().entry(log.to_owned()).or_default() += 1;
        Subscriber { stats: Arc::clone(self), log: log.to_owned() }
    }

    fn by_log(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.subscribers_by_log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Live subscriptions to a log.
    pub(crate) fn subscribers_of(&self, log: &str) -> u64 {
        self.by_log().get(log).copied().unwrap_or(0)
    }

    /// Time since the server was ready to start; `now_us` is on the monotonic clock.
    pub(crate) fn uptime_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.started_us)
    }

    /// Figures of requests.
    pub(crate) fn request_families(&self) -> Vec<Family> {
        self.requests.families()
    }

    /// Figures of connections, of what is held for them, and of refusals.
    pub(crate) fn connection_families(&self) -> Vec<Family> {
        let gauge = |name, help, value: &AtomicI64| {
            Family::gauge(name, help, u64::try_from(value.load(Relaxed)).unwrap_or(0))
        };
        vec![
            gauge("wellspring_connections", "Open connections.", &self.connections),
            Family::counter(
                "wellspring_connections_refused_total",
                "Connections refused as too many.",
                self.refused.load(Relaxed),
            ),
            gauge("wellspring_subscribers", "Live subscriptions.", &self.subscribers),
            gauge(
                "wellspring_body_bytes",
                "Memory held by bodies being received, answers being sent and requests over HTTP/2.",
                &self.body_bytes,
            ),
            self.refusals.family(),
        ]
    }
}

#[cfg(test)]
mod tests;
