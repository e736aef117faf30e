//! What `/metrics`, `/v1/views` and `wellspring top` report about graphs.

use crate::client::Client;
use crate::exposition::{read, value};
use crate::server::Server;
use serde_json::{Value, json};
use std::process::Command;
use wellspring_patience::Patience;

/// Executes a statement; returns the code of its error, if any.
fn run(client: &mut Client, path: &str, statement: &str) -> Option<String> {
    let body = json!({"statements": [{"statement": statement}]});
    let answer = client.post(path, &body).unwrap().json();
    answer["errors"][0]["code"].as_str().map(str::to_owned)
}

/// Opens a transaction with a statement; returns its path.
fn begin(client: &mut Client, statement: &str) -> String {
    let body = json!({"statements": [{"statement": statement}]});
    let answer = client.post("/db/neo4j/tx", &body).unwrap();
    answer.expect(201);
    let location = answer.header("location").unwrap();
    location[location.find("/db/").unwrap()..].to_owned()
}

fn figure(server: &Server, name: &str, labels: &[(&str, &str)]) -> f64 {
    let page = read(&server.client().get("/metrics").unwrap().text());
    value(&page, &format!("wellspring_graph_{name}"), labels)
}

#[test]
fn what_happens_to_graphs_is_counted() {
    let flags = ["--graph-transactions", "1", "--graph-transaction-timeout-ms", "1000"];
    let limits = ["--graph-query-bytes", "65536", "--graph-transactions-bytes", "65536"];
    let server = Server::start_with(&[flags, limits].concat());
    let mut client = server.client();
    let at_once = "/db/neo4j/tx/commit";
    for _ in 0..3 {
        assert_eq!(run(&mut client, at_once, "CREATE (:C {n: 1})-[:R]->(:D)"), None);
    }
    assert_eq!(run(&mut client, at_once, "MATCH (c:C) RETURN c"), None);
    let code = run(&mut client, at_once, "RETURN collect(1) + range(1, 100000) AS x");
    assert_eq!(code.as_deref(), Some("Neo.TransientError.General.MemoryPoolOutOfMemoryError"));
    // One with a conflict, one beyond the number of transactions, one beyond the memory.
    let open = begin(&mut client, "MATCH (c:C) SET c.n = c.n + 1 RETURN c.n");
    let code = run(&mut client, "/db/neo4j/tx", "RETURN 1");
    let limited = "Neo.TransientError.Transaction.MaximumTransactionLimitReached";
    assert_eq!(code.as_deref(), Some(limited));
    assert!(figure(&server, "open_transaction_bytes", &[]) > 100.0);
    assert_eq!(run(&mut client, at_once, "MATCH (c:C) SET c.n = 7"), None);
    let code = run(&mut client, &format!("{open}/commit"), "RETURN 1");
    assert_eq!(code.as_deref(), Some("Neo.TransientError.Transaction.Outdated"));
    let large = format!("CREATE (:Large {{text: '{}'}})", "x".repeat(50_000));
    let open = begin(&mut client, &large);
    let code = run(&mut client, &open, &large);
    assert_eq!(code.as_deref(), Some("Neo.TransientError.General.MemoryPoolOutOfMemoryError"));
    assert_eq!(client.post(&open, &json!({})).unwrap().status, 404);
    // One that is never continued.
    begin(&mut client, "CREATE (:Never)");
    let mut patience = Patience::new();
    while figure(&server, "open_transactions", &[]) > 0.0 {
        patience.pause("it is kept");
    }
    let of = |name, labels: &[(&str, &str)]| figure(&server, name, labels);
    assert_eq!(of("commits_total", &[]), 4.0);
    assert_eq!(of("outdated_total", &[]), 1.0);
    assert_eq!(of("expired_transactions_total", &[]), 1.0);
    assert_eq!(of("open_transaction_bytes", &[]), 0.0);
    assert_eq!(of("limited_total", &[("limit", "memory")]), 2.0);
    assert_eq!(of("limited_total", &[("limit", "open_transactions")]), 1.0);
    assert_eq!(of("statements_total", &[("access", "read")]), 4.0);
    assert_eq!(of("statements_total", &[("access", "write")]), 8.0);
    assert_eq!(of("plan_hits_total", &[]), 4.0);
    assert_eq!(of("plan_misses_total", &[]), 8.0);
    assert_eq!(
        (of("nodes", &[("log", "main")]), of("relationships", &[("log", "main")])),
        (6.0, 3.0)
    );
}

#[test]
fn an_unused_graph_is_not_opened_and_an_empty_one_folds_nothing() {
    let server = Server::start();
    let mut client = server.client();
    let views = |client: &mut Client| {
        let answer = client.get("/v1/views").unwrap().expect(200);
        let views = answer["views"].as_array().unwrap().clone();
        views.into_iter().find(|view| view["view"] == "graph")
    };
    assert_eq!(views(&mut client), None);
    assert_eq!(client.get("/db/neo4j").unwrap().expect(200)["nodeCount"], 0);
    let event = json!({"events": [{"type": "Else", "data": 1}]});
    for _ in 0..100 {
        client.post("/v1/append", &event).unwrap().expect(200);
    }
    let mut patience = Patience::new();
    while views(&mut client).is_none_or(|view| view["position"] != 100) {
        patience.pause("it does not pass them");
    }
    let page = read(&client.get("/metrics").unwrap().text());
    let labels = [("log", "main"), ("view", "graph")];
    assert_eq!(value(&page, "wellspring_view_applied_events_total", &labels), 0.0);
}

#[test]
fn top_has_a_line_of_graphs_once_one_is_used() {
    let server = Server::start();
    let top = |more: &str| {
        let args = ["top", "--url", &server.url(), "--interval", "100ms", more];
        let output = Command::new(env!("CARGO_BIN_EXE_wellspring")).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let document = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    assert_eq!(document(top("--json"))["graph"], Value::Null);
    assert_eq!(run(&mut server.client(), "/db/neo4j/tx/commit", "CREATE (:A)-[:R]->(:B)"), None);
    let graph = document(top("--json"))["graph"].clone();
    assert_eq!((&graph["nodes"], &graph["relationships"]), (&json!(2), &json!(1)));
    let shown = top("--once");
    assert!(shown.lines().any(|line| line.starts_with("Graph ")), "{shown}");
}
