//! Export to an OpenTelemetry collector, here a test double that records what it receives.

use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wellspring_patience::Patience;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A collector: path and document of each request.
struct Collector {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<(String, Value)>>>,
    /// The status it answers with.
    status: Arc<AtomicU16>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (taken, status) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU16::new(200)));
        let (keeps, answers) = (Arc::clone(&taken), Arc::clone(&status));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (keeps, answers) = (Arc::clone(&keeps), Arc::clone(&answers));
                std::thread::spawn(move || serve(stream.unwrap(), &keeps, &answers));
            }
        });
        Collector { address, taken, status }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until `find` returns something for what was received.
    #[track_caller]
    fn wait<T>(&self, find: impl Fn(&[(String, Value)]) -> Option<T>) -> T {
        let mut patience = Patience::new();
        loop {
            if let Some(found) = find(&self.taken.lock().unwrap()) {
                return found;
            }
            patience.pause(format_args!("{:#?}", self.taken.lock().unwrap()));
        }
    }

    fn spans(&self) -> Vec<Value> {
        spans(&self.taken.lock().unwrap())
    }
}

fn serve(
    stream: std::net::TcpStream,
    taken: &Mutex<Vec<(String, Value)>>,
    status: &AtomicU16,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let path = line.strip_prefix("POST ")?.split(' ').next()?.to_owned();
        let (mut length, mut is_json) = (0, false);
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
            is_json |= header == "content-type: application/json";
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        assert!(is_json, "{path} without a content type");
        let status = status.load(SeqCst);
        if status == 200 {
            taken.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap()));
        }
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}");
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}

fn spans(taken: &[(String, Value)]) -> Vec<Value> {
    let documents = taken.iter().filter(|(path, _)| path == "/v1/traces");
    let of = |(_, document): &(String, Value)| {
        document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    };
    documents.flat_map(of).collect()
}

/// The value of an attribute, or `Null`.
fn attribute(of: &Value, name: &str) -> Value {
    let attributes = of["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    let value = found.map(|attribute| &attribute["value"]);
    value.map_or(Value::Null, |value| value.as_object().unwrap().values().next().unwrap().clone())
}

fn traced(client: &mut Client, line: &str, flags: &str, body: &str) -> u16 {
    let (method, path) = line.split_once(' ').unwrap();
    let parent = format!("00-{TRACE}-{PARENT}-{flags}");
    let headers = [
        ("traceparent", parent.as_str()),
        ("tracestate", "v=1"),
        ("Content-Type", "application/json"),
    ];
    client.call(method, path, &headers, body.as_bytes()).unwrap().status
}

fn start(collector: &Collector, share: &str) -> Server {
    Server::start_with(&["--otlp-endpoint", &collector.url(), "--otlp-sample", share])
}

#[test]
fn otlp_a_trace_of_the_callers_goes_on_here() {
    let collector = Collector::start();
    let server = start(&collector, "0");
    let mut client = server.client();
    let append = json!({"events": [{"type": "A", "data": 1}]}).to_string();
    assert_eq!(traced(&mut client, "POST /v1/append", "01", &append), 200);
    assert_eq!(traced(&mut client, "GET /v1/events/99?limit=canary", "01", ""), 422);
    assert_eq!(traced(&mut client, "GET /v1/head", "00", ""), 200, "its caller does not record it");
    client.get("/v1/types").unwrap().expect(200);
    let spans = collector.wait(|taken| Some(spans(taken)).filter(|spans| spans.len() >= 3));
    assert_eq!(spans.len(), 3, "{spans:#?}");
    let span = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    let append = span("POST /v1/append");
    assert_eq!((&append["traceId"], &append["parentSpanId"]), (&TRACE.into(), &PARENT.into()));
    assert_eq!((&append["kind"], &append["traceState"]), (&2.into(), &"v=1".into()));
    for (name, value) in [
        ("http.request.method", json!("POST")),
        ("http.route", json!("/v1/append")),
        ("http.response.status_code", json!("200")),
        ("url.path", json!("/v1/append")),
        ("client.address", json!("127.0.0.1")),
        ("wellspring.log", json!("main")),
        ("wellspring.position", json!("1")),
    ] {
        assert_eq!(attribute(append, name), value, "{name}");
    }
    let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let times =
        |span: &Value| (number(&span["startTimeUnixNano"]), number(&span["endTimeUnixNano"]));
    let (begin, end) = times(append);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    assert!(begin < end && end <= now + 1_000_000 && now - begin < 60_000_000_000);
    // The wait for the log lies within it.
    let commit = span("commit");
    assert_eq!((&commit["parentSpanId"], &commit["traceId"]), (&append["spanId"], &TRACE.into()));
    let (commit_begin, commit_end) = times(commit);
    assert!(begin <= commit_begin && commit_begin < commit_end && commit_end <= end);
    let refused = span("GET /v1/events/{position}");
    assert_eq!(attribute(refused, "http.response.status_code"), "422");
    assert_eq!(refused.get("status"), None, "the client's mistake is no failure of ours");
    assert!(!format!("{spans:?}").contains("canary"), "no query strings");
}

#[test]
fn otlp_every_traced_request_has_a_span_whichever_stack_it_came_to() {
    let collector = Collector::start();
    let server = start(&collector, "0");
    let mut client = server.client();
    // The lean loop's first, then one that names its trace.
    client.post("/e", &json!({"e": 1})).unwrap().expect(202);
    assert_eq!(traced(&mut client, "POST /e", "01", "{}"), 202);
    let mut other = server.client();
    assert_eq!(traced(&mut other, "GET /nosuch", "01", ""), 404);
    let spans = collector.wait(|taken| Some(spans(taken)).filter(|spans| spans.len() >= 2));
    let mut names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["GET /{code}", "POST /e"]);
}

