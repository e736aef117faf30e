//! One graph, however it was built: by its transactions, rebuilt from its events, from a snapshot
//! taken while clients wrote, or by export and import. Compared byte for byte as Cypher returns it.

use crate::graph_client::*;
use crate::numbered::Coins;
use crate::server::Server;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Nodes and relationships per answer of a dump.
const PAGE: u64 = 1_000;

/// Indexes and constraints to create, and some to drop again.
const SCHEMA: [&str; 7] = [
    "CREATE INDEX by_key FOR (n:A) ON (n.k)",
    "CREATE INDEX gone FOR (n:B) ON (n.k)",
    "CREATE INDEX by_weight FOR ()-[r:R]-() ON (r.weight)",
    "CREATE CONSTRAINT only FOR (n:U) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT passing FOR (n:B) REQUIRE n.id IS UNIQUE",
    "DROP INDEX gone",
    "DROP CONSTRAINT passing",
];

/// Values of all kinds that a property may have.
const VALUES: [&str; 26] = [
    "1",
    "-9223372036854775807",
    "9223372036854775807",
    "1.0",
    "-0.0",
    "0.1",
    "1e308",
    "5e-324",
    "1.0 / 3.0",
    "0.0 / 0.0",
    "1.0 / 0.0",
    "true",
    "'é\u{1f980}\\u0000\\n\\\\'",
    "''",
    "[]",
    "[1, 2.0]",
    "['a', 'b']",
    "date('2024-02-29')",
    "localtime('12:31:14.645876123')",
    "time('12:31:14.5+01:00')",
    "localdatetime('1984-10-11T12:31:14.000000001')",
    "datetime('2024-03-31T02:30:00[Europe/Berlin]')",
    "duration('P1Y2M3DT4H5M6.000000007S')",
    "point({x: 1.5, y: -2})",
    "point({latitude: 12.5, longitude: 56.7})",
    "[date('2024-01-01'), date('0001-01-01')]",
];

/// A random transaction.
fn step(coins: &mut Coins) -> (String, Value) {
    let value = VALUES[coins.below(VALUES.len() as u64) as usize];
    let (label, key) =
        (["A", "B", "C"][coins.below(3) as usize], ["k", "v", "w x"][coins.below(3) as usize]);
    let parameters = json!({"a": coins.below(60), "b": coins.below(60), "big": "x".repeat(600)});
    let text = match coins.below(14) {
        0..3 => format!("CREATE (:A:`{label}` {{k: $a, `{key}`: {value}}})"),
        3 => format!("MERGE (n:U {{id: $a}}) ON MATCH SET n.`{key}` = {value}"),
        4 => format!("MATCH (n:A {{k: $a}}) SET n.`{key}` = {value}, n:`{label}`"),
        5 => "MATCH (n:A {k: $a}) REMOVE n.v, n:C".to_owned(),
        6..9 => format!(
            "MERGE (a:A {{k: $a}}) MERGE (b:A {{k: $b}}) CREATE (a)-[:R {{weight: {value}}}]->(b), (b)-[:`a type`]->(a)"
        ),
        9 => format!("MATCH ()-[r:R]->(n:A {{k: $b}}) SET r.`{key}` = {value}"),
        10 => "MATCH (:A {k: $a})-[r]->() DELETE r".to_owned(),
        11 => "MATCH (n:A {k: $a}) WITH n LIMIT 1 DETACH DELETE n".to_owned(),
        12 => "UNWIND range(1, 20) AS i CREATE (a:C {big: $big, i: i})-[:R]->(a)".to_owned(),
        _ => {
            "MATCH (n:C) WITH n LIMIT 15 SET n = {i: -n.i, big: n.big + 'y'} REMOVE n:C".to_owned()
        }
    };
    (text, parameters)
}

/// Begins a transaction that names what others will use later, in another order, and rolls it back.
fn roll_back(client: &mut GraphClient) -> Option<()> {
    let text =
        "CREATE (:C:U:B:A:Z {`w x`: 1, weight: 1, v: 1, i: 1, k: 1})-[:`a type`]->(:Y)-[:R]->()";
    let begun = client.ask("POST", "tx", &one(text, json!({}))).ok()?;
    let begun: Value = serde_json::from_slice(&begun.body).ok()?;
    let (_, path) = begun["commit"].as_str()?.split_once("/db/neo4j/")?;
    client.ask("DELETE", path.strip_suffix("/commit")?, &Value::Null).ok().map(|_| ())
}

