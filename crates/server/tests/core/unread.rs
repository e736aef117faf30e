//! A client that requests much and does not read it uses no memory, over any protocol: over HTTP/2
//! the connection looks healthy while its streams stall.

use crate::server::Server;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, client};
use serde_json::json;
use std::time::{Duration, Instant};

/// Size of an event in bytes. Pages of two are sent in several pieces.
const EVENT_BYTES: usize = 60_000;

fn figure(server: &Server, line: &str) -> u64 {
    let text = server.client().get("/metrics").unwrap().text();
    let value = text.lines().find_map(|known| known.strip_prefix(line)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{line} is not in\n{text}")).parse().expect("a number")
}

const SLOW: &str = "wellspring_refused_total{reason=\"slow_readers\"}";
const HELD: &str = "wellspring_body_bytes";

/// A server that holds `events` large events.
fn filled(events: usize, flags: &[&str]) -> Server {
    let server = Server::start_with(flags);
    let event = json!({"type": "T", "data": "x".repeat(EVENT_BYTES)});
    let append = json!({ "events": vec![event; events] }).to_string();
    let headers = [("Content-Type", "application/json")];
    let answer = server.client().call("POST", "/v1/append", &headers, append.as_bytes());
    assert_eq!(answer.unwrap().status, 200);
    server
}

/// An HTTP/2 client with this window per answer, and a signal for the end of its connection.
async fn connect(
    server: &Server,
    window: u32,
) -> (SendRequest<bytes::Bytes>, tokio::task::JoinHandle<Result<(), h2::Error>>) {
    let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let builder = client::Builder::new().initial_window_size(window).clone();
    let (sender, connection) = builder.handshake(socket).await.unwrap();
    (sender, tokio::spawn(connection))
}

async fn ask(sender: &mut SendRequest<bytes::Bytes>, path: &str, accept: &str) -> ResponseFuture {
    let request = http::Request::get(format!("http://l{path}")).header("accept", accept);
    *sender = sender.clone().ready().await.unwrap();
    sender.send_request(request.body(()).unwrap(), true).unwrap().0
}

/// Reads an answer to its end, pausing this many ms after each KiB.
async fn read(mut body: RecvStream, ms_per_kib: u64) -> usize {
    let mut read = 0;
    while let Some(data) = body.data().await {
        let bytes = data.expect("the answer goes on").len();
        body.flow_control().release_capacity(bytes).unwrap();
        read += bytes;
        tokio::time::sleep(Duration::from_millis(bytes as u64 * ms_per_kib / 1024)).await;
    }
    read
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn over_http2_who_does_not_read_a_page_is_cut_and_its_memory_comes_back() {
    let server = filled(4, &["--write-timeout-ms", "1000", "--body-memory-bytes", "1048576"]);
    for window in [0, 1, 100_000] {
        run(async {
            let before = figure(&server, SLOW);
            let (mut sender, ended) = connect(&server, window).await;
            let mut answers = Vec::new();
            for _ in 0..4 {
                let answer = ask(&mut sender, "/v1/events", "application/json").await;
                answers.push(answer.await.expect("an answer").into_body());
            }
            assert!(figure(&server, HELD) > 4 * EVENT_BYTES as u64);
            let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
            assert!(ended.is_ok(), "with a window of {window} it may wait for ever");
            assert_eq!(figure(&server, SLOW), before + 1);
            let begun = Instant::now();
            while figure(&server, HELD) > 0 {
                assert!(
                    begun.elapsed() < Duration::from_secs(20),
                    "what it held does not come back"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
}

#[test]
fn over_http2_who_reads_slowly_is_not_cut() {
    let server = filled(3, &["--write-timeout-ms", "3000"]);
    run(async {
        let (mut sender, ended) = connect(&server, 20_000).await;
        let page = ask(&mut sender, "/v1/events", "application/json").await.await.unwrap();
        let lines = ask(&mut sender, "/v1/events", "application/x-ndjson").await.await.unwrap();
        // Nothing arrives here, through no fault of the client.
        let _live =
            ask(&mut sender, "/v1/events?after=3", "text/event-stream").await.await.unwrap();
        let begun = Instant::now();
        let (page, lines) = tokio::join!(read(page.into_body(), 30), read(lines.into_body(), 30));
        assert!(page.min(lines) > 3 * EVENT_BYTES);
        assert!(begun.elapsed() > Duration::from_secs(4), "not slow enough to show anything");
        assert!(!ended.is_finished());
        assert_eq!(figure(&server, SLOW), 0);
    });
}

#[test]
fn a_stream_whose_end_is_not_read_counts_as_a_long_read_until_it_is() {
    let server = filled(8, &["--max-long-reads", "2"]);
    run(async {
        let (mut sender, _ended) = connect(&server, 20_000).await;
        let mut unread = Vec::new();
        let mut statuses = Vec::new();
        for _ in 0..6 {
            let answer =
                ask(&mut sender, "/v1/events", "application/x-ndjson").await.await.unwrap();
            statuses.push(answer.status().as_u16());
            unread.push(answer.into_body());
            // Time to release its permit, if it does so.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(statuses, [200, 200, 503, 503, 503, 503]);
        // Reading it to the end frees its slot.
        assert!(read(unread.remove(0), 0).await > 8 * EVENT_BYTES);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let answer = ask(&mut sender, "/v1/events", "application/x-ndjson").await.await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
    });
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    #[test]
    fn a_throttled_subscription_sends_heartbeats_and_does_not_delay_a_stop() {
        let flags = ["--bytes-per-second-per-address", "1000", "--heartbeat-ms", "300"];
        let mut server = Server::start_with(&flags);
        let mut live = server.client();
        live.send(b"GET /v1/events HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\n\r\n")
            .unwrap();
        assert_eq!(live.head().unwrap().0, 200);
        // Together they exceed a minute's quota.
        let append = json!({"events": [{"type": "T", "data": "x".repeat(EVENT_BYTES)}]});
        assert_eq!(server.client().post("/v1/append", &append).unwrap().status, 200);
        while !live.line().unwrap().expect("it goes on").starts_with("data: ") {}
        let begun = Instant::now();
        for _ in 0..3 {
            while !live.line().unwrap().expect("it goes on").contains(": heartbeat") {}
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(server.client().get("/v1/head").unwrap().status, 429, "it owes");
        let begun = Instant::now();
        assert!(server.terminate().success());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn over_http2_a_body_that_nobody_wants_waits_in_no_buffer() {
        let server = Server::start();
        run(async {
            let (mut sender, _ended) = connect(&server, 65_535).await;
            sender = sender.ready().await.unwrap();
            let request = http::Request::get("http://l/v1/head?wait_ms=15000")
                .header("wellspring-min-position", "1000");
            let request = request.body(()).unwrap();
            let (answer, mut body) = sender.send_request(request, false).unwrap();
            let begun = Instant::now();
            let mut left = 4_000_000;
            while left > 0 {
                body.reserve_capacity(left);
                let room = std::future::poll_fn(|context| body.poll_capacity(context));
                let room = tokio::time::timeout(Duration::from_secs(10), room).await;
                let room = room.expect("it waits unread").unwrap().unwrap();
                body.send_data(vec![b'x'; room].into(), false).unwrap();
                left -= room;
            }
            assert!(begun.elapsed() < Duration::from_secs(12), "only once it was answered");
            drop((answer, body));
        });
    }
}
