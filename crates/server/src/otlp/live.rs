//! The side of the requests: which are recorded, and the way to the thread that exports.

use super::Told;
use super::context::{Parent, new_span_id, new_trace_id, next_random};
use super::span::{Attributes, Span, Value};
use crate::cli::endpoint::Endpoint;
use crate::config::Config;
use crate::http::routes::TABLE;
use crate::stats::family::{Family, Kind};
use hyper::HeaderMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Spans that may wait to be exported. Those beyond are dropped and counted.
const QUEUE: usize = 4_096;

/// Export to a collector, if there is one.
pub(crate) struct Otlp(Option<On>);

struct On {
    endpoint: Endpoint,
    /// Of 2^64 requests without a trace so many begin one.
    chance: u64,
    queue: SyncSender<Box<Span>>,
    /// Until the thread takes it.
    spans: Mutex<Option<Receiver<Box<Span>>>>,
    counts: Counts,
}

/// What became of what was to be exported.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) spans: AtomicU64,
    pub(super) spans_dropped: AtomicU64,
    pub(super) exports: AtomicU64,
    pub(super) exports_failed: AtomicU64,
}

/// A request that is recorded.
pub(crate) struct Trace {
    trace_id: u128,
    parent_id: Option<u64>,
    state: String,
    started_us: u64,
}

impl Otlp {
    /// As it is configured; nothing is sent yet.
    ///
    /// # Errors
    /// A sentence about `otlp_endpoint` or `otlp_sample`.
    pub(crate) fn open(config: &Config) -> Result<Otlp, String> {
        let share = config.otlp_sample;
        if !(0.0..=1.0).contains(&share) {
            return Err(format!("--otlp-sample must be from 0 to 1, not {share}"));
        }
        let Some(url) = &config.otlp_endpoint else { return Ok(Otlp(None)) };
        let endpoint =
            Endpoint::parse(url).map_err(|why| why.replace("--url", "--otlp-endpoint"))?;
        let (queue, spans) = sync_channel(QUEUE);
        // The largest f64 below 2^64 is as good as all.
        let chance = (share * 2f64.powi(64)) as u64;
        let spans = Mutex::new(Some(spans));
        Ok(Otlp(Some(On { endpoint, chance, queue, spans, counts: Counts::default() })))
    }

    /// Whether anything is exported.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins to record a request that came at `started_us` of the monotonic clock, if it is to be:
    /// because whoever asked records his part of the trace, or by chance if he says nothing.
    pub(crate) fn begin(&self, headers: &HeaderMap, started_us: u64) -> Option<Trace> {
        let on = self.0.as_ref()?;
        match Parent::of(headers) {
            Some(Parent { sampled: false, .. }) => None,
            Some(Parent { trace_id, span_id, state, .. }) => {
                Some(Trace { trace_id, parent_id: Some(span_id), state, started_us })
            }
            None if next_random() < on.chance => {
                let (trace_id, state) = (new_trace_id(), String::new());
                Some(Trace { trace_id, parent_id: None, state, started_us })
            }
            None => None,
        }
    }

    /// Hands over what was recorded, now at `wall_us` since 1970 UTC. Never waits.
    pub(crate) fn end(&self, trace: Trace, told: &Told<'_>, wall_us: u64) {
        let Some(on) = &self.0 else { return };
        let count = match on.queue.try_send(Box::new(span(trace, told, wall_us))) {
            Ok(()) => &on.counts.spans,
            Err(_) => &on.counts.spans_dropped,
        };
        count.fetch_add(1, Relaxed);
    }

    /// What it counted.
    pub(crate) fn families(&self) -> Vec<Family> {
        let Some(On { counts, .. }) = &self.0 else { return Vec::new() };
        let counter = |name, help, count: &AtomicU64| {
            Family::new(Kind::Counter, name, help).with(Vec::new(), count.load(Relaxed))
        };
        vec![
            counter("wellspring_otlp_spans_total", "Spans to be exported.", &counts.spans),
            counter(
                "wellspring_otlp_spans_dropped_total",
                "Spans that found no room, or that the collector did not take.",
                &counts.spans_dropped,
            ),
            counter(
                "wellspring_otlp_exports_total",
                "Requests that the collector took.",
                &counts.exports,
            ),
            counter(
                "wellspring_otlp_exports_failed_total",
                "Requests that it did not take, attempts counted one by one.",
                &counts.exports_failed,
            ),
        ]
    }

    /// Where to export to, and what; `None`: nothing is exported, or somebody else does.
    pub(super) fn take(&self) -> Option<(Endpoint, Receiver<Box<Span>>)> {
        let on = self.0.as_ref()?;
        let spans = on.spans.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some((on.endpoint.clone(), spans))
    }

