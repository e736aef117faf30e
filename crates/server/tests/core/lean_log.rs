//! Appends and reads over the lean loop say and do what those over the general stack do.

use crate::client::{Answer, Client, said};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;
use wellspring_patience::PATIENCE;

type Headers = Vec<(&'static str, &'static str)>;

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn both() -> [Server; 2] {
    ["--lean-loop=true", "--lean-loop=false"].map(|lean| Server::start_with(&[lean]))
}

fn event(n: u64) -> Value {
    json!({"events": [{"type": "Counted", "tags": [format!("n:{n}")], "data": {"n": n}}]})
}

fn if_absent(n: u64) -> Value {
    let query = json!({"items": [{"tags": [format!("n:{n}")]}]});
    json!({"events": event(n)["events"], "condition": {"failIfEventsMatch": query}})
}

/// The head of an append on the wire.
fn append(path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: l\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// An answer without the history, which is another one on each server.
fn plain(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let (status, headers, body) = said(answer);
    let body = String::from_utf8(body).unwrap();
    let history = answer.header("wellspring-history").unwrap_or("no history");
    (status, headers, body.replace(history, "…"))
}

/// Whether an answer came from the lean loop, which sends no date.
fn is_lean(headers: &[(String, String)]) -> bool {
    !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("date"))
}

/// The answer over a connection of its own, or the first that is handed over would take the rest
/// along. The request is sent in two pieces as well as in one, by the number of its case.
fn ask(server: &Server, sent: &[u8], case: usize) -> Answer {
    let mut client = server.client();
    let cut = [sent.len(), sent.len() / 2, sent.len() - 1][case % 3];
    client.send(&sent[..cut]).unwrap();
    client.send(&sent[cut..]).unwrap();
    client.answer().unwrap()
}

