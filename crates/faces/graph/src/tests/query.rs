//! The Query API: plain, typed and as lines; transactions; the database `system`; bookmarks.

use super::Graphs;
use serde_json::{Value, json};

const TYPED: &str = "application/vnd.neo4j.query.v1.1";

impl Graphs {
    /// Status and content of a request of the Query API.
    fn query(&self, path: &str, media: &str, body: &Value) -> (u16, String) {
        let headers = [("content-type", "application/json"), ("accept", media)];
        let headers =
            if media.contains("jsonl") { headers } else { [("content-type", media), headers[1]] };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let target = format!("/db/{path}");
        self.runtime.block_on(self.sent("POST", &target, &headers, &body))
    }

    fn json(&self, path: &str, media: &str, body: &Value) -> (u16, Value) {
        let (status, content) = self.query(path, media, body);
        (status, serde_json::from_str(&content).unwrap())
    }

    fn values(&self, statement: &str) -> Value {
        let (_, content) =
            self.json("neo4j/query/v2", "application/json", &json!({"statement": statement}));
        content["data"]["values"].clone()
    }
}

#[test]
fn values_are_plain_or_typed_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let statement = "CREATE (a:A {n: 1})-[r:R {d: date('2020-01-02')}]->(b) WITH *, [(a)-->(x) | x] AS l \
        MATCH p = (a)-->(b) RETURN a, r, p, 1.5 AS f, 0.0/0.0 AS nan, null AS u, \
        point({longitude: 8, latitude: 49}) AS g, duration('P1DT1S') AS d, {k: true} AS m";
    let body = json!({"statement": statement, "includeCounters": true});
    let (status, plain) = graphs.json("neo4j/query/v2", "application/json", &body);
    let (a, b) = (
        json!({"elementId": "4:main:0", "labels": ["A"], "properties": {"n": 1}}),
        json!({"elementId": "4:main:1", "labels": [], "properties": {}}),
    );
    let r = json!({"elementId": "5:main:0", "startNodeElementId": "4:main:0", "endNodeElementId": "4:main:1",
        "type": "R", "properties": {"d": "2020-01-02"}});
    assert_eq!(status, 202, "{plain}");
    assert_eq!(
        plain["data"]["values"],
        json!([[a, r, [a, r, b], 1.5, "NaN", null, "SRID=4326;POINT (8.0 49.0)", "P1DT1S", {"k": true}]])
    );
    assert_eq!(plain["data"]["fields"], json!(["a", "r", "p", "f", "nan", "u", "g", "d", "m"]));
    let counters = &plain["counters"];
    assert_eq!(
        (&counters["nodesCreated"], &counters["containsUpdates"]),
        (&json!(2), &json!(true))
    );
    assert_eq!((&plain["bookmarks"], &plain["queryType"]), (&json!(["FB:main:1"]), &json!("rw")));

    let t = |name: &str, value: Value| json!({"$type": name, "_value": value});
    let body = json!({"statement": "MATCH (a)-[r]->() RETURN a, r, $x, $y", "parameters": {
        "x": t("Integer", json!("9007199254740993")), "y": t("List", json!([t("Date", json!("2020-02-03")), t("Float", json!("Infinity"))]))}});
    let (_, typed) = graphs.json("neo4j/query/v2", TYPED, &body);
    let one = t("Integer", json!("1"));
    let day = t("Date", json!("2020-01-02"));
    assert_eq!(
        typed["data"]["values"],
        json!([[
            t(
                "Node",
                json!({"_element_id": "4:main:0", "_labels": ["A"], "_properties": {"n": one}})
            ),
            t(
                "Relationship",
                json!({"_element_id": "5:main:0", "_start_node_element_id": "4:main:0",
                "_end_node_element_id": "4:main:1", "_type": "R", "_properties": {"d": day}})
            ),
            body["parameters"]["x"],
            body["parameters"]["y"]
        ]])
    );
}

#[test]
fn lines_are_a_header_rows_and_a_summary_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let lines = |statement: &str| {
        let body = json!({"statement": statement});
        let (status, content) = graphs.query("neo4j/query/v2", "application/jsonl", &body);
        let events: Vec<Value> =
            content.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (status, events)
    };
    let (status, events) = lines("UNWIND [2, 1, 0] AS x RETURN 2 / x AS y");
    assert_eq!(status, 202);
    let row = |value| json!({"$event": "Record", "_body": [value]});
    assert_eq!(
        events[..3],
        [json!({"$event": "Header", "_body": {"fields": ["y"]}}), row(1), row(2)]
    );
    assert_eq!(events[3]["_body"][0]["code"], "Neo.ClientError.Statement.ArithmeticError");
    let (_, events) = lines("RETURN 1");
    assert_eq!(events[2]["$event"], "Summary");
    let (status, events) = lines("RETURN");
    assert_eq!((status, events.len(), &events[0]["$event"]), (400, 1, &json!("Error")));
}