/// Executes random transactions until the server refuses, at most `most`. Violations of a rule are
/// refused.
fn live(address: SocketAddr, seed: u64, most: usize) {
    let Ok(mut client) = GraphClient::connect(address) else { return };
    let mut coins = Coins::new(seed);
    for number in 0..most {
        if number % 40 == 0 {
            roll_back(&mut client);
        }
        let (text, parameters) = step(&mut coins);
        let Ok(answer) = client.ask("POST", "tx/commit", &one(&text, parameters)) else { return };
        let refused = serde_json::from_slice(&answer.body).ok().and_then(|content| code(&content));
        match (answer.status, refused) {
            (200, None) => {}
            (200, Some(code)) if code.ends_with("ConstraintValidationFailed") => {}
            // The server stops.
            (503, _) => return,
            (status, code) => panic!("{status} {code:?}: {text}"),
        }
    }
}

fn live_all(address: SocketAddr, seed: u64, most: usize) {
    std::thread::scope(|scope| {
        for client in 0..3 {
            scope.spawn(move || live(address, seed + client, most));
        }
    });
}

/// The rows of a statement as returned.
fn raw(client: &mut GraphClient, statement: &str, parameters: Value) -> String {
    let answer = client.ask("POST", "tx/commit", &one(statement, parameters)).unwrap();
    assert_eq!(code(&answer.expect(200)), None, "{statement}");
    let text = answer.text();
    text.split(",\"lastBookmarks\"").next().unwrap().to_owned()
}

/// The graph as text, equal for equal graphs.
fn dump(client: &mut GraphClient) -> Vec<String> {
    let mut lines = Vec::new();
    for (pattern, about) in [("(x)", "id(x)"), ("(s)-[x]->(t)", "id(x), type(x), id(s), id(t)")] {
        let last = client
            .value(&format!("MATCH {pattern} RETURN coalesce(max(id(x)), 0)"))
            .as_u64()
            .unwrap();
        for from in (0..=last).step_by(PAGE as usize) {
            let page = json!({"from": from, "to": from + PAGE});
            let within = format!("MATCH {pattern} WHERE $from <= id(x) AND id(x) < $to");
            // In the order in which the graph has them: it is part of the answer.
            let keys =
                format!("{within} RETURN id(x), [k IN keys(x) | [k, valueType(x[k]), x[k]]], x");
            lines.push(raw(client, &format!("{within} RETURN {about}"), page.clone()));
            lines.push(raw(client, &keys, page.clone()));
            if pattern == "(x)" {
                lines.push(raw(client, &format!("{within} RETURN id(x), labels(x)"), page.clone()));
                let around = format!("{within} MATCH (x)-[r]-(y) RETURN id(x), id(r), id(y)");
                lines.push(raw(client, &around, page));
            }
        }
    }
    for groups in [
        "MATCH (n) RETURN labels(n), count(*)",
        "MATCH (n) RETURN DISTINCT keys(n)",
        "CALL db.labels()",
        "CALL db.propertyKeys()",
        "CALL db.relationshipTypes()",
    ] {
        lines.push(raw(client, groups, json!({})));
    }
    // Counts that are maintained, and what indexes find.
    for label in ["A", "B", "C", "U"] {
        lines.push(raw(client, &format!("MATCH (n:{label}) RETURN count(n)"), json!({})));
    }
    for name in ["R", "a type"] {
        lines.push(raw(client, &format!("MATCH ()-[r:`{name}`]->() RETURN count(r)"), json!({})));
    }
    for k in 0..60 {
        let found = "MATCH (n:A {k: $k}) RETURN id(n) ORDER BY id(n)";
        lines.push(raw(client, found, json!({"k": k})));
        lines.push(raw(client, "MATCH (n:U {id: $k}) RETURN id(n)", json!({"k": k})));
    }
    lines.extend(schema(client));
    lines
}

/// The result of repeating each command that creates an index or a constraint: it is rolled back.
fn schema(client: &mut GraphClient) -> Vec<String> {
    let creating = SCHEMA.iter().filter(|command| command.starts_with("CREATE"));
    let mut lines = Vec::new();
    for command in creating {
        let content = client.ask("POST", "tx", &one(command, json!({}))).unwrap().expect(201);
        lines.push(format!("{command}: {}", content["errors"]));
        if content["errors"] == json!([]) {
            let (_, path) = content["commit"].as_str().unwrap().split_once("/db/neo4j/").unwrap();
            let path = path.strip_suffix("/commit").unwrap();
            client.ask("DELETE", path, &Value::Null).unwrap().expect(200);
        }
    }
    let kept = lines.iter().filter(|line| line.contains("EquivalentSchemaRule")).count();
    assert_eq!(kept, 3, "{lines:#?}");
    lines
}

