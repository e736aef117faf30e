//! Recorded answers of Neo4j 5.26 against this server's answers to the same requests: status,
//! results and error codes agree. The wording of messages differs. Intended differences are in
//! `DIFFERENCES`.

use crate::client::Answer;
use crate::closed::Closed;
use crate::graph_client::*;
use crate::server::Server;
use serde_json::{Value, json};

/// Where the server differs from the recordings, and why. The exchanges below omit exactly this.
const DIFFERENCES: [(&str, &str); 12] = [
    (
        "messages of errors",
        "in the words of this server, with line and column where there are some",
    ),
    ("elementId", "4:DATABASE:ID, with the name of the database where Neo4j has a random id"),
    ("lastBookmarks", "FB:DATABASE:POSITION: the position in the log that shows it"),
    ("notifications", "there are none: nothing is deprecated, and an unknown label is no mistake"),
    (
        "discovery",
        "only what is there: neither Bolt nor the Query API; openapi and wellspring_version besides",
    ),
    ("Access-Control-Allow-Origin", "only for the origins that the operator allows"),
    ("errors of the server", "say besides what all its problems say: type, title, detail, status"),
    ("Jolt, the Query API, /db/…/cluster", "are not there (yet)"),
    ("an error before the first row", "may come after the columns: that of a constraint, for one"),
    ("Bearer", "is taken: a token from POST /auth/token"),
    ("wrong passwords", "are refused with 429 by the limits of accounts, later than the fourth"),
    ("a default password", "is not there, so none has to be changed"),
];

const COMMIT: &str = "tx/commit";

/// A body that requests these forms, and statistics.
fn forms(statement: &str, forms: &[&str]) -> Value {
    json!({"statements": [{"statement": statement, "resultDataContents": forms, "includeStats": true}]})
}

fn rows_of(columns: Value, rows: Value) -> Value {
    let nulls = |row: &Value| vec![Value::Null; row.as_array().unwrap().len()];
    let data = rows.as_array().unwrap().iter().map(|row| json!({"row": row, "meta": nulls(row)}));
    json!({"columns": columns, "data": data.collect::<Vec<_>>()})
}

/// Statistics in which only these are not 0.
fn stats(some: &[(&str, u64)]) -> Value {
    let names = [
        "nodes_created",
        "nodes_deleted",
        "properties_set",
        "relationships_created",
        "relationship_deleted",
        "labels_added",
        "labels_removed",
        "indexes_added",
        "indexes_removed",
        "constraints_added",
        "constraints_removed",
        "system_updates",
    ];
    let mut stats = json!({"contains_updates": true, "contains_system_updates": false});
    for name in names {
        let count = some.iter().find(|(some, _)| *some == name).map_or(0, |(_, count)| *count);
        stats[name] = json!(count);
    }
    stats
}

fn meta(kind: &str, id: u64) -> Value {
    let number = if kind == "node" { 4 } else { 5 };
    json!({"id": id, "elementId": format!("{number}:main:{id}"), "type": kind, "deleted": false})
}

#[track_caller]
fn agrees(answer: &Answer, status: u16, results: Value, error: Option<&str>) {
    let content = answer.expect(status);
    assert_eq!(content["results"], results, "{content}");
    assert_eq!(code(&content).as_deref(), error, "{content}");
    assert_eq!(content["errors"].as_array().unwrap().len(), usize::from(error.is_some()));
    assert!(answer.header("content-type").unwrap().starts_with("application/json"));
    for error in content["errors"].as_array().unwrap() {
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
}

/// As in the recording "tx/commit create": Alice.
fn alice() -> Value {
    let crs = json!({"srid": 7203, "name": "cartesian", "type": "link", "properties":
        {"href": "https://spatialreference.org/ref/sr-org/7203/ogcwkt/", "type": "ogcwkt"}});
    json!({"dt": "2020-01-02T03:04:05Z", "dur": "P1D", "p": {"type": "Point", "coordinates": [1.0, 2.0], "crs": crs},
        "d": "2020-01-02", "f": 1.5, "name": "Alice", "l": [1, 2], "age": 42})
}

const CREATE_ALICE: &str =
    "CREATE (n:Person {name: 'Alice', age: 42, f: 1.5, l: [1,2], d: date('2020-01-02'),
    dur: duration('P1D'), dt: datetime('2020-01-02T03:04:05Z'), p: point({x: 1.0, y: 2.0})})
    RETURN n, id(n) AS id, labels(n) AS labels, n.name";