#[test]
fn faults_have_neo4js_codes_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    for (body, code) in [
        (json!({"statement": "RETURN"}), "Neo.ClientError.Statement.SyntaxError"),
        (
            json!({"statement": "CREATE (n)", "accessMode": "Read"}),
            "Neo.ClientError.Statement.AccessMode",
        ),
        (
            json!({"statement": "CREATE (n) RETURN 1/0"}),
            "Neo.ClientError.Statement.ArithmeticError",
        ),
        (json!({"statement": "RETURN $x"}), "Neo.ClientError.Statement.ParameterMissing"),
        (
            json!({"statement": "RETURN 1", "bookmarks": ["x"]}),
            "Neo.ClientError.Transaction.InvalidBookmark",
        ),
        (
            json!({"statement": "RETURN 1", "impersonatedUser": "ann"}),
            "Neo.ClientError.Request.Invalid",
        ),
        (json!({}), "Neo.ClientError.Request.Invalid"),
        (json!({"statement": 1}), "Neo.ClientError.Request.Invalid"),
    ] {
        let (status, answer) = graphs.json("neo4j/query/v2", "application/json", &body);
        assert_eq!((status, &answer["errors"][0]["code"]), (400, &json!(code)), "{answer}");
        assert!(answer["data"].is_null(), "{answer}");
    }
    assert_eq!(graphs.values("MATCH (n) RETURN count(n)"), json!([[0]]));
    let (status, answer) =
        graphs.json("nothing/query/v2", TYPED, &json!({"statement": "RETURN 1"}));
    let code = &answer["errors"][0]["code"];
    assert_eq!((status, code), (404, &json!("Neo.ClientError.Database.DatabaseNotFound")));
    let (status, _) =
        graphs.json("neo4j/query/v2", "text/plain", &json!({"statement": "RETURN 1"}));
    assert_eq!(status, 406);
}

#[test]
fn a_transaction_goes_over_several_requests() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let ask = |path: &str, body: &Value| graphs.json(path, "application/json", body);
    let begin = |body: Value| {
        let (status, begun) = ask("neo4j/query/v2/tx", &body);
        assert_eq!(status, 202, "{begun}");
        assert!(begun["transaction"]["expires"].as_str().unwrap().ends_with('Z'), "{begun}");
        format!("neo4j/query/v2/tx/{}", begun["transaction"]["id"].as_str().unwrap())
    };
    let tx = begin(Value::Null);
    let (_, made) = ask(&tx, &json!({"statement": "CREATE (n:N) RETURN 1 AS x"}));
    assert_eq!(made["data"]["values"], json!([[1]]));
    assert_eq!(graphs.values("MATCH (n) RETURN count(n)"), json!([[0]]));
    let (status, committed) = ask(&format!("{tx}/commit"), &Value::Null);
    assert_eq!((status, committed), (202, json!({"bookmarks": ["FB:main:1"]})));
    assert_eq!(graphs.values("MATCH (n) RETURN count(n)"), json!([[1]]));
    let (status, gone) = ask(&tx, &json!({"statement": "RETURN 1"}));
    assert_eq!(
        (status, &gone["errors"][0]["code"]),
        (404, &json!("Neo.ClientError.Request.Invalid"))
    );
    // Rolled back by its client, and by a fault.
    let tx = begin(json!({"statement": "CREATE (n:N)"}));
    let deleted = graphs.ask("DELETE", &format!("/db/{tx}"), &Value::Null);
    assert_eq!(deleted.status, 200);
    let tx = begin(json!({"statement": "CREATE (n:N)"}));
    let (status, failed) = ask(&tx, &json!({"statement": "RETURN 1/0"}));
    assert_eq!((status, failed["errors"].is_array()), (202, true), "{failed}");
    assert_eq!(ask(&tx, &Value::Null).0, 404);
    // One that only reads.
    let tx = begin(json!({"accessMode": "Read"}));
    let (_, refused) = ask(&tx, &json!({"statement": "CREATE (n:N)"}));
    assert_eq!(refused["errors"][0]["code"], "Neo.ClientError.Statement.AccessMode");
    assert_eq!(graphs.values("MATCH (n) RETURN count(n)"), json!([[1]]));
}

#[test]
fn the_database_system_answers_what_is_about_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let ask = |path: &str, body: &Value| graphs.json(path, TYPED, body);
    let (status, answer) = ask("system/query/v2", &json!({"statement": "CALL db.ping()"}));
    assert_eq!((status, &answer["data"]["fields"]), (202, &json!(["success"])), "{answer}");
    assert!(answer["bookmarks"].is_null());
    let (status, answer) = ask("system/query/v2", &json!({"statement": "CREATE (n)"}));
    assert_eq!(status, 400, "{answer}");
    let (_, begun) = ask("system/query/v2/tx", &Value::Null);
    let tx = format!("system/query/v2/tx/{}", begun["transaction"]["id"].as_str().unwrap());
    assert_eq!(ask(&tx, &json!({"statement": "CALL dbms.components()"})).0, 202);
    assert_eq!(ask(&format!("{tx}/commit"), &Value::Null).0, 202);
    assert_eq!(ask(&tx, &json!({"statement": "CALL db.ping()"})).0, 404);
}
