//! The thread that exports: gathers spans, asks for figures, posts both. A collector that is away
//! costs what it would have got, and nothing else.

use super::live::Counts;
use super::span::{Attributes, Span, Value};
use super::{figures, span};
use crate::cli::client::{Client, Request};
use crate::cli::trust::Trust;
use crate::http::Shell;
use crate::stats::gather;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

/// Spans of one request.
const BATCH: usize = 512;
/// Longest time a span waits for others, µs.
const GATHER_US: u64 = 1_000_000;
/// Time between figures, µs.
const FIGURES_US: u64 = 10_000_000;
/// Longest sleep: how soon it is seen that the server stops.
const NAP: Duration = Duration::from_millis(100);
/// Attempts at one request, and what is waited before each but the first.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The thread.
pub(crate) struct Exporter {
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Exporter {
    /// Exports what there is, and ends. Waits for the collector, but not for one that is away.
    pub(crate) fn stop(self) {
        self.stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

/// Starts the thread, if anything is to be exported.
///
/// # Errors
/// The system gives no thread, or TLS cannot be spoken with the collector.
pub(crate) fn start(shell: &Arc<Shell>) -> Result<Option<Exporter>, String> {
    let Some((endpoint, spans)) = shell.otlp.take() else { return Ok(None) };
    tracing::info!(endpoint = endpoint.authority(), "figures and traces are exported");
    // Authorities that this machine trusts vouch for a collector at https.
    let client = Client::new(endpoint, &Trust::default())
        .map_err(|failure| failure.message.replace("--url", "--otlp-endpoint"))?;
    let stopping = Arc::new(AtomicBool::new(false));
    let exporting = Exporting {
        shell: Arc::clone(shell),
        client: client.with_patience(PATIENCE),
        resource: resource(),
        spans,
        stopping: Arc::clone(&stopping),
        start_us: shell.clock.wall_us(),
        reachable: true,
    };
    let thread = crate::serve::spawn("otlp".to_owned(), move || exporting.run())?;
    Ok(Some(Exporter { stopping, thread }))
}

/// Who exports.
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

/// The thread at work.
struct Exporting {
    shell: Arc<Shell>,
    client: Client,
    resource: Attributes,
    spans: Receiver<Box<Span>>,
    stopping: Arc<AtomicBool>,
    /// Since when figures count, µs since 1970 UTC.
    start_us: u64,
    /// Whether the collector took the last request.
    reachable: bool,
}

/// What became of a request.
enum Posted {
    Taken,
    /// Another attempt may help, perhaps after so long.
    Later(Option<Duration>, String),
    /// It will not.
    Refused(String),
}

impl Exporting {
    fn run(mut self) {
        let now_us = self.shell.clock.monotonic_us();
        let (mut spans_due_us, mut figures_due_us) = (now_us, now_us);
        let mut batch = Vec::new();
        loop {
            // Before looking for the last time: what was handed over until then is found.
            let stopping = self.stopping.load(Ordering::Acquire);
            self.gather(&mut batch);
            let now_us = self.shell.clock.monotonic_us();
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

    /// Takes what has come, or waits a little.
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
        let time = figures::Period { start_us: self.start_us, now_us: self.shell.clock.wall_us() };
        let document = figures::document(&self.resource, &gather(&self.shell), time);
        // If it is not taken, the next one says all of it and more.
        self.export("/v1/metrics", &document);
    }

    /// Posts a document, again if that may help. Tells whether it was taken.
    fn export(&mut self, path: &str, document: &[u8]) -> bool {
        for attempt in 1..=ATTEMPTS {
            let (pause, why) = match self.post(path, document) {
                Posted::Taken => {
                    self.count(|counts| &counts.exports, 1);
                    if !std::mem::replace(&mut self.reachable, true) {
                        tracing::info!("the collector takes figures and traces again");
                    }
                    return true;
                }
                Posted::Refused(why) => (None, why),
                Posted::Later(asked, why) => (Some(asked.unwrap_or(PAUSE * attempt)), why),
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

    fn post(&mut self, path: &str, document: &[u8]) -> Posted {
        let headers = [("Content-Type", "application/json"), ("Accept", "application/json")];
        let request = Request { method: "POST", path, headers: &headers, body: Some(document) };
        match self.client.call(&request) {
            Ok(answer) => match answer.head.status {
                200..=299 => Posted::Taken,
                status @ (429 | 502 | 503 | 504) => {
                    let asked = answer.head.header("retry-after");
                    let asked = asked.and_then(|text| text.trim().parse().ok());
                    Posted::Later(asked.map(Duration::from_secs), format!("status {status}"))
                }
                status => Posted::Refused(format!("status {status}")),
            },
            Err(error) => Posted::Later(None, error.to_string()),
        }
    }

    fn count(&self, pick: impl Fn(&Counts) -> &AtomicU64, more: u64) {
        if let Some(counts) = self.shell.otlp.counts() {
            pick(counts).fetch_add(more, Ordering::Relaxed);
        }
    }
}
