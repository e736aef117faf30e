//! What a condition may cost: its size is bounded at the door, its time is charged to its client.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};

fn post(client: &mut Client, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/json")];
    client.call("POST", path, &headers, body.to_string().as_bytes()).expect("an answer")
}

/// A query of so many items, each of so many types and tags, none like another.
fn query(items: usize, types: usize, tags: usize) -> Value {
    let item = |i: usize| {
        let of = |name: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{name}:{i}:{n}")).collect()
        };
        json!({"types": of("T", types), "tags": of("t", tags)})
    };
    json!({"items": (0..items).map(item).collect::<Vec<_>>()})
}

fn append_if(query: &Value) -> Value {
    json!({
        "events": [{"type": "T", "tags": ["a:1"], "data": 1}],
        "condition": {"failIfEventsMatch": query},
    })
}

#[test]
fn a_query_of_too_many_terms_is_refused_wherever_it_is_asked() {
    let server = Server::start();
    let mut client = server.client();
    let too_many = query(16, 256, 64);
    let cases = [
        ("/v1/append", append_if(&too_many), "condition.failIfEventsMatch.items"),
        ("/v1/query", json!({"query": too_many}), "query.items"),
    ];
    for (path, body, field) in cases {
        let problem = post(&mut client, path, &body).problem(422);
        assert_eq!((&problem["field"], &problem["limit"]), (&json!(field), &json!(4096)));
        assert!(problem["detail"].as_str().unwrap().contains("several queries"), "{problem}");
    }
    // The largest that are legal: many items, large items, and 256 items of whatever fits.
    for (items, types, tags) in [(256, 12, 4), (12, 256, 64), (64, 0, 64), (1, 256, 64)] {
        let legal = query(items, types, tags);
        let answer = post(&mut client, "/v1/append", &append_if(&legal));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = post(&mut client, "/v1/query", &json!({"query": legal}));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[test]
fn a_dear_condition_is_judged_and_charged_to_its_client_and_others_append() {
    let proxy = ["--trusted-proxies", "127.0.0.1", "--read-ms-per-second-per-address", "1"];
    let server = Server::start_with(&proxy);
    let mut client = server.client();
    let mut call = |from: &str, body: &Value| {
        let headers = [("X-Forwarded-For", from), ("Content-Type", "application/json")];
        client.call("POST", "/v1/append", &headers, body.to_string().as_bytes()).expect("an answer")
    };
    // Any two of three tags meet often, all three never: intersecting them takes long.
    let pairs = [["a", "b"], ["b", "c"], ["a", "c"]];
    for chunk in 0..20 {
        let event = |i: usize| json!({"type": "T", "tags": pairs[(chunk + i) % 3], "data": 1});
        let events: Vec<_> = (0..1000).map(event).collect();
        assert_eq!(call("192.0.2.9", &json!({ "events": events })).status, 200);
    }
    let dear = append_if(&json!({"items": [{"tags": ["a", "b", "c"]}]}));
    let plain = json!({"events": [{"type": "T", "tags": ["d"], "data": 1}]});
    let mut taken = 0;
    let refused = loop {
        let answer = call("192.0.2.1", &dear);
        match answer.status {
            200 => taken += 1,
            _ => break answer,
        }
        assert!(taken < 10_000, "never refused");
    };
    let problem = refused.problem(429);
    assert_eq!(problem["type"], "/problems/reads-too-costly", "{problem}");
    assert!(taken > 0, "the first is judged");
    assert_eq!(call("192.0.2.1", &plain).status, 200, "an append without a condition is taken");
    assert_eq!(call("192.0.2.2", &dear).status, 200, "others are judged");
}
