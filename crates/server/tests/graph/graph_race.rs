//! Concurrent clients on the same nodes: nothing is counted twice or lost, nothing is created
//! twice, and no sum ever shows half of a transaction.

use crate::done::StopSignal;
use crate::graph_client::*;
use crate::server::Server;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const CLIENTS: usize = 99;

#[test]
fn a_counter_that_99_clients_want_counts_every_request() {
    let server = Server::start();
    let times = size(10, 1_000);
    let mut client = GraphClient::at(server.address);
    client.run("CREATE (:C {id: 1, n: 0})", json!({}));
    at_once(server.address, CLIENTS, |client, _| {
        for _ in 0..times {
            client.run("MATCH (c:C {id:1}) SET c.n = c.n + 1", json!({}));
        }
    });
    assert_eq!(client.value("MATCH (c:C) RETURN c.n"), json!(CLIENTS * times));
}

#[test]
fn each_gets_another_number_of_a_sequence() {
    // With many orders each of these is a long read.
    let server = Server::start_with(&["--max-long-reads", "200"]);
    let times = size(4, 20);
    let numbers = at_once(server.address, CLIENTS, |client, _| {
        let next = "OPTIONAL MATCH (o:Order) WITH coalesce(max(o.number), 0) + 1 AS number
            CREATE (o:Order {number: number}) RETURN number";
        (0..times).map(|_| client.run(next, json!({}))[0][0].as_u64().unwrap()).collect::<Vec<_>>()
    });
    let mut numbers = numbers.concat();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=(CLIENTS * times) as u64));
}

/// Each client merges all keys, each in another order.
fn merge(server: &Server, client: &mut GraphClient, statement: &str) {
    let keys = size(20, 1_000);
    at_once(server.address, CLIENTS, |client, number| {
        for at in 0..keys {
            let rows = client.run(statement, json!({"k": (at * 7 + number) % keys}));
            assert_eq!(rows.len(), 1);
        }
    });
    let nodes = client.run("MATCH (k:K) RETURN count(k), count(DISTINCT k.k), sum(k.n)", json!({}));
    assert_eq!(nodes, [json!([keys, keys, keys * CLIENTS])]);
}

const MERGE: &str =
    "MERGE (k:K {k: $k}) ON CREATE SET k.n = 1 ON MATCH SET k.n = k.n + 1 RETURN k.n";

#[test]
fn what_99_clients_merge_is_made_once_without_a_constraint() {
    let server = Server::start();
    merge(&server, &mut GraphClient::at(server.address), MERGE);
}

#[test]
fn what_99_clients_merge_is_made_once_with_a_constraint() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("CREATE CONSTRAINT FOR (k:K) REQUIRE k.k IS UNIQUE", json!({}));
    merge(&server, &mut client, MERGE);
}

#[test]
fn a_relationship_that_99_clients_merge_is_made_once() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("CREATE INDEX FOR (p:P) ON (p.id)", json!({}));
    let people = size(3, 20) as u64;
    client.run("UNWIND range(0, $n - 1) AS i CREATE (:P {id: i})", json!({"n": people}));
    at_once(server.address, CLIENTS, |client, number| {
        for from in 0..people {
            let to = (from + 1 + number as u64 % (people - 1)) % people;
            let merge = "MATCH (a:P {id: $a}), (b:P {id: $b}) MERGE (a)-[r:KNOWS]->(b)
                ON CREATE SET r.n = 1 ON MATCH SET r.n = r.n + 1 RETURN r.n";
            assert_eq!(client.run(merge, json!({"a": from, "b": to})).len(), 1);
        }
    });
    let made = "MATCH (a:P)-[r:KNOWS]->(b:P) WITH a, b, count(r) AS times, sum(r.n) AS n
        RETURN max(times), count(*), sum(n)";
    let pairs = people * (people - 1);
    assert_eq!(client.run(made, json!({})), [json!([1, pairs, CLIENTS as u64 * people])]);
}

const ACCOUNTS: u64 = 8;
const BALANCE: u64 = 100;

/// Moves money between two accounts in an open transaction, retrying after conflicts; returns their
/// number.
fn transfer(client: &mut GraphClient, from: u64, to: u64) -> u64 {
    for overtaken in 0..1_000 {
        let read = "MATCH (a:Account {id: $id}) RETURN a.balance";
        let open = client.begin(read, json!({"id": from}));
        let mut done = || -> Result<(), String> {
            let balances = [
                open.rows[0][0].as_u64().expect("a balance"),
                client.go_on(&open, read, json!({"id": to}))?[0][0].as_u64().expect("a balance"),
            ];
            if balances[0] == 0 {
                return client.roll_back(&open);
            }
            let write = "MATCH (a:Account {id: $id}) SET a.balance = $balance";
            client.go_on(&open, write, json!({"id": from, "balance": balances[0] - 1}))?;
            client.go_on(&open, write, json!({"id": to, "balance": balances[1] + 1}))?;
            client.commit(&open)
        };
        match done() {
            Ok(()) => return overtaken,
            Err(code) => assert_eq!(code, OUTDATED, "nothing else is in its way"),
        }
    }
    panic!("always overtaken");
}

