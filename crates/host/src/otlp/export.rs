//! The exporting thread: gathers spans and figures, and posts both. A collector that is away loses
//! what it would have received, and disturbs nothing else.

use super::Otlp;
use super::live::{Counts, ExportQueue};
use super::span::{Attributes, Span, Value};
use super::{figures, span};
use crate::setup::SetupError;
use crate::stats::family::Family;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;
use wellspring_client::trust::Trust;
use wellspring_client::{Client, Request};
use wellspring_log::Clock;

/// Most spans in one export request.
const BATCH: usize = 512;
/// Longest time a span waits for others, µs.
const GATHER_US: u64 = 1_000_000;
/// Time between two exports of figures, µs.
const FIGURES_US: u64 = 10_000_000;
/// Longest sleep, and so the longest delay until the thread notices that the server stops.
const NAP: Duration = Duration::from_millis(100);
/// Attempts at one request, and the base of the pause before each but the first.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Longest time a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A handle on the exporting thread.
pub(crate) struct Exporter {
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Exporter {
    /// Exports what is left and ends the thread. Waits for the collector, but not for one that is
    /// away.
    pub(crate) fn stop(self) {
        self.stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

/// Starts the thread, if anything is to be exported. It calls `gather` for the figures.
///
/// # Errors
/// The system cannot start a thread, or TLS with the collector cannot be set up.
pub(crate) fn start(
    otlp: &Otlp,
    clock: &Arc<dyn Clock>,
    gather: impl Fn() -> Vec<Family> + Send + 'static,
) -> Result<Option<Exporter>, SetupError> {
    let Some(ExportQueue { endpoint, spans, counts }) = otlp.take() else { return Ok(None) };
    tracing::info!(endpoint = endpoint.authority(), "figures and traces are exported");
    // A collector at https is verified against the authorities that this machine trusts.
    let client = Client::new(endpoint, &Trust::default())?;
    let stopping = Arc::new(AtomicBool::new(false));
    let exporting = Exporting {
        clock: Arc::clone(clock),
        gather,
        counts,
        client: client.with_patience(PATIENCE),
        resource: resource(),
        spans,
        stopping: Arc::clone(&stopping),
        start_us: clock.wall_us(),
        reachable: true,
    };
    let thread = crate::threads::spawn("otlp".to_owned(), move || exporting.run())?;
    Ok(Some(Exporter { stopping, thread }))
}

/// The attributes that identify this process to the collector.
fn resource() -> Attributes {
    let text = |text: &str| Value::Text(text.to_owned());
    let instance = crate::random::bytes().map(u64::from_le_bytes).unwrap_or_default();
    vec![
        ("service.name", text("wellspring")),
        ("service.version", text(env!("CARGO_PKG_VERSION"))),
        ("service.instance.id", Value::Text(format!("{instance:016x}"))),
        ("process.pid", Value::Whole(std::process::id().into())),
    ]
}

/// The state of the exporting thread.
struct Exporting<F> {
    clock: Arc<dyn Clock>,
    /// All figures of the server now.
    gather: F,
    counts: Arc<Counts>,
    client: Client,
    resource: Attributes,
    spans: Receiver<Box<Span>>,
    stopping: Arc<AtomicBool>,
    /// The moment from which figures count, µs since 1970 UTC.
    start_us: u64,
    /// Whether the collector accepted the last request.
    reachable: bool,
}

/// The outcome of one export request.
enum PostOutcome {
    Taken,
    /// Another attempt may help, after this time if the collector named one.
    Later(Option<Duration>, String),
    /// Another attempt will not help.
    Refused(String),
}

impl<F: Fn() -> Vec<Family>> Exporting<F> {
    fn run(mut self) {
        let now_us = self.clock.monotonic_us();
        let (mut spans_due_us, mut figures_due_us) = (now_us, now_us);
        let mut batch = Vec::new();
        loop {
            // Read before the queue: spans handed over before the stop are then found in it.
            let stopping = self.stopping.load(Ordering::Acquire);
            self.gather(&mut batch);
            let now_us = self.clock.monotonic_us();
            if batch.len() >= BATCH || now_us >= spans_due_us || stopping {
                spans_due_us = now_us + GATHER_US;
                self.export_spans(&mut batch);
            }
            if stopping && self.is_drained(&mut batch) {
                return self.export_figures();
            }
            if now_us >= figures_due_us && !stopping {
                figures_due_us = now_us + FIGURES_US;
                self.export_figures();
            }
        }
    }

    /// Takes the spans that have come, or waits a little.
    fn gather(&self, batch: &mut Vec<Span>) {
        if let Ok(span) = self.spans.recv_timeout(NAP) {
            batch.push(*span);
            let room = BATCH.saturating_sub(batch.len());
            batch.extend(self.spans.try_iter().take(room).map(|span| *span));
        }
    }

    fn is_drained(&self, batch: &mut Vec<Span>) -> bool {
        batch.extend(self.spans.try_iter().take(1).map(|span| *span));
        batch.is_empty()
    }

    fn export_spans(&mut self, batch: &mut Vec<Span>) {
        if batch.is_empty() {
            return;
        }
        let taken = self.export("/v1/traces", &span::document(&self.resource, batch));
        if !taken {
            self.count(|counts| &counts.spans_dropped, batch.len() as u64);
        }
        batch.clear();
    }

    fn export_figures(&mut self) {
        let time = figures::Period { start_us: self.start_us, now_us: self.clock.wall_us() };
        let document = figures::document(&self.resource, &(self.gather)(), time);
        // A lost export is harmless: the next one is cumulative.
        self.export("/v1/metrics", &document);
    }

    /// Posts a document, again if that may help. Returns whether the collector accepted it.
    fn export(&mut self, path: &str, document: &[u8]) -> bool {
        for attempt in 1..=ATTEMPTS {
            let (pause, why) = match self.post(path, document) {
                PostOutcome::Taken => {
                    self.count(|counts| &counts.exports, 1);
                    if !std::mem::replace(&mut self.reachable, true) {
                        tracing::info!("the collector takes figures and traces again");
                    }
                    return true;
                }
                PostOutcome::Refused(why) => (None, why),
                PostOutcome::Later(asked, why) => (Some(asked.unwrap_or(PAUSE * attempt)), why),
            };
            self.count(|counts| &counts.exports_failed, 1);
            let stopping = self.stopping.load(Ordering::Acquire);
            let Some(pause) = pause.filter(|_| attempt < ATTEMPTS && !stopping) else {
                if std::mem::replace(&mut self.reachable, false) {
                    tracing::warn!(why, path, "the collector does not take figures or traces");
                }
                return false;
            };
            std::thread::park_timeout(pause.min(LONGEST_PAUSE));
        }
        false
    }

    fn post(&mut self, path: &str, document: &[u8]) -> PostOutcome {
        let headers = [("Content-Type", "application/json"), ("Accept", "application/json")];
        let request = Request { method: "POST", path, headers: &headers, body: Some(document) };
        match self.client.call(&request) {
            Ok(answer) => match answer.head.status {
                200..=299 => PostOutcome::Taken,
                status @ (429 | 502 | 503 | 504) => {
                    let asked = answer.head.header("retry-after");
                    let asked = asked.and_then(|text| text.trim().parse().ok());
                    PostOutcome::Later(asked.map(Duration::from_secs), format!("status {status}"))
                }
                status => PostOutcome::Refused(format!("status {status}")),
            },
            Err(error) => PostOutcome::Later(None, error.to_string()),
        }
    }

    fn count(&self, pick: impl Fn(&Counts) -> &AtomicU64, more: u64) {
        pick(&self.counts).fetch_add(more, Ordering::Relaxed);
    }
}
