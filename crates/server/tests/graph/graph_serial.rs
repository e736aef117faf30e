//! Concurrent open transactions: of two that each read what the other writes, one commits, however
//! the read was made; independent ones do not conflict.

use crate::closed::ask;
use crate::graph_client::*;
use crate::server::Server;
use serde_json::{Value, json};

/// Two transactions that execute the same reading statement, and then one writing statement each.
struct Pair {
    setup: &'static str,
    reads: &'static str,
    writes: [&'static str; 2],
}

const fn pair(setup: &'static str, reads: &'static str, writes: [&'static str; 2]) -> Pair {
    Pair { setup, reads, writes }
}

const TWO: &str = "CREATE (:A {id: 1}), (:A {id: 2})";
const STAR: &str =
    "CREATE (a:A {id: 1})-[:T {w: 1}]->(m:M {id: 1, on: false})-[:T {w: 1}]->(:Y {id: 1}),
    (a)-[:T {w: 1}]->(n:M {id: 2, on: false})-[:T {w: 1}]->(:Y {id: 2})";
const P_SEVEN: [&str; 2] = ["CREATE (:P {k: 7})", "CREATE (:P {k: 7})"];

/// Both read the same way, and each writes what the other has read.
const SKEWED: &[Pair] = &[
    pair(
        TWO,
        "MATCH (a:A) RETURN count(a)",
        ["MATCH (a:A {id: 1}) REMOVE a:A", "MATCH (a:A {id: 2}) REMOVE a:A"],
    ),
    pair("", "MATCH (p:P) RETURN count(p)", P_SEVEN),
    pair("", "MATCH (p:P) RETURN p LIMIT 1", P_SEVEN),
    pair("", "OPTIONAL MATCH (p:P) RETURN p", P_SEVEN),
    pair("", "MATCH (n) RETURN count(n)", P_SEVEN),
    pair("", "MATCH (n) RETURN count(*)", P_SEVEN),
    pair("", "MATCH (p:P {k: 7}) RETURN count(p)", P_SEVEN),
    pair("CREATE INDEX FOR (p:P) ON (p.k)", "MATCH (p:P {k: 7}) RETURN count(p)", P_SEVEN),
    pair("", "MATCH (p:P) WHERE p.k > 5 RETURN count(p)", P_SEVEN),
    pair(
        "CREATE INDEX FOR (p:P) ON (p.k)",
        "MATCH (p:P) WHERE 5 < p.k < 9 RETURN count(p)",
        P_SEVEN,
    ),
    pair(
        "CREATE INDEX FOR (p:P) ON (p.k)",
        "MATCH (p:P) WHERE p.k IN [6, 7] RETURN count(p)",
        P_SEVEN,
    ),
    pair("", "MATCH (p:P) WHERE p.k IS NOT NULL RETURN count(p)", P_SEVEN),
    pair("", "MATCH (p:P|Q) RETURN count(p)", P_SEVEN),
    pair("", "MATCH (p) WHERE p:Q OR p:P RETURN count(p)", P_SEVEN),
    pair("CREATE (:P {k: 6})", "MATCH (p:P) RETURN p.k ORDER BY p.k DESC LIMIT 1", P_SEVEN),
    pair("CREATE (:P {k: 6})", "MATCH (p:P) RETURN max(p.k)", P_SEVEN),
    pair("", "RETURN EXISTS { (:P {k: 7}) }", P_SEVEN),
    pair("", "RETURN COUNT { MATCH (p:P) RETURN p }", P_SEVEN),
    pair("", "CALL { MATCH (p:P) RETURN count(p) AS n } RETURN n", P_SEVEN),
    // By a table of values, from the second row on.
    pair(
        "CREATE (:Q {k: 8}), (:Q {k: 7})",
        "MATCH (q:Q), (p:P) WHERE p.k = q.k RETURN count(*)",
        P_SEVEN,
    ),
    pair(
        "CREATE (:Q {k: 5}), (:Q {k: 6}), (:P {k: 1})",
        "MATCH (q:Q), (p:P) WHERE p.k = q.k + 1 RETURN count(*)",
        P_SEVEN,
    ),
    pair("", "UNWIND [6, 8, 7] AS k MATCH (p:P {k: k}) RETURN count(p)", P_SEVEN),
    pair(
        "CREATE (:Q {k: 8}), (:Q {k: 7})",
        "MATCH (q:Q) WHERE EXISTS { MATCH (p:P {k: q.k}) } RETURN count(q)",
        P_SEVEN,
    ),
    pair(
        "CREATE (:Q {k: 8}), (:Q {k: 7})",
        "MATCH (q:Q) OPTIONAL MATCH (p:P {k: q.k}) RETURN count(p)",
        P_SEVEN,
    ),
    pair("CREATE (:P {k: 6})", "MATCH (p:P) WHERE NOT p.k IN [5, 6] RETURN count(p)", P_SEVEN),
    pair("", "MERGE (p:P {k: 7}) RETURN 1", ["RETURN 1", "RETURN 1"]),
    pair(
        "CREATE CONSTRAINT FOR (p:P) REQUIRE p.k IS UNIQUE",
        "MERGE (p:P {k: 7}) RETURN 1",
        ["RETURN 1", "RETURN 1"],
    ),
    pair(
        TWO,
        "MATCH (a:A {id: 1}), (b:A {id: 2}) MERGE (a)-[:T]->(b) RETURN 1",
        ["RETURN 1", "RETURN 1"],
    ),
    pair(
        TWO,
        "MATCH (a:A {id: 1}), (b:A {id: 2}) MERGE (a)-[:T]-(b) RETURN 1",
        ["RETURN 1", "RETURN 1"],
    ),
    pair("CREATE CONSTRAINT FOR (p:P) REQUIRE p.k IS UNIQUE", "RETURN 1", P_SEVEN),
    pair(
        "CREATE (:A {on: true, id: 1}), (:A {on: true, id: 2})",
        "MATCH (a:A {on: true}) RETURN count(a)",
        ["MATCH (a:A {id: 1}) SET a.on = false", "MATCH (a:A {id: 2}) SET a.on = false"],
    ),
    pair(
        "CREATE (:A {n: 1, id: 1}), (:A {n: 1, id: 2})",
        "MATCH (a:A) RETURN sum(a.n)",
        ["MATCH (a:A {id: 1}) SET a += {n: 0}", "MATCH (a:A {id: 2}) SET a = {id: 2}"],
    ),
    pair(
        TWO,
        "MATCH (a:A) RETURN collect(labels(a))",
        ["MATCH (a:A {id: 1}) SET a:B", "MATCH (a:A {id: 2}) SET a:B"],
    ),
    pair(
        TWO,
        "MATCH (a:A) RETURN collect(keys(a)), collect(properties(a))",
        ["MATCH (a:A {id: 1}) SET a.x = 1", "MATCH (a:A {id: 2}) REMOVE a.id"],
    ),
];

const FROM_ONE: [&str; 2] =
    ["MATCH (a:A {id: 1}) CREATE (a)-[:T]->(:B)", "MATCH (a:A {id: 1}) CREATE (a)-[:T]->(:B)"];
const TO_ONE: [&str; 2] =
    ["MATCH (a:A {id: 1}) CREATE (a)<-[:T]-(:B)", "MATCH (a:A {id: 1}) CREATE (a)<-[:T]-(:B)"];
const FROM_EACH_END: [&str; 2] =
    ["MATCH (y:Y {id: 1}) CREATE (y)-[:T]->(:B)", "MATCH (y:Y {id: 2}) CREATE (y)-[:T]->(:B)"];

/// The same over relationships.
const SKEWED_OVER_RELATIONSHIPS: &[Pair] = &[
    pair(TWO, "MATCH ()-[r]->() RETURN count(r)", FROM_ONE),
    pair(TWO, "MATCH ()-[r:T]->() RETURN count(*)", FROM_ONE),
    pair(TWO, "MATCH ()-[r:S|T]-() RETURN count(r)", FROM_ONE),
    pair(TWO, "MATCH (a:A {id: 1})-->(x) RETURN count(x)", FROM_ONE),
    pair(TWO, "MATCH (a:A {id: 1})<-[:T]-(x) RETURN count(x)", TO_ONE),
    pair(TWO, "MATCH (a:A {id: 1})--(x) RETURN count(x)", TO_ONE),
    pair(TWO, "MATCH (a:A {id: 1}) RETURN EXISTS { (a)-->() }", FROM_ONE),
    pair(TWO, "MATCH (a:A {id: 1}) RETURN COUNT { (a)--() }", FROM_ONE),
    pair(TWO, "MATCH (a:A {id: 1}) WHERE NOT (a)-->() RETURN a", FROM_ONE),
    pair(TWO, "MATCH (a:A {id: 1}) RETURN [(a)-->(b) | b.id]", FROM_ONE),
    pair(TWO, "MATCH (a:A {id: 1}) OPTIONAL MATCH (a)-[r:T]->(:B) RETURN count(r)", FROM_ONE),
    pair(STAR, "MATCH (:A {id: 1})-[*1..4]->(x) RETURN count(x)", FROM_EACH_END),
    pair(STAR, "MATCH p = (:A {id: 1})-[:T*]->() RETURN max(length(p))", FROM_EACH_END),
    pair(STAR, "MATCH (:A {id: 1})-[*]->(x) RETURN count(DISTINCT x)", FROM_EACH_END),
    pair(STAR, "MATCH (a:A {id: 1}), (b:B) WHERE EXISTS { (a)-[*]->(b) } RETURN b", FROM_EACH_END),
    pair(STAR, "MATCH p = shortestPath((:A {id: 1})-[*]->(:B)) RETURN length(p)", FROM_EACH_END),
    pair(
        STAR,
        "MATCH ()-[r:T]->() RETURN sum(r.w)",
        [
            "MATCH (:M {id: 1})-[r:T]->() SET r.w = 2",
            "MATCH (:M {id: 2})-[r:T]->() SET r += {w: 2}",
        ],
    ),
    pair(
        STAR,
        "MATCH (:A)-->()-[r {w: 2}]->() RETURN count(r)",
        ["MATCH (:M {id: 1})-[r]->() SET r.w = 2", "MATCH (:M {id: 2})-[r]->() SET r.w = 2"],
    ),
    // What was examined and did not match counts as read too.
    pair(
        STAR,
        "MATCH (:A)-->()-->(z:Z) RETURN count(z)",
        ["MATCH (y:Y {id: 1}) SET y:Z", "MATCH (y:Y {id: 2}) SET y:Z"],
    ),
    pair(
        STAR,
        "MATCH (:A)-->(m {on: true}) RETURN count(m)",
        ["MATCH (m:M {id: 1}) SET m.on = true", "MATCH (m:M {id: 2}) SET m.on = true"],
    ),
    pair(
        STAR,
        "MATCH ()-[r:T]->() RETURN count(r)",
        ["MATCH (:M {id: 1})-[r:T]->() DELETE r", "MATCH (m:M {id: 2}) DETACH DELETE m"],
    ),
    // Two transactions that delete and connect the same node.
    pair(
        "CREATE (:A {id: 1}), (:B)",
        "RETURN 1",
        ["MATCH (b:B) DELETE b", "MATCH (a:A), (b:B) CREATE (a)-[:T]->(b)"],
    ),
    pair(
        "CREATE (:A {id: 1}), (:B)",
        "RETURN 1",
        ["MATCH (b:B) DETACH DELETE b", "MATCH (a:A), (b:B) CREATE (a)<-[:T]-(b)"],
    ),
    pair("CREATE (:B)", "RETURN 1", ["MATCH (b:B) DELETE b", "MATCH (b:B) SET b.x = 1"]),
    pair("CREATE (:B)", "RETURN 1", ["MATCH (b:B) DELETE b", "MATCH (b:B) DELETE b"]),
    // A constraint, and a violation of it.
    pair(
        "CREATE (:P {k: 7})",
        "RETURN 1",
        ["CREATE CONSTRAINT FOR (p:P) REQUIRE p.k IS UNIQUE", "CREATE (:P {k: 7})"],
    ),
    pair(
        "CREATE (:P {k: 7})",
        "RETURN 1",
        ["CREATE (:P {k: 7})", "CREATE CONSTRAINT FOR (p:P) REQUIRE p.k IS UNIQUE"],
    ),
];

/// Pairs that both commit.
const APART: &[Pair] = &[
    pair("", "RETURN 1", P_SEVEN),
    pair("CREATE INDEX FOR (p:P) ON (p.k)", "RETURN 1", P_SEVEN),
    pair(TWO, "RETURN 1", FROM_ONE),
    pair(TWO, "MATCH (a:A {id: 1}) RETURN a.id", FROM_ONE),
    pair("", "RETURN 1", ["MERGE (:P {k: 1})", "MERGE (:P {k: 2})"]),
    pair(TWO, "RETURN 1", ["MATCH (a:A {id: 1}) SET a.x = 1", "MATCH (a:A {id: 2}) SET a.x = 1"]),
    pair(
        STAR,
        "RETURN 1",
        ["MATCH (m:M {id: 1})-[r]->() SET r.w = 2", "MATCH (m:M {id: 2})-[r]->() SET r.w = 2"],
    ),
    // A read-only transaction sees the state of its beginning.
    pair(TWO, "MATCH (a:A) RETURN count(a)", ["CREATE (:A)", "RETURN 1"]),
    pair(TWO, "MATCH (a:A) RETURN count(a)", ["MATCH (a:A) DELETE a", "MATCH (a:A) RETURN a"]),
];

/// Runs each pair in a graph of its own; returns a sentence for each unexpected outcome.
fn run(pairs: &[Pair], expected: &[Result<(), String>; 2]) -> Vec<String> {
    let server = Server::start();
    let mut admin = server.client();
    let mut wrong = Vec::new();
    for (number, Pair { setup, reads, writes }) in pairs.iter().enumerate() {
        let log = format!("pair{number}");
        ask(&mut admin, "", "PUT", &format!("/v1/logs/{log}"), &json!({})).expect(201);
        let mut client = GraphClient::at(server.address).of(&log);
        if !setup.is_empty() {
            client.run(setup, json!({}));
        }
        let open = [(); 2].map(|()| client.begin(reads, json!({})));
        let wrote = [0, 1].map(|at| client.go_on(&open[at], writes[at], json!({})).map(drop));
        let committed = [0, 1].map(|at| match &wrote[at] {
            Ok(()) => client.commit(&open[at]),
            Err(code) => Err(format!("at the statement already: {code}")),
        });
        if &committed != expected {
            wrong.push(format!("{setup}; {reads}; {writes:?}: {committed:?}"));
        }
        if committed[1] == Err(OUTDATED.to_owned()) {
            retry(&mut client, reads, writes[1]);
        }
    }
    wrong
}

/// Retries a transaction after its conflict: nothing conflicts now. The graph may refuse it because
/// of the other's changes.
#[track_caller]
fn retry(client: &mut GraphClient, reads: &str, writes: &str) {
    let again = client.begin(reads, json!({}));
    let wrote = client.go_on(&again, writes, json!({})).map(drop);
    let done = wrote.and_then(|()| client.commit(&again));
    let refused = "Neo.ClientError.Schema.";
    let fits = done.as_ref().err().is_none_or(|code| code.starts_with(refused));
    assert!(fits, "{reads}; {writes}: {done:?}");
}

#[test]
fn of_two_that_read_what_the_other_writes_one_is_committed() {
    let expected = [Ok(()), Err(OUTDATED.to_owned())];
    assert_eq!(run(SKEWED, &expected), [""; 0]);
}

#[test]
fn of_two_that_follow_relationships_which_the_other_writes_one_is_committed() {
    let expected = [Ok(()), Err(OUTDATED.to_owned())];
    assert_eq!(run(SKEWED_OVER_RELATIONSHIPS, &expected), [""; 0]);
}

#[test]
fn those_that_have_nothing_to_do_with_each_other_are_both_committed() {
    assert_eq!(run(APART, &[Ok(()), Ok(())]), [""; 0]);
}

#[test]
fn a_transaction_reads_what_it_began_with_and_itself() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("UNWIND range(1, 10) AS i CREATE (:P {k: i})-[:T]->(:Q {k: i})", json!({}));
    let read = "MATCH (p:P) OPTIONAL MATCH (p)-[:T]->(q:Q) RETURN p.k, q.k ORDER BY p.k";
    let before = client.run(read, json!({}));
    let open = client.begin(read, json!({}));
    client.run("MATCH (p:P {k: 3})-[r:T]->() DELETE r", json!({}));
    client.run("MATCH (p:P {k: 4}) DETACH DELETE p", json!({}));
    client.run("CREATE (:P {k: 11})-[:T]->(:Q {k: 11})", json!({}));
    client.run("MATCH (q:Q {k: 1}) SET q.k = 100", json!({}));
    assert_eq!((&open.rows, &client.go_on(&open, read, json!({})).unwrap()), (&before, &before));
    let itself = client.go_on(
        &open,
        "CREATE (:P {k: 0}) WITH 1 AS x MATCH (p:P) RETURN count(p)",
        json!({}),
    );
    assert_eq!(itself, Ok(vec![json!([11])]));
    let now = client.run(read, json!({}));
    assert_eq!(now.len(), 10);
    assert_eq!(
        (&now[0], &now[2], &now[9]),
        (&json!([1, 100]), &json!([3, null]), &json!([11, 11]))
    );
    assert_eq!(client.commit(&open), Err(OUTDATED.to_owned()), "it read what has changed");
    assert_eq!(client.run(read, json!({})), now);
    let none: [Value; 0] = [];
    assert_eq!(client.run("MATCH (p:P {k: 0}) RETURN p", json!({})), none);
}
