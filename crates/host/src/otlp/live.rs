//! The serving threads' side: which requests are traced, and the queue to the exporting thread.

use super::OtlpConfig;
use super::context::{Parent, new_span_id, new_trace_id, next_random};
use super::span::{Attributes, Span, Value};
use crate::record::RequestRecord;
use crate::setup::SetupError;
use crate::stats::family::{Family, Kind};
use hyper::HeaderMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use wellspring_client::endpoint::Endpoint;

/// Spans that may wait to be exported. Those beyond are dropped and counted.
const QUEUE: usize = 4_096;

/// Export to a collector, if there is one.
pub struct Otlp(Option<Export>);

struct Export {
    endpoint: Endpoint,
    /// How many of 2^64 requests without a parent begin a trace.
    chance: u64,
    queue: SyncSender<Box<Span>>,
    /// The other end of `queue`, until the exporting thread takes it.
    spans: Mutex<Option<Receiver<Box<Span>>>>,
    counts: Arc<Counts>,
}

/// Counts of what was exported, and of what was lost.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) spans: AtomicU64,
    pub(super) spans_dropped: AtomicU64,
    pub(super) exports: AtomicU64,
    pub(super) exports_failed: AtomicU64,
}

/// Where to export to, what, and where the outcome is counted.
pub(super) struct ExportQueue {
    pub(super) endpoint: Endpoint,
    pub(super) spans: Receiver<Box<Span>>,
    pub(super) counts: Arc<Counts>,
}

/// The trace of a request under way.
pub(crate) struct Trace {
    trace_id: u128,
    parent_id: Option<u64>,
    state: String,
}

impl Otlp {
    /// Opens the export that is configured; sends nothing yet.
    ///
    /// # Errors
    /// A sentence about `otlp_endpoint` or `otlp_sample`.
    pub(crate) fn open(config: &OtlpConfig) -> Result<Otlp, SetupError> {
        let Some(url) = &config.otlp_endpoint else { return Ok(Otlp(None)) };
        let endpoint =
            Endpoint::parse(url).map_err(|error| format!("--otlp-endpoint {url}: {error}"))?;
        let (queue, spans) = sync_channel(QUEUE);
        // The largest f64 below 2^64 is as good as all.
        let chance = (config.otlp_sample * 2f64.powi(64)) as u64;
        let spans = Mutex::new(Some(spans));
        Ok(Otlp(Some(Export { endpoint, chance, queue, spans, counts: Arc::default() })))
    }

    /// Whether anything is exported.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins to trace a request that has just come, if it is to be: because the caller records its
    /// part of the trace, or by chance if its headers do not tell.
    pub(crate) fn begin(&self, headers: &HeaderMap) -> Option<Trace> {
        let on = self.0.as_ref()?;
        match Parent::of(headers) {
            Some(Parent { sampled: false, .. }) => None,
            Some(Parent { trace_id, span_id, state, .. }) => {
                Some(Trace { trace_id, parent_id: Some(span_id), state })
            }
            None if next_random() < on.chance => {
                let (trace_id, state) = (new_trace_id(), String::new());
                Some(Trace { trace_id, parent_id: None, state })
            }
            None => None,
        }
    }

    /// Queues the span of a request that has ended, at `wall_us` since 1970 UTC. Never waits.
    pub(crate) fn end(&self, trace: Trace, record: &RequestRecord<'_>, wall_us: u64) {
        let Some(on) = &self.0 else { return };
        let count = match on.queue.try_send(Box::new(span(trace, record, wall_us))) {
            Ok(()) => &on.counts.spans,
            Err(_) => &on.counts.spans_dropped,
        };
        count.fetch_add(1, Relaxed);
    }

