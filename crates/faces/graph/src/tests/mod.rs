//! The face over a host without sockets.

mod query;
mod transactions;

use crate::GraphFace;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use wellspring_host::http::dispatch::dispatch;
use wellspring_host::http::server::Server;
use wellspring_host::http::{Content, Request, Response};
use wellspring_host::stats::family::Family;
use wellspring_host::testing;
use wellspring_log::{Append, EncodedEvents};
use wellspring_types::Event;

/// A server with the graph alone.
struct Graphs {
    server: Arc<Server>,
    runtime: Runtime,
}

/// An answer: status, `Location`, content.
struct Answer {
    status: u16,
    location: Option<String>,
    content: Value,
}

impl Graphs {
    fn open(data: &Path) -> Graphs {
        Graphs::with(data, &[])
    }

    fn with(data: &Path, flags: &[&str]) -> Graphs {
        let server = testing::server::<GraphFace>(data, flags);
        Graphs { server, runtime: Builder::new_current_thread().enable_all().build().unwrap() }
    }

    fn ask(&self, method: &str, target: &str, content: &Value) -> Answer {
        self.runtime.block_on(self.asked(method, target, &content.to_string()))
    }

    async fn asked(&self, method: &str, target: &str, content: &str) -> Answer {
        let headers = [("content-type", "application/json")];
        let response = self.answer(method, target, &headers, content).await;
        let location = response.header("location").map(str::to_owned);
        let Content::Full(content) = response.content else { panic!("a stream") };
        let content = serde_json::from_slice(&content).unwrap_or(Value::Null);
        Answer { status: response.status, location, content }
    }

    /// Status and content of an answer.
    async fn sent(
        &self,
        method: &str,
        target: &str,
        headers: &[(&'static str, &str)],
        content: &str,
    ) -> (u16, String) {
        let response = self.answer(method, target, headers, content).await;
        let Content::Full(content) = response.content else { panic!("a stream") };
        (response.status, String::from_utf8(content.to_vec()).unwrap())
    }

    async fn answer(
        &self,
        method: &str,
        target: &str,
        given: &[(&'static str, &str)],
        content: &str,
    ) -> Response {
        let mut headers = hyper::HeaderMap::new();
        headers.insert("host", "localhost:4000".parse().unwrap());
        for (name, value) in given {
            headers.insert(*name, value.parse().unwrap());
        }
        let (method, uri) = (method.parse().unwrap(), target.parse().unwrap());
        let content = content.to_owned().into();
        let request = Request::in_process(&self.server.host, method, uri, headers, content);
        dispatch(Arc::clone(&self.server), request).await
    }

    /// Executes one statement; its rows, or the code of its error.
    fn run(&self, statement: &str, parameters: Value) -> Result<Vec<Value>, String> {
        self.run_in("/db/neo4j/tx/commit", statement, parameters)
    }

    fn run_in(
        &self,
        target: &str,
        statement: &str,
        parameters: Value,
    ) -> Result<Vec<Value>, String> {
        let body = json!({"statements": [{"statement": statement, "parameters": parameters}]});
        let answer = self.ask("POST", target, &body);
        rows(&answer.content)
    }
}

/// The rows of the first result, or the code of the error.
fn rows(content: &Value) -> Result<Vec<Value>, String> {
    if let Some(error) = content["errors"][0]["code"].as_str() {
        return Err(error.to_owned());
    }
    let data = content["results"][0]["data"].as_array().expect("rows");
    Ok(data.iter().map(|row| row["row"].clone()).collect())
}

impl Drop for Graphs {
    fn drop(&mut self) {
        self.server.host.node.close();
    }
}

#[test]
fn what_is_created_is_matched_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let create = "CREATE (n:TestNode {id: $id, timestamp: $timestamp}) RETURN n.id as id";
    for id in 0..20 {
        let timestamp = 1_795_224_656_517_796_090_i64 + id;
        let made = graphs.run(create, json!({"id": id, "timestamp": timestamp}));
        assert_eq!(made, Ok(vec![json!([id])]));
    }
    let count = "MATCH (n:TestNode) RETURN count(n), count(DISTINCT n.id), max(n.timestamp)";
    let expected = Ok(vec![json!([20, 20, 1_795_224_656_517_796_109_i64])]);
    assert_eq!(graphs.run(count, json!({})), expected);
    drop(graphs);
    let graphs = Graphs::open(dir.path());
    assert_eq!(graphs.run(count, json!({})), expected);
}

#[test]
fn answers_are_as_recorded_of_neo4j() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let body = json!({"statements": [{
        "statement": "CREATE (n:Person {name: 'Alice', age: 42, f: 1.5, l: [1,2], d: date('2020-01-02'),
            dur: duration('P1D'), dt: datetime('2020-01-02T03:04:05Z'), p: point({x: 1.0, y: 2.0})})
            RETURN n, id(n) AS id, labels(n) AS labels, n.name",
        "includeStats": true,
    }]});
    let answer = graphs.ask("POST", "/db/neo4j/tx/commit", &body);
    assert_eq!(answer.status, 200, "{}", answer.content);
    let result = &answer.content["results"][0];
    assert_eq!(result["columns"], json!(["n", "id", "labels", "n.name"]));
    let crs = json!({"srid": 7203, "name": "cartesian", "type": "link", "properties":
        {"href": "https://spatialreference.org/ref/sr-org/7203/ogcwkt/", "type": "ogcwkt"}});
    let node = json!({"dt": "2020-01-02T03:04:05Z", "dur": "P1D", "d": "2020-01-02", "f": 1.5, "name": "Alice",
        "l": [1, 2], "age": 42, "p": {"type": "Point", "coordinates": [1.0, 2.0], "crs": crs}});
    assert_eq!(result["data"][0]["row"], json!([node, 0, ["Person"], "Alice"]));
    let meta = json!({"id": 0, "elementId": "4:main:0", "type": "node", "deleted": false});
    assert_eq!(result["data"][0]["meta"], json!([meta, null, null, null]));
    assert_eq!(
        result["stats"],
        json!({"contains_updates": true, "nodes_created": 1, "nodes_deleted": 0,
        "properties_set": 8, "relationships_created": 0, "relationship_deleted": 0, "labels_added": 1,
        "labels_removed": 0, "indexes_added": 0, "indexes_removed": 0, "constraints_added": 0,
        "constraints_removed": 0, "contains_system_updates": false, "system_updates": 0})
    );
    assert_eq!(
        (&answer.content["errors"], answer.content["lastBookmarks"][0].is_string()),
        (&json!([]), true)
    );
}

