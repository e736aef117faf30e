//! Indexes and constraints that are created and dropped while clients write the data they cover.

use crate::done::StopSignal;
use crate::graph_client::*;
use crate::numbered::Coins;
use crate::server::Server;
use serde_json::json;
use std::time::Duration;

const KEYS: u64 = 30;
const REFUSED: &str = "Neo.ClientError.Schema.ConstraintValidationFailed";
const WRITES: [&str; 5] = [
    "CREATE (:U {k: $k})",
    "CREATE (:U {k: $k})",
    "MERGE (u:U {k: $k}) ON MATCH SET u.seen = true",
    "MATCH (u:U {k: $k}) DELETE u",
    "MATCH (u:U {k: $k}) SET u.k = $other",
];

/// Writes until `done` is set. Only violations of a constraint are refused.
fn write_until(client: &mut GraphClient, number: u64, done: &StopSignal) {
    let mut coins = Coins::new(number);
    while !done.is_set() {
        let keys = json!({"k": coins.below(KEYS), "other": coins.below(KEYS)});
        let write = WRITES[coins.below(WRITES.len() as u64) as usize];
        if let Err(code) = client.try_run(write, keys) {
            assert_eq!(code, REFUSED, "{write}");
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Asserts that searching each key finds as many nodes as there are.
fn assert_found(client: &mut GraphClient) {
    let seek = "UNWIND range(0, $n) AS k OPTIONAL MATCH (u:U {k: k})
        WITH k, count(u) AS found RETURN k, found ORDER BY k";
    let scan = "UNWIND range(0, $n) AS k OPTIONAL MATCH (u) WHERE 'U' IN labels(u) AND u.k + 0 = k
        WITH k, count(u) AS found RETURN k, found ORDER BY k";
    let n = json!({"n": KEYS - 1});
    let both = client.ask("POST", "tx/commit", &all(&[(seek, n.clone()), (scan, n)]));
    let both = both.unwrap().expect(200);
    assert_eq!(code(&both), None);
    assert_eq!(both["results"][0]["data"], both["results"][1]["data"]);
}

/// Runs `admin`, which creates and drops rules, while clients write.
fn beside_writers(admin: impl FnOnce(&mut GraphClient)) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let done = StopSignal::default();
    let mut client = GraphClient::at(server.address);
    std::thread::scope(|scope| {
        let enough = done.at_the_end();
        for number in 0..4 {
            let (address, done) = (server.address, &done);
            scope.spawn(move || write_until(&mut GraphClient::at(address), number, done));
        }
        admin(&mut client);
        drop(enough);
    });
    let all = "MATCH (u:U) RETURN id(u), properties(u) ORDER BY id(u)";
    let before = client.run(all, json!({}));
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    assert_eq!(client.run(all, json!({})), before);
    assert_found(&mut client);
}

#[test]
fn while_a_rule_holds_nothing_breaks_it_and_before_it_holds_nothing_has() {
    let mut made = 0;
    beside_writers(|client| {
        for _ in 0..size(60, 2_000) {
            let extra = "MATCH (u:U) WITH u.k AS k, collect(u) AS nodes
                UNWIND nodes[1..] AS extra DELETE extra";
            client.run(extra, json!({}));
            let create = "CREATE CONSTRAINT one FOR (u:U) REQUIRE u.k IS UNIQUE";
            if let Err(code) = client.try_run(create, json!({})) {
                assert!(code.starts_with("Neo.ClientError.Schema.Constraint"), "{code}");
                continue;
            }
            made += 1;
            for _ in 0..4 {
                let count =
                    client.run("MATCH (u:U) RETURN count(u), count(DISTINCT u.k)", json!({}));
                assert_eq!(count[0][0], count[0][1]);
                assert_found(client);
            }
            client.run("DROP CONSTRAINT one", json!({}));
        }
    });
    println!("the rule was made {made} times");
    assert!(made > 0, "it was never made");
}

#[test]
fn an_index_that_is_made_under_load_finds_everything() {
    beside_writers(|client| {
        for _ in 0..size(30, 1_000) {
            client.run("CREATE INDEX i FOR (u:U) ON (u.k)", json!({}));
            (0..4).for_each(|_| assert_found(client));
            client.run("DROP INDEX i", json!({}));
            assert_found(client);
        }
    });
}

/// How often executions restarted after a conflict.
fn overtaken(client: &mut GraphClient) -> u64 {
    let text = client.client.get("/metrics").unwrap().text();
    let figure = |line: &str| line.strip_prefix("wellspring_graph_overtaken_total ")?.parse().ok();
    text.lines().find_map(figure).expect("the figure")
}

#[test]
fn a_transaction_that_reads_much_and_writes_little_finishes_beside_writers() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("CREATE INDEX FOR (p:P) ON (p.k)", json!({}));
    client.run("UNWIND range(1, 1000) AS k CREATE (:P {k: k, n: 0})", json!({}));
    let done = StopSignal::default();
    std::thread::scope(|scope| {
        let enough = done.at_the_end();
        for number in 0..12_u64 {
            let (address, done) = (server.address, &done);
            scope.spawn(move || {
                let mut client = GraphClient::at(address);
                let mut coins = Coins::new(number);
                while !done.is_set() {
                    let one = json!({"k": 1 + coins.below(1_000)});
                    client.run("MATCH (p:P {k: $k}) SET p.n = p.n + 1", one);
                }
            });
        }
        for _ in 0..3 {
            let total = "MATCH (p:P) WITH sum(p.n) AS sum MERGE (t:Total) SET t.n = sum RETURN sum";
            let before = overtaken(&mut client);
            assert_eq!(client.run(total, json!({})).len(), 1);
            // The others rarely conflict: each has many nodes to choose from.
            let times = overtaken(&mut client) - before;
            assert!(times < 100, "overtaken {times} times");
        }
        drop(enough);
    });
}