    /// The export's own counters.
    pub(crate) fn families(&self) -> Vec<Family> {
        let Some(Export { counts, .. }) = &self.0 else { return Vec::new() };
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

    /// What the exporting thread works with; `None`: nothing is exported, or another thread has it.
    pub(super) fn take(&self) -> Option<ExportQueue> {
        let on = self.0.as_ref()?;
        let spans = on.spans.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(ExportQueue { endpoint: on.endpoint.clone(), spans, counts: Arc::clone(&on.counts) })
    }
}

fn span(trace: Trace, record: &RequestRecord<'_>, wall_us: u64) -> Span {
    // Moments of the monotonic clock on the wall clock.
    let wall = |us: u64| wall_us.saturating_sub(record.ended_us.saturating_sub(us));
    let text = |text: &str| Value::Text(text.to_owned());
    let method = record.method;
    let mut attributes: Attributes = vec![
        ("http.request.method", text(method)),
        ("url.path", text(record.path)),
        ("http.response.status_code", Value::Whole(record.status.into())),
        ("wellspring.request_id", text(record.request_id)),
    ];
    let route = record.route.path;
    attributes.extend(route.map(|route| ("http.route", text(route))));
    let client = record.client.map(|client| client.to_string());
    attributes.extend(client.map(|client| ("client.address", Value::Text(client))));
    if !record.log.is_empty() {
        attributes.push(("wellspring.log", text(record.log)));
    }
    attributes.extend(record.position.map(|at| ("wellspring.position", Value::Whole(at))));
    Span {
        trace_id: trace.trace_id,
        span_id: new_span_id(),
        parent_id: trace.parent_id,
        state: trace.state,
        name: route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
        start_us: wall(record.started_us),
        end_us: wall_us,
        attributes,
        failed: record.status >= 500,
        commit: record.commit_us.map(|(begin, end)| (new_span_id(), wall(begin), wall(end))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostConfig;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn otlp(share: &str) -> Otlp {
        let flags = ["--otlp-endpoint", "http://127.0.0.1:4318", "--otlp-sample", share];
        Otlp::open(&HostConfig::for_tests(&flags).otlp).unwrap()
    }

    fn headers(traceparent: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", traceparent.parse().unwrap());
        headers
    }

    #[test]
    fn the_callers_sampling_decision_counts_and_otherwise_chance_decides() {
        let none = HeaderMap::new();
        let off = HostConfig::for_tests(&[]).otlp;
        assert!(Otlp::open(&off).unwrap().begin(&headers(PARENT)).is_none());
        let (never, always, half) = (otlp("0"), otlp("1"), otlp("0.5"));
        let trace = never.begin(&headers(PARENT)).unwrap();
        assert_eq!(trace.parent_id, Some(0x00f0_67aa_0ba9_02b7));
        assert!(always.begin(&headers(&PARENT.replace("-01", "-00"))).is_none());
        assert!(always.begin(&headers("nonsense")).unwrap().parent_id.is_none());
        let share = |otlp: &Otlp| (0..10_000).filter(|_| otlp.begin(&none).is_some()).count();
        assert_eq!((share(&never), share(&always)), (0, 10_000));
        assert!((4_500..5_500).contains(&share(&half)));
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let otlp = otlp("1");
        let record = RequestRecord {
            status: 503,
            position: Some(7),
            started_us: 100,
            ended_us: 150,
            commit_us: Some((110, 130)),
            ..RequestRecord::for_tests(&crate::identity::UNKNOWN)
        };
        for _ in 0..QUEUE + 3 {
            let trace = otlp.begin(&HeaderMap::new()).unwrap();
            otlp.end(trace, &record, 1_000_150);
        }
        let ExportQueue { spans, counts, .. } = otlp.take().unwrap();
        assert_eq!((counts.spans.load(Relaxed), counts.spans_dropped.load(Relaxed)), (4_096, 3));
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
            (["--otlp-sample", "1.5"], "otlp_sample"),
            (["--otlp-sample", "NaN"], "otlp_sample"),
        ] {
            let message = HostConfig::loaded(&flags).unwrap_err();
            assert!(message.to_string().contains(word), "{message}");
        }
    }
}