#[test]
fn otlp_figures_are_those_of_the_page() {
    let collector = Collector::start();
    let server = start(&collector, "1");
    let mut client = server.client();
    client.post("/v1/append", &json!({"events": [{"type": "A", "data": 1}]})).unwrap().expect(200);
    let page = crate::exposition::read(&client.get("/metrics").unwrap().text());
    // The first are sent immediately, the next after ten seconds.
    let of = |document: &Value| {
        document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone()
    };
    let documents = |taken: &[(String, Value)]| -> Vec<Value> {
        let figures = taken.iter().filter(|(path, _)| path == "/v1/metrics");
        figures.map(|(_, document)| document.clone()).collect()
    };
    let later = |taken: &[(String, Value)]| documents(taken).get(1).cloned();
    let document = collector.wait(later);
    let resource = &document["resourceMetrics"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), "wellspring");
    assert_eq!(attribute(resource, "service.version"), env!("CARGO_PKG_VERSION"));
    let metrics = of(&document);
    let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    for name in page.keys() {
        assert!(names.contains(&name.as_str()), "{name} is not exported");
    }
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let point = |points: &Value, log: &str| {
        let points = points["dataPoints"].as_array().unwrap();
        points.iter().find(|point| attribute(point, "log") == log).unwrap().clone()
    };
    let events = &metric("wellspring_log_events_total")["sum"];
    assert_eq!(
        (&events["isMonotonic"], &events["aggregationTemporality"]),
        (&true.into(), &2.into())
    );
    assert_eq!(point(events, "main")["asInt"], "1");
    let barriers = metric("wellspring_log_barrier_seconds");
    let of_main = point(&barriers["histogram"], "main");
    assert_eq!((&barriers["unit"], &of_main["count"]), (&"s".into(), &"1".into()));
    let lengths =
        ["bucketCounts", "explicitBounds"].map(|name| of_main[name].as_array().unwrap().len());
    assert_eq!(lengths, [21, 20]);
    // With share 1 every request has a span.
    let spans = collector.spans();
    assert!(spans.iter().any(|span| span["name"] == "GET /metrics"), "{spans:#?}");
}

#[test]
fn otlp_a_collector_that_is_away_costs_its_spans_and_nothing_else() {
    let collector = Collector::start();
    collector.status.store(503, SeqCst);
    let mut server = start(&collector, "1");
    let mut client = server.client();
    for _ in 0..50 {
        let begun = Instant::now();
        client.get("/v1/head").unwrap().expect(200);
        assert!(begun.elapsed() < Duration::from_secs(5), "nobody waits for a collector");
    }
    let dropped = || {
        let page = crate::exposition::read(&server.client().get("/metrics").unwrap().text());
        crate::exposition::value(&page, "wellspring_otlp_spans_dropped_total", &[])
    };
    let mut patience = Patience::new();
    while dropped() < 50.0 {
        patience.pause(format_args!("{} dropped", dropped()));
    }
    // The collector recovers, and what is left is sent when the server stops.
    collector.status.store(200, SeqCst);
    client.get("/v1/types").unwrap().expect(200);
    assert!(server.terminate().success());
    let spans = collector.spans();
    assert!(spans.iter().any(|span| span["name"] == "GET /v1/types"), "{spans:#?}");
}
