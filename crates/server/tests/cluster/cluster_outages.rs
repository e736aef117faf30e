//! How nodes behave while PostgreSQL is down, and when it returns without the latest commits.

use crate::client::Answer;
use crate::nodes::{Nodes, append_somewhere, event, position_of, until};
use crate::postgres::{self, Postgres};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const FLAGS: [&str; 4] = ["--leader-wait-ms", "1500", "--lead-timeout-ms", "500"];
/// The time limit of a write, plus the overhead of a loaded machine.
const BOUND: Duration = Duration::from_millis(1500 + 3000);

/// The outcome of a request, which must arrive in bounded time.
#[track_caller]
fn bounded(
    nodes: &Nodes,
    node: usize,
    ask: impl Fn(&mut crate::client::Client) -> Answer,
) -> Answer {
    let asked = Instant::now();
    let answer = ask(&mut nodes.client(node));
    assert!(asked.elapsed() < BOUND, "after {:?}: {}", asked.elapsed(), answer.text());
    answer
}

fn write(nodes: &Nodes, node: usize) -> Answer {
    bounded(nodes, node, |client| client.post("/v1/append", &event("late")).unwrap())
}

fn read(nodes: &Nodes, node: usize, path: &str) -> Answer {
    bounded(nodes, node, |client| client.get(path).unwrap())
}

#[test]
fn with_postgresql_away_nodes_read_what_they_have_refuse_in_time_and_go_on_by_themselves() {
    let Some(postgres) = postgres::own("PostgreSQL away") else { return };
    let nodes = Nodes::start(postgres.new_journal(), &FLAGS);
    let addresses: Vec<_> = (0..3).map(|node| nodes.address(node)).collect();
    let head = position_of(&nodes.client(1).post("/v1/append", &event("before")).unwrap());
    (0..3).for_each(|node| drop(nodes.events(node, head)));
    postgres.stop();
    for round in 0..2 {
        for node in 0..3 {
            for word in ["local", "cached"] {
                let path = format!("/v1/events?consistency={word}");
                let events = read(&nodes, node, &path).expect(200);
                assert_eq!(events["events"][0]["data"], "before", "{events}");
            }
            let path = "/v1/head?consistency=linearizable&wait_ms=300";
            let refused = read(&nodes, node, path).problem(503);
            assert_eq!(refused["type"], "/problems/not-confirmed", "{refused}");
            // The first append that a leader had sent may be stored: its outcome is unknown.
            let refused = write(&nodes, node);
            match refused.status {
                503 => {
                    let problem = refused.problem(503);
                    assert_eq!(problem["type"], "/problems/not-leading", "{problem}");
                    assert!(refused.header("retry-after").is_some(), "{refused:?}");
                }
                _ => {
                    let problem = refused.problem(500);
                    assert_eq!(problem["type"], "/problems/outcome-unknown", "{problem}");
                }
            }
        }
        // Every node accepts it into memory; a client that waits for durability is told in time
        // that it is not stored yet.
        for node in 0..3 {
            let data = json!({"taken": node});
            let taken = |ack: &str| {
                let path = format!("/e?type=Taken{ack}");
                bounded(&nodes, node, |client| client.post(&path, &data).unwrap())
            };
            assert_eq!(taken("").status, 202);
            let problem = taken("&ack=durable").problem(500);
            assert_eq!(problem["type"], "/problems/outcome-unknown", "{problem}");
        }
        if round == 1 {
            for node in 0..3 {
                read(&nodes, node, "/health/ready?for=reads").expect(200);
                read(&nodes, node, "/health/ready?for=writes").problem(503);
            }
        }
    }
    postgres.start();
    let appended = append_somewhere(&addresses, 0, "after", &event("after"));
    for node in 0..3 {
        let ready = || nodes.client(node).get("/health/ready").unwrap().status == 200;
        until("a node is ready again", ready);
        position_of(&nodes.client(node).post("/v1/append", &event("after")).unwrap());
        let events = nodes.events(node, appended);
        assert_eq!(events[0]["data"], "before");
        let path = "/v1/head?consistency=linearizable&wait_ms=10000";
        nodes.client(node).get(path).unwrap().expect(200);
    }
    until("everything that was taken is stored once", || {
        let stored = postgres.sql(&format!("{} AND type = 'Taken'", nodes.rows_of("main")));
        assert!(stored.parse::<u64>().unwrap() <= 12, "{stored}");
        stored == "12"
    });
    let head = nodes.client(0).get("/v1/head?consistency=linearizable").unwrap();
    let head = head.expect(200)["head"].as_u64().unwrap();
    assert_eq!(nodes.events(1, head), nodes.events(2, head));
    assert_eq!(postgres.sql(&nodes.rows_of("main")), head.to_string());
}

/// A standby that lacks the last commits, and the URL of a journal that reaches whichever of the
/// two is the primary.
fn with_standby(test: &str) -> Option<(Postgres, Postgres, String)> {
    let primary = postgres::own(test)?;
    let standby = primary.standby();
    let authority =
        |url: &str| url.rsplit_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
    let (first, second) = (authority(&primary.url), authority(&standby.url));
    let both = primary.new_journal().replace(&first, &format!("{first},{second}"));
    Some((primary, standby, both))
}

#[test]
fn nodes_that_have_seen_more_than_a_promoted_standby_are_detached_and_say_so() {
    let Some((primary, standby, journal)) = with_standby("a promoted standby") else { return };
    let nodes = Nodes::start(journal, &FLAGS);
    let early = position_of(&nodes.client(1).post("/v1/append", &event("early")).unwrap());
    let schema = postgres::schema_of(&nodes.journal).to_owned();
    let has = format!(r#"SELECT count(*) FROM "{schema}".ws_event WHERE log = 'main'"#);
    until("the standby has the early one", || standby.sql(&has) == early.to_string());
    standby.stop();
    let late = position_of(&nodes.client(1).post("/v1/append", &event("late")).unwrap());
    (0..3).for_each(|node| drop(nodes.events(node, late)));
    primary.stop();
    standby.start();
    standby.promote();
    for node in 0..3 {
        let ready =
            |purpose: &str| nodes.client(node).get(&format!("/health/ready{purpose}")).unwrap();
        let detached =
            |answer: &Answer| answer.status == 503 && answer.json()["type"] == "/problems/detached";
        for purpose in ["", "?for=reads", "?for=writes"] {
            until("a node says that it is detached", || detached(&ready(purpose)));
        }
        let told = ready("").problem(503);
        assert!(told["detail"].as_str().unwrap().contains("reset-copy"), "{told}");
        // It shows what it has and refuses everything else.
        let events = read(&nodes, node, "/v1/events").expect(200);
        let shown: Vec<&Value> =
            events["events"].as_array().unwrap().iter().map(|event| &event["data"]).collect();
        assert_eq!(shown, ["early", "late"], "{events}");
        read(&nodes, node, "/v1/head?consistency=linearizable&wait_ms=300").problem(503);
        let refused = write(&nodes, node).problem(503);
        assert_eq!(refused["type"], "/problems/detached", "{refused}");
        let told = read(&nodes, node, "/v1/cluster").expect(200);
        let logs = told["logs"].as_array().unwrap().iter();
        assert!(logs.clone().any(|log| log["role"] == "detached"), "{told}");
    }
    assert_eq!(standby.sql(&has), early.to_string());
}
