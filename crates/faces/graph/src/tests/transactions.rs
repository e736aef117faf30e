//! Transactions: atomic, serialisable, open over several requests.

use super::{Graphs, rows};
use serde_json::{Value, json};
use std::sync::Arc;

fn statements(texts: &[&str]) -> Value {
    let all: Vec<Value> = texts.iter().map(|text| json!({"statement": text})).collect();
    json!({"statements": all})
}

#[test]
fn an_open_transaction_sees_itself_and_others_only_when_it_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let begun = graphs.ask("POST", "/db/neo4j/tx", &statements(&["CREATE (n:N) RETURN 1"]));
    assert_eq!(begun.status, 201, "{}", begun.content);
    let location = begun.location.unwrap();
    assert!(location.starts_with("http://localhost:4000/db/neo4j/tx/"), "{location}");
    assert_eq!(begun.content["commit"], format!("{location}/commit"));
    assert!(begun.content["transaction"]["expires"].as_str().unwrap().ends_with(" GMT"));
    let target = location.strip_prefix("http://localhost:4000").unwrap();
    let count = "MATCH (n:N) RETURN count(n)";
    assert_eq!(graphs.run_in(target, count, json!({})), Ok(vec![json!([1])]));
    assert_eq!(graphs.run(count, json!({})), Ok(vec![json!([0])]));
    let committed = graphs.ask("POST", &format!("{target}/commit"), &statements(&["CREATE (:N)"]));
    assert_eq!((committed.status, &committed.content["errors"]), (200, &json!([])));
    assert_eq!(graphs.run(count, json!({})), Ok(vec![json!([2])]));
    let again = graphs.ask("POST", &format!("{target}/commit"), &statements(&[]));
    assert_eq!(again.status, 404);
    assert_eq!(
        rows(&again.content),
        Err("Neo.ClientError.Transaction.TransactionNotFound".to_owned())
    );
}

#[test]
fn nothing_stays_of_what_is_rolled_back_or_fails() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    let begin = || {
        let begun = graphs.ask("POST", "/db/neo4j/tx", &statements(&["CREATE (:N)"]));
        begun.location.unwrap().strip_prefix("http://localhost:4000").unwrap().to_owned()
    };
    let target = begin();
    assert_eq!(graphs.ask("DELETE", &target, &Value::Null).status, 200);
    assert_eq!(graphs.ask("DELETE", &target, &Value::Null).status, 404);
    let target = begin();
    assert!(graphs.run_in(&target, "RETURN 1/0", json!({})).is_err());
    assert_eq!(graphs.ask("POST", &target, &statements(&[])).status, 404);
    assert_eq!(graphs.run("MATCH (n) RETURN count(n)", json!({})), Ok(vec![json!([0])]));
}

#[test]
fn queries_take_no_more_memory_together_than_they_may() {
    let dir = tempfile::tempdir().unwrap();
    let most = ["--graph-query-bytes", "4194304", "--graph-queries-bytes", "4194304"];
    let graphs = Graphs::with(dir.path(), &most);
    let much =
        "UNWIND range(1, 30000) AS i CREATE (:N {text: 'a text that is not so short: ' + i})";
    let code = "Neo.TransientError.General.MemoryPoolOutOfMemoryError";
    assert_eq!(graphs.run(much, json!({})), Err(code.to_owned()));
    let begun = graphs.ask("POST", "/db/neo4j/tx", &statements(&[much]));
    assert_eq!(rows(&begun.content), Err(code.to_owned()));
    let message = begun.content["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("together"), "{message}");
    assert_eq!(graphs.run("MATCH (n) RETURN count(n)", json!({})), Ok(vec![json!([0])]));
    // All memory has been returned.
    let fits = "UNWIND range(1, 3000) AS i CREATE (:N {i: i})";
    for _ in 0..5 {
        assert_eq!(graphs.run(fits, json!({})), Ok(vec![]));
        let list = graphs.run("RETURN size(range(1, 40000))", json!({}));
        assert_eq!(list, Ok(vec![json!([40_000])]));
    }
}

#[test]
fn of_two_open_transactions_that_read_what_the_other_wrote_one_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    graphs
        .run("CREATE (:Doctor {id: 1, on: true}), (:Doctor {id: 2, on: true})", json!({}))
        .unwrap();
    let leave = |id: u64| {
        let text = format!(
            "MATCH (d:Doctor {{on: true}}) WITH count(d) AS n MATCH (d:Doctor {{id: {id}}}) WHERE n > 1 SET d.on = false"
        );
        let begun = graphs.ask("POST", "/db/neo4j/tx", &statements(&[&text]));
        assert_eq!(begun.content["errors"], json!([]));
        begun.location.unwrap().strip_prefix("http://localhost:4000").unwrap().to_owned()
    };
    let (one, other) = (leave(1), leave(2));
    let commit = |target: &str| {
        graphs.ask("POST", &format!("{target}/commit"), &statements(&[])).content["errors"].clone()
    };
    assert_eq!(commit(&one), json!([]));
    assert_eq!(commit(&other)[0]["code"], "Neo.TransientError.Transaction.Outdated");
    let on = graphs.run("MATCH (d:Doctor {on: true}) RETURN count(d)", json!({}));
    assert_eq!(on, Ok(vec![json!([1])]));
}