    /// Where the thread counts.
    pub(super) fn counts(&self) -> Option<&Counts> {
        self.0.as_ref().map(|on| &on.counts)
    }
}

fn span(trace: Trace, told: &Told<'_>, wall_us: u64) -> Span {
    let done = told.done;
    // Moments on the monotonic clock, as the wall's clock has them now.
    let wall = |us: u64| wall_us.saturating_sub(told.now_us.saturating_sub(us));
    let text = |text: &str| Value::Text(text.to_owned());
    let method = done.method;
    let mut attributes: Attributes = vec![
        ("http.request.method", text(method)),
        ("url.path", text(done.path)),
        ("http.response.status_code", Value::Whole(done.status.into())),
        ("wellspring.request_id", text(done.request_id)),
    ];
    let route = TABLE.get(done.route).map(|route| route.path);
    attributes.extend(route.map(|route| ("http.route", text(route))));
    let client = done.client.map(|client| client.to_string());
    attributes.extend(client.map(|client| ("client.address", Value::Text(client))));
    if !done.log.is_empty() {
        attributes.push(("wellspring.log", text(done.log)));
    }
    attributes.extend(told.position.map(|at| ("wellspring.position", Value::Whole(at))));
    Span {
        trace_id: trace.trace_id,
        span_id: new_span_id(),
        parent_id: trace.parent_id,
        state: trace.state,
        name: route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
        start_us: wall(trace.started_us),
        end_us: wall_us,
        attributes,
        failed: done.status >= 500,
        commit: told.commit_us.map(|(begin, end)| (new_span_id(), wall(begin), wall(end))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn otlp(share: &str) -> Otlp {
        let flags = ["--otlp-endpoint", "http://127.0.0.1:4318", "--otlp-sample", share];
        Otlp::open(&Config::for_tests(&flags)).unwrap()
    }

    fn headers(traceparent: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", traceparent.parse().unwrap());
        headers
    }

    #[test]
    fn who_asks_decides_and_else_chance() {
        let none = HeaderMap::new();
        assert!(Otlp::open(&Config::for_tests(&[])).unwrap().begin(&headers(PARENT), 0).is_none());
        let (never, always, half) = (otlp("0"), otlp("1"), otlp("0.5"));
        let trace = never.begin(&headers(PARENT), 0).unwrap();
        assert_eq!(trace.parent_id, Some(0x00f0_67aa_0ba9_02b7));
        assert!(always.begin(&headers(&PARENT.replace("-01", "-00")), 0).is_none());
        assert!(always.begin(&headers("nonsense"), 0).unwrap().parent_id.is_none());
        let share = |otlp: &Otlp| (0..10_000).filter(|_| otlp.begin(&none, 0).is_some()).count();
        assert_eq!((share(&never), share(&always)), (0, 10_000));
        assert!((4_500..5_500).contains(&share(&half)));
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (otlp, nobody) = (otlp("1"), crate::access::Principal::nobody());
        let done = crate::audit::Done {
            route: 0,
            method: "POST",
            path: "/v1/append",
            log: "main",
            principal: &nobody,
            caller: None,
            shows_credentials: false,
            status: 503,
            client: None,
            request_id: "r",
        };
        let told =
            Told { done: &done, position: Some(7), commit_us: Some((110, 130)), now_us: 150 };
        for _ in 0..QUEUE + 3 {
            let trace = otlp.begin(&HeaderMap::new(), 100).unwrap();
            otlp.end(trace, &told, 1_000_150);
        }
        let counts = otlp.counts().unwrap();
        assert_eq!((counts.spans.load(Relaxed), counts.spans_dropped.load(Relaxed)), (4_096, 3));
        let (_, spans) = otlp.take().unwrap();
        assert!(otlp.take().is_none(), "there is one thread");
        let span = spans.recv().unwrap();
        assert_eq!((span.start_us, span.end_us, span.failed), (1_000_100, 1_000_150, true));
        let (_, begin, end) = span.commit.unwrap();
        assert_eq!((begin, end), (1_000_110, 1_000_130));
        assert_eq!(span.name, "POST /v1/append");
        assert!(span.attributes.contains(&("wellspring.position", Value::Whole(7))));
    }

    #[test]
    fn settings_are_checked() {
        for (flags, word) in [
            (["--otlp-endpoint", "ftp://x"], "--otlp-endpoint"),
            (["--otlp-sample", "1.5"], "--otlp-sample"),
            (["--otlp-sample", "NaN"], "--otlp-sample"),
        ] {
            let message = Config::loaded(&flags).unwrap_err();
            assert!(message.contains(word), "{message}");
        }
    }
}
