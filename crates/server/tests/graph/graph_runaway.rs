//! Statements without bounds: each ends with a clear error, in bounded time and memory.

use crate::graph_client::*;
use crate::process::memory_kb;
use crate::server::Server;
use serde_json::json;
use std::time::{Duration, Instant};

const SYNTAX: &str = "Neo.ClientError.Statement.SyntaxError";
const ARGUMENT: &str = "Neo.ClientError.Statement.ArgumentError";
const TIMED_OUT: &str = "Neo.ClientError.Transaction.TransactionTimedOut";
const OUT_OF_MEMORY: &str = "Neo.TransientError.General.MemoryPoolOutOfMemoryError";
const INVALID_FORMAT: &str = "Neo.ClientError.Request.InvalidFormat";

/// The memory limit of a query.
const QUERY_BYTES: &str = "10000000";
/// Maximum growth of the process during one: its 10 MB as counted, unused capacity of growing
/// tables and lists, the result beside its copy in the answer, and the largest body.
const MOST_KB: u64 = 110_000;

/// The maximum growth of the process in kB while `work` ran.
fn grows_kb<T>(server: &Server, work: impl FnOnce() -> T) -> (u64, T) {
    std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
    let before = memory_kb(server, "VmRSS:");
    let came = work();
    (memory_kb(server, "VmHWM:").saturating_sub(before), came)
}

/// A graph whose nodes `:K` are all related to each other, plus some more.
pub fn dense(client: &mut GraphClient) {
    client.run("UNWIND range(1, 2000) AS i CREATE (:N {i: i})", json!({}));
    client.run("UNWIND range(1, 50) AS i CREATE (:K {i: i})", json!({}));
    client.run("MATCH (a:K), (b:K) WHERE a <> b CREATE (a)-[:R]->(b)", json!({}));
    client.run("CREATE (:Big {text: $text})", json!({"text": "x".repeat(100_000)}));
}

/// Statements, and the codes of their errors.
fn runaways() -> Vec<(String, &'static str)> {
    let columns: Vec<String> = (0..12).map(|n| format!("range(1, 300000) AS c{n}")).collect();
    let columns = columns.join(", ");
    let twice = "reduce(l = [1], i IN range(1, 60) | [l, l])";
    let text = [
        (
            "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c
            UNWIND range(1, 1000) AS d RETURN count(*)",
            TIMED_OUT,
        ),
        ("MATCH (a), (b), (c), (d) WHERE a.i + b.i + c.i + d.i = 0 RETURN count(*)", TIMED_OUT),
        ("MATCH (a:K)-[*1..40]->(b:K) RETURN count(*)", TIMED_OUT),
        ("RETURN range(1, 1000000000000)", ARGUMENT),
        ("RETURN size(range(1, 1000000))", OUT_OF_MEMORY),
        (
            "UNWIND range(1, 300000) AS x RETURN x, 'some text that is told with each of them'",
            OUT_OF_MEMORY,
        ),
        ("UNWIND range(1, 300000) AS x RETURN size(collect([x, x]))", OUT_OF_MEMORY),
        ("UNWIND range(1, 300000) AS x WITH DISTINCT x RETURN count(x)", OUT_OF_MEMORY),
        (
            "UNWIND range(1, 300000) AS x WITH x, x * 2 AS y ORDER BY y RETURN count(y)",
            OUT_OF_MEMORY,
        ),
        ("UNWIND range(1, 300000) AS x RETURN count(DISTINCT x)", OUT_OF_MEMORY),
        (
            "UNWIND range(1, 10000) AS x WITH x, max(range(1, 1000)) AS m RETURN count(m)",
            OUT_OF_MEMORY,
        ),
        ("RETURN size(reduce(l = [], x IN range(1, 300000) | l + [x, x]))", OUT_OF_MEMORY),
        ("RETURN size(reduce(s = 'x', i IN range(1, 40) | s + s))", OUT_OF_MEMORY),
        (
            "WITH range(1, 1000) AS l RETURN size([x IN range(1, 100000) | toIntegerList(l)])",
            OUT_OF_MEMORY,
        ),
        ("MATCH (n:Big) RETURN [x IN range(1, 100000) | n]", OUT_OF_MEMORY),
        ("MATCH (n:Big) UNWIND range(1, 100000) AS x RETURN n", OUT_OF_MEMORY),
        (
            "MATCH (n:Big) WITH collect(n) AS l RETURN [x IN range(1, 100000) | {n: l}]",
            OUT_OF_MEMORY,
        ),
        (
            "MATCH (n:Big) UNWIND range(1, 200) AS x WITH x, n.text + x AS t ORDER BY t RETURN count(t)",
            OUT_OF_MEMORY,
        ),
        ("MATCH p = (:K {i: 1})-[:R*]->(:N) RETURN p", TIMED_OUT),
    ];
    let more = [
        (format!("RETURN {}1{}", "[".repeat(100_000), "]".repeat(100_000)), SYNTAX),
        (format!("RETURN {}1{}", "(".repeat(100_000), ")".repeat(100_000)), SYNTAX),
        (format!("RETURN 1{}", "+1".repeat(100_000)), SYNTAX),
        (format!("RETURN '{}'", "x".repeat(5_000_000)), SYNTAX),
        (format!("RETURN size([{}1])", "1,".repeat(1_900_000)), SYNTAX),
        (format!("WITH {columns} RETURN size(c0)"), OUT_OF_MEMORY),
        (format!("WITH {twice} AS l RETURN DISTINCT l"), OUT_OF_MEMORY),
        (format!("RETURN {twice} = {twice}"), OUT_OF_MEMORY),
        (format!("RETURN {twice}"), OUT_OF_MEMORY),
    ];
    text.into_iter().map(|(text, code)| (text.to_owned(), code)).chain(more).collect()
}