#[test]
fn results_are_as_recorded() {
    println!("Differences on purpose:");
    DIFFERENCES.iter().for_each(|(what, why)| println!("  {what}: {why}"));
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    let found = client.client.get("/").unwrap().expect(200);
    let own = format!("http://{}/db/{{databaseName}}/tx", "test");
    assert_eq!(found["transaction"], own, "of the host that was asked");
    assert_eq!(
        (&found["neo4j_version"], &found["neo4j_edition"]),
        (&json!("5.26.0"), &json!("community"))
    );
    let mut ask = |body: &Value| client.ask("POST", COMMIT, body).unwrap();

    let created = ask(&forms(CREATE_ALICE, &["row"]));
    let mut result =
        rows_of(json!(["n", "id", "labels", "n.name"]), json!([[alice(), 0, ["Person"], "Alice"]]));
    result["data"][0]["meta"][0] = meta("node", 0);
    result["stats"] = stats(&[("nodes_created", 1), ("properties_set", 8), ("labels_added", 1)]);
    agrees(&created, 200, json!([result]), None);
    assert!(created.json()["lastBookmarks"][0].as_str().unwrap().starts_with("FB:"));

    ask(&one(
        "MATCH (a:Person) CREATE (a)-[:KNOWS {since: 1999}]->(:Person {name: 'Bob'})",
        json!({}),
    ));
    let both = json!({"statements": [{"resultDataContents": ["row", "graph"], "statement":
        "MATCH p = (a)-[r:KNOWS]->(b) RETURN a, r, p, [a, r] AS lst, {k: a} AS m, null AS nul, true AS t, 1.0 AS f"}]});
    let (a, r, b) = (alice(), json!({"since": 1999}), json!({"name": "Bob"}));
    let (at, to, by) = (meta("node", 0), meta("node", 1), meta("relationship", 0));
    let node = |id: u64, properties: &Value| {
        json!({"id": id.to_string(), "elementId": format!("4:main:{id}"),
        "labels": ["Person"], "properties": properties})
    };
    let row = json!({
        "row": [a, r, [a, r, b], [a, r], {"k": a}, null, true, 1.0],
        "meta": [at, by, [at, by, to], at, by, at, null, null, null],
        "graph": {"nodes": [node(0, &a), node(1, &b)], "relationships": [{"id": "0", "elementId": "5:main:0",
            "type": "KNOWS", "startNode": "0", "startNodeElementId": "4:main:0", "endNode": "1",
            "endNodeElementId": "4:main:1", "properties": r}]},
    });
    let columns = ["a", "r", "p", "lst", "m", "nul", "t", "f"];
    agrees(&ask(&both), 200, json!([{"columns": columns, "data": [row]}]), None);

    let rest =
        json!({"statements": [{"statement": "RETURN 1 AS x", "resultDataContents": ["REST"]}]});
    agrees(&ask(&rest), 200, json!([{"columns": ["x"], "data": [{"rest": [1]}]}]), None);
    let two = all(&[("RETURN 1", json!({})), ("UNWIND [1,2] AS x RETURN x, x*2 AS y", json!({}))]);
    let second = rows_of(json!(["x", "y"]), json!([[1, 2], [2, 4]]));
    agrees(&ask(&two), 200, json!([rows_of(json!(["1"]), json!([[1]])), second]), None);
    for empty in [Value::Null, json!({"statements": []})] {
        let answer = ask(&empty);
        agrees(&answer, 200, json!([]), None);
        assert!(answer.json()["lastBookmarks"][0].is_string());
    }
    for (statement, counted) in [
        ("CREATE CONSTRAINT c FOR (p:Person) REQUIRE p.name IS UNIQUE", "constraints_added"),
        ("CREATE INDEX i FOR (p:Person) ON (p.age)", "indexes_added"),
    ] {
        let result = json!({"columns": [], "data": [], "stats": stats(&[(counted, 1)])});
        agrees(&ask(&forms(statement, &["row"])), 200, json!([result]), None);
    }
    // Recorded with notifications, which this server does not send.
    let unknown = ask(&one("MATCH (n:Nope) RETURN n.zip", json!({})));
    agrees(&unknown, 200, json!([{"columns": ["n.zip"], "data": []}]), None);
    assert!(unknown.json()["notifications"].is_null());
}