#[test]
fn rows_and_graphs_tell_entities_and_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let body = json!({"statements": [{
        "statement": "CREATE p = (a:Person {name: 'Alice'})-[r:KNOWS {since: 1999}]->(b:Person {name: 'Bob'})
            RETURN a, r, p, [a, r] AS lst, {k: a} AS m, null AS nul, true AS t, 1.0 AS f",
        "resultDataContents": ["row", "graph"],
    }]});
    let answer = graphs.ask("POST", "/db/neo4j/tx/commit", &body);
    let data = &answer.content["results"][0]["data"][0];
    let (a, r, b) = (json!({"name": "Alice"}), json!({"since": 1999}), json!({"name": "Bob"}));
    assert_eq!(data["row"], json!([a, r, [a, r, b], [a, r], {"k": a}, null, true, 1.0]));
    let meta = |kind: &str, id: u64| {
        json!({"id": id, "type": kind, "deleted": false,
        "elementId": format!("{}:main:{id}", if kind == "node" { 4 } else { 5 })})
    };
    let (node, other, rel) = (meta("node", 0), meta("node", 1), meta("relationship", 0));
    assert_eq!(
        data["meta"],
        json!([node, rel, [node, rel, other], node, rel, node, null, null, null])
    );
    assert_eq!(
        data["graph"],
        json!({
            "nodes": [
                {"id": "0", "elementId": "4:main:0", "labels": ["Person"], "properties": {"name": "Alice"}},
                {"id": "1", "elementId": "4:main:1", "labels": ["Person"], "properties": {"name": "Bob"}},
            ],
            "relationships": [{"id": "0", "elementId": "5:main:0", "type": "KNOWS", "startNode": "0",
                "startNodeElementId": "4:main:0", "endNode": "1", "endNodeElementId": "4:main:1",
                "properties": {"since": 1999}}],
        })
    );
}

