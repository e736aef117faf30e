//! Idempotency keys and leases of one account are of no use to another, and keys of a bulk none to
//! a single request. Waiters for a lease get it in turn.

use crate::closed::Closed;
use crate::server::Server;
use serde_json::json;
use std::time::Duration;

#[test]
fn accounts_that_choose_the_same_idempotency_key_do_not_meet() {
    let closed = Closed::start();
    let [ann, bob] = ["ann", "bob"].map(|name| closed.add(name, &["writer"]));
    let append = |token: &str, data: u64| {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", "order-7"),
        ];
        let body = json!({"events": [{"type": "T", "tags": [], "data": data}]}).to_string();
        closed.client().call("POST", "/v1/append", &headers, body.as_bytes()).unwrap()
    };
    let first = append(&ann, 1).expect(200);
    for data in [1, 1] {
        let others = append(&bob, data).expect(200);
        assert_ne!(others["first"], first["first"], "bob's own event");
    }
    let again = append(&ann, 1).expect(200);
    assert_eq!((&again["first"], &again["replayed"]), (&first["first"], &json!(true)));
    append(&ann, 2).problem(422);
}

#[test]
fn a_lease_is_released_and_renewed_by_its_holder_alone() {
    let closed = Closed::start();
    let [eve, olga] = ["eve", "olga"].map(|name| closed.add(name, &["writer"]));
    let lease = closed.ask(&eve, "POST", "/v1/leases/job", &json!({"ttl_ms": 60_000})).expect(201);
    let path = format!("/v1/leases/job?token={}", lease["token"]);
    let renewal = json!({"ttl_ms": 60_000, "token": lease["token"]});
    closed.ask(&olga, "DELETE", &path, &serde_json::Value::Null).problem(409);
    closed.ask(&olga, "PUT", "/v1/leases/job", &renewal).problem(409);
    closed.ask(&eve, "PUT", "/v1/leases/job", &renewal).expect(200);
    closed.ask(&eve, "DELETE", &path, &serde_json::Value::Null).expect(200);
}

#[test]
fn a_bulk_and_a_single_request_never_share_a_key() {
    let server = Server::start();
    let mut client = server.client();
    let event = r#"{"type":"T","tags":[],"data":1}"#;
    let mut call = |content_type, key, body: &str| {
        let headers = [("Content-Type", content_type), ("Idempotency-Key", key)];
        client.call("POST", "/v1/append", &headers, body.as_bytes()).unwrap().expect(200)
    };
    call("application/x-ndjson", "K", event);
    let body = format!(r#"{{"events":[{event}]}}"#);
    let single = call("application/json", "K#0", &body);
    assert_eq!((&single["first"], &single["replayed"]), (&json!(2), &json!(false)));
    assert_eq!(call("application/json", "K#0", &body)["replayed"], true);
    let again = call("application/x-ndjson", "K", event);
    assert_eq!(again["first"], 1, "{again}");
}

#[test]
fn an_event_with_something_behind_it_on_its_line_is_not_appended() {
    let server = Server::start();
    let mut client = server.client();
    let event = r#"{"type":"T","tags":[],"data":1}"#;
    let body = format!("{event}\n{event} x\n{event}\n");
    let headers = [("Content-Type", "application/x-ndjson")];
    let answer = client.call("POST", "/v1/append", &headers, body.as_bytes()).unwrap();
    let problem = answer.problem(422);
    assert_eq!((&problem["line"], &problem["durable_lines"]), (&json!(2), &json!(1)), "{problem}");
    assert_eq!(client.get("/v1/events").unwrap().expect(200)["head"], 1);
}

#[test]
fn the_query_of_a_subscription_is_bounded() {
    let server = Server::start();
    let mut client = server.client();
    let headers = [("Content-Type", "application/json"), ("Accept", "text/event-stream")];
    let types: Vec<String> = (0..256).map(|n| format!("{n:0>250}")).collect();
    let query = json!({"query": {"items": [{"types": types}]}}).to_string();
    let answer = client.call("POST", "/v1/query", &headers, query.as_bytes()).unwrap();
    assert_eq!(answer.problem(413)["limit"], 65_536);
}

/// The lease outlasts the test: only the previous release admits the next waiter.
#[test]
fn clients_that_wait_for_a_lease_get_it_in_turn() {
    let server = Server::start();
    let acquire = json!({"ttl_ms": 600_000, "wait_ms": 25_000});
    let first = server.client().post("/v1/leases/job", &acquire).unwrap().expect(201);
    let release = |token: &serde_json::Value| {
        let path = format!("/v1/leases/job?token={token}");
        server.client().call("DELETE", &path, &[], b"").unwrap().expect(200);
    };
    std::thread::scope(|scope| {
        for waiter in 0..40u64 {
            let (server, acquire, release) = (&server, &acquire, &release);
            scope.spawn(move || {
                let mut client = server.client().patient();
                if waiter % 4 == 0 {
                    // Gives up while waiting, perhaps as the first in line.
                    let short = json!({"ttl_ms": 600_000, "wait_ms": 20 + waiter});
                    let answer = client.post("/v1/leases/job", &short).unwrap();
                    if answer.status != 201 {
                        answer.problem(409);
                        return;
                    }
                    release(&answer.json()["token"]);
                    return;
                }
                let lease = client.post("/v1/leases/job", acquire).unwrap().expect(201);
                release(&lease["token"]);
            });
        }
        std::thread::sleep(Duration::from_millis(300));
        release(&first["token"]);
    });
}
