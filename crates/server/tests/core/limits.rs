//! Clients that exceed a limit are refused for a while, told how long, and counted; others are
//! unaffected.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::json;
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, Patience};

/// The test's own address counts as a proxy, so that a header names the client.
const PROXY: [&str; 2] = ["--trusted-proxies", "127.0.0.1"];
const ONE: &str = "192.0.2.1";
const OTHER: &str = "192.0.2.2";

/// A server with or without the lean loop.
fn server(lean: bool, flags: &[&str]) -> Server {
    let lean = format!("--lean-loop={lean}");
    Server::start_with(&[&PROXY[..], &[lean.as_str()], flags].concat())
}

fn call(client: &mut Client, from: &str, method: &str, path: &str, body: &[u8]) -> Answer {
    let headers = [("X-Forwarded-For", from), ("Content-Type", "application/json")];
    client.call(method, path, &headers, body).expect("an answer")
}

/// How often the server has refused for this reason.
fn refused(server: &Server, reason: &str) -> u64 {
    let answer = call(&mut server.client(), "192.0.2.250", "GET", "/metrics", b"");
    let label = format!("wellspring_refused_total{{reason=\"{reason}\"}} ");
    let text = answer.text();
    let value = text.lines().find_map(|line| line.strip_prefix(&label));
    value.unwrap_or_else(|| panic!("{label} is not in\n{text}")).parse().expect("a number")
}

/// Asserts a refusal of this kind; returns the seconds to wait.
#[track_caller]
fn refusal(answer: &Answer, status: u16, kind: &str) -> u64 {
    let problem = answer.problem(status);
    assert_eq!(problem["type"], format!("/problems/{kind}"), "{problem}");
    let seconds = answer.header("retry-after").expect("Retry-After").parse().expect("seconds");
    assert!(seconds >= 1);
    assert_eq!(problem["retry"], seconds, "{problem}");
    seconds
}

fn append(events: usize, bytes: usize) -> Vec<u8> {
    let event = json!({"type": "T", "tags": ["a:1"], "data": "x".repeat(bytes)});
    json!({ "events": vec![event; events] }).to_string().into_bytes()
}

#[test]
fn requests_of_an_address_are_refused_on_either_stack_and_those_of_others_are_not() {
    for lean in [true, false] {
        let server = server(lean, &["--requests-per-second-per-address", "20"]);
        let mut client = server.client();
        let begun = Instant::now();
        let mut taken = 0;
        let answer = loop {
            let answer = call(&mut client, ONE, "POST", "/e", b"{\"e\":1}");
            match answer.status {
                202 => taken += 1,
                _ => break answer,
            }
            assert!(taken < 10_000, "never refused");
        };
        refusal(&answer, 429, "too-many-requests");
        let most = 100 + 20 * (begun.elapsed().as_secs() + 1);
        assert!((100..=most).contains(&taken), "{taken} were taken");
        // The connection stays usable for clients that are not limited.
        assert_eq!(call(&mut client, OTHER, "POST", "/e", b"{\"e\":2}").status, 202);
        assert_eq!(call(&mut client, ONE, "GET", "/health", b"").status, 200);
        assert_eq!(call(&mut client, ONE, "OPTIONS", "/v1/append", b"").status, 204);
        // All requests count, including those to unknown paths.
        let mut ends = || {
            let begun = Instant::now();
            let paths = ["/v1/head", "/v1/nothing", "/Yci", "/api/urls"];
            let all = paths
                .map(|path| (0..30).map(|_| call(&mut client, ONE, "GET", path, b"").status).max());
            (all, begun.elapsed())
        };
        let (statuses, took) = ends();
        if took < Duration::from_secs(1) {
            assert_eq!(statuses, [Some(429); 4]);
        }
        assert!(refused(&server, "requests_per_address") > 0);
        assert_eq!(refused(&server, "requests_per_account"), 0);
    }
}

