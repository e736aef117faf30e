//! Leads of several logs on several nodes: where they are, that they move without a failed request,
//! and that a node's death concerns its own logs alone.

use crate::client::Client;
use crate::done::StopSignal;
use crate::nodes::{NAMES, Nodes, TestEngine, event, position_of, until};
use crate::program::run;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

wellspring_test_support::over_each_engine! {
    the_logs_of_a_node_that_dies_are_led_by_others_and_no_other_log_waits
    a_log_is_pinned_and_moves_without_a_failed_request
    a_placer_that_was_suspended_takes_no_log_that_another_node_leads
    redirected_clients_find_the_leader_while_it_moves
}

const LOGS: [&str; 3] = ["main", "orders", "stock"];

/// Three nodes and three logs, each led by another node.
fn spread(engine: TestEngine, flags: &[&str]) -> Nodes {
    let nodes = engine.nodes(flags);
    until("all are known", || {
        let told = nodes.client(nodes.leader()).get("/v1/cluster").unwrap().expect(200);
        told["nodes"].as_array().is_some_and(|nodes| nodes.len() == 3)
    });
    for log in &LOGS[1..] {
        let made =
            nodes.client(nodes.leader()).call("PUT", &format!("/v1/logs/{log}"), &[], b"").unwrap();
        assert!(made.status < 300, "{made:?}");
    }
    until("each node leads one", || {
        let leaders: BTreeSet<usize> = LOGS.iter().filter_map(|log| leader(&nodes, log)).collect();
        leaders.len() == 3
    });
    nodes
}

/// What a node says of a log.
fn state(nodes: &Nodes, node: usize, log: &str) -> Value {
    let told = nodes.client(node).get("/v1/cluster").unwrap().expect(200);
    let logs = told["logs"].as_array().unwrap();
    logs.iter().find(|state| state["log"] == *log).cloned().unwrap_or_default()
}

/// The node that says it leads a log.
fn leader(nodes: &Nodes, log: &str) -> Option<usize> {
    let up = (0..NAMES.len()).filter(|&node| nodes.is_up(node));
    up.into_iter().find(|&node| state(nodes, node, log)["role"] == "leading")
}

fn append(client: &mut Client, log: &str, data: impl Into<Value>) -> u64 {
    position_of(&client.post(&format!("/v1/logs/{log}/append"), &event(data)).unwrap())
}

fn the_logs_of_a_node_that_dies_are_led_by_others_and_no_other_log_waits(engine: TestEngine) {
    // That its process is gone shows before a lead timeout: a write waits for less.
    let mut nodes = spread(engine, &["--lead-timeout-ms", "3000", "--leader-wait-ms", "2000"]);
    for (at, log) in LOGS.into_iter().enumerate() {
        for node in 0..3 {
            append(&mut nodes.client(node), log, json!([at, node]));
        }
    }
    let placer = nodes.leader();
    let (dies, log) = (0..3)
        .filter(|&node| node != placer)
        .find_map(|node| Some((node, *LOGS.iter().find(|log| leader(&nodes, log) == Some(node))?)))
        .expect("each leads one");
    nodes.kill(dies);
    let others = LOGS.into_iter().filter(|other| *other != log);
    for (at, other) in others.enumerate() {
        let node = (0..3).filter(|&node| node != dies).nth(at).unwrap();
        append(&mut nodes.client(node), other, "at once");
    }
    let begun = Instant::now();
    append(&mut nodes.client(placer), log, "later");
    println!("no writes to {log} for {:?}", begun.elapsed());
    nodes.start_again(dies);
    let heads = LOGS.map(|log| {
        let path = format!("/v1/logs/{log}/head?consistency=linearizable");
        nodes.client(dies).get(&path).unwrap().expect(200)["head"].as_u64().unwrap()
    });
    assert_eq!(heads, [4; 3]);
}