#[test]
fn errors_are_as_recorded() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    client.run("CREATE CONSTRAINT c FOR (p:Person) REQUIRE p.name IS UNIQUE", json!({}));
    client.run("CREATE (:Person {name: 'Bob'})-[:KNOWS]->(:Other)", json!({}));
    let one_row = rows_of(json!(["one"]), json!([[1]]));
    let nothing = json!({"columns": [], "data": []});
    for (name, statements, results, error) in [
        (
            "syntax error",
            vec!["RETURN 1 AS one", "BOGUS"],
            json!([one_row]),
            "Neo.ClientError.Statement.SyntaxError",
        ),
        (
            "missing param",
            vec!["RETURN $x"],
            json!([]),
            "Neo.ClientError.Statement.ParameterMissing",
        ),
        ("type error", vec!["RETURN 1 + true"], json!([]), "Neo.ClientError.Statement.SyntaxError"),
        ("undefined var", vec!["RETURN foo"], json!([]), "Neo.ClientError.Statement.SyntaxError"),
        (
            "div by zero",
            vec!["RETURN 1/0"],
            json!([{"columns": ["1/0"], "data": []}]),
            "Neo.ClientError.Statement.ArithmeticError",
        ),
        (
            "delete node with rels",
            vec!["MATCH (n:Person) DELETE n"],
            json!([nothing]),
            "Neo.ClientError.Schema.ConstraintValidationFailed",
        ),
    ] {
        let statements: Vec<_> = statements.into_iter().map(|text| (text, json!({}))).collect();
        println!("{name}");
        agrees(&client.ask("POST", COMMIT, &all(&statements)).unwrap(), 200, results, Some(error));
    }
    // Neo4j finds the duplicate before it has columns.
    let duplicate = one("CREATE (:Person {name: 'Bob'})", json!({}));
    let content = client.ask("POST", COMMIT, &duplicate).unwrap().expect(200);
    let broken = "Neo.ClientError.Schema.ConstraintValidationFailed";
    assert_eq!(code(&content).as_deref(), Some(broken), "{content}");
    assert!(content["lastBookmarks"].is_null());
    let headers = [("Content-Type", "application/json")];
    let mut send = |method: &str, database: &str, headers: &[(&str, &str)], body: &str| {
        let path = format!("/db/{database}/tx/commit");
        client.client.call(method, &path, headers, body.as_bytes()).unwrap()
    };
    let invalid = Some("Neo.ClientError.Request.InvalidFormat");
    agrees(&send("POST", "neo4j", &headers, "{"), 200, json!([]), invalid);
    agrees(&send("POST", "neo4j", &headers, r#"{"foo":1}"#), 200, json!([]), invalid);
    let missing = Some("Neo.ClientError.Database.DatabaseNotFound");
    agrees(&send("POST", "nodb", &headers, r#"{"statements":[]}"#), 404, json!([]), missing);
    let refused = Some("Neo.ClientError.Request.Invalid");
    let answer = send("GET", "neo4j", &[], "");
    agrees(&answer, 405, json!([]), refused);
    assert!(answer.header("allow").unwrap().contains("POST"));
    let text = [("Content-Type", "text/plain")];
    agrees(&send("POST", "neo4j", &text, r#"{"statements":[]}"#), 415, json!([]), refused);
}

#[test]
fn open_transactions_are_as_recorded() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    let answer = client.ask("POST", "tx", &one("CREATE (n:T) RETURN n", json!({}))).unwrap();
    let mut result = rows_of(json!(["n"]), json!([[{}]]));
    result["data"][0]["meta"][0] = meta("node", 0);
    agrees(&answer, 201, json!([result]), None);
    let location = answer.header("location").unwrap().to_owned();
    let (_, path) = location.split_once("/db/neo4j/").unwrap();
    let commit = json!(format!("{location}/commit"));
    let is_open = |content: &Value| {
        assert_eq!(content["commit"], commit);
        assert!(content["transaction"]["expires"].as_str().unwrap().ends_with(" GMT"), "{content}");
        assert!(content["lastBookmarks"].is_null());
    };
    is_open(&answer.json());
    let next = client.ask("POST", path, &one("CREATE (n:T) RETURN id(n)", json!({}))).unwrap();
    agrees(&next, 200, json!([rows_of(json!(["id(n)"]), json!([[1]]))]), None);
    is_open(&next.json());
    let kept = client.ask("POST", path, &json!({"statements": []})).unwrap();
    agrees(&kept, 200, json!([]), None);
    is_open(&kept.json());
    let committed = client.ask("POST", &format!("{path}/commit"), &Value::Null).unwrap();
    agrees(&committed, 200, json!([]), None);
    assert_eq!(committed.json()["commit"], commit);
    assert!(committed.json()["lastBookmarks"][0].is_string());
    assert!(committed.json()["transaction"].is_null());
    let again = client.ask("POST", &format!("{path}/commit"), &Value::Null).unwrap();
    agrees(&again, 404, json!([]), Some(NOT_FOUND));

    let open = client.begin("CREATE (:T)", json!({}));
    let rolled_back = client.ask("DELETE", &open.path, &Value::Null).unwrap();
    agrees(&rolled_back, 200, json!([]), None);
    assert_eq!(rolled_back.json().as_object().unwrap().len(), 2);
    let again = client.ask("DELETE", &open.path, &Value::Null).unwrap();
    agrees(&again, 404, json!([]), Some(NOT_FOUND));

    let open = client.begin("CREATE (:T)", json!({}));
    let failed = client.ask("POST", &open.path, &one("BOGUS", json!({}))).unwrap();
    agrees(&failed, 200, json!([]), Some("Neo.ClientError.Statement.SyntaxError"));
    assert!(failed.json()["commit"].is_string() && failed.json()["transaction"].is_null());
    let after = client.ask("POST", &open.path, &one("RETURN 1", json!({}))).unwrap();
    agrees(&after, 404, json!([]), Some(NOT_FOUND));
    assert_eq!(client.value("MATCH (n:T) RETURN count(n)"), json!(2));
}

#[test]
fn missing_and_wrong_credentials_are_answered_as_recorded() {
    let closed = Closed::start();
    let mut client = GraphClient::at(closed.server.address);
    let mut refused = |authorization: Option<&str>| {
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(authorization.map(|shown| ("Authorization", shown)));
        client.client.call("POST", "/db/neo4j/tx/commit", &headers, b"{}").unwrap()
    };
    for (shown, status, error) in [
        (None, 401, "Neo.ClientError.Security.Unauthorized"),
        // nobody:wrong
        (Some("Basic bm9ib2R5Ondyb25n"), 401, "Neo.ClientError.Security.Unauthorized"),
        (Some("Basic %%%"), 400, "Neo.ClientError.Request.InvalidFormat"),
        (Some("Bearer nonsense"), 401, "Neo.ClientError.Security.Unauthorized"),
    ] {
        let answer = refused(shown);
        assert_eq!(code(&answer.expect(status)).as_deref(), Some(error), "{shown:?}");
        let asked = answer.header("www-authenticate").is_some_and(|asked| asked.contains("Basic"));
        assert_eq!(asked, status == 401, "{shown:?}: {:?}", answer.headers);
    }
}

#[test]
fn routes_of_older_clients_are_refused_in_a_form_that_shows_the_error() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    let headers = [("Content-Type", "application/json")];
    let body = br#"{"statements":[{"statement":"CREATE (:X)"}]}"#;
    for path in ["data/transaction/commit", "data/transaction", "data/cypher"] {
        let path = format!("/db/{path}");
        let answer = client.client.call("POST", &path, &headers, body).unwrap();
        agrees(&answer, 404, json!([]), Some("Neo.ClientError.Request.Invalid"));
    }
}
