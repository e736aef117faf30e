//! The server is killed again and again on one folder while clients write to a graph. What was
//! answered with 200 is stored once; anything else is stored as a whole or not at all.
//!
//! `WELLSPRING_TEST_CRASH_CYCLES` sets the number of cycles (default 12).

use crate::crash_cycles::cycles;
use crate::disk::load_for;
use crate::graph_client::*;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

/// How a client writes the data of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// One node.
    Node,
    /// Two nodes and a relationship, by two statements of one request.
    Pair,
    /// The same in an open transaction.
    Open,
    /// More than an event can hold.
    Large,
    /// A node that all clients merge.
    Merge,
}

const HABITS: [Habit; 8] = [
    Habit::Node,
    Habit::Pair,
    Habit::Merge,
    Habit::Open,
    Habit::Node,
    Habit::Merge,
    Habit::Large,
    Habit::Pair,
];

/// Nodes of a large transaction, 16 KiB each.
const LARGE: u64 = 48;
const MERGED_KEYS: u64 = 20;

/// What a client knows of its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Answered without an error.
    Done,
    /// Answered with a transient error.
    Refused,
    /// Not answered.
    Unknown,
}

/// The writes of a client, by key.
type Ledger = HashMap<String, Fate>;

/// The outcome that an answer reports. `Err` when the connection is over.
fn fate(answer: io::Result<crate::client::Answer>) -> io::Result<Fate> {
    let answer = answer?;
    let content = answer.json();
    match (answer.status, code(&content)) {
        (200, None) => Ok(Fate::Done),
        (_, Some(code)) if code.starts_with("Neo.TransientError") => Ok(Fate::Refused),
        _ => panic!("{}: {content}", answer.status),
    }
}

fn write(client: &mut GraphClient, habit: Habit, key: &str, turn: u64) -> io::Result<Fate> {
    let k = json!({"k": key, "id": turn, "timestamp": 1_795_224_656_517_796_091 + turn});
    let first = "CREATE (:A {k: $k})";
    let second = "MATCH (a:A {k: $k}) CREATE (a)-[:R {k: $k}]->(:B {k: $k})";
    let mut commit = |body: &Value| fate(client.ask("POST", "tx/commit", body));
    match habit {
        Habit::Node => commit(&one(
            "CREATE (n:TestNode {k: $k, id: $id, timestamp: $timestamp}) RETURN n.id as id",
            k,
        )),
        Habit::Pair => commit(&all(&[(first, k.clone()), (second, k)])),
        Habit::Large => {
            let parameters = json!({"k": key, "n": LARGE, "fill": "x".repeat(16 << 10)});
            let all = "UNWIND range(1, $n) AS i CREATE (:Large {k: $k, i: i, fill: $fill + i})";
            commit(&one(all, parameters))
        }
        Habit::Merge => commit(&one(
            "MERGE (m:M {k: $m}) ON CREATE SET m.n = 1 ON MATCH SET m.n = m.n + 1
                CREATE (m)-[:BY]->(:Merged {k: $k})",
            json!({"m": turn % MERGED_KEYS, "k": key}),
        )),
        Habit::Open => {
            let answer = client.ask("POST", "tx", &one(first, k.clone()))?;
            assert_eq!(answer.status, 201);
            let (_, id) = answer.header("location").unwrap().rsplit_once('/').unwrap();
            let path = format!("tx/{id}");
            match fate(client.ask("POST", &path, &one(second, k)))? {
                Fate::Done => fate(client.ask("POST", &format!("{path}/commit"), &json!({}))),
                other => Ok(other),
            }
        }
    }
}

/// Writes until the connection breaks.
fn write_until_cut(address: SocketAddr, habit: Habit, name: &str) -> Ledger {
    let mut ledger = Ledger::new();
    let Ok(mut client) = GraphClient::connect(address) else { return ledger };
    for turn in 0.. {
        let key = format!("{name}-{turn}");
        ledger.insert(key.clone(), Fate::Unknown);
        match write(&mut client, habit, &key, turn) {
            Ok(fate) => ledger.insert(key, fate),
            Err(_) => break,
        };
    }
    ledger
}

/// How often each key is stored, according to a statement that counts them.
fn counted(client: &mut GraphClient, statement: &str) -> HashMap<String, u64> {
    let rows = client.run(statement, json!({}));
    let pair = |row: Value| (row[0].as_str().unwrap().to_owned(), row[1].as_u64().unwrap());
    rows.into_iter().map(pair).collect()
}

/// All writes, by habit.
#[derive(Default)]
struct Book(HashMap<u8, Ledger>);

impl Book {
    fn add(&mut self, habit: Habit, ledger: Ledger) {
        self.0.entry(habit as u8).or_default().extend(ledger);
    }

