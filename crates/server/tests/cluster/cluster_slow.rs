//! Nodes over a PostgreSQL whose commits take long: one of them keeps the lead, and all serve.

use crate::nodes::{NAMES, Nodes, event, position_of};
use crate::postgres;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const COMMIT_MS: u64 = 300;
const WATCHED: Duration = Duration::from_secs(20);
const LOGS: [&str; 3] = ["main", "orders", "payments"];

/// Who leads, and since which claim, as a node knows it.
fn lead(nodes: &Nodes, node: usize) -> Value {
    nodes.client(node).get("/v1/cluster").unwrap().expect(200)["leader"].clone()
}

#[test]
fn over_commits_of_300_ms_one_node_keeps_the_lead_and_all_serve() {
    let Some(postgres) = postgres::own_slow("slow commits", COMMIT_MS) else { return };
    // The disks of the nodes may be slow as well.
    let nodes = Nodes::start(postgres.new_journal(), &["--leader-wait-ms", "30000"]);
    for log in &LOGS[1..] {
        nodes.client(0).call("PUT", &format!("/v1/logs/{log}"), &[], b"").unwrap().expect(201);
    }
    let leader = nodes.leader();
    for log in LOGS {
        let path = format!("/v1/logs/{log}/append");
        position_of(&nodes.client(leader).post(&path, &event("before")).unwrap());
    }
    let led = lead(&nodes, leader);
    let begun = Instant::now();
    let goes_on = || begun.elapsed() < WATCHED;
    let served: Vec<AtomicU64> = (0..12).map(|_| AtomicU64::new(0)).collect();
    let ended = thread::scope(|scope| {
        let mut clients = Vec::new();
        for (n, served) in served.iter().enumerate() {
            let (node, nodes) = (n % NAMES.len(), &nodes);
            clients.push(scope.spawn(move || {
                let mut client = nodes.client(node);
                while goes_on() {
                    match LOGS.get(n / NAMES.len()) {
                        Some(log) => {
                            let path = format!("/v1/logs/{log}/append");
                            let body = event(json!([n, served.load(SeqCst)]));
                            position_of(&client.post(&path, &body).unwrap());
                        }
                        None => {
                            let path = "/v1/head?consistency=linearizable&wait_ms=30000";
                            client.get(path).unwrap().expect(200);
                        }
                    }
                    served.fetch_add(1, SeqCst);
                }
            }));
        }
        clients.into_iter().filter_map(|client| client.join().err()).count() == 0
    });
    let served: Vec<u64> = served.iter().map(|served| served.load(SeqCst)).collect();
    if !ended {
        for (node, name) in NAMES.iter().enumerate() {
            eprintln!("log of {name}: {:#?}", nodes.node(node).log());
        }
    }
    println!("answers of each client in {:?}: {served:?}", begun.elapsed());
    for node in 0..NAMES.len() {
        assert_eq!(lead(&nodes, node), led, "at node {node}");
    }
    assert!(ended && served.iter().all(|&served| served >= 3), "{served:?}");
}
