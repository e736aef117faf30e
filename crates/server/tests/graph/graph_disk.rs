//! The disk fills up during commits: clients that commit get an error, no partial transaction is
//! stored, and writes continue as soon as there is space.

use crate::disk::SmallDisk;
use crate::done::StopSignal;
use crate::graph_client::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;
use wellspring_patience::until;

const UNAVAILABLE: &str = "Neo.TransientError.General.DatabaseUnavailable";

/// Creates two nodes and a relationship between them.
const PAIR: &str =
    "CREATE (a:Half {id: $id, text: $text})-[:WITH {id: $id}]->(b:Half {id: $id, text: $text})
    RETURN id(a)";

/// How a client writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// One request for each transaction.
    AtOnce,
    /// The pair in two statements of an open transaction, which is then committed.
    Open,
}

/// A client's results, by the ids of its pairs.
#[derive(Default)]
struct Account {
    written: BTreeSet<u64>,
    refused: BTreeSet<u64>,
}

fn pair(id: u64) -> Value {
    json!({"id": id, "text": "x".repeat(1_500)})
}

/// Writes a pair; returns whether it was committed.
fn write(client: &mut GraphClient, manner: Manner, id: u64) -> bool {
    let answer = match manner {
        Manner::AtOnce => client.ask("POST", "tx/commit", &one(PAIR, pair(id))),
        Manner::Open => {
            let open = client.begin("CREATE (:Half {id: $id, text: $text})", pair(id));
            let more = "MATCH (a:Half {id: $id}) CREATE (a)-[:WITH {id: $id}]->(:Half {id: $id, text: $text})";
            assert_eq!(client.go_on(&open, more, pair(id)), Ok(Vec::new()), "{open:?}");
            client.ask("POST", &format!("{}/commit", open.path), &Value::Null)
        }
    };
    let answer = answer.unwrap();
    let content = answer.json();
    if answer.status == 200 {
        assert_eq!(code(&content), None, "{content}");
        return true;
    }
    assert_eq!(answer.status, 503, "{content}");
    assert_eq!(content["type"], "/problems/storage-full", "{content}");
    assert_eq!(code(&content).as_deref(), Some(UNAVAILABLE), "a driver tries again: {content}");
    assert!(answer.header("retry-after").is_some());
    false
}

/// Writes pairs until `done` is set.
fn write_until(address: SocketAddr, manner: Manner, first: u64, done: &StopSignal) -> Account {
    let mut client = GraphClient::at(address);
    let mut account = Account::default();
    for id in first.. {
        if done.is_set() {
            break;
        }
        if write(&mut client, manner, id) {
            account.written.insert(id)
        } else {
            std::thread::sleep(Duration::from_millis(5));
            account.refused.insert(id)
        };
    }
    account
}

#[test]
fn a_full_disk_is_reported_to_the_committing_client_and_leaves_no_partial_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::start(dir.path(), &[]) else {
        println!("not tested: this system lets nobody mount a small disk");
        return;
    };
    let address = disk.server.address;
    let mut client = GraphClient::at(address);
    client.run("CREATE INDEX FOR (n:Half) ON (n.id)", json!({}));
    let done = StopSignal::default();
    let accounts: Vec<Account> = std::thread::scope(|scope| {
        let at_the_end = done.at_the_end();
        let manners = [Manner::AtOnce, Manner::Open, Manner::AtOnce, Manner::Open];
        let writers: Vec<_> = (0..)
            .zip(manners)
            .map(|(n, manner)| {
                let done = &done;
                scope.spawn(move || write_until(address, manner, n * 1_000_000, done))
            })
            .collect();
        for _ in 0..2 {
            let before = client.value("MATCH (n:Half) RETURN count(n)");
            until("they write", || client.value("MATCH (n:Half) RETURN count(n)") != before);
            disk.fill();
            let mut one_more = GraphClient::at(address);
            until("the disk is full", || {
                one_more
                    .ask("POST", "tx/commit", &one("CREATE (:Filler)", json!({})))
                    .unwrap()
                    .status
                    == 503
            });
            // Reads continue and see whole transactions.
            for _ in 0..20 {
                let halves = client.value("MATCH (n:Half) RETURN count(n)").as_u64().unwrap();
                assert_eq!(halves % 2, 0);
            }
            // A read-only transaction commits.
            let open = client.begin("MATCH (n:Half) RETURN count(n)", json!({}));
            assert_eq!(client.commit(&open), Ok(()));
            fs::remove_file(disk.filler()).unwrap();
            until("it goes on", || {
                let answer = one_more.ask("POST", "tx/commit", &one("CREATE (:Filler)", json!({})));
                answer.unwrap().status == 200
            });
        }
        std::thread::sleep(Duration::from_millis(300));
        drop(at_the_end);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let whole = "MATCH (a:Half)-[r:WITH]->(b:Half) WHERE a.id = r.id AND b.id = r.id RETURN r.id ORDER BY r.id";
    let there: Vec<u64> =
        client.run(whole, json!({})).iter().map(|row| row[0].as_u64().unwrap()).collect();
    let written: BTreeSet<u64> =
        accounts.iter().flat_map(|account| account.written.clone()).collect();
    let refused: BTreeSet<u64> =
        accounts.iter().flat_map(|account| account.refused.clone()).collect();
    assert!(there.iter().eq(&written), "what was told is there, once, and nothing else");
    let counts = "MATCH (n:Half) WITH count(n) AS nodes MATCH ()-[r]->() RETURN nodes, count(r)";
    assert_eq!(client.run(counts, json!({})), [json!([2 * there.len(), there.len()])]);
    for (number, account) in accounts.iter().enumerate() {
        assert!(!account.refused.is_empty() && !account.written.is_empty(), "{number}");
    }
    println!("{} pairs written, {} refused", written.len(), refused.len());
}