/// Tasks of one thread interleave at every wait.
async fn race(graphs: &Graphs, clients: usize, requests: usize, statement: &str) {
    let body = json!({"statements": [{"statement": statement}]}).to_string();
    let one = || async {
        for _ in 0..requests {
            let answer = graphs.asked("POST", "/db/neo4j/tx/commit", &body).await;
            assert_eq!((answer.status, &answer.content["errors"]), (200, &json!([])));
        }
    };
    let mut clients: Vec<_> = (0..clients).map(|_| Box::pin(one())).collect();
    std::future::poll_fn(|context| {
        clients.retain_mut(|client| client.as_mut().poll(context).is_pending());
        if clients.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[test]
fn a_counter_that_all_want_counts_every_request() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    graphs.run("CREATE (:C {id: 1, n: 0})", json!({})).unwrap();
    graphs.runtime.block_on(race(&graphs, 20, 10, "MATCH (c:C {id: 1}) SET c.n = c.n + 1"));
    let sum = graphs.run("MATCH (c:C) RETURN c.n", json!({}));
    assert_eq!(sum, Ok(vec![json!([200])]));
    graphs.runtime.block_on(race(
        &graphs,
        20,
        5,
        "MERGE (k:K {id: 7}) ON CREATE SET k.n = 1 ON MATCH SET k.n = k.n + 1",
    ));
    let merged = graphs.run("MATCH (k:K) RETURN count(k), sum(k.n)", json!({}));
    assert_eq!(merged, Ok(vec![json!([1, 100])]));
}

#[test]
fn threads_that_race_lose_no_increment() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    graphs.run("CREATE (:C {id: 1, n: 0})", json!({})).unwrap();
    let server = Arc::clone(&graphs.server);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let server = Arc::clone(&server);
            scope.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let graphs = std::mem::ManuallyDrop::new(Graphs { server, runtime });
                for _ in 0..50 {
                    let done =
                        graphs.run("MATCH (c:C {id: 1}) SET c.n = c.n + 1 RETURN c.n", json!({}));
                    assert_eq!(done.map(|rows| rows.len()), Ok(1));
                }
            });
        }
    });
    assert_eq!(graphs.run("MATCH (c:C) RETURN c.n", json!({})), Ok(vec![json!([200])]));
}

/// Opens a transaction with a statement, has others overtake it, and commits it: its answer.
fn overtaken(graphs: &Graphs, statement: &str) -> (Value, Value) {
    let begun = graphs.ask("POST", "/db/neo4j/tx", &statements(&[statement]));
    assert_eq!(begun.content["errors"], json!([]), "{}", begun.content);
    let target = begun.location.unwrap().strip_prefix("http://localhost:4000").unwrap().to_owned();
    graphs.run("MATCH (c:Counter) SET c.n = c.n + 1", json!({})).unwrap();
    let committed = graphs.ask("POST", &format!("{target}/commit"), &statements(&[]));
    (begun.content, committed.content)
}

#[test]
fn an_overtaken_transaction_whose_results_stay_the_same_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    graphs.run("CREATE (:Counter {n: 0})", json!({})).unwrap();
    let (_, committed) = overtaken(&graphs, "MATCH (c:Counter) SET c.n = c.n + 10");
    assert_eq!(committed["errors"], json!([]), "{committed}");
    let n = || graphs.run("MATCH (c:Counter) RETURN c.n", json!({})).unwrap();
    assert_eq!(n(), [json!([11])]);
    // What it has created has the ids that its client was told.
    let statement =
        "MATCH (c:Counter) SET c.n = c.n + 10 CREATE (x:X)-[r:R]->(c) RETURN id(x), id(r), rand()";
    let (begun, committed) = overtaken(&graphs, statement);
    assert_eq!(committed["errors"], json!([]), "{committed}");
    let told = &begun["results"][0]["data"][0]["row"];
    let is = graphs.run("MATCH (x:X)-[r]->() RETURN id(x), id(r)", json!({})).unwrap();
    assert_eq!(is, [json!([told[0], told[1]])]);
    assert_eq!(n(), [json!([22])]);
}

#[test]
fn what_was_shown_must_not_change_when_a_transaction_is_executed_again() {
    let dir = tempfile::tempdir().unwrap();
    let graphs = Graphs::open(dir.path());
    graphs.run("CREATE (:Counter {n: 0})", json!({})).unwrap();
    let outdated = "Neo.TransientError.Transaction.Outdated";
    for statement in [
        "MATCH (c:Counter) SET c.n = c.n + 10 RETURN c.n",
        "MATCH (c:Counter) WHERE c.n % 2 = 0 SET c.n = c.n + 10",
        "MATCH (c:Counter) UNWIND range(1, c.n) AS i CREATE (:Y)",
        "MATCH (c:Counter) CREATE (:Z) RETURN c.n > 2",
    ] {
        graphs.run("MATCH (c:Counter) SET c.n = 2", json!({})).unwrap();
        let (_, committed) = overtaken(&graphs, statement);
        assert_eq!(rows(&committed), Err(outdated.to_owned()), "{statement}");
    }
    assert_eq!(
        graphs.run("MATCH (n) WHERE NOT n:Counter RETURN count(n)", json!({})),
        Ok(vec![json!([0])])
    );
    // A row without a change of its own is the same before and after.
    let (_, committed) = overtaken(&graphs, "MATCH (c:Counter) CREATE (:Z) RETURN c.n > 0");
    assert_eq!(committed["errors"], json!([]), "{committed}");
}
