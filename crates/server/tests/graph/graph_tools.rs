//! What tools of Neo4j ask first, and what only this server has: events of the log beside the
//! graph.

use crate::graph_client::*;
use crate::server::Server;
use serde_json::{Value, json};

fn rows(client: &mut GraphClient, text: &str) -> Value {
    Value::Array(client.run(text, json!({})))
}

#[test]
fn a_graph_joins_the_events_of_its_log() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("CREATE (:Person {id: 7, name: 'Ann'}), (:Person {id: 8, name: 'Bob'})", json!({}));
    let events = json!({"events": [
        {"type": "Paid", "tags": ["person:7"], "data": {"by": 7, "cents": 9_007_199_254_740_993_i64}},
        {"type": "Paid", "tags": ["person:8"], "data": {"by": 8, "cents": 18_446_744_073_709_551_615_u64}},
        {"type": "Sent", "tags": ["person:7"], "data": ["x", 1.5, null]},
    ]});
    client.client.post("/v1/append", &events).unwrap().expect(200);
    let joined = "CALL wellspring.events({types: ['Paid']}) YIELD position, data, recordedAt \
                  MATCH (p:Person {id: data.by}) \
                  RETURN p.name, position, data.cents, recordedAt <= datetime() + duration('PT1M')";
    assert_eq!(
        rows(&mut client, joined),
        json!([
            ["Ann", 2, 9_007_199_254_740_993_i64, true],
            ["Bob", 3, 1.844_674_407_370_955_2e19, true]
        ])
    );
    let tagged = "CALL wellspring.events({tags: ['person:7'], after: 2}) YIELD type, tags, data \
                  RETURN type, tags, data";
    assert_eq!(rows(&mut client, tagged), json!([["Sent", ["person:7"], ["x", 1.5, null]]]));
    let count = |settings: &str| {
        format!("CALL wellspring.events({settings}) YIELD position RETURN count(*), max(position)")
    };
    assert_eq!(rows(&mut client, &count("{limit: 2}")), json!([[2, 2]]));
    assert_eq!(rows(&mut client, &count("{until: 3}")), json!([[3, 3]]));
    assert_eq!(rows(&mut client, &count("")), json!([[4, 4]]));
    // They become a part of the graph in one statement.
    client.run(
        "CALL wellspring.events({types: ['Sent']}) YIELD position, data \
         MERGE (e:Event {position: position}) SET e.first = data[0]",
        json!({}),
    );
    assert_eq!(client.value("MATCH (e:Event) RETURN collect(e.first)"), json!(["x"]));
}

#[test]
fn what_tools_ask_first_is_answered() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("CREATE VECTOR INDEX near FOR (n:A) ON (n.v)", json!({}));
    client.run(
        "UNWIND $rows AS row CREATE (n:A {v: row.v}) SET n:$(row.labels)",
        json!({"rows": [{"v": [1.0, 0.0], "labels": ["B"]}, {"v": [0.0, 1.0], "labels": "C"}]}),
    );
    let nearest = "CALL db.index.vector.queryNodes('near', 1, [2, 0]) YIELD node, score \
                   RETURN labels(node), score";
    assert_eq!(rows(&mut client, nearest), json!([[["A", "B"], 1.0]]));
    let databases = "SHOW DATABASES YIELD name, aliases, default WHERE default";
    assert_eq!(rows(&mut client, databases), json!([["main", ["neo4j", "nornic"], true]]));
    let schema = "CALL apoc.meta.data({sample: 5}) YIELD label, property, type \
                  RETURN label, property, type ORDER BY label";
    assert_eq!(
        rows(&mut client, schema),
        json!([["A", "v", "LIST"], ["B", "v", "LIST"], ["C", "v", "LIST"]])
    );
    let missing = client.ask("POST", "tx/commit", &one("CALL apoc.nothing()", json!({}))).unwrap();
    let expected = "Neo.ClientError.Procedure.ProcedureNotFound";
    assert_eq!(code(&missing.expect(200)).as_deref(), Some(expected));
}

#[test]
fn the_index_of_vectors_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let text = "SHOW VECTOR INDEXES YIELD name, labelsOrTypes, properties";
    let server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    client.run("CREATE VECTOR INDEX near FOR (n:A) ON (n.v)", json!({}));
    assert_eq!(rows(&mut client, text), json!([["near", ["A"], ["v"]]]));
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = GraphClient::at(server.address);
    assert_eq!(rows(&mut client, text), json!([["near", ["A"], ["v"]]]));
}

#[test]
fn files_of_the_allowed_folder_are_loaded() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("people.csv"), "id;name\n1;Ann\n2;\n").unwrap();
    let load = "LOAD CSV WITH HEADERS FROM 'file:///people.csv' AS row FIELDTERMINATOR ';' ";
    let server = Server::start_with(&["--graph-csv-folder", dir.path().to_str().unwrap()]);
    let mut client = GraphClient::at(server.address);
    client.run(
        &format!("{load} MERGE (p:P {{id: toInteger(row.id)}}) SET p.name = row.name"),
        json!({}),
    );
    let people = "MATCH (p:P) RETURN p.id, p.name ORDER BY p.id";
    assert_eq!(rows(&mut client, people), json!([[1, "Ann"], [2, null]]));
    let outside = "LOAD CSV FROM 'file:///../people.csv' AS row RETURN row";
    let failed = "Neo.ClientError.Statement.ExternalResourceFailed";
    assert_eq!(client.try_run(outside, json!({})), Err(failed.to_owned()));
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    let refused = client.try_run(&format!("{load} RETURN row"), json!({}));
    assert_eq!(refused, Err(failed.to_owned()));
}