#[test]
fn both_stacks_say_the_same_of_every_append() {
    let id = "0193a000-0000-7000-8000-000000000001";
    let with_id = |n: u64| json!({"events": [{"type": "T", "id": id, "data": n}]});
    let text = |value: Value| value.to_string().into_bytes();
    let long = "x".repeat(20_000);
    let fence = json!({"lease": "l", "token": "1"});
    let settles = json!({"consumer": "c", "worker": "w", "delivery": "1-1"});
    let cases: Vec<(&str, Headers, Vec<u8>)> = vec![
        ("/v1/append", vec![JSON], text(event(1))),
        ("/v1/append", vec![], text(event(2))),
        ("/v1/logs/main/append", vec![JSON, ("Accept", "*/*")], text(if_absent(3))),
        ("/v1/append", vec![JSON], text(if_absent(3))),
        (
            "/v1/append",
            vec![JSON],
            text(json!({"events": event(4)["events"], "condition": {"failIfEventsMatch": {}}})),
        ),
        (
            "/v1/append",
            vec![JSON],
            text(
                json!({"events": event(4)["events"], "condition": {"failIfEventsMatch": {}, "after": 3}}),
            ),
        ),
        ("/v1/append", vec![JSON], text(with_id(1))),
        ("/v1/append", vec![JSON], text(with_id(1))),
        ("/v1/append", vec![JSON], text(with_id(2))),
        ("/v1/append", vec![JSON], text(json!({"events": event(5)["events"], "fence": fence}))),
        ("/v1/append", vec![JSON], text(json!({"events": event(5)["events"], "settles": settles}))),
        ("/v1/append", vec![JSON], text(json!({"events": event(6)["events"], "ack": "accepted"}))),
        ("/v1/append", vec![JSON], text(json!({"events": []}))),
        ("/v1/append", vec![JSON], text(json!({"events": [{"type": "", "data": 1}]}))),
        ("/v1/append", vec![JSON], text(json!({"events": [{"type": "LinkCreated", "data": 1}]}))),
        ("/v1/append", vec![JSON], text(json!({"event": []}))),
        ("/v1/append", vec![JSON], b"{\"events\":[".to_vec()),
        ("/v1/append", vec![JSON], vec![]),
        ("/v1/append", vec![JSON, ("Idempotency-Key", "k")], text(event(7))),
        ("/v1/append", vec![JSON, ("Idempotency-Key", "k")], text(event(7))),
        ("/v1/append", vec![JSON, ("Idempotency-Key", "k")], text(event(8))),
        (
            "/v1/append",
            vec![("Content-Type", "application/x-ndjson")],
            text(event(9)["events"][0].clone()),
        ),
        ("/v1/append", vec![("Content-Type", "text/plain")], text(event(9))),
        ("/v1/append", vec![JSON, ("Content-Encoding", "gzip")], text(event(9))),
        ("/v1/append", vec![JSON, ("Accept", "text/html")], text(event(9))),
        ("/v1/append", vec![JSON, ("Wellspring-History", "0000000000000000")], text(event(9))),
        ("/v1/append?x=1", vec![JSON], text(event(9))),
        ("/v1/append", vec![JSON], text(json!({"events": [{"type": "T", "data": long}]}))),
        ("/v1/logs/absent/append", vec![JSON], text(event(10))),
        ("/v1/logs/system/append", vec![JSON], text(event(10))),
        ("/v1/logs/.%2e/append", vec![JSON], text(event(10))),
        ("/v1/append", vec![JSON], text(event(11))),
    ];
    let [lean, general] = both();
    for (at, (path, headers, body)) in cases.iter().enumerate() {
        let sent = append(path, headers, body);
        let [by_lean, by_general] = [&lean, &general].map(|server| ask(server, &sent, at));
        assert_eq!(plain(&by_lean), plain(&by_general), "{at}: {path}");
        if by_lean.status == 202 {
            // It is stored some time later, and the answers after it name its position.
            let accepted_at = by_lean.header("wellspring-position").unwrap().parse().unwrap();
            for server in [&lean, &general] {
                let (mut client, begun) = (server.client(), Instant::now());
                let mut head = || client.get("/v1/head").unwrap().expect(200)["head"].as_u64();
                while head() <= Some(accepted_at) {
                    assert!(begun.elapsed() < PATIENCE);
                }
            }
        }
        assert_eq!(
            by_lean.header("wellspring-history").is_some(),
            by_general.header("wellspring-history").is_some()
        );
    }
    let events = |server: &Server| {
        let page = server.client().get("/v1/events?limit=1000").unwrap().expect(200);
        let all = page["events"].as_array().unwrap().iter().map(|event| event["data"].clone());
        all.collect::<Vec<_>>()
    };
    assert_eq!(events(&lean), events(&general));
}

