//! Consumers of several nodes: workers ask any of them, and the leader is killed.

use crate::client::{Answer, Client};
use crate::nodes::{Nodes, TestEngine, append_somewhere, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use wellspring_patience::PATIENCE;

wellspring_test_support::over_each_engine! {
    with_leaders_killed_each_event_has_one_result_in_the_order_of_its_key
}

/// A short timeout, so that others lead soon.
const SOON: [&str; 2] = ["--lead-timeout-ms", "500"];
const KEYS: u64 = 7;
const EVENTS: u64 = 210;

/// Sends a request to one node after the other until one answers what is no passing trouble.
fn ask(addresses: &[SocketAddr], first: usize, path: &str, body: &Value) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    for at in first.. {
        let answer = Client::connect(addresses[at % addresses.len()])
            .and_then(|client| client.patient().post(path, body));
        match answer {
            Ok(answer) if !matches!(answer.status, 500..=599) => return answer,
            refused => assert!(Instant::now() < deadline, "{path}: {refused:?}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
    unreachable!("the loop ends")
}

/// Appends a result for each event, as one with its settlement, until all are there.
fn work(addresses: &[SocketAddr], number: usize, results: &AtomicU64) {
    let worker = format!("w{number}");
    for turn in 1_u64.. {
        if results.load(SeqCst) >= EVENTS {
            return;
        }
        let body = json!({"worker": worker, "turn": turn, "want": 3, "wait_ms": 500});
        let given = ask(addresses, number, "/v1/consumers/c/next", &body).expect(200);
        for delivery in given["deliveries"].as_array().unwrap() {
            let event = &delivery["events"][0];
            let settles =
                json!({"consumer": "c", "worker": worker, "delivery": delivery["delivery"]});
            let result = json!({"type": "Result", "tags": ["r:1"], "data": event["data"]});
            let body = json!({"events": [result], "settles": settles});
            let answer = ask(addresses, number + 1, "/v1/append", &body);
            match (answer.status, answer.json()["type"].as_str()) {
                (200, _) => {}
                (409, Some("/problems/delivery-lost" | "/problems/delivery-settled")) => {}
                _ => panic!("{}", answer.text()),
            }
        }
        results.fetch_max(results_of(addresses, number), SeqCst);
    }
}

/// How many results a node knows.
fn results_of(addresses: &[SocketAddr], first: usize) -> u64 {
    let query = json!({"query": {"items": [{"types": ["Result"]}]}, "limit": 1000});
    let page = ask(addresses, first, "/v1/query?consistency=local", &query).expect(200);
    page["events"].as_array().unwrap().len() as u64
}

fn with_leaders_killed_each_event_has_one_result_in_the_order_of_its_key(engine: TestEngine) {
    let mut nodes = engine.nodes(&SOON);
    let addresses: Vec<SocketAddr> = (0..3).map(|node| nodes.address(node)).collect();
    nodes.leader();
    for number in 0..EVENTS {
        let tags = json!([format!("k:{}", number % KEYS)]);
        let event = json!({"events": [{"type": "T", "tags": tags, "data": number}]});
        append_somewhere(&addresses, number as usize, &format!("k-{number}"), &event);
    }
    let definition =
        json!({"query": {"items": [{"types": ["T"]}]}, "key": {"tag": "k"}, "hold_ms": 2_000});
    let headers = [("Content-Type", "application/json")];
    let body = definition.to_string();
    let follower = nodes.followers()[0];
    let mut client = nodes.client(follower).patient();
    client.call("PUT", "/v1/consumers/c", &headers, body.as_bytes()).unwrap().expect(201);
    let results = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..4 {
            let (addresses, results) = (&addresses, &results);
            scope.spawn(move || work(addresses, number, results));
        }
        for killed in 1..=2 {
            until("results", || results.load(SeqCst) >= killed * EVENTS / 4);
            let leader = nodes.leader();
            nodes.kill(leader);
            nodes.leader();
            nodes.start_again(leader);
        }
    });
    let head = client_head(&nodes);
    let events = nodes.events(0, head);
    let mut by_key: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["type"] == "Result") {
        let number = event["data"].as_u64().unwrap();
        by_key.entry(number % KEYS).or_default().push(number);
    }
    for (key, numbers) in by_key {
        let expected: Vec<u64> = (0..EVENTS).filter(|number| number % KEYS == key).collect();
        assert_eq!(numbers, expected, "key {key}");
    }
}

fn client_head(nodes: &Nodes) -> u64 {
    let leader = nodes.leader();
    nodes.client(leader).get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap()
}