#[test]
fn errors_have_neo4js_codes_and_statuses() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    graphs.run("CREATE CONSTRAINT c FOR (p:Person) REQUIRE p.name IS UNIQUE", json!({})).unwrap();
    graphs.run("CREATE (:Person {name: 'Bob'})-[:KNOWS]->(:Other)", json!({})).unwrap();
    for (statement, code) in [
        ("BOGUS", "Neo.ClientError.Statement.SyntaxError"),
        ("RETURN foo", "Neo.ClientError.Statement.SyntaxError"),
        ("RETURN $x", "Neo.ClientError.Statement.ParameterMissing"),
        ("RETURN 1/0", "Neo.ClientError.Statement.ArithmeticError"),
        ("CREATE (:Person {name: 'Bob'})", "Neo.ClientError.Schema.ConstraintValidationFailed"),
        ("MATCH (p:Person) DELETE p", "Neo.ClientError.Schema.ConstraintValidationFailed"),
    ] {
        assert_eq!(graphs.run(statement, json!({})), Err(code.to_owned()), "{statement}");
    }
    let first = json!({"statement": "CREATE (:Person {name: 'Eve'}) RETURN 1 AS one"});
    let both = json!({"statements": [first, {"statement": "RETURN 1/0"}]});
    let answer = graphs.ask("POST", "/db/neo4j/tx/commit", &both);
    assert_eq!((answer.status, &answer.content["lastBookmarks"]), (200, &Value::Null));
    assert_eq!(answer.content["results"][0]["columns"], json!(["one"]));
    let count = graphs.run("MATCH (p:Person) RETURN count(p)", json!({}));
    assert_eq!(count, Ok(vec![json!([1])]), "nothing of what failed is there");
    let asked = |method: &str, target: &str, content: &str| {
        let answer = graphs.runtime.block_on(graphs.asked(method, target, content));
        (answer.status, answer.content["errors"][0]["code"].as_str().unwrap_or_default().to_owned())
    };
    let told = |status, code: &str| (status, code.to_owned());
    assert_eq!(
        asked("POST", "/db/nodb/tx/commit", "{}"),
        told(404, "Neo.ClientError.Database.DatabaseNotFound")
    );
    assert_eq!(
        asked("POST", "/db/neo4j/tx/commit", "{"),
        told(200, "Neo.ClientError.Request.InvalidFormat")
    );
    assert_eq!(
        asked("POST", "/db/neo4j/tx/commit", r#"{"foo":1}"#),
        told(200, "Neo.ClientError.Request.InvalidFormat")
    );
    assert_eq!(
        asked("GET", "/db/neo4j/tx/commit", ""),
        told(405, "Neo.ClientError.Request.Invalid")
    );
    assert_eq!(asked("POST", "/db/neo4j/tx/commit", ""), told(200, ""));
}

#[test]
fn a_query_without_end_ends_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::with(dir.path(), &["--graph-query-bytes", "8000000"]);
    for (statement, code) in [
        ("RETURN range(1, 1000000000000)", "Neo.ClientError.Statement.ArgumentError"),
        (
            "UNWIND range(1, 1000000) AS x RETURN x, 'some text'",
            "Neo.TransientError.General.MemoryPoolOutOfMemoryError",
        ),
    ] {
        assert_eq!(graphs.run(statement, json!({})), Err(code.to_owned()), "{statement}");
    }
    let sum = graphs.run("UNWIND range(1, 100000) AS x RETURN sum(x)", json!({}));
    assert_eq!(sum, Ok(vec![json!([5_000_050_000_u64])]), "what is long is done elsewhere");
}