#[test]
fn both_stacks_say_the_same_of_every_read() {
    let servers = both();
    for server in &servers {
        let mut client = server.client();
        for n in 0..60 {
            let key = format!("key-{n}");
            let body = event(n % 20).to_string();
            let headers = [JSON, ("Idempotency-Key", &key)];
            client.call("POST", "/v1/append", &headers, body.as_bytes()).unwrap().expect(200);
        }
        let large = json!({"events": [{"type": "Large", "data": "x".repeat(50_000)}]});
        client.post("/v1/append", &large).unwrap().expect(200);
    }
    let text = |value: Value| value.to_string();
    let by_tag = json!({"items": [{"tags": ["n:7"]}]});
    let cases: Vec<(&str, &str, Headers, String)> = vec![
        ("GET", "/v1/events?tag=n:7", vec![], String::new()),
        (
            "GET",
            "/v1/events?tag=n%3A7&limit=2&order=desc",
            vec![("Accept", "application/json")],
            String::new(),
        ),
        (
            "GET",
            "/v1/logs/main/events?type=Counted&after=50",
            vec![("Accept", "*/*")],
            String::new(),
        ),
        ("GET", "/v1/events?limit=10", vec![("Accept", "application/x-ndjson")], String::new()),
        ("GET", "/v1/events", vec![("Accept", "application/x-ndjson")], String::new()),
        ("GET", "/v1/events?type=Large", vec![], String::new()),
        ("GET", "/v1/events?query=%7B%22items%22%3A%5B%5D%7D&limit=3", vec![], String::new()),
        ("GET", "/v1/events?limit=0", vec![], String::new()),
        ("GET", "/v1/events?limit=5000", vec![], String::new()),
        ("GET", "/v1/events?after=1000", vec![], String::new()),
        ("GET", "/v1/events?after=1000&order=desc&limit=1", vec![], String::new()),
        ("GET", "/v1/events?color=red", vec![], String::new()),
        ("GET", "/v1/events?consistency=linearizable&limit=1", vec![], String::new()),
        ("GET", "/v1/events?limit=1", vec![("Wellspring-Min-Position", "60")], String::new()),
        (
            "GET",
            "/v1/events?limit=1&wait_ms=1",
            vec![("Wellspring-Min-Position", "90")],
            String::new(),
        ),
        ("GET", "/v1/events?limit=1", vec![("Wellspring-Min-Position", "x")], String::new()),
        (
            "GET",
            "/v1/events?limit=1",
            vec![("Wellspring-History", "0000000000000000")],
            String::new(),
        ),
        ("GET", "/v1/events?limit=1", vec![("Accept", "text/html")], String::new()),
        (
            "GET",
            "/v1/events?limit=1",
            vec![("Accept", "text/html, application/json;q=0.5")],
            String::new(),
        ),
        ("GET", "/v1/logs/absent/events?limit=1", vec![], String::new()),
        ("GET", "/v1/logs/system/events?limit=1", vec![], String::new()),
        ("POST", "/v1/query", vec![JSON], text(json!({"query": by_tag}))),
        ("POST", "/v1/query", vec![], text(json!({"query": by_tag, "after": 20, "limit": 1}))),
        (
            "POST",
            "/v1/query",
            vec![JSON, ("Accept", "application/x-ndjson")],
            text(json!({"query": by_tag})),
        ),
        (
            "POST",
            "/v1/query",
            vec![JSON],
            text(json!({"query": by_tag, "until": "2020-01-01T00:00:00Z"})),
        ),
        (
            "POST",
            "/v1/query",
            vec![JSON],
            text(json!({"query": by_tag, "fence": {"lease": "l", "token": "1"}})),
        ),
        ("POST", "/v1/query", vec![JSON], text(json!({"question": 1}))),
        ("POST", "/v1/query", vec![("Content-Type", "text/plain")], text(json!({"query": by_tag}))),
        ("POST", "/v1/query?x=1", vec![JSON], text(json!({"query": by_tag}))),
    ];
    for (method, path, headers, body) in &cases {
        let [lean, general] = [&servers[0], &servers[1]].map(|server| {
            let answer = server.client().call(method, path, headers, body.as_bytes()).unwrap();
            let (status, headers, mut body) = plain(&answer);
            // Recorded at other times.
            while let Some(at) = body.find("\"recorded_at\":\"2") {
                body.replace_range(at..at + 42, "…");
            }
            (status, headers, body)
        });
        assert_eq!(lean, general, "{method} {path} {headers:?} {body}");
    }
}

/// The fields of records as `docs/format.md` has them, and the length of each.
fn records(mut bytes: &[u8]) -> Vec<(u64, u8, String, Value)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let number = |at: usize, size: usize| {
            (0..size).rev().fold(0, |sum, i| sum << 8 | u64::from(bytes[at + i])) as usize
        };
        let (length, data) = (number(0, 4), number(28, 4));
        let (position, flags) = (number(8, 8) as u64, bytes[27]);
        let at = 32 + if flags & 2 == 0 { 0 } else { 16 };
        let name = String::from_utf8(bytes[at..at + bytes[24] as usize].to_vec()).unwrap();
        let data = serde_json::from_slice(&bytes[length - data..length]).unwrap();
        found.push((position, flags, name, data));
        bytes = &bytes[length..];
    }
    found
}

