//! The leadership moves from node to node: no acknowledged event is missing or duplicated, and no
//! read shows less than was answered.

use crate::client::Client;
use crate::done::StopSignal;
use crate::nodes::{NAMES, Nodes, TestEngine, append_somewhere, event, position_of, until};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

wellspring_test_support::over_each_engine! {
    with_leaders_killed_under_load_what_was_acknowledged_is_there_once
    a_linearizable_read_at_any_node_shows_every_write_that_was_answered
    what_any_node_accepted_is_stored_once_while_one_stops_and_the_lead_goes_on
}

/// A short timeout, so that others lead soon.
const SOON: [&str; 2] = ["--lead-timeout-ms", "500"];

/// How often each event's data occurs in the log.
fn times(events: &[Value]) -> HashMap<String, u64> {
    let mut times = HashMap::new();
    for event in events {
        *times.entry(event["data"].to_string()).or_default() += 1;
    }
    times
}

/// Checks that all nodes show the same log, that SQL has a row for each of its events, and that its
/// head is this.
fn all_show(engine: TestEngine, nodes: &Nodes, head: u64) -> Vec<Value> {
    let events = nodes.events(0, head);
    for node in 1..NAMES.len() {
        assert!(nodes.events(node, head) == events, "node {node} shows another log");
    }
    engine.until_rows(nodes, events.len());
    events
}