#[test]
fn requests_over_a_connection_are_refused_and_those_over_another_are_not() {
    for lean in [true, false] {
        let server = server(lean, &["--requests-per-second-per-connection", "10"]);
        let mut client = server.client();
        let mut statuses = (0..200).map(|_| call(&mut client, ONE, "POST", "/e", b"1").status);
        assert!(statuses.any(|status| status == 429));
        assert_eq!(call(&mut server.client(), ONE, "POST", "/e", b"1").status, 202);
        assert!(refused(&server, "requests_per_connection") > 0);
    }
}

#[test]
fn connections_of_an_address_are_refused_with_a_short_answer_and_free_again_when_one_ends() {
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let server = Server::start_with(&[lean, "--max-connections-per-address", "3"]);
        let mut held: Vec<Client> = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        // Readiness checks may still hold their connections.
        while held.len() < 3 {
            let mut client = server.client();
            if client.get("/health").is_ok_and(|answer| answer.status == 200) {
                held.push(client);
            }
            assert!(Instant::now() < deadline);
        }
        // No request is sent, so that a reset loses nothing.
        let answer = server.client().answer().expect("an answer");
        refusal(&answer, 503, "too-many-connections");
        assert_eq!(answer.header("connection"), Some("close"));
        let metrics = held[0].get("/metrics").unwrap().text();
        for line in [
            "wellspring_refused_total{reason=\"connections_per_address\"} ",
            "wellspring_connections_refused_total ",
        ] {
            let count = metrics.lines().find_map(|l| l.strip_prefix(line)).expect(line);
            assert!(count.parse::<u64>().unwrap() >= 1, "{line}");
        }
        held.pop();
        while !server.client().get("/health").is_ok_and(|answer| answer.status == 200) {
            assert!(Instant::now() < deadline, "what ended is still counted");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn bytes_that_came_and_went_are_owed_by_their_address() {
    let server = server(true, &["--bytes-per-second-per-address", "20000"]);
    let mut client = server.client();
    // 150 kB arrived: 100 kB are allowed, the rest is owed for two and a half seconds.
    call(&mut client, ONE, "POST", "/v1/append", &append(3, 50_000)).expect(200);
    let answer = call(&mut client, ONE, "GET", "/v1/head", b"");
    let seconds = refusal(&answer, 429, "too-many-bytes");
    assert!((1..=3).contains(&seconds), "{seconds}");
    // A page of them goes to the other client, which then owes it.
    assert_eq!(call(&mut client, OTHER, "GET", "/v1/events", b"").status, 200);
    refusal(&call(&mut client, OTHER, "POST", "/e", b"1"), 429, "too-many-bytes");
    assert!(refused(&server, "bytes_per_address") >= 2);
    std::thread::sleep(Duration::from_secs(seconds));
    call(&mut client, ONE, "GET", "/v1/head", b"").expect(200);
}

#[test]
fn a_client_over_its_read_quota_is_refused_for_a_while_and_all_else_continues() {
    let server = server(true, &["--read-ms-per-second-per-address", "1"]);
    let mut client = server.client();
    for _ in 0..5 {
        call(&mut client, OTHER, "POST", "/v1/append", &append(1_000, 100)).expect(200);
    }
    let reads: [(&str, &str, &[u8]); 5] = [
        ("GET", "/v1/events?limit=1000", b""),
        ("GET", "/v1/events?type=T&tag=a:1&limit=1000", b""),
        ("POST", "/read", br#"{"query":{"items":[{"types":["T"]}]}}"#),
        ("GET", "/v1/tags", b""),
        ("GET", "/api/urls?search=x", b""),
    ];
    let deadline = Instant::now() + PATIENCE;
    while call(&mut client, ONE, "GET", reads[0].1, b"").status == 200 {
        assert!(Instant::now() < deadline, "never refused");
    }
    // Deep in debt, so that none of it recovers while the others send requests.
    let answers = reads.map(|(method, path, body)| call(&mut client, ONE, method, path, body));
    let all = answers.iter().filter(|answer| answer.status == 429);
    assert!(all.count() >= 3, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.status == 429) {
        refusal(answer, 429, "reads-too-costly");
    }
    call(&mut client, ONE, "POST", "/v1/append", &append(1, 1)).expect(200);
    call(&mut client, ONE, "GET", "/v1/head", b"").expect(200);
    assert_eq!(call(&mut client, OTHER, "GET", reads[1].1, b"").status, 200);
    assert!(refused(&server, "reads_per_address") >= 3);
}

#[test]
fn a_stream_is_slowed_down_to_what_may_be_sent_and_is_whole() {
    let server = server(true, &["--bytes-per-second-per-address", "400000"]);
    let mut client = server.client();
    for from in ["192.0.2.10", "192.0.2.11", "192.0.2.12"] {
        call(&mut client, from, "POST", "/v1/append", &append(1_000, 1_000)).expect(200);
    }
    let begun = Instant::now();
    let headers = [("X-Forwarded-For", ONE), ("Accept", "application/x-ndjson")];
    let answer = client.call("GET", "/v1/events", &headers, b"").expect("an answer");
    assert_eq!(answer.status, 200);
    let (took, bytes) = (begun.elapsed().as_secs_f64(), answer.body.len() as f64);
    assert_eq!(answer.text().lines().count(), 3_000);
    // Two million are allowed at once; some pieces are in flight before they are charged.
    let least = (bytes - 2_000_000.0 - 1_000_000.0) / 400_000.0;
    assert!(took >= least, "{bytes} bytes took {took} s, at least {least} s were due");
}

#[test]
fn subscriptions_of_an_address_are_counted_while_they_last() {
    // A disconnect is noticed when something is sent.
    let server = server(true, &["--max-subscribers-per-address", "2", "--heartbeat-ms", "50"]);
    let subscribe = |from: &str| {
        let mut client = server.client();
        let request = format!(
            "GET /v1/events HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\nX-Forwarded-For: {from}\r\n\r\n"
        );
        client.send(request.as_bytes()).unwrap();
        client
    };
    let begun = |mut client: Client| {
        let (status, _) = client.head().unwrap();
        assert_eq!(status, 200);
        client
    };
    let held = [begun(subscribe(ONE)), begun(subscribe(ONE))];
    let answer = subscribe(ONE).answer().unwrap();
    refusal(&answer, 429, "too-many-subscriptions");
    assert_eq!(answer.json()["limit"], 2);
    let other = begun(subscribe(OTHER));
    assert_eq!(refused(&server, "subscriptions_per_address"), 1);
    drop(held);
    let mut patience = Patience::new();
    loop {
        let mut client = subscribe(ONE);
        if client.head().unwrap().0 == 200 {
            break;
        }
        patience.pause("what ended is still counted");
    }
    drop(other);
}

#[test]
fn what_was_limited_before_is_counted_too() {
    let server = Server::start_with(&[
        "--max-connections",
        "20",
        "--max-subscribers",
        "1",
        "--body-memory-bytes",
        "100000",
        "--link-creates-per-minute",
        "1",
    ]);
    let mut client = server.client();
    let subscribe = b"GET /v1/events HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\n\r\n";
    let mut first = server.client();
    first.send(subscribe).unwrap();
    assert_eq!(first.head().unwrap().0, 200);
    client.send(subscribe).unwrap();
    refusal(&client.answer().unwrap(), 503, "overloaded");
    let too_large = append(1, 200_000);
    let headers = [("Content-Type", "application/json")];
    let answer = client.call("POST", "/v1/append", &headers, &too_large).unwrap();
    refusal(&answer, 503, "overloaded");
    let mut client = server.client();
    let link = json!({"url": "https://example.com/a"});
    client.post("/api/urls", &link).unwrap().expect(201);
    refusal(&client.post("/api/urls", &link).unwrap(), 429, "too-many-links");
    let held: Vec<Client> = (0..30).map(|_| server.client()).collect();
    // Waits until they have been checked and released.
    std::thread::sleep(Duration::from_millis(200));
    drop(held);
    for reason in ["subscriptions", "body_memory", "links", "connections"] {
        let text = client.get("/metrics").unwrap().text();
        let label = format!("wellspring_refused_total{{reason=\"{reason}\"}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(&label)).expect("a figure");
        assert!(count.parse::<u64>().unwrap() >= 1, "{reason}");
    }
}

#[test]
fn an_account_has_its_own_limit_wherever_it_asks_from_and_with_whichever_credential() {
    const ADMIN: &str = "correct horse";
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let dir = tempfile::tempdir().unwrap();
        let password = format!("WELLSPRING_ADMIN_PASSWORD={ADMIN}");
        let flags = [lean, PROXY[0], PROXY[1], "--requests-per-second-per-account", "10"];
        let server = Server::start_under(&["env", &password], dir.path(), &flags);
        let mut client = server.client();
        let log_in = json!({"username": "admin", "password": ADMIN});
        let told = client.post("/auth/token", &log_in).unwrap().expect(200);
        let token = format!("Bearer {}", told["access_token"].as_str().unwrap());
        let mut ask = |credential: &str, from: &str, method: &str, path: &str, body: &[u8]| {
            let headers = [
                ("Authorization", credential),
                ("X-Forwarded-For", from),
                ("Content-Type", "application/json"),
            ];
            client.call(method, path, &headers, body).expect("an answer")
        };
        let made = ask(&token, ONE, "POST", "/v1/keys", br#"{"role":"writer"}"#).expect(201);
        let key = format!("Bearer {}", made["secret"].as_str().unwrap());
        let mut last = None;
        for n in 0..1_000 {
            let answer = ask(&token, &format!("192.0.2.{}", n % 200), "POST", "/e", b"1");
            if answer.status != 202 {
                last = Some(answer);
                break;
            }
        }
        let answer = last.expect("never refused");
        refusal(&answer, 429, "too-many-requests");
        assert!(answer.json()["detail"].as_str().unwrap().contains("this account"));
        // The key belongs to the same account.
        let answers: Vec<u16> =
            (0..30).map(|_| ask(&key, OTHER, "POST", "/e", b"1").status).collect();
        assert!(answers.contains(&429), "{answers:?}");
        // A caller without valid credentials is told only that.
        assert_eq!(ask("Bearer wrong", ONE, "POST", "/e", b"1").status, 401);
        assert_eq!(ask("Bearer wrong", ONE, "GET", "/health", b"").status, 200);
        let mut patience = Patience::new();
        let count = loop {
            let answer = ask(&token, ONE, "GET", "/metrics", b"");
            if answer.status == 200 {
                let label = "wellspring_refused_total{reason=\"requests_per_account\"} ";
                let text = answer.text();
                let count = text.lines().find_map(|line| line.strip_prefix(label));
                break count.expect("a figure").parse::<u64>().expect("a number");
            }
            patience.pause("refused for ever");
        };
        assert!(count >= 2, "{count}");
    }
}

#[test]
fn what_is_sent_with_a_free_request_is_charged() {
    let server = server(false, &["--bytes-per-second-per-address", "100000"]);
    let mut client = server.client();
    let body = vec![b'x'; 400_000];
    for (method, path) in [("OPTIONS", "/v1/append"), ("GET", "/health")] {
        for _ in 0..2 {
            assert!(call(&mut client, ONE, method, path, &body).status < 300);
        }
        // The answer comes before all of the body is charged.
        std::thread::sleep(Duration::from_millis(300));
        refusal(&call(&mut client, ONE, "GET", "/v1/head", b""), 429, "too-many-bytes");
        std::thread::sleep(Duration::from_secs(4));
    }
    // A similar path is not exempt.
    let answer = call(&mut client, ONE, "POST", "/health/x", &body);
    assert!([404, 429].contains(&answer.status), "{}", answer.status);
    assert_eq!(call(&mut client, OTHER, "GET", "/v1/head", b"").status, 200);
}