#[test]
fn records_have_the_events_of_lines_and_no_keys() {
    const RECORDS: (&str, &str) = ("Accept", "application/vnd.wellspring.records");
    for server in both() {
        let mut client = server.client();
        // More than one piece of a stream.
        for n in 0..300 {
            let key = format!("secret-{n}");
            let headers = [JSON, ("Idempotency-Key", &*key)];
            let body = json!({"events": [{"type": format!("T{n}"), "data": "x".repeat(3_000)}]});
            client
                .call("POST", "/v1/append", &headers, body.to_string().as_bytes())
                .unwrap()
                .expect(200);
        }
        for path in [
            "/v1/events",
            "/v1/events?type=T7",
            "/v1/events?order=desc&limit=4",
            "/v1/events?type=none",
        ] {
            let lines = server
                .client()
                .call("GET", path, &[("Accept", "application/x-ndjson")], b"")
                .unwrap();
            let answer = server.client().call("GET", path, &[RECORDS], b"").unwrap();
            assert_eq!((answer.status, answer.header("content-type")), (200, Some(RECORDS.1)));
            assert!(!answer.body.windows(6).any(|text| text == b"secret"));
            let by_lines: Vec<_> = lines
                .text()
                .lines()
                .map(|line| {
                    let event: Value = serde_json::from_str(line).unwrap();
                    (
                        event["position"].as_u64().unwrap(),
                        0,
                        event["type"].as_str().unwrap().to_owned(),
                        event["data"].clone(),
                    )
                })
                .collect();
            assert_eq!(records(&answer.body), by_lines, "{path}");
        }
    }
}

#[test]
fn small_appends_and_reads_stay_on_the_lean_loop() {
    let server = Server::start();
    let mut client = server.client();
    for n in 0..50 {
        for body in [event(n + 100), if_absent(n), if_absent(n)] {
            let answer = client.post("/v1/append", &body).unwrap();
            assert!(is_lean(&answer.headers), "{:?}", answer.headers);
        }
    }
    let keyed = [JSON, ("Idempotency-Key", "k")];
    for replayed in [false, true] {
        let body = event(7_000).to_string();
        let answer = client.call("POST", "/v1/append", &keyed, body.as_bytes()).unwrap();
        assert_eq!(answer.expect(200)["replayed"], replayed);
        assert!(is_lean(&answer.headers));
        let history = answer.header("wellspring-history").unwrap().to_owned();
        let known = [("Wellspring-History", &*history), ("Wellspring-Min-Position", "101")];
        let answer = client.call("GET", "/v1/events?tag=n:7", &known, b"").unwrap();
        assert_eq!(answer.expect(200)["events"].as_array().unwrap().len(), 1);
        assert!(is_lean(&answer.headers));
    }
    let answer = client.call("POST", "/v1/append", &[JSON, ("X-Request-Id", "mine")], b"{}");
    let answer = answer.unwrap();
    assert_eq!((answer.status, answer.header("x-request-id")), (422, Some("mine")));
    assert!(is_lean(&answer.headers), "a handler answers there");
    client.get("/v1/consumers").unwrap().expect(200);
    let answer = client.post("/v1/append", &event(1)).unwrap();
    assert!(!is_lean(&answer.headers), "a connection does not come back");
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 102);
}

