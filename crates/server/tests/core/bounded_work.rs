//! Long work is limited in number and in memory, and ends with its client: abandoned work stops,
//! and the memory it uses is counted.

use crate::account::metric;
use crate::client::Client;
use crate::conditions::{bodies_of_common_tags, post, query, threads};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, Patience};

/// A server whose log has three common tags that never occur together.
fn server_of_common_tags(flags: &[&str], appends: usize) -> Server {
    let server = Server::start_with(flags);
    let mut client = server.client().patient();
    for body in bodies_of_common_tags(appends) {
        client.post("/v1/append", &body).unwrap().expect(200);
    }
    server
}

/// A query that takes long and finds nothing.
pub fn dear_query() -> Value {
    let item = |i: usize| json!({"types": ["T", format!("X{i}")], "tags": ["a", "b", "c"]});
    json!({"query": {"items": (0..256).map(item).collect::<Vec<_>>()}})
}

/// Processor time in ns of threads that do not serve.
fn elsewhere_ns(server: &Server) -> u64 {
    let threads = threads(server);
    let elsewhere = threads.values().filter(|thread| thread.name.ends_with("-blocking"));
    elsewhere.map(|thread| thread.run_ns).sum()
}

fn figure(server: &Server, name: &str) -> u64 {
    metric(&server.client().get("/metrics").expect("an answer").text(), name)
}

#[test]
fn dear_reads_that_are_reset_end_and_never_work_beside_more_than_there_may_be() {
    let flags = ["--threads", "1", "--max-long-reads", "4", "--max-fold-ms", "600000"];
    let server = server_of_common_tags(&flags, 100);
    let before = elsewhere_ns(&server);
    post(&mut server.client().patient(), "/v1/query", &dear_query()).expect(200);
    let whole = elsewhere_ns(&server) - before;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let body = dear_query().to_string();
    let begun = elsewhere_ns(&server);
    let (mut refused, mut most) = (0, 0);
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(socket).await.unwrap();
        let connection = tokio::spawn(connection);
        for _ in 0..6 {
            let mut answers = Vec::new();
            for _ in 0..50 {
                sender = sender.ready().await.unwrap();
                let request = http::Request::post("http://l/v1/query");
                let request = request.header("content-type", "application/json").body(()).unwrap();
                let (answer, mut sending) = sender.send_request(request, false).unwrap();
                sending.send_data(body.clone().into(), true).unwrap();
                answers.push(answer);
            }
            // Four are admitted and run; the others are refused immediately, as fast as the machine
            // can.
            let refusals = std::future::poll_fn(|context| {
                answers.retain_mut(|answer| match Pin::new(answer).poll(context) {
                    Poll::Ready(answer) => {
                        assert_eq!(answer.unwrap().status(), 503);
                        refused += 1;
                        false
                    }
                    Poll::Pending => true,
                });
                if answers.len() > 4 { Poll::Pending } else { Poll::Ready(()) }
            });
            let waited = tokio::time::timeout(Duration::from_secs(20), refusals).await;
            assert!(waited.is_ok(), "more than four are at work or wait");
            let names = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
            let names = names
                .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
            most = most.max(names.filter(|name| name.trim() == "http-0-blocking").count());
        }
        connection.abort();
        let _ = connection.await;
    });
    assert!(refused >= 6 * 46, "{refused} of 300 were refused");
    assert!(most <= 4 + 4, "{most} threads");
    let mut last = (elsewhere_ns(&server), Instant::now());
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = elsewhere_ns(&server);
        if now - last.0 < 10_000_000 {
            break;
        }
        assert!(last.1.elapsed() < Duration::from_secs(20), "it goes on");
        last.0 = now;
    }
    // 24 reads were admitted, each of which would have taken `whole`.
    let taken = elsewhere_ns(&server) - begun;
    assert!(taken < 12 * whole, "{taken} ns of threads; {whole} one read");
    post(&mut server.client().patient(), "/v1/query", &json!({"query": query(1, 60, 60)}))
        .expect(200);
}

