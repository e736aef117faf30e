//! Graph events appended by other writers: valid ones change the graph, invalid ones do not, and no
//! client is affected.

use crate::done::StopSignal;
use crate::graph_client::*;
use crate::server::Server;
use serde_json::{Value, json};

/// Everything that is in a graph.
fn dump(client: &mut GraphClient) -> Vec<Value> {
    let nodes = "MATCH (n) RETURN id(n), labels(n), properties(n) ORDER BY id(n)";
    let relationships = "MATCH (a)-[r]->(b) RETURN id(r), type(r), id(a), id(b), properties(r)
        ORDER BY id(r)";
    [client.run(nodes, json!({})), client.run(relationships, json!({}))].concat()
}

/// Appends an event with this JSON text as data; returns its position.
#[track_caller]
fn append(client: &mut GraphClient, event_type: &str, data: &str) -> u64 {
    let body = format!(r#"{{"events":[{{"type":"{event_type}","tags":[],"data":{data}}}]}}"#);
    let headers = [("Content-Type", "application/json")];
    let answer = client.client.call("POST", "/v1/append", &headers, body.as_bytes()).unwrap();
    answer.expect(200)["last"].as_u64().expect("a position")
}

/// Waits until the graph shows everything up to this position.
fn wait_for(client: &mut GraphClient, position: u64) {
    for _ in 0..20_000 {
        let told = client.client.get("/db/neo4j").unwrap().expect(200);
        if told["position"].as_u64().unwrap() >= position {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("position {position} is never shown");
}

/// Appends an event and waits until the graph has processed it.
#[track_caller]
fn put(client: &mut GraphClient, event_type: &str, data: &str) {
    let position = append(client, event_type, data);
    wait_for(client, position);
}

/// Two nodes, a relationship, and a rule.
fn prepare(client: &mut GraphClient) {
    client.run("CREATE CONSTRAINT one FOR (p:P) REQUIRE p.k IS UNIQUE", json!({}));
    client.run("CREATE (:P {k: 1})-[:R {w: 1}]->(:P:Q {k: 2})", json!({}));
}

const SENSE: &[(&str, &str)] = &[
    (
        r#"{"nodes":[{"id":10,"new":["P","P"],"set":{"k":10,"f":1.0}}],"rels":[{"id":5,"new":"R","from":10,"to":0}]}"#,
        "MATCH (p:P {k: 10, f: 1.0})-[:R]->(:P {k: 1}) RETURN id(p) = 10",
    ),
    (
        r#"{"nodes":[{"id":0,"set":{"k":7},"label":["Z"],"unlabel":["P"]}]}"#,
        "MATCH (z:Z {k: 7}) WHERE NOT z:P RETURN id(z) = 0",
    ),
    (r#"{"rels":[{"id":0,"set":{"w":2}}]}"#, "MATCH ()-[r:R {w: 2}]->() RETURN id(r) = 0"),
    (
        r#"{"rels":[{"id":0,"gone":true}],"nodes":[{"id":1,"gone":true}]}"#,
        "MATCH (n) RETURN count(n) = 2",
    ),
    (
        r#"{"nodes":[{"id":0,"set":{"d":{"$type":"Date","_value":"2020-01-02"}}}]}"#,
        "MATCH (n {d: date('2020-01-02')}) RETURN id(n) = 0",
    ),
    (r#"{}"#, "RETURN true"),
    (r#"{"tx":"a","part":1,"of":2,"nodes":[{"id":20,"new":["Y"]}]}"#, "RETURN NOT EXISTS { (:Y) }"),
    (
        r#"{"tx":"a","part":2,"of":2,"nodes":[{"id":21,"new":["Y"]}]}"#,
        "MATCH (y:Y) RETURN count(y) = 2",
    ),
    // As far apart as ids can be.
    (
        r#"{"nodes":[{"id":281474976710655,"new":["Far"]}]}"#,
        "MATCH (n:Far) RETURN id(n) = 281474976710655",
    ),
];

#[test]
fn what_others_append_changes_the_graph_if_it_makes_sense() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    prepare(&mut client);
    for (data, shown) in SENSE {
        put(&mut client, "GraphChanged", data);
        assert_eq!(client.value(shown), json!(true), "{data}");
    }
    let index = r#"{"create":[{"name":"i","kind":"range","on":"node","labels":["Y"],"keys":["k"]}],"drop":["one"]}"#;
    put(&mut client, "GraphSchemaChanged", index);
    client.run("UNWIND [4, 4] AS k CREATE (:P {k: k})", json!({}));
    assert!(client.try_run("CREATE INDEX i FOR (y:Y) ON (y.k)", json!({})).is_err());
    let created = client.value("CREATE (n:New)-[:R]->(:New) RETURN id(n)");
    assert!(created.as_u64().is_some_and(|id| id > 21), "{created}");
    let before = dump(&mut client);
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    assert_eq!(dump(&mut GraphClient::at(server.address)), before);
}

const NONSENSE: &[&str] = &[
    // Not an object, or with unknown fields.
    "null",
    "1",
    "\"text\"",
    "[]",
    "[{\"nodes\":[]}]",
    r#"{"nodes":null}"#,
    r#"{"nodes":{}}"#,
    r#"{"nodes":1,"rels":"x"}"#,
    r#"{"nodes":[1]}"#,
    r#"{"nodes":[[]]}"#,
    r#"{"nodes":[{"id":50,"new":["X"]}],"nodes":[{"id":51,"new":["X"]}]}"#,
    r#"{"nodes":[{"id":50,"new":["X"]}],"more":1}"#,
    // Ids.
    r#"{"nodes":[{"new":["X"]}]}"#,
    r#"{"nodes":[{"id":"50","new":["X"]}]}"#,
    r#"{"nodes":[{"id":-1,"new":["X"]}]}"#,
    r#"{"nodes":[{"id":50.5,"new":["X"]}]}"#,
    r#"{"nodes":[{"id":1e400,"new":["X"]}]}"#,
    r#"{"nodes":[{"id":281474976710656,"new":["X"]}]}"#,
    r#"{"nodes":[{"id":99999999999999999999999999,"new":["X"]}]}"#,
    r#"{"rels":[{"id":281474976710656,"new":"R","from":0,"to":1}]}"#,
    // Entities that exist already, or do not.
    r#"{"nodes":[{"id":0,"new":["X"]}]}"#,
    r#"{"nodes":[{"id":50,"new":["X"]},{"id":50,"new":["X"]}]}"#,
    r#"{"nodes":[{"id":50,"set":{"x":1}}]}"#,
    r#"{"nodes":[{"id":50,"new":["X"]},{"id":51,"gone":true}]}"#,
    r#"{"rels":[{"id":0,"new":"R","from":0,"to":1}]}"#,
    r#"{"rels":[{"id":50,"new":"R","from":0,"to":50}]}"#,
    r#"{"rels":[{"id":50,"new":"R","from":0}]}"#,
    r#"{"rels":[{"id":50,"set":{"x":1}}]}"#,
    r#"{"rels":[{"id":50,"gone":true}]}"#,
    r#"{"nodes":[{"id":0,"gone":true}]}"#,
    r#"{"nodes":[{"id":0,"new":["X"],"gone":true}]}"#,
    r#"{"nodes":[{"id":0,"gone":"yes"}]}"#,
    // Constraints.
    r#"{"nodes":[{"id":0,"set":{"k":2}}]}"#,
    r#"{"nodes":[{"id":50,"new":["P"],"set":{"k":50}},{"id":51,"new":["P"],"set":{"k":50}}]}"#,
    // Names and values.
    r#"{"nodes":[{"id":50,"new":[""]}]}"#,
    r#"{"nodes":[{"id":50,"new":["a\u0000b"]}]}"#,
    r#"{"nodes":[{"id":50,"new":[1]}]}"#,
    r#"{"nodes":[{"id":50,"new":{"X":1}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"":1}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":null}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":{"a":1}}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":[[1]]}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":[1,null]}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":1},"unset":["x"]}]}"#,
    r#"{"nodes":[{"id":0,"set":[["x",1]]}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":{"$type":"Date","_value":"2020-13-45"}}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":{"$type":"Nothing","_value":"1"}}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":{"$type":"Date"}}}]}"#,
    r#"{"nodes":[{"id":0,"set":{"x":1e400}}]}"#,
    r#"{"rels":[{"id":50,"new":["R"],"from":0,"to":1}]}"#,
    // Parts of transactions.
    r#"{"tx":"a","nodes":[{"id":50,"new":["X"]}]}"#,
    r#"{"tx":"a","part":2,"of":2,"nodes":[{"id":50,"new":["X"]}]}"#,
    r#"{"tx":"a","part":0,"of":0,"nodes":[{"id":50,"new":["X"]}]}"#,
    r#"{"tx":"","part":1,"of":1,"nodes":[{"id":50,"new":["X"]}]}"#,
    r#"{"tx":"a","part":1,"of":1000000000,"nodes":[{"id":50,"new":["X"]}]}"#,
    r#"{"tx":"a","part":1,"of":3,"nodes":[{"id":50,"new":["X"]}]}"#,
    r#"{"tx":"a","part":3,"of":3,"nodes":[{"id":50,"new":["X"]}]}"#,
];

const NONSENSE_OF_SCHEMA: &[&str] = &[
    "null",
    r#"{"create":{}}"#,
    r#"{"create":[{"name":"n"}]}"#,
    r#"{"create":[{"name":"n","kind":"odd","on":"node","labels":["X"],"keys":["k"]}]}"#,
    r#"{"create":[{"name":"n","kind":"range","on":"edge","labels":["X"],"keys":["k"]}]}"#,
    r#"{"create":[{"name":"n","kind":"range","on":"node","labels":[],"keys":["k"]}]}"#,
    r#"{"create":[{"name":"n","kind":"range","on":"node","labels":["X"],"keys":[]}]}"#,
    r#"{"create":[{"name":"one","kind":"range","on":"node","labels":["X"],"keys":["k"]}]}"#,
    r#"{"create":[{"name":"n","kind":"exists","on":"node","labels":["P"],"keys":["nothing"]}]}"#,
    r#"{"create":[{"name":"n","kind":"unique","on":"rel","labels":["R"],"keys":[1]}]}"#,
    r#"{"drop":["nothing"]}"#,
    r#"{"drop":"one"}"#,
];

#[test]
fn nonsense_that_others_append_changes_nothing_and_forbids_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    prepare(&mut client);
    let before = dump(&mut client);
    let kinds = [("GraphChanged", NONSENSE), ("GraphSchemaChanged", NONSENSE_OF_SCHEMA)];
    // A transaction that stays open throughout and reads everything.
    let open = client.begin("MATCH (n) RETURN count(n)", json!({}));
    for (event_type, all) in kinds {
        for data in all {
            put(&mut client, event_type, data);
            assert_eq!(dump(&mut client), before, "{data}");
        }
    }
    // Deep or long values, and invalid JSON.
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for data in [
        format!(r#"{{"nodes":[{{"id":0,"set":{{"x":{deep}}}}}]}}"#),
        format!(r#"{{"nodes":[{{"id":50,"new":["{}"]}}]}}"#, "x".repeat(241)),
    ] {
        put(&mut client, "GraphChanged", &data);
        assert_eq!(dump(&mut client), before, "{}", &data[..100.min(data.len())]);
    }
    for bytes in ["", "/w==", "eyJub2RlcyI6", "eyJub2RlcyI6W119IA=="] {
        let event = json!({"type": "GraphChanged", "tags": [], "data_base64": bytes});
        let told = client.client.post("/v1/append", &json!({"events": [event]})).unwrap();
        wait_for(&mut client, told.expect(200)["last"].as_u64().unwrap());
        assert_eq!(dump(&mut client), before, "{bytes}");
    }
    client.go_on(&open, "CREATE (:Beside)", json!({})).unwrap();
    assert_eq!(client.commit(&open), Ok(()), "nothing that it read has changed");
    assert!(client.try_run("CREATE (:P {k: 1})", json!({})).is_err(), "the rule holds");
    client.run("CREATE (:X)-[:R]->(:X)", json!({}));
    let after = dump(&mut client);
    assert_eq!(after.len(), before.len() + 4);
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    assert_eq!(dump(&mut GraphClient::at(server.address)), after);
}

#[test]
fn foreign_appends_overtake_transactions_that_read_their_subject() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    prepare(&mut client);
    // Executed again, the second would show another x.
    let read = "MATCH (p:P {k: 1}) RETURN p.k, p.x";
    let open = [(); 2].map(|()| client.begin(read, json!({})));
    for open in &open {
        client.go_on(open, "CREATE (:N)", json!({})).unwrap();
    }
    append(&mut client, "GraphChanged", r#"{"nodes":[{"id":1,"set":{"k":3}}]}"#);
    assert_eq!(client.commit(&open[0]), Ok(()), "it has not read that node");
    append(&mut client, "GraphChanged", r#"{"nodes":[{"id":0,"set":{"x":3}}]}"#);
    assert_eq!(client.commit(&open[1]), Err(OUTDATED.to_owned()));
    assert_eq!(client.value("MATCH (n:N) RETURN count(n)"), json!(1));
}

#[test]
fn clients_that_use_the_same_ids_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let (clients, times) = (8, size(60, 2_000));
    let mut client = GraphClient::at(server.address);
    client.run("CREATE (:C {n: 0})", json!({}));
    let done = StopSignal::default();
    std::thread::scope(|scope| {
        let enough = done.at_the_end();
        scope.spawn(|| {
            let mut client = GraphClient::at(server.address);
            let mut at = 0;
            while !done.is_set() {
                let count = client.client.get("/db/neo4j").unwrap().expect(200);
                let next = count["nodeCount"].as_u64().unwrap();
                for ahead in 0..4 {
                    at += 1;
                    let id = next + ahead;
                    let data =
                        json!({"nodes": [{"id": id, "new": ["Foreign"], "set": {"at": at}}]});
                    append(&mut client, "GraphChanged", &data.to_string());
                }
            }
        });
        at_once(server.address, clients, |client, number| {
            for turn in 0..times {
                let create = "MATCH (c:C) SET c.n = c.n + 1 CREATE (n:N {k: $k})-[:OF]->(c)";
                client.run(create, json!({"k": format!("{number}-{turn}")}));
            }
        });
        drop(enough);
    });
    let all = clients * times;
    let counts = "MATCH (n:N)-[:OF]->(c:C) RETURN count(n), count(DISTINCT n.k), max(c.n)";
    assert_eq!(client.run(counts, json!({})), [json!([all, all, all])]);
    let foreign = "MATCH (n:Foreign) RETURN count(n), count(DISTINCT n.at)";
    let foreign = client.run(foreign, json!({})).remove(0);
    assert!(foreign[0].as_u64().is_some_and(|count| count > 0) && foreign[0] == foreign[1]);
    let before = dump(&mut client);
    assert_eq!(before.len(), 2 * all + 1 + foreign[0].as_u64().unwrap() as usize);
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    assert!(dump(&mut GraphClient::at(server.address)) == before, "as it was");
}