/// Requests that handlers answer on the lean loop: what they are, and the status of each.
fn handled() -> Vec<(&'static str, Headers, Value, u16)> {
    let link = |more: Value| {
        let mut link = json!({"url": "http://example.com/x", "alias": "mine"});
        link.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        link
    };
    let statement = |text: &str| json!({"statements": [{"statement": text}]});
    let key = ("Idempotency-Key", "k");
    vec![
        ("/api/urls", vec![JSON], link(json!({})), 201),
        ("/api/urls", vec![JSON], link(json!({})), 409),
        ("/api/urls", vec![JSON, key], link(json!({"alias": "other"})), 201),
        ("/api/urls", vec![JSON, key], link(json!({"alias": "other"})), 201),
        ("/api/urls", vec![JSON], link(json!({"max_clicks": 0})), 422),
        ("/api/urls?x=1", vec![JSON], link(json!({})), 422),
        ("/api/urls", vec![JSON, ("Accept", "text/html")], link(json!({})), 406),
        ("/api/urls", vec![JSON, ("Wellspring-History", "0000000000000000")], link(json!({})), 409),
        ("/api/urls", vec![JSON, ("Content-Encoding", "gzip")], link(json!({})), 415),
        ("/api/urls", vec![JSON, ("Authorization", "Basic bm8=")], link(json!({})), 409),
        ("/api/urls", vec![JSON, ("Origin", "http://other")], link(json!({})), 403),
        ("/order/1?amount=1", vec![], Value::Null, 200),
        ("/v1/catalogue/orders", vec![JSON], json!({"lines": [{"item": 1, "amount": 1}]}), 0),
        ("/db/main/tx/commit", vec![JSON], statement("CREATE (n:A {a: 1}) RETURN n.a"), 200),
        ("/db/main/tx/commit", vec![JSON], statement("MATCH (n:A) RETURN n.a"), 200),
        ("/db/main/tx/commit", vec![JSON], statement("CREATE ("), 200),
        ("/db/absent/tx/commit", vec![JSON], statement("RETURN 1"), 0),
        ("/v1/append", vec![JSON, ("X-Request-Id", "mine")], event(1), 200),
        ("/v1/append", vec![JSON], json!({"events": event(2)["events"], "ack": "accepted"}), 202),
        ("/v1/logs/absent/append", vec![JSON], event(1), 404),
        ("/v1/head", vec![], Value::Null, 405),
        ("/no/route", vec![], Value::Null, 404),
        ("http://l/v1/append", vec![JSON], event(3), 200),
        ("/v1/append#x", vec![JSON], event(4), 0),
    ]
}

#[test]
fn handlers_answer_on_the_lean_loop_what_they_answer_elsewhere() {
    let [lean, general] = both();
    for (at, (path, headers, body, status)) in handled().iter().enumerate() {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let sent = append(path, headers, &body);
        let [by_lean, by_general] = [&lean, &general].map(|server| ask(server, &sent, at));
        assert_eq!(
            (is_lean(&by_lean.headers), is_lean(&by_general.headers)),
            (true, false),
            "{path}"
        );
        assert!(*status == 0 || by_lean.status == *status, "{at}: {path} {}", by_lean.text());
        let told = |answer: &Answer, server: &Server| {
            let (status, headers, body) = plain(answer);
            // The time of the link comes first, its server last.
            let body = body.replace(&server.url(), "…");
            let body =
                body.split_once("\"original_url\"").map_or(body.clone(), |(_, rest)| rest.into());
            (status, headers, body)
        };
        assert_eq!(told(&by_lean, &lean), told(&by_general, &general), "{at}: {path}");
    }
}

/// A target that only looks like no route must not be taken for a short answer.
#[test]
fn a_stream_by_another_spelling_of_its_path_is_handed_over() {
    let server = Server::start();
    server.client().post("/v1/append", &event(1)).unwrap().expect(200);
    for target in ["http://l/v1/events", "/v1/events#x"] {
        let mut client = server.client();
        let accept = "text/event-stream";
        let ask = format!("GET {target} HTTP/1.1\r\nHost: l\r\nAccept: {accept}\r\n\r\n");
        client.send(ask.as_bytes()).unwrap();
        let (status, headers) = client.head().unwrap();
        assert!(status == 200 || status == 400, "{target}: {status}");
        assert!(status == 400 || !is_lean(&headers), "{target}: {headers:?}");
    }
}