/// Sums of all balances until `done` is set, by one statement, by two of one request, and by two of
/// one open transaction; returns their number.
fn sum_until(client: &mut GraphClient, done: &StopSignal) -> u64 {
    let whole = "MATCH (a:Account) RETURN sum(a.balance), count(a)";
    let half = "MATCH (a:Account) WHERE a.id % 2 = $odd RETURN sum(a.balance)";
    let expected = json!(ACCOUNTS * BALANCE);
    let mut sums = 0;
    while !done.is_set() {
        assert_eq!(client.run(whole, json!({})), [json!([expected, ACCOUNTS])]);
        let halves = all(&[(half, json!({"odd": 0})), (half, json!({"odd": 1}))]);
        let both = client.ask("POST", "tx/commit", &halves).unwrap().expect(200);
        let sum = |at: usize| both["results"][at]["data"][0]["row"][0].as_u64().expect("a sum");
        assert_eq!(json!(sum(0) + sum(1)), expected, "{both}");
        let open = client.begin(half, json!({"odd": 0}));
        let other = client.go_on(&open, half, json!({"odd": 1})).unwrap();
        let sum = open.rows[0][0].as_u64().unwrap() + other[0][0].as_u64().unwrap();
        assert_eq!(json!(sum), expected);
        assert_eq!(client.commit(&open), Ok(()), "who only reads is in nobody's way");
        sums += 3;
    }
    sums
}

/// Moves money without an open transaction.
fn transfer_at_once_until(client: &mut GraphClient, done: &StopSignal) {
    let both = "MATCH (a:Account {id: $a}), (b:Account {id: $b}) WHERE a.balance > 0
        SET a.balance = a.balance - 1, b.balance = b.balance + 1";
    let mut turn = 0;
    while !done.is_set() {
        turn += 1;
        let (a, b) = (turn % ACCOUNTS, (turn * 3 + 1) % ACCOUNTS);
        if a != b {
            client.run(both, json!({"a": a, "b": b}));
        }
        // Otherwise a client with one request would always overtake one with five.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_sum_beside_transfers_never_varies() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    let make = "UNWIND range(0, $accounts - 1) AS i CREATE (:Account {id: i, balance: $balance})";
    client.run(make, json!({"accounts": ACCOUNTS, "balance": BALANCE}));
    let (transfers, movers) = (size(25, 500) as u64, 8);
    let (done, overtaken) = (StopSignal::default(), AtomicU64::new(0));
    let connect = || GraphClient::at(server.address);
    let sums: u64 = std::thread::scope(|scope| {
        let enough = done.at_the_end();
        let sums = [(); 2].map(|()| scope.spawn(|| sum_until(&mut connect(), &done)));
        scope.spawn(|| transfer_at_once_until(&mut connect(), &done));
        at_once(server.address, movers as usize, |client, number| {
            for turn in 0..transfers {
                let from = (number as u64 + turn) % ACCOUNTS;
                let to = (from + 1 + turn % (ACCOUNTS - 1)) % ACCOUNTS;
                overtaken.fetch_add(transfer(client, from, to), Relaxed);
            }
        });
        drop(enough);
        sums.into_iter().map(|sums| sums.join().unwrap()).sum()
    });
    println!("{} transfers, {overtaken:?} overtaken, {sums} sums", transfers * movers);
    assert!(sums > 0 && overtaken.into_inner() > 0, "they met");
    let last = client.value("MATCH (a:Account) RETURN sum(a.balance)");
    assert_eq!(last, json!(ACCOUNTS * BALANCE));
}

#[test]
fn of_two_that_may_leave_only_if_the_other_stays_one_stays() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    let wards = size(40, 1_000) as u64;
    let make = "UNWIND range(0, $wards - 1) AS w UNWIND range(0, 3) AS i
        CREATE (:Doctor {ward: w, id: i, on: true})";
    client.run(make, json!({"wards": wards}));
    at_once(server.address, 8, |client, number| {
        let leave = "MATCH (d:Doctor {ward: $ward, on: true}) WITH count(d) AS there
            MATCH (d:Doctor {ward: $ward, id: $id}) WHERE there > 1 SET d.on = false";
        let read = "MATCH (d:Doctor {ward: $ward, on: true}) RETURN count(d)";
        let off = "MATCH (d:Doctor {ward: $ward, id: $id}) SET d.on = false";
        for ward in 0..wards {
            let who = json!({"ward": ward, "id": number % 4});
            if (ward as usize + number).is_multiple_of(2) {
                client.run(leave, who);
                continue;
            }
            loop {
                let open = client.begin(read, who.clone());
                if open.rows[0] == json!([1]) {
                    client.roll_back(&open).unwrap();
                    break;
                }
                client.go_on(&open, off, who.clone()).unwrap();
                match client.commit(&open) {
                    Ok(()) => break,
                    Err(code) => assert_eq!(code, OUTDATED),
                }
            }
        }
    });
    let there = "MATCH (d:Doctor {on: true}) WITH d.ward AS ward, count(d) AS there
        RETURN count(ward), min(there), max(there)";
    // All four of each want to leave; the last may not.
    assert_eq!(client.run(there, json!({})), [json!([wards, 1, 1])]);
    let none: [Value; 0] = [];
    assert_eq!(client.run("MATCH (d:Doctor) WHERE d.on IS NULL RETURN d", json!({})), none);
}
