//! Nodes over a PostgreSQL whose commits take long: one of them keeps the lead, and all serve.

use crate::nodes::{NAMES, Nodes, event, position_of};
use crate::postgres::{self, Postgres, schema_of};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const COMMIT: Duration = Duration::from_millis(300);
const WATCHED: Duration = Duration::from_secs(20);
const LOGS: [&str; 3] = ["main", "orders", "payments"];

/// From now on each commit that adds an entry, or asks for the end, takes [`COMMIT`] longer, and
/// holds its locks meanwhile, as one does that waits for a disk or a standby.
fn slow_down(postgres: &Postgres, nodes: &Nodes) {
    let (schema, seconds) = (schema_of(&nodes.journal), COMMIT.as_secs_f64());
    postgres.sql(&format!(
        r#"CREATE FUNCTION "{schema}".slow() RETURNS trigger LANGUAGE plpgsql
               AS 'BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END';
           CREATE CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE ON "{schema}".ws_end
               DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "{schema}".slow();"#
    ));
}

/// Who leads, and since which claim, as a node knows it.
fn lead(nodes: &Nodes, node: usize) -> Value {
    nodes.client(node).get("/v1/cluster").unwrap().expect(200)["leader"].clone()
}

#[test]
fn over_commits_of_300_ms_one_node_keeps_the_lead_and_all_serve() {
    let Some(postgres) = postgres::shared("slow commits") else { return };
    let nodes = Nodes::start(postgres.new_journal(), &[]);
    for log in &LOGS[1..] {
        nodes.client(0).call("PUT", &format!("/v1/logs/{log}"), &[], b"").unwrap().expect(201);
    }
    let leader = nodes.leader();
    for log in LOGS {
        let path = format!("/v1/logs/{log}/append");
        position_of(&nodes.client(leader).post(&path, &event("before")).unwrap());
    }
    let led = lead(&nodes, leader);
    slow_down(postgres, &nodes);
    let begun = Instant::now();
    let goes_on = || begun.elapsed() < WATCHED;
    let served: Vec<AtomicU64> = (0..12).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for (n, served) in served.iter().enumerate() {
            let (node, nodes) = (n % NAMES.len(), &nodes);
            scope.spawn(move || {
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
            });
        }
    });
    let served: Vec<u64> = served.iter().map(|served| served.load(SeqCst)).collect();
    println!("answers of each client in {:?}: {served:?}", begun.elapsed());
    for node in 0..NAMES.len() {
        assert_eq!(lead(&nodes, node), led, "at node {node}");
    }
    assert!(served.iter().all(|&served| served >= 3), "{served:?}");
}
