//! Redirects on connections of the lean loop: thousands followed between events, each click counted
//! once, visitors recognized after a restart, and no address stored.

use crate::client::Client;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Follows a link this many times in one burst, with an event in between, and reads every answer.
fn follow(client: &mut Client, code: &str, times: usize) {
    let one = format!(
        "GET /{code} HTTP/1.1\r\nHost: l\r\nUser-Agent: curl/8.5.0\r\nReferer: https://a.example/x\r\n\r\n\
         POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n\r\n1"
    );
    client.send(one.repeat(times).as_bytes()).unwrap();
    for _ in 0..times {
        let answer = client.answer().unwrap();
        assert_eq!(answer.status, 302);
        assert_eq!(answer.header("location"), Some("http://example.com/target"));
        assert_eq!(answer.header("cache-control"), Some("private, no-store"));
        assert_eq!(answer.header("referrer-policy"), Some("strict-origin-when-cross-origin"));
        client.answer().unwrap().expect(202);
    }
}

fn details(server: &Server, code: &str) -> Value {
    server.client().get(&format!("/api/urls/{code}")).unwrap().expect(200)
}

/// Whether any file below contains these bytes.
fn holds(dir: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return holds(&path, bytes);
        }
        let held = fs::read(&path).unwrap();
        held.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn every_followed_link_is_counted_once_and_at_once_on_either_loop() {
    for flags in BOTH_LOOPS {
        let server = Server::start_with(&flags);
        let link = json!({"url": "http://example.com/target", "alias": "Yci"});
        server.client().post("/api/urls", &link).unwrap().expect(201);
        let mut client = server.client();
        for round in 1..=5 {
            follow(&mut client, "Yci", 200);
            // Every answered click is in the counts, without a wait.
            let details = details(&server, "Yci");
            assert_eq!(details["clicks"], round * 200);
            assert_eq!(details["visitors"], 1);
        }
        // Another stack, the same visitor.
        client.get("/health").unwrap().expect(200);
        follow(&mut client, "Yci", 50);
        let details = details(&server, "Yci");
        assert_eq!((&details["clicks"], &details["visitors"]), (&1050.into(), &1.into()));
        let events = client.get("/v1/events?type=LinkClicked&limit=1").unwrap().expect(200);
        let data = &events["events"][0]["data"];
        assert_eq!((&data["agent"], &data["referrer"]), (&"curl".into(), &"a.example".into()));
    }
}

#[test]
fn a_visitor_is_known_again_after_a_restart_and_nothing_holds_the_address() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(dir.path(), &[]);
    let link = json!({"url": "http://example.com/target", "alias": "Yci"});
    server.client().post("/api/urls", &link).unwrap().expect(201);
    follow(&mut server.client(), "Yci", 10);
    server.terminate();
    assert!(holds(dir.path(), b"clicked:Yci"));
    assert!(!holds(dir.path(), b"127.0.0.1"), "the address was kept");
    let server = Server::start_in(dir.path(), &[]);
    follow(&mut server.client(), "Yci", 10);
    let details = details(&server, "Yci");
    assert_eq!((&details["clicks"], &details["visitors"]), (&20.into(), &1.into()));
}

#[test]
fn a_code_that_leads_nowhere_does_not_end_a_connection_and_no_code_is_a_route() {
    let server = Server::start_with(&["--link-accept-events"]);
    let mut client = server.client();
    let link = json!({"url": "http://example.com/target", "alias": "Yci"});
    client.post("/api/urls", &link).unwrap().expect(201);
    // As if restored from an export; a route takes precedence over a code.
    let event = json!({"type": "LinkCreated", "tags": ["link:health"],
        "data": {"url": "http://evil.example/", "chosen": "alias"}});
    client.post("/v1/append", &json!({"events": [event]})).unwrap().expect(200);
    let mut client = server.client();
    for code in ["nope", "Yci", "nope"] {
        let answer = client.get(&format!("/{code}")).unwrap();
        if code == "nope" {
            assert_eq!(answer.problem(404)["error"], "URL not found");
        } else {
            assert_eq!(answer.status, 302);
        }
    }
    assert_eq!(client.get("/health").unwrap().expect(200)["status"], "healthy");
}
