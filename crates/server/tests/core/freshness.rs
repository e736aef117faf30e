//! A reader or subscriber never sees position N without all before N; a
//! subscription across a restart misses and repeats nothing.

use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

fn append(client: &mut Client, n: u64) {
    let parity = if n.is_multiple_of(2) { "even" } else { "odd" };
    let events = [json!({"type": "Counted", "tags": [parity], "data": n})];
    client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
}

/// Reads SSE events until `last` has been seen; returns their ids.
fn follow(client: &mut Client, path: &str, from: u64, last: u64) -> Vec<u64> {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\nLast-Event-ID: {from}\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    let (status, headers) = client.head().unwrap();
    assert_eq!(status, 200);
    let content_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    assert!(content_type.unwrap().1.starts_with("text/event-stream"));
    let mut seen = Vec::new();
    let mut id = None;
    while let Some(line) = client.line().unwrap() {
        if let Some(text) = line.strip_prefix("id:") {
            let position = text.split('@').next().unwrap();
            id = Some(position.trim().parse::<u64>().unwrap());
        } else if let Some(text) = line.strip_prefix("data:") {
            let event: Value = serde_json::from_str(text).unwrap();
            if let Some(position) = event["position"].as_u64() {
                assert_eq!(id, Some(position));
                assert_eq!(event["data"], position);
                seen.push(position);
                if position >= last {
                    break;
                }
            }
        }
    }
    seen
}

#[test]
fn readers_and_subscribers_see_a_prefix_while_writers_write() {
    let server = Server::start();
    let done = AtomicBool::new(false);
    const EVENTS: u64 = 400;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            (1..=EVENTS).for_each(|n| append(&mut client, n));
            done.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                let mut newest = 0;
                while !done.load(Ordering::SeqCst) {
                    let answer = client.get("/v1/events?order=desc&limit=1").unwrap().expect(200);
                    let Some(position) = answer["events"][0]["position"].as_u64() else { continue };
                    assert!(position >= newest, "time went back");
                    newest = position;
                    let path = format!("/v1/events?after={}&limit=50", position.saturating_sub(50));
                    let answer = client.get(&path).unwrap().expect(200);
                    let positions = answer["events"].as_array().unwrap();
                    let expected = position.saturating_sub(50) + 1..=position;
                    let seen: Vec<u64> =
                        positions.iter().map(|event| event["position"].as_u64().unwrap()).collect();
                    assert!(seen.starts_with(&expected.collect::<Vec<_>>()), "{seen:?}");
                }
            });
        }
        scope.spawn(|| {
            let seen = follow(&mut server.client(), "/v1/events", 0, EVENTS);
            assert_eq!(seen, (1..=EVENTS).collect::<Vec<_>>());
        });
        scope.spawn(|| {
            let seen = follow(&mut server.client(), "/v1/events?tag=even", 0, EVENTS);
            assert_eq!(seen, (1..=EVENTS).filter(|n| n.is_multiple_of(2)).collect::<Vec<_>>());
        });
    });
}

#[test]
fn a_subscription_across_a_restart_misses_and_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for round in 0..3u64 {
        let server = Server::start_in(dir.path(), &[]);
        let last = (round + 1) * 50;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = server.client();
                (round * 50 + 1..=last).for_each(|n| append(&mut client, n));
            });
            let from = seen.last().copied().unwrap_or(0);
            seen.extend(follow(&mut server.client(), "/v1/events", from, last));
        });
        server.kill();
    }
    assert_eq!(seen, (1..=150).collect::<Vec<_>>());
}

#[test]
fn a_read_waits_for_the_position_it_demands_or_says_not_yet() {
    let server = Server::start();
    let mut client = server.client();
    append(&mut client, 1);
    let demand = |client: &mut Client, position: &str| {
        let headers = [("Wellspring-Min-Position", position)];
        client.call("GET", "/v1/events?wait_ms=50", &headers, b"").unwrap()
    };
    let answer = demand(&mut client, "1");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("wellspring-position"), Some("1"));
    demand(&mut client, "2").problem(503);
    demand(&mut client, "two").problem(400);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let headers = [("Wellspring-Min-Position", "2")];
            server.client().call("GET", "/v1/events?wait_ms=9000", &headers, b"").unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(30));
        append(&mut client, 2);
        let answer = waiting.join().unwrap().expect(200);
        assert_eq!(answer["events"].as_array().unwrap().len(), 2);
    });
}