fn with_leaders_killed_under_load_what_was_acknowledged_is_there_once(engine: TestEngine) {
    let mut nodes = engine.nodes(&SOON);
    let addresses: Vec<SocketAddr> = (0..3).map(|node| nodes.address(node)).collect();
    let acknowledged = Mutex::new(Vec::<(String, u64)>::new());
    let done = StopSignal::default();
    thread::scope(|scope| {
        for client in 0..6 {
            let (addresses, acknowledged, done) = (&addresses, &acknowledged, &done);
            scope.spawn(move || {
                for n in 0.. {
                    if done.is_set() {
                        return;
                    }
                    let data = json!([client, n]);
                    let key = format!("k-{client}-{n}");
                    let position = append_somewhere(addresses, client, &key, &event(data.clone()));
                    acknowledged.lock().unwrap().push((data.to_string(), position));
                }
            });
        }
        let _ends = done.at_the_end();
        for _ in 0..4 {
            let before = acknowledged.lock().unwrap().len();
            until("writes", || acknowledged.lock().unwrap().len() > before + 50);
            let leader = nodes.leader();
            nodes.kill(leader);
            let before = acknowledged.lock().unwrap().len();
            until("writes without it", || acknowledged.lock().unwrap().len() > before + 20);
            nodes.start_again(leader);
        }
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    let head = acknowledged.iter().map(|&(_, position)| position).max().unwrap();
    let events = all_show(engine, &nodes, head);
    let times = times(&events);
    for (data, position) in &acknowledged {
        assert_eq!(times.get(data), Some(&1), "{data}");
        assert_eq!(events[*position as usize - 1]["data"].to_string(), *data);
    }
    assert!(times.values().all(|&times| times == 1));
}

fn a_linearizable_read_at_any_node_shows_every_write_that_was_answered(engine: TestEngine) {
    let nodes = engine.nodes(&[]);
    let reads = AtomicU64::new(0);
    thread::scope(|scope| {
        for writer in 0..3 {
            let (nodes, reads) = (&nodes, &reads);
            scope.spawn(move || {
                let mut clients: Vec<Client> = (0..3).map(|node| nodes.client(node)).collect();
                for n in 0..350 {
                    let here = (writer + n) % 3;
                    let answer = clients[here].post("/v1/append", &event(json!([writer, n])));
                    let written = position_of(&answer.unwrap());
                    for there in (0..3).filter(|&node| node != here) {
                        let path = match n % 2 {
                            0 => format!(
                                "/v1/events/{written}?consistency=linearizable&wait_ms=30000"
                            ),
                            _ => "/v1/head?consistency=linearizable&wait_ms=30000".to_owned(),
                        };
                        let read = clients[there].get(&path).unwrap();
                        let told = read.expect(200);
                        match n % 2 {
                            0 => assert_eq!(told["data"], json!([writer, n]), "{told}"),
                            _ => assert!(told["head"].as_u64().unwrap() >= written, "{told}"),
                        }
                        reads.fetch_add(1, SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(reads.load(SeqCst), 3 * 350 * 2);
}

/// Over PostgreSQL, where `system` can be told to move.
fn what_any_node_accepted_is_stored_once_while_one_stops_and_the_lead_goes_on(engine: TestEngine) {
    let mut nodes = engine.nodes(&SOON);
    let accepted: Vec<AtomicU64> = (0..6).map(|_| AtomicU64::new(0)).collect();
    let done = StopSignal::default();
    let total = || accepted.iter().map(|count| count.load(SeqCst)).sum::<u64>();
    let stopped = nodes.leader();
    thread::scope(|scope| {
        for (client, accepted) in accepted.iter().enumerate() {
            let (address, done) = (nodes.address(client % 3), &done);
            scope.spawn(move || {
                let mut connection = Client::connect(address).unwrap();
                for n in 0u64.. {
                    if done.is_set() {
                        return;
                    }
                    let body = json!([client, n]).to_string();
                    let headers = [("Content-Type", "application/json")];
                    match connection.call("POST", "/e", &headers, body.as_bytes()) {
                        Ok(answer) if answer.status == 202 => {
                            accepted.store(n + 1, SeqCst);
                            // Paced so that any machine can store what is accepted.
                            thread::sleep(Duration::from_millis(1));
                        }
                        // From a node that is stopping or gone.
                        Ok(answer) => assert!(matches!(answer.status, 429 | 503), "{answer:?}"),
                        Err(_) => return,
                    }
                }
            });
        }
        let _ends = done.at_the_end();
        let more = || {
            let before = total();
            until("more is accepted", || total() > before + 500);
        };
        more();
        nodes.stop(stopped);
        more();
        let to = nodes.followers()[0];
        let body = json!({"to": NAMES[to]});
        // Its claim competes with what the leader appends: on a busy machine it may take longer.
        until("the lead is transferred", || {
            let led = nodes.client(to).post("/v1/cluster/transfer", &body).unwrap();
            assert!(matches!(led.status, 200 | 503), "{}", led.text());
            led.status == 200 && led.json()["node"] == NAMES[to]
        });
        more();
    });
    // At rest the account of each node adds up.
    for node in (0..3).filter(|&node| node != stopped) {
        let count = |account: &Value, of: &str| account[of]["events"].as_u64().unwrap();
        until("everything is stored", || {
            let account = nodes.client(node).get("/v1/ingest").unwrap().expect(200);
            assert_eq!((count(&account, "dropped"), count(&account, "shed")), (0, 0), "{account}");
            count(&account, "in_flight") == 0
                && count(&account, "accepted") == count(&account, "stored")
        });
    }
    nodes.start_again(stopped);
    let head = nodes.client(stopped).get("/v1/head?consistency=linearizable").unwrap();
    let head = head.expect(200)["head"].as_u64().unwrap();
    let times = times(&all_show(engine, &nodes, head));
    for (client, accepted) in accepted.iter().enumerate() {
        for n in 0..accepted.load(SeqCst) {
            let data = json!([client, n]).to_string();
            assert_eq!(times.get(&data), Some(&1), "{data} of node {}", client % 3);
        }
    }
    assert!(times.values().all(|&times| times == 1));
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    wellspring_test_support::over_each_engine! {
        a_rolling_restart_fails_no_request_of_a_node_that_runs
    }

    /// Requests to a node until another one has stopped and started again; the longest one.
    fn ask_meanwhile(address: SocketAddr, round: usize, done: &StopSignal) -> Duration {
        let mut client = Client::connect(address).unwrap().patient();
        let mut longest = Duration::ZERO;
        for n in 0.. {
            if done.is_set() {
                break;
            }
            let asked = Instant::now();
            let data = json!([address.port(), round, n]);
            let last = position_of(&client.post("/v1/append", &event(data)).unwrap());
            let read = client.get("/v1/head?consistency=linearizable").unwrap().expect(200);
            assert!(read["head"].as_u64().unwrap() >= last);
            longest = longest.max(asked.elapsed());
        }
        longest
    }

    fn a_rolling_restart_fails_no_request_of_a_node_that_runs(engine: TestEngine) {
        // If a lead were not handed over, no other node would take it for this long.
        let mut nodes = engine.nodes(&["--lead-timeout-ms", "8000"]);
        let first = nodes.leader();
        // The second leader follows by chance: each of them is stopped.
        for round in 0..3 {
            let stopped = (first + round) % 3;
            let done = StopSignal::default();
            let others = (0..3).filter(|&node| node != stopped);
            let others: Vec<SocketAddr> = others.map(|node| nodes.address(node)).collect();
            let longest = thread::scope(|scope| {
                let asking = others.iter().map(|&address| {
                    let done = &done;
                    scope.spawn(move || ask_meanwhile(address, round, done))
                });
                let asking: Vec<_> = asking.collect();
                {
                    let _ends = done.at_the_end();
                    thread::sleep(Duration::from_millis(500));
                    nodes.stop(stopped);
                    thread::sleep(Duration::from_millis(500));
                    nodes.start_again(stopped);
                }
                asking.into_iter().map(|asking| asking.join().unwrap()).max().unwrap()
            });
            eprintln!("round {round}: the longest request took {longest:?}");
            assert!(longest < Duration::from_secs(3), "nobody led for {longest:?}");
        }
    }
}