    /// Asserts for these habits that each answered key is stored as often as it should be, no
    /// refused key is stored, and each other one is stored completely or not at all. From here on,
    /// stored keys count as answered and missing ones as refused.
    fn check(&mut self, habits: &[Habit], there: &HashMap<String, u64>, times: u64) {
        let mut known = 0;
        for habit in habits {
            for (key, fate) in self.0.get_mut(&(*habit as u8)).into_iter().flatten() {
                *fate = match (*fate, there.get(key)) {
                    (Fate::Done | Fate::Unknown, Some(count)) if *count == times => Fate::Done,
                    (Fate::Refused | Fate::Unknown, None) => Fate::Refused,
                    (fate, wrong) => panic!("{habit:?} {key}, {fate:?}: there {wrong:?} times"),
                };
                known += usize::from(*fate == Fate::Done);
            }
        }
        assert_eq!(known, there.len(), "{habits:?}: there is what nobody wrote");
    }
}

fn check(client: &mut GraphClient, book: &mut Book) {
    let nodes = counted(client, "MATCH (n:TestNode) RETURN n.k, count(n)");
    book.check(&[Habit::Node], &nodes, 1);
    let exact =
        "MATCH (n:TestNode) WHERE n.timestamp <> 1795224656517796091 + n.id RETURN count(n)";
    assert_eq!(client.value(exact), json!(0));
    let pairs = counted(
        client,
        "MATCH (a:A)-[r:R]->(b:B) WHERE a.k = r.k AND b.k = r.k RETURN r.k, count(*)",
    );
    book.check(&[Habit::Pair, Habit::Open], &pairs, 1);
    for half in ["(a:A)", "(b:B)", "()-[r:R]->()"] {
        let count = client.value(&format!("MATCH {half} RETURN count(*)"));
        assert_eq!(count, json!(pairs.len()), "a half of {half}");
    }
    let large = counted(client, "MATCH (n:Large) RETURN n.k, count(DISTINCT n.i)");
    book.check(&[Habit::Large], &large, LARGE);
    let torn = "MATCH (n:Large) WHERE size(n.fill) <= 16384 RETURN count(n)";
    assert_eq!(client.value(torn), json!(0));
    let merged = counted(client, "MATCH (:M)-[:BY]->(n:Merged) RETURN n.k, count(*)");
    book.check(&[Habit::Merge], &merged, 1);
    let once = "MATCH (m:M) WITH m.k AS k, count(m) AS nodes, sum(m.n) AS n
        RETURN max(nodes), sum(n)";
    let expected = if merged.is_empty() { json!([null, 0]) } else { json!([1, merged.len()]) };
    assert_eq!(client.run(once, json!({})), [expected]);
    let counts = client.client.get("/db/neo4j").unwrap().expect(200);
    let nodes = client.value("MATCH (n) RETURN count(n)");
    let relationships = client.value("MATCH ()-[r]->() RETURN count(r)");
    assert_eq!((&counts["nodeCount"], &counts["relationshipCount"]), (&nodes, &relationships));
}

#[test]
fn kill_9_takes_nothing_that_was_answered_and_leaves_nothing_half() {
    let dir = tempfile::tempdir().unwrap();
    let mut book = Book::default();
    let mut answered = 0;
    for cycle in 0..cycles() {
        let server = Server::start_in(dir.path(), &[]);
        check(&mut GraphClient::at(server.address), &mut book);
        let address = server.address;
        let writers: Vec<_> = (0..HABITS.len())
            .map(|at| {
                let name = format!("{cycle}-{at}");
                std::thread::spawn(move || write_until_cut(address, HABITS[at], &name))
            })
            .collect();
        // Anywhere between the first request and some hundred commits.
        load_for(10 + (cycle as u64 * 83) % 300);
        server.kill();
        for (habit, writer) in HABITS.iter().zip(writers) {
            let ledger = writer.join().expect("a writer");
            answered += ledger.values().filter(|fate| **fate == Fate::Done).count();
            book.add(*habit, ledger);
        }
    }
    let server = Server::start_in(dir.path(), &[]);
    check(&mut GraphClient::at(server.address), &mut book);
    println!("{answered} transactions answered in {} cycles, all there", cycles());
    assert!(answered > cycles() * 10, "the load reached the server: {answered}");
}

#[test]
fn what_was_only_written_in_an_open_transaction_is_gone_with_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    client.run("CREATE (:N)", json!({}));
    let open = client.begin("CREATE (:N)", json!({}));
    server.kill();
    let mut server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    assert_eq!(client.commit(&open), Err(NOT_FOUND.to_owned()));
    assert_eq!(client.value("MATCH (n) RETURN count(n)"), json!(1));
    // A server stopped by SIGTERM does not wait for open transactions.
    let open = client.begin("CREATE (:N)", json!({}));
    assert!(server.terminate().success());
    let server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    assert_eq!(client.roll_back(&open), Err(NOT_FOUND.to_owned()));
    assert_eq!(client.value("MATCH (n) RETURN count(n)"), json!(1));
}