fn a_log_is_pinned_and_moves_without_a_failed_request(engine: TestEngine) {
    let nodes = spread(engine, &[]);
    let done = StopSignal::default();
    let waits = Mutex::new(Vec::<Duration>::new());
    let moves = Mutex::new(Vec::<Duration>::new());
    thread::scope(|scope| {
        for writer in 0..6 {
            let (nodes, done, waits) = (&nodes, &done, &waits);
            scope.spawn(move || {
                let mut client = nodes.client(writer % 3);
                for n in 0.. {
                    if done.is_set() {
                        return;
                    }
                    let asked = Instant::now();
                    append(&mut client, "orders", json!([writer, n]));
                    waits.lock().unwrap().push(asked.elapsed());
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        let _ends = done.at_the_end();
        for round in 0..15 {
            let to = NAMES[round % 3];
            let url = nodes.node(round / 3 % 3).url();
            let begun = Instant::now();
            let pin = ["cluster", "transfer", "--url", &url, "--log", "orders", "--to", to];
            let told = run(&pin).done();
            assert!(told.contains(&format!("pinned to {to}")), "{told}");
            until("it leads", || leader(&nodes, "orders") == Some(round % 3));
            moves.lock().unwrap().push(begun.elapsed());
        }
    });
    let (mut waits, moves) = (waits.into_inner().unwrap(), moves.into_inner().unwrap());
    waits.sort_unstable();
    let at = |permille: usize| waits[(waits.len() - 1) * permille / 1000];
    println!(
        "{} appends during {} moves: p50 {:?}, p99 {:?}, p99.9 {:?}, most {:?}",
        waits.len(),
        moves.len(),
        at(500),
        at(990),
        at(999),
        at(1000)
    );
    for node in 0..3 {
        until("it knows the pin", || state(&nodes, node, "orders")["pinned_to"] == NAMES[2]);
    }
    let path = "/v1/logs/orders/head?consistency=linearizable";
    let head = nodes.client(1).get(path).unwrap().expect(200)["head"].as_u64();
    assert_eq!(head, Some(waits.len() as u64), "each is stored once");
    let url = nodes.node(0).url();
    run(&["cluster", "transfer", "--url", &url, "--log", "none", "--to", "a"]).failed(64, "none");
    run(&["cluster", "transfer", "--url", &url, "--log", "orders", "--to", "x"])
        .failed(64, "a, b, c");
    run(&["cluster", "transfer", "--url", &url, "--log", "orders"]).failed(64, "--unpin");
    run(&["cluster", "transfer", "--url", &url, "--log", "orders", "--unpin"]).done();
    until("the pin is lifted", || state(&nodes, 1, "orders")["pinned_to"].is_null());
}

#[test]
fn a_node_that_stops_leaves_no_log_without_a_leader() {
    let Some(engine) =
        TestEngine::over_postgres("a node that stops leaves no log without a leader")
    else {
        return;
    };
    // Without handing over, nobody would lead for this long.
    let mut nodes = spread(engine, &["--lead-timeout-ms", "8000"]);
    for round in 0..3 {
        let stops = leader(&nodes, LOGS[round]).expect("it is led");
        nodes.stop(stops);
        let left: Vec<usize> = (0..3).filter(|&node| node != stops).collect();
        for log in LOGS {
            let begun = Instant::now();
            append(&mut nodes.client(left[round % 2]), log, round);
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(4), "nobody led {log} for {waited:?}");
        }
        nodes.start_again(stops);
    }
}

fn a_placer_that_was_suspended_takes_no_log_that_another_node_leads(engine: TestEngine) {
    let nodes = spread(engine, &[]);
    for _ in 0..3 {
        let placer = nodes.leader();
        let of_others = || {
            let led = LOGS.into_iter().filter_map(|log| Some((log, leader(&nodes, log)?)));
            let led = led.filter(|(_, node)| *node != placer);
            led.map(|(log, node)| (log, node, state(&nodes, node, log)["epoch"].clone()))
                .collect::<Vec<_>>()
        };
        let before = of_others();
        nodes.node(placer).signal("STOP");
        // What it knows of the others is old, but another placer has hardly been found.
        thread::sleep(Duration::from_millis(1_900));
        nodes.node(placer).signal("CONT");
        thread::sleep(Duration::from_secs(1));
        let after = of_others();
        assert!(before.iter().all(|led| after.contains(led)), "{before:?}, then {after:?}");
        until("all are led", || LOGS.into_iter().all(|log| leader(&nodes, log).is_some()));
    }
}

/// Over PostgreSQL: by itself, one node of three is no majority.
#[test]
fn a_node_that_is_suspended_when_it_is_to_lead_is_not_waited_for() {
    let Some(engine) = TestEngine::over_postgres("a node that is suspended when it is to l") else {
        return;
    };
    let mut nodes = spread(engine, &[]);
    let placer = nodes.leader();
    // So that it does not take the log itself.
    for log in ["more", "and-more"] {
        let mut client = nodes.client(placer);
        client.call("PUT", &format!("/v1/logs/{log}"), &[], b"").unwrap();
        let pin = json!({ "to": NAMES[placer] });
        let path = format!("/v1/cluster/leads/{log}");
        let headers = [("Content-Type", "application/json")];
        client.call("PUT", &path, &headers, pin.to_string().as_bytes()).unwrap().expect(200);
    }
    let others: Vec<usize> = (0..3).filter(|&node| node != placer).collect();
    let of_first = |log: &&str| leader(&nodes, log) == Some(others[0]);
    let log = LOGS.into_iter().find(of_first).expect("each leads one");
    nodes.kill(others[0]);
    thread::sleep(Duration::from_millis(100));
    nodes.node(others[1]).signal("STOP");
    append(&mut nodes.client(placer), log, "within the time for which writes wait");
}

fn redirected_clients_find_the_leader_while_it_moves(engine: TestEngine) {
    let nodes = spread(engine, &["--follower-writes", "redirect"]);
    let done = StopSignal::default();
    thread::scope(|scope| {
        for writer in 0..6 {
            let (nodes, done) = (&nodes, &done);
            scope.spawn(move || {
                for n in 0.. {
                    let mut url = nodes.node((writer + n) % 3).url();
                    let redirects = (0..).take_while(|_| {
                        let at = (0..3).find(|&at| url.starts_with(&nodes.node(at).url())).unwrap();
                        let told = nodes.client(at).post("/v1/logs/orders/append", &event(n));
                        let told = told.unwrap();
                        let is_elsewhere = told.status == 307;
                        url = told.header("location").unwrap_or_default().to_owned();
                        assert!(is_elsewhere || told.status == 200, "{}", told.text());
                        is_elsewhere
                    });
                    assert!(redirects.count() < 8);
                    if done.is_set() {
                        return;
                    }
                }
            });
        }
        let _ends = done.at_the_end();
        for round in 0..100 {
            let placer = nodes.leader();
            let pin = json!({ "to": NAMES[round % 3] }).to_string();
            let headers = [("Content-Type", "application/json")];
            let path = "/v1/cluster/leads/orders";
            nodes.client(placer).call("PUT", path, &headers, pin.as_bytes()).unwrap().expect(200);
        }
    });
}