/// A short one would fit into the loop's own buffer: its lines must not wait there for the rest.
#[test]
fn the_whole_lines_of_a_cut_bulk_are_appended() {
    let server = Server::start();
    let line = event(1)["events"][0].to_string();
    let lines = format!("{line}\n{line}\n{line}\n");
    let sent = append("/v1/append", &[("Content-Type", "application/x-ndjson")], lines.as_bytes());
    server.client().send(&sent[..sent.len() - line.len() / 2]).unwrap();
    let begun = Instant::now();
    while server.client().get("/v1/head").unwrap().expect(200)["head"] != 2 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_client_that_has_shut_its_side_gets_the_answer_of_a_handler() {
    let server = Server::start();
    for n in 0..50 {
        let link = json!({"url": "http://example.com/", "alias": format!("l{n}")}).to_string();
        let mut stream = server.client().into_stream();
        stream.write_all(&append("/api/urls", &[JSON], link.as_bytes())).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        Client::from(stream).answer().unwrap().expect(201);
    }
}

#[test]
fn requests_behind_a_handler_wait_for_its_answer() {
    let server = Server::start();
    let mut client = server.client();
    for n in 0..100 {
        let link = json!({"url": "http://example.com/", "alias": format!("l{n}")}).to_string();
        let create = append("/api/urls", &[JSON], link.as_bytes());
        let behind = append("/v1/append", &[JSON], event(n).to_string().as_bytes());
        client.send(&[create, behind].concat()).unwrap();
        client.answer().unwrap().expect(201);
        let appended = client.answer().unwrap();
        assert_eq!(appended.expect(200)["first"], 2 * n + 2);
        assert!(is_lean(&appended.headers));
    }
}

#[test]
fn an_append_does_not_overtake_what_its_connection_ingested() {
    let server = Server::start();
    for round in 0..50 {
        let mut client = server.client();
        let body = format!("{{\"ingested\":{round}}}");
        let ingest = append("/e", &[], body.as_bytes());
        let all = [ingest, append("/v1/append", &[JSON], event(round).to_string().as_bytes())];
        client.send(&all.concat()).unwrap();
        assert_eq!(client.answer().unwrap().status, 202);
        let appended = client.answer().unwrap().expect(200);
        assert_eq!(appended["first"], 2 * round + 2, "the event before it comes first");
    }
}

#[test]
fn pipelined_appends_are_answered_in_order_among_refusals() {
    let server = Server::start();
    let mut client = server.client();
    let bodies = [event(0), if_absent(0), event(1), if_absent(2), if_absent(1)];
    let sent: Vec<u8> = (0..20)
        .flat_map(|_| &bodies)
        .flat_map(|body| append("/v1/append", &[JSON], body.to_string().as_bytes()))
        .collect();
    client.send(&sent).unwrap();
    let told: Vec<u16> = (0..100).map(|_| client.answer().unwrap().status).collect();
    let later = [200, 409, 200, 409, 409];
    assert_eq!(told[..5], [200, 409, 200, 200, 409]);
    assert!(told[5..].chunks(5).all(|five| five == later), "{told:?}");
}

/// A read waits for the append before it, and the append behind the read is staged when both are
/// answered: nothing else wakes the loop then.
#[test]
fn what_is_staged_while_answers_are_sent_is_committed_at_once() {
    let server = Server::start();
    let mut client = server.client();
    let one = append("/v1/append", &[JSON], event(1).to_string().as_bytes());
    let look = b"GET /v1/events?limit=1 HTTP/1.1\r\nHost: l\r\n\r\n";
    client.send(&[&one[..], look].concat().repeat(100)).unwrap();
    let begun = Instant::now();
    (0..200).for_each(|_| assert_eq!(client.answer().unwrap().status, 200));
    // Otherwise only its look at timeouts wakes the loop, every 2.5 s.
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

/// Sixteen connections of other kinds, and more appenders than a turn of the loop reads.
#[test]
fn nobody_starves_beside_appenders() {
    let server = Server::start();
    server.client().call("PUT", "/v1/logs/other", &[], b"").unwrap().expect(201);
    let (appended, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for at in 0..64 {
            let (server, appended) = (&server, &appended);
            scope.spawn(move || {
                let path = if at % 2 == 0 { "/v1/append" } else { "/v1/logs/other/append" };
                let mut client = server.client();
                for n in 0..50 {
                    client.post(path, &event(at * 50 + n)).unwrap().expect(200);
                    appended.fetch_add(1, SeqCst);
                }
            });
        }
        for at in 0..16 {
            let (server, others) = (&server, &others);
            scope.spawn(move || {
                let mut client = server.client();
                for _ in 0..20 {
                    let answer = match at % 3 {
                        0 => client.get("/v1/head"),
                        1 => client.call("POST", "/e", &[], b"{}"),
                        _ => client.get("/v1/events?limit=1"),
                    };
                    assert!(answer.unwrap().status < 300);
                    others.fetch_add(1, SeqCst);
                }
            });
        }
    });
    assert_eq!((appended.into_inner(), others.into_inner()), (64 * 50, 16 * 20));
    let head = |log: &str| {
        let path = format!("/v1/logs/{log}/head");
        server.client().get(&path).unwrap().expect(200)["head"].as_u64().unwrap()
    };
    assert_eq!(head("other"), 32 * 50);
    // Those of `POST /e` may still be on their way.
    assert!(head("main") >= 32 * 50);
}

#[test]
fn limits_hold_for_appends() {
    let flags = ["--requests-per-second-per-address", "2", "--read-ms-per-second-per-address", "1"];
    let server = Server::start_with(&flags);
    let mut client: Client = server.client();
    let told: Vec<u16> = (0..20)
        .map(|n| {
            let answer = client.post("/v1/append", &if_absent(n)).unwrap();
            assert!(answer.status == 200 || answer.header("retry-after").is_some());
            answer.status
        })
        .collect();
    assert!(told.starts_with(&[200, 200]), "{told:?}");
    assert!(told.contains(&429), "{told:?}");
}

type NumberedRequest = dyn Fn(u64) -> (Headers, Value);

/// Ten requests of each kind, of which a second's five may be answered.
#[test]
fn limits_hold_for_handlers_and_for_what_is_passed_on_to_them() {
    let [by_connection, by_address] =
        ["--requests-per-second-per-connection", "--requests-per-second-per-address"];
    for (limit, lean) in [(by_connection, "true"), (by_address, "true"), (by_address, "false")] {
        let server = Server::start_with(&[limit, "1", "--lean-loop", lean]);
        let link =
            |n: u64| (vec![JSON], json!({"url": "http://example.com", "alias": format!("a{n}")}));
        let settled = |n: u64| (vec![JSON, ("X-Request-Id", "mine")], event(n));
        let paths: [(&str, &NumberedRequest); 2] = [("/api/urls", &link), ("/v1/append", &settled)];
        let begun = Instant::now();
        let mut client = server.client();
        let mut answered = 0;
        for (path, request) in paths {
            for n in 0..10 {
                let (headers, body) = request(n);
                client.send(&append(path, &headers, body.to_string().as_bytes())).unwrap();
                let answer = client.answer().unwrap();
                assert_eq!(is_lean(&answer.headers), lean == "true", "{path}");
                assert!(answer.status < 300 || answer.status == 429, "{}", answer.text());
                answered += u64::from(answer.status < 300);
            }
        }
        let refilled = begun.elapsed().as_secs() + 1;
        assert!((5..=5 + refilled).contains(&answered), "{limit} {lean}: {answered}");
        // Health checks are never refused.
        assert_eq!(client.get("/health").unwrap().status, 200);
    }
}