#[test]
fn a_client_has_its_share_of_long_reads() {
    let flags = ["--max-long-reads-per-address", "1"];
    let server = server_of_common_tags(&flags, 200);
    // A stream occupies its slot until the client has read its end: this one is longer than any
    // buffer.
    let stream = || {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let head =
            "GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept: application/x-ndjson\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let mut under_way = vec![stream()];
    let mut client = server.client().patient();
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        let answer = post(&mut client, "/v1/query", &json!({"query": query(1, 60, 60)}));
        if answer.status != 200 {
            break answer.problem(429);
        }
        assert!(Instant::now() < deadline, "both went on");
        // The query may have been first: then it holds the share, and the stream was refused.
        under_way.push(stream());
    };
    assert_eq!(refused["type"], "/problems/too-many-long-reads", "{refused}");
    assert_eq!(refused["limit"], 1);
    let name = "wellspring_refused_total{reason=\"long_reads_per_address\"}";
    assert!(figure(&server, name) >= 1);
    client.get("/v1/events?limit=1").unwrap().expect(200);
    drop(under_way);
    let body = json!({"query": query(1, 60, 60)});
    while post(&mut client, "/v1/query", &body).status != 200 {
        assert!(Instant::now() < deadline, "it is given back when the client has left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn queries_are_counted_as_memory_as_long_as_they_are_held() {
    let server = Server::start_with(&["--body-memory-bytes", "4000000"]);
    // 26 kB once parsed.
    let large = json!({"query": query(8, 16, 64)}).to_string();
    let subscribe = |body: &str| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = "POST /v1/query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                    accept: text/event-stream\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (String::from_utf8(status.to_vec()).unwrap(), stream)
    };
    let held: Vec<_> = (0..10).map(|_| subscribe(&large)).collect();
    assert!(held.iter().all(|(status, _)| status == "HTTP/1.1 200"), "{:?}", held[0].0);
    let bytes = figure(&server, "wellspring_body_bytes");
    assert!((10 * 3 * 20_000..4_000_000).contains(&bytes), "{bytes}");
    let more: Vec<_> = (0..100).map(|_| subscribe(&large)).collect();
    let status = &more.iter().find(|(status, _)| status != "HTTP/1.1 200").unwrap().0;
    assert_eq!(status, "HTTP/1.1 503", "no memory is left");
    drop((held, more));
    let mut patience = Patience::new();
    while figure(&server, "wellspring_body_bytes") > 0 {
        patience.pause("it is given back when the client has left");
    }
    assert_eq!(subscribe(&large).0, "HTTP/1.1 200");
}

#[test]
fn a_long_answer_gives_its_turn_back_after_each_piece() {
    let server = server_of_common_tags(&["--threads", "1"], 60);
    let mut client = server.client().patient();
    let accept = [("Accept", "application/x-ndjson")];
    for _ in 0..2 {
        let lines = client.call("GET", "/v1/events", &accept, b"").unwrap().text();
        assert_eq!(lines.lines().count(), 60_000);
    }
}

#[test]
fn a_client_has_its_share_of_memory() {
    let server = Server::start_with(&["--body-memory-bytes-per-address", "2000000"]);
    let mut client = server.client();
    let body = |bytes: usize| json!({"query": {"items": []}, "order": "x".repeat(bytes)});
    // Refused for its content.
    post(&mut client, "/v1/query", &body(1_500_000)).problem(422);
    let refused = post(&mut server.client(), "/v1/query", &body(2_500_000)).problem(429);
    assert_eq!(refused["type"], "/problems/too-much-memory", "{refused}");
    assert_eq!(refused["limit"], 2_000_000);
    assert_eq!(figure(&server, "wellspring_refused_total{reason=\"body_memory_per_address\"}"), 1);
    assert_eq!(figure(&server, "wellspring_body_bytes"), 0, "all of it was given back");
    post(&mut server.client(), "/v1/query", &body(1_500_000)).problem(422);
}

#[test]
fn the_dialect_refuses_too_many_different_items_while_it_parses_them() {
    let server = Server::start();
    let mut client = server.client().patient();
    let item = |i: usize| json!({"types": ["T"], "tags": [format!("t:{i}")]});
    let projectors = |count: usize, different: usize| -> Value {
        let projector = |p: usize| {
            let items: Vec<Value> = (0..256).map(|i| item((p * 256 + i) % different)).collect();
            json!({"id": format!("p{p}"), "query": {"items": items}})
        };
        json!({"projectors": (0..count).map(projector).collect::<Vec<_>>()})
    };
    let problem = post(&mut client, "/project", &projectors(256, usize::MAX)).problem(422);
    assert_eq!(problem["field"], "projectors[1].query", "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("more than 256"), "{problem}");
    // The same ones may be repeated at will: the time grows only with the body.
    client
        .post("/v1/append", &json!({"events": [{"type": "T", "tags": ["t:9"], "data": 1}]}))
        .unwrap()
        .expect(200);
    let answer = post(&mut client, "/project", &projectors(256, 256)).expect(200);
    assert_eq!(answer["states"]["p255"], 1);
    assert_eq!(
        answer["appendCondition"]["failIfEventsMatch"]["items"].as_array().unwrap().len(),
        256
    );
}

#[test]
fn a_damaged_index_is_rebuilt_by_threads_that_do_not_serve() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--threads", "1", "--segment-bytes", "1000000"];
    let fill = |client: &mut Client| {
        for n in 0..20 {
            let event = |i: usize| json!({"type": "T", "tags": [format!("n:{}", n * 1000 + i)], "data": "x".repeat(200)});
            let events: Vec<Value> = (0..1000).map(event).collect();
            client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
        }
    };
    let server = Server::start_in(dir.path(), &flags);
    fill(&mut server.client().patient());
    let deadline = Instant::now() + PATIENCE;
    let indexes = loop {
        let files = std::fs::read_dir(dir.path().join("logs/main")).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let is_index = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "idx");
        let mut indexes: Vec<_> = files.filter(is_index).collect();
        indexes.sort();
        if !indexes.is_empty() {
            break indexes;
        }
        assert!(Instant::now() < deadline, "an index is written");
    };
    drop(server);
    let mut bytes = std::fs::read(&indexes[0]).unwrap();
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 64] {
        *byte ^= 0x55;
    }
    std::fs::write(&indexes[0], bytes).unwrap();
    let server = Server::start_in(dir.path(), &flags);
    let mut client = server.client().patient();
    for n in [0, 100, 500, 900, 1_500, 19_999] {
        let page = client.get(&format!("/v1/events?tag=n:{n}")).unwrap().expect(200);
        assert_eq!(page["events"].as_array().unwrap().len(), 1, "{n}: {page}");
    }
    let append = |n: usize| {
        json!({"events": [{"type": "T", "data": 1}],
        "condition": {"failIfEventsMatch": {"items": [{"tags": [format!("n:{n}")]}]}}})
    };
    for n in [3, 19_998] {
        client.post("/v1/append", &append(n)).unwrap().problem(409);
    }
}