#[test]
fn databases_say_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    graphs.run("CREATE (:A)-[:R]->(:B)", json!({})).unwrap();
    let database = graphs.ask("GET", "/db/neo4j", &Value::Null);
    assert_eq!(
        (&database.content["nodeCount"], &database.content["relationshipCount"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(database.content["name"], "main");
}

#[test]
fn explain_shows_the_operators_and_runs_none() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let explain = |statement: &str| {
        let body = json!({"statements": [{"statement": format!("EXPLAIN {statement}")}]});
        graphs.ask("POST", "/db/neo4j/tx/commit", &body).content["results"][0].clone()
    };
    let found = explain(
        "MATCH (a:Person {name: 'Ada'})-[:KNOWS*1..3]->(b) WHERE b.age > 3 \
         RETURN a.name, count(b) AS friends ORDER BY friends LIMIT 5",
    );
    let mut names = Vec::new();
    let mut step = &found["plan"]["root"];
    while step.is_object() {
        names.push(step["operatorType"].as_str().unwrap().to_owned());
        step = &step["children"][0];
    }
    assert_eq!(names[0], "ProduceResults@main");
    assert!(names.contains(&"VarLengthExpand(All)@main".to_owned()), "{names:?}");
    assert!(names.contains(&"EagerAggregation@main".to_owned()), "{names:?}");
    assert_eq!(names.last().unwrap(), "NodeIndexSeek@main");
    assert_eq!(found["data"], json!([]));
    let inner =
        explain("MATCH (a) OPTIONAL MATCH (a)-[:R]->(b) RETURN a UNION MATCH (a:B) RETURN a");
    let text = inner["plan"].to_string();
    for name in ["Distinct", "Union", "Optional", "AllNodesScan", "NodeByLabelScan"] {
        assert!(text.contains(&format!("\"{name}@main\"")), "{name}: {text}");
    }
    assert!(text.contains("-[:R]->"), "{text}");
    explain("CREATE (:Made)");
    assert_eq!(graphs.run("MATCH (n:Made) RETURN count(n)", json!({})), Ok(vec![json!([0])]));
    // However long a statement is, its plan is short and closed.
    let long = format!("MATCH (n) {} RETURN n", "WITH n WHERE n.x > 1 ".repeat(110));
    let long = explain(&long)["plan"].to_string();
    assert!(long.contains("more operators") && long.len() < 100_000, "{}", long.len());
    let plain = json!({"statements": [{"statement": "RETURN 1"}]});
    let plain = graphs.ask("POST", "/db/neo4j/tx/commit", &plain);
    assert!(plain.content["results"][0]["plan"].is_null());
}

#[test]
fn a_read_shows_what_others_have_appended_before() {
    let data = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(data.path());
    let log = graphs.server.host.node.get("main").unwrap();
    let count = |target: &str| {
        let rows = graphs.run_in(target, "MATCH (n:Foreign) RETURN count(n)", json!({}));
        rows.unwrap()[0][0].as_u64().unwrap()
    };
    assert_eq!(count("/db/neo4j/tx/commit"), 0);
    for id in 0..50_u64 {
        let mut events = EncodedEvents::new();
        let data = json!({"nodes": [{"id": id, "new": ["Foreign"]}]}).to_string();
        events.push(&Event::json("GraphChanged", &[], &data).as_ref()).unwrap();
        log.append(Append { events, ..Append::default() }).unwrap();
        let cached = count("/db/neo4j/tx/commit?consistency=cached");
        assert!((id..=id + 1).contains(&cached), "{cached} of {id}");
        let counted = match id % 3 {
            0 => count("/db/neo4j/tx/commit"),
            1 => graphs.ask("GET", "/db/neo4j", &json!({})).content["nodeCount"].as_u64().unwrap(),
            _ => count("/db/neo4j/tx"),
        };
        assert_eq!(counted, id + 1);
    }
    let refused = graphs.ask("POST", "/db/neo4j/tx/commit?consistency=soon", &json!({}));
    assert_eq!((refused.status, &refused.content["field"]), (422, &json!("consistency")));
}

#[test]
fn events_that_change_nothing_are_counted_by_log() {
    let data = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(data.path());
    let log = graphs.server.host.node.get("main").unwrap();
    for data in [r#"{"nodes":[{"id":7,"new":["N"]}]}"#, r#"{"nodes":[{"id":7,"new":["N"]}]}"#, "3"]
    {
        let mut events = EncodedEvents::new();
        events.push(&Event::json("GraphChanged", &[], data).as_ref()).unwrap();
        log.append(Append { events, ..Append::default() }).unwrap();
    }
    let count = graphs.run("MATCH (n:N) RETURN count(n)", json!({}));
    assert_eq!(count, Ok(vec![json!([1])]));
    let figures = graphs.server.host.figures();
    let is_it = |family: &&Family| family.name == "wellspring_graph_void_events_total";
    let family = format!("{:?}", figures.iter().find(is_it).unwrap());
    assert!(family.contains(r#"("log", "main")"#) && family.contains("Whole(2)"), "{family}");
}

#[test]
fn statements_of_some_ms_need_no_place_for_long_work() {
    let data = tempfile::tempdir().unwrap();
    let graphs = Graphs::with(data.path(), &["--max-long-reads", "1"]);
    let statement = "UNWIND range(1, 5000) AS i WITH i % 7 AS k, count(i) AS n RETURN sum(n)";
    let body = json!({"statements": [{"statement": statement}]}).to_string();
    let asked = || graphs.asked("POST", "/db/neo4j/tx/commit", &body);
    let answers = graphs.runtime.block_on(async {
        let (a, b, c, d) = tokio::join!(asked(), asked(), asked(), asked());
        [a, b, c, d]
    });
    for answer in answers {
        assert_eq!((answer.status, rows(&answer.content)), (200, Ok(vec![json!([5000])])));
    }
}

#[test]
fn a_request_has_so_many_statements_and_a_message_is_no_longer_than_it_helps() {
    let data = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(data.path());
    let many = |count: usize| {
        let statements = vec![json!({"statement": "RETURN 1"}); count];
        let body = json!({"statements": statements});
        graphs.ask("POST", "/db/neo4j/tx/commit", &body).content
    };
    assert_eq!(many(10_000)["results"].as_array().map(Vec::len), Some(10_000));
    assert_eq!(many(10_001)["errors"][0]["code"], "Neo.ClientError.Request.InvalidFormat");
    let long = json!({"statements": [{
        "statement": "RETURN date($a)", "parameters": {"a": "ü".repeat(100_000)},
    }]});
    let told = graphs.ask("POST", "/db/neo4j/tx/commit", &long).content;
    let message = told["errors"][0]["message"].as_str().unwrap();
    assert!(message.len() < 1_100, "{}", message.len());
}