#[track_caller]
fn the_same(is: &[String], was: &[String]) {
    for (is, was) in is.iter().zip(was) {
        assert!(is == was, "is:  {is}\nwas: {was}");
    }
    assert_eq!(is.len(), was.len());
}

/// The snapshot file of the graph below a folder, if there is one.
fn snapshot(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter_map(|path| {
            if path.is_dir() {
                snapshot(&path)
            } else {
                path.ends_with("graph.snapshot").then_some(path)
            }
        })
        .next()
}

/// Position of the snapshot from which the graph started, or 0.
fn began_at(client: &mut GraphClient) -> u64 {
    let views = client.client.get("/v1/views").unwrap().expect(200);
    let views = views["views"].as_array().unwrap();
    let graph = views.iter().find(|view| view["view"] == "graph").expect("the graph");
    graph["snapshot"].as_u64().unwrap()
}

/// Foreign events: enough that a snapshot is written when the server stops, or while it runs.
fn fill(client: &mut GraphClient, events: usize) {
    let some = json!({"events": vec![json!({"type": "Other", "data": 1}); 1_000]});
    for _ in 0..events.div_ceil(1_000) {
        client.client.post("/v1/append", &some).unwrap().expect(200);
    }
}

/// Runs a tool of the program.
fn tool(server: &Server, words: &[&str]) {
    let ran = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(words)
        .args(["--url", &server.url()])
        .env_remove("WELLSPRING_URL")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn live_rebuilt_from_a_snapshot_and_imported_are_the_same_to_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let server = Server::start_in(dir.path(), &[]);
        let client = GraphClient::at(server.address);
        (server, client)
    };
    let (server, mut client) = start();
    roll_back(&mut client).expect("rolled back");
    for command in SCHEMA {
        client.run(command, json!({}));
    }
    live_all(server.address, 7, size(300, 10_000));
    let live = dump(&mut client);
    let bytes: usize = live.iter().map(String::len).sum();
    assert!(bytes > 100_000, "{bytes} bytes are compared");
    server.kill();
    let (mut server, mut client) = start();
    assert_eq!((began_at(&mut client), snapshot(dir.path())), (0, None));
    the_same(&dump(&mut client), &live);

    // A snapshot while clients write.
    fill(&mut client, size(12_000, 1_100_000));
    let address = server.address;
    std::thread::scope(|scope| {
        scope.spawn(move || live_all(address, 17, usize::MAX));
        std::thread::sleep(Duration::from_millis(size(1_000, 5_000) as u64));
        assert!(server.terminate().success());
    });
    let file = snapshot(dir.path()).expect("a snapshot when the server stops");
    let (server, mut client) = start();
    assert!(began_at(&mut client) > 12_000, "the snapshot is used");
    let with = dump(&mut client);
    assert!(with != live, "it has gone on");
    live_all(server.address, 27, 50);
    let with_more = dump(&mut client);
    server.kill();
    let (server, mut client) = start();
    assert!(began_at(&mut client) > 12_000, "an old snapshot, and what came after it");
    the_same(&dump(&mut client), &with_more);
    server.kill();
    std::fs::remove_file(&file).unwrap();
    let (server, mut client) = start();
    assert_eq!(began_at(&mut client), 0);
    the_same(&dump(&mut client), &with_more);

    let other = Server::start();
    let events = dir.path().join("events.ndjson.gz");
    tool(&server, &["export", "-o", events.to_str().unwrap()]);
    tool(&other, &["import", events.to_str().unwrap()]);
    the_same(&dump(&mut GraphClient::at(other.address)), &with_more);
    println!("{bytes} bytes, then {}", with_more.iter().map(String::len).sum::<usize>());
}

#[test]
fn statements_that_come_to_nothing_use_up_no_names() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("CREATE (:A {k: 1})", json!({}));
    let head = client.client.get("/v1/head").unwrap().expect(200)["head"].clone();
    let text = "CREATE (n) SET n += $m WITH n RETURN 1/0";
    for round in 0..size(120, 120) {
        let keys = (0..10_000).map(|key| (format!("n{:07}", round * 10_000 + key), json!(1)));
        let keys = Value::Object(keys.collect());
        let answer = client.ask("POST", "tx/commit", &one(text, json!({"m": keys}))).unwrap();
        let refused = code(&answer.expect(200)).expect("a fault");
        assert!(refused.ends_with("ArithmeticError"), "round {round}: {refused}");
    }
    assert_eq!(client.client.get("/v1/head").unwrap().expect(200)["head"], head);
    client.run("CREATE (:Customer {email: 'a'})", json!({}));
    assert_eq!(client.value("MATCH (n:Customer) RETURN n.email"), "a");
}