#[test]
fn what_runs_away_ends_with_a_clear_error_in_bounded_time_and_memory() {
    let flags = ["--graph-query-bytes", QUERY_BYTES, "--max-fold-ms", "2500"];
    let server = Server::start_with(&flags);
    let mut client = GraphClient::at(server.address);
    dense(&mut client);
    let mut most = 0;
    for (statement, expected) in runaways() {
        let shown: String = statement.chars().take(100).collect();
        let begun = Instant::now();
        let (grown, content) = grows_kb(&server, || {
            client.ask("POST", "tx/commit", &one(&statement, json!({}))).unwrap().expect(200)
        });
        println!("{grown:>8} kB {:>5} ms {shown}", begun.elapsed().as_millis());
        assert_eq!(code(&content).as_deref(), Some(expected), "{shown}: {content}");
        let message = content["errors"][0]["message"].as_str().unwrap();
        assert!((10..2_000).contains(&message.len()), "{shown}: {message}");
        assert!(grown < MOST_KB, "{shown}: {grown} kB");
        assert!(begun.elapsed() < Duration::from_secs(60), "{shown}");
        most = most.max(grown);
    }
    println!("{most} kB at most");
    assert_eq!(client.value("MATCH (n:K) RETURN count(n)"), json!(50), "it goes on");
}

#[test]
fn what_a_transaction_writes_is_bounded_and_none_of_it_stays() {
    let flags = ["--graph-query-bytes", QUERY_BYTES, "--max-fold-ms", "60000"];
    let server = Server::start_with(&flags);
    let mut client = GraphClient::at(server.address);
    let text = json!({"text": "x".repeat(900_000)});
    let create = "UNWIND range(1, 1000) AS i CREATE (:M {text: $text, i: i})";
    let refused = client.try_run(create, text.clone()).unwrap_err();
    assert_eq!(refused, ARGUMENT, "no retry would help");
    assert_eq!(client.value("MATCH (n) RETURN count(n)"), json!(0));
    // In an open transaction too, whichever of its statements exceeds the limit.
    let open = client.begin("CREATE (:M)", json!({}));
    let create = "UNWIND range(1, 20) AS i CREATE (:M {text: $text, i: i})";
    let mut codes = (0..10).map_while(|_| client.go_on(&open, create, text.clone()).err());
    let mut came = codes.by_ref().next();
    for _ in 0..10 {
        if came.is_none() {
            came = client.go_on(&open, create, text.clone()).err();
        }
    }
    assert_eq!(came.as_deref(), Some(ARGUMENT));
    assert_eq!(client.commit(&open), Err(NOT_FOUND.to_owned()));
    assert_eq!(client.value("MATCH (n) RETURN count(n)"), json!(0));
}

#[test]
fn parameters_are_bounded_in_depth_and_memory() {
    let server = Server::start_with(&["--graph-query-bytes", QUERY_BYTES]);
    let mut client = GraphClient::at(server.address);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let maps = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let list = |item: &str| format!("[{}]", vec![item; 15_000_000 / (item.len() + 1)].join(","));
    for (value, expected) in [
        (deep, INVALID_FORMAT),
        (maps, INVALID_FORMAT),
        (list("1"), OUT_OF_MEMORY),
        (list("{\"a\":1}"), OUT_OF_MEMORY),
        (list("[[]]"), OUT_OF_MEMORY),
        (list("\"\""), OUT_OF_MEMORY),
    ] {
        let body = format!(
            r#"{{"statements":[{{"statement":"RETURN size($l)","parameters":{{"l":{value}}}}}]}}"#
        );
        let shown: String = value.chars().take(20).collect();
        let headers = [("Content-Type", "application/json")];
        let (grown, answer) = grows_kb(&server, || {
            client.client.call("POST", "/db/neo4j/tx/commit", &headers, body.as_bytes()).unwrap()
        });
        println!("{grown:>8} kB {shown}");
        assert_eq!(code(&answer.expect(200)).as_deref(), Some(expected), "{shown}");
        assert!(grown < MOST_KB, "{shown}: {grown} kB");
    }
    assert_eq!(client.run("RETURN size($l)", json!({"l": vec![1; 50_000]})), [json!([50_000])]);
}
