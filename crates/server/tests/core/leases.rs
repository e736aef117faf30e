//! Leases whose clients leave.

use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A waiting request outlives its client by up to a second. What it was granted in that second
/// would keep all others out for its whole time.
#[test]
fn a_waiter_that_has_left_is_granted_nothing() {
    let server = Server::start();
    let mut client = server.client();
    let asked = json!({"ttl_ms": 60_000});
    let held = client.post("/v1/leases/mail", &asked).unwrap().expect(201);
    let mut leaves = TcpStream::connect(server.address).unwrap();
    let body = r#"{"ttl_ms":60000,"wait_ms":60000}"#;
    let head =
        "POST /v1/leases/mail HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    write!(leaves, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    // It is the first in line.
    std::thread::sleep(Duration::from_millis(300));
    let mut stays = server.client();
    let next = std::thread::spawn(move || {
        let asked = json!({"ttl_ms": 60_000, "wait_ms": 30_000});
        stays.post("/v1/leases/mail", &asked).unwrap()
    });
    std::thread::sleep(Duration::from_millis(200));
    drop(leaves);
    std::thread::sleep(Duration::from_millis(300));
    let release = format!("/v1/leases/mail?token={}", held["token"]);
    client.call("DELETE", &release, &[], b"").unwrap().expect(200);
    next.join().unwrap().expect(201);
}

/// One that has only shut its side may still read an answer; it is never a grant.
#[test]
fn a_waiter_that_has_shut_its_side_is_told_that_the_lease_is_held() {
    let server = Server::start();
    let mut client = server.client();
    let held = client.post("/v1/leases/mail", &json!({"ttl_ms": 60_000})).unwrap().expect(201);
    let mut waits = TcpStream::connect(server.address).unwrap();
    let body = r#"{"ttl_ms":60000,"wait_ms":60000}"#;
    let head =
        "POST /v1/leases/mail HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    write!(waits, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    waits.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let release = format!("/v1/leases/mail?token={}", held["token"]);
    client.call("DELETE", &release, &[], b"").unwrap().expect(200);
    // On a loaded machine these pauses may last longer than a request outlives its client.
    if let Ok(answer) = Client::from(waits).answer() {
        assert_eq!(answer.problem(409)["type"], "/problems/lease-held");
    }
    let waited = json!({"ttl_ms": 1_000, "wait_ms": 30_000});
    client.post("/v1/leases/mail", &waited).unwrap().expect(201);
}

/// The answer to an acquire may be lost. Under a name of its own the client asks again.
#[test]
fn a_holder_that_asks_again_gets_the_same_token() {
    let server = Server::start();
    let mut client = server.client();
    let asked = json!({"ttl_ms": 60_000, "holder": "importer on a"});
    let first = client.post("/v1/leases/mail", &asked).unwrap().expect(201);
    let again = client.post("/v1/leases/mail", &asked).unwrap().expect(201);
    assert_eq!((&again["token"], &again["ttl_ms"]), (&first["token"], &json!(60_000)));
    let other = json!({"ttl_ms": 60_000, "holder": "importer on b"});
    client.post("/v1/leases/mail", &other).unwrap().problem(409);
    client.post("/v1/leases/mail", &json!({"ttl_ms": 60_000})).unwrap().problem(409);
    for (wrong, status) in [("", 422), ("a\nb", 422), (&*"h".repeat(256), 413)] {
        let asked = json!({"ttl_ms": 60_000, "holder": wrong});
        let problem = client.post("/v1/leases/mail", &asked).unwrap().problem(status);
        assert_eq!(problem["field"], "holder", "{problem}");
    }
}

/// A subscription whose beginning has arrived.
fn subscribed(server: &Server, head: &str, body: &str) -> Client {
    let mut client = server.client();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    client.send(request.as_bytes()).unwrap();
    while client.line().unwrap().expect("a stream") != ": wellspring" {}
    client
}

/// The types of its events, and the problem that it ends with.
fn rest_of(mut subscription: Client) -> (Vec<String>, Value) {
    let mut all = Vec::new();
    while let Some(line) = subscription.line().unwrap() {
        all.push(line);
    }
    assert!(all.iter().any(|line| line == "0"), "it ends, and does not break off: {all:?}");
    let named = all.iter().position(|line| line == "event: problem").expect("a problem");
    let data = |line: &String| line.strip_prefix("data: ").map(|data| data.parse().unwrap());
    let types = all[..named].iter().filter_map(data).map(|event: Value| event["type"].to_string());
    (types.collect(), data(&all[named + 1]).expect("its document"))
}

fn percent_encoded(json: &Value) -> String {
    json.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn a_subscription_ends_with_its_lease_and_says_why() {
    let server = Server::start();
    let mut client = server.client();
    let event = |n: u64| json!({"events": [{"type": format!("T{n}"), "data": 1}]});
    let mut fence = |ttl_ms: u64| {
        let lease = client.post("/v1/leases/mail", &json!({"ttl_ms": ttl_ms})).unwrap().expect(201);
        json!({"lease": "mail", "token": lease["token"]})
    };
    // Released, while it waits for events.
    let held = fence(60_000);
    let body = json!({"query": {"items": []}, "fence": held}).to_string();
    let waits = subscribed(&server, "POST /v1/query", &body);
    let mut other = server.client();
    other.post("/v1/append", &event(1)).unwrap().expect(200);
    let release = format!("/v1/leases/mail?token={}", held["token"]);
    other.call("DELETE", &release, &[], b"").unwrap().expect(200);
    let (_, problem) = rest_of(waits);
    assert_eq!(
        (&problem["type"], &problem["field"]),
        (&json!("/problems/lease-lost"), &json!("fence"))
    );
    // Its time is up, which a renewal has put forward.
    let held = fence(60_000);
    let path = format!("GET /v1/events?fence={}", percent_encoded(&held));
    let waits = subscribed(&server, &path, "");
    let renewal = json!({"ttl_ms": 1_000, "token": held["token"]});
    let headers = [("Content-Type", "application/json")];
    let asked = Instant::now();
    let renewed = other.call("PUT", "/v1/leases/mail", &headers, renewal.to_string().as_bytes());
    renewed.unwrap().expect(200);
    let (types, problem) = rest_of(waits);
    assert!(asked.elapsed() >= Duration::from_secs(1), "{:?}", asked.elapsed());
    assert_eq!(
        (types.as_slice(), &problem["status"]),
        ([r#""T1""#.to_owned()].as_slice(), &json!(409))
    );
    // It had ended before.
    let path = format!("/v1/events?fence={}", percent_encoded(&held));
    let events = [("Accept", "text/event-stream")];
    let problem = other.call("GET", &path, &events, b"").unwrap().problem(409);
    assert_eq!(
        (&problem["type"], &problem["field"]),
        (&json!("/problems/lease-lost"), &json!("fence"))
    );
    // A page ends by itself.
    assert_eq!(other.get(&path).unwrap().problem(422)["field"], "fence");
}
