//! Every function and every operator of the language with large arguments, by clients that leave:
//! the server answers others meanwhile, and ends the work of those who have gone. What takes the
//! square of its arguments without asking whether it may go on would run for minutes.

use crate::client::Client;
use crate::graph_client::{GraphClient, code, one};
use crate::graph_runaway::dense;
use crate::process::memory_kb;
use crate::process::processor_ms;
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wellspring_cypher::functions::functions;
use wellspring_cypher::{BuiltIn, prepare};

/// Length of the generated arguments: the square of it is minutes.
const TEXT_BYTES: usize = 400_000;
const LIST_ITEMS: usize = 30_000;
/// Number of clients at a time, and for how long they stay.
const CLIENTS: usize = 24;
const STAY: Duration = Duration::from_millis(1_500);
/// Any other request is answered within this time, on a slow machine too.
const PATIENCE: Duration = Duration::from_secs(8);
/// Memory of the server in all, in kB: its own and that of the requests of one wave.
const MOST_KB: u64 = 900_000;

/// Expressions of `$a`, `$b` and `$c` with every operator.
const OPERATORS: [&str; 41] = [
    "$a OR $b",
    "$a XOR $b",
    "$a AND $b",
    "NOT $a",
    "$a + $b",
    "$a - $b",
    "$a * $b",
    "$a / $b",
    "$a % $b",
    "$a ^ $b",
    "+$a",
    "-$a",
    "$a = $b",
    "$a <> $b",
    "$a < $b",
    "$a <= $b",
    "$a > $b",
    "$a >= $b",
    "$a < $b <= $c",
    "$a IN $b",
    "$a IN [$b, $c]",
    "$a STARTS WITH $b",
    "$a ENDS WITH $b",
    "$a CONTAINS $b",
    "$a =~ $b",
    "$a =~ '(a|aa)*[ab]{500}c?d'",
    "$a IS NULL",
    "$a IS NOT NULL",
    "$a IS :: LIST<LIST<INTEGER> | STRING | INTEGER>",
    "$a[i]",
    "$a[1..-1]",
    "{a: 1}[$a]",
    "CASE $a WHEN $b THEN 1 WHEN $c THEN 2 END",
    "[x IN $a WHERE x = $b | x]",
    "[$a, $b, [$c]] = [$b, $a, [$c]]",
    "all(x IN $a WHERE x = x)",
    "any(x IN $a WHERE x = $b)",
    "none(x IN $a WHERE x = $b)",
    "single(x IN $a WHERE x = $b)",
    "reduce(s = $a, x IN $b | CASE WHEN s = $c THEN x ELSE s END)",
    "[x IN [{a: $a, b: $b}] | x {.*}]",
];

/// Aggregations, and clauses that compare rows: `x` is one of three large values.
const OF_ROWS: [&str; 15] = [
    "RETURN count(DISTINCT x)",
    "RETURN sum(x)",
    "RETURN avg(x)",
    "RETURN min(x)",
    "RETURN max(x)",
    "RETURN size(collect(x))",
    "RETURN size(collect(DISTINCT x))",
    "RETURN stDev(x)",
    "RETURN stDevP(x)",
    "RETURN percentileCont(i, 0.5)",
    "RETURN percentileDisc(i, 0.5)",
    "RETURN DISTINCT x, i % 5",
    "RETURN x, count(*)",
    "WITH x, i ORDER BY x, rand() RETURN count(*)",
    "WITH x, i ORDER BY x DESC, i LIMIT 3 RETURN count(*)",
];

/// Whether the syntax accepts an expression.
fn is_valid(expression: &str) -> bool {
    prepare(&format!("WITH 1 AS i RETURN {expression} AS x"), &BuiltIn).is_ok()
}

/// Every function, with as many arguments as it takes; every operator; what many rows do.
fn statements() -> Vec<String> {
    let calls = functions().flat_map(|function| {
        let counts = function.least.max(1)..=function.most.min(3);
        let call = |count| format!("{}({})", function.name, ["$a", "$b", "$c"][..count].join(", "));
        let calls: Vec<String> = counts.map(call).filter(|call| is_valid(call)).collect();
        assert!(!calls.is_empty() || function.most == 0, "{}", function.name);
        calls
    });
    OPERATORS.iter().for_each(|it| assert!(is_valid(it), "{it}"));
    let rows = "UNWIND range(1, 1000000000) AS i";
    let by_row = calls
        .chain(OPERATORS.map(str::to_owned))
        .map(|expression| format!("{rows} RETURN count({expression})"));
    let many = "UNWIND range(1, 200000) AS i WITH i, [$a, $b, $c][i % 3] AS x";
    by_row.chain(OF_ROWS.map(|clauses| format!("{many} {clauses}"))).collect()
}

/// Three values alike, which have not one address.
fn arguments() -> [Value; 2] {
    let text = |end: &str| format!("{}{end}", "a".repeat(TEXT_BYTES));
    let list = |last: usize| (0..LIST_ITEMS).chain([last]).collect::<Vec<_>>();
    [
        json!({"a": text(""), "b": text("b"), "c": text("c")}),
        json!({"a": list(0), "b": list(1), "c": list(2)}),
    ]
}

/// What was found by hand: statements without an end, and some whose one step took minutes.
fn found() -> Vec<(&'static str, Value)> {
    let text = |part: &str, times: usize| part.repeat(times);
    let ending = |times: usize| format!("{}b", "a".repeat(times));
    let pattern = "[ab]*a[ab]{3000}c?d";
    vec![
        ("RETURN size(btrim($s, $c))", json!({"s": text("b", 65_000), "c": ending(8_000_000)})),
        ("RETURN size(split($s, $c))", json!({"s": text("a", 4_000_000), "c": ending(2_000_000)})),
        (
            "UNWIND range(1, 200000) AS i WITH i, $s AS s ORDER BY s, rand() RETURN count(*)",
            json!({"s": text("a", 2_000_000)}),
        ),
        (
            "UNWIND range(1, 200000) AS i WITH [$s, $t][i % 2] AS s ORDER BY s RETURN count(*)",
            json!({"s": text("a", 2_000_000), "t": text("a", 2_000_000)}),
        ),
        ("RETURN $t =~ $p", json!({"t": text("ab", 500_000), "p": pattern})),
        ("MATCH (a), (b), (c), (d) WHERE a.i + b.i + c.i + d.i = 0 RETURN count(*)", json!({})),
        ("MATCH (a:K)-[*1..40]->(b:K) WHERE b.i = 0 CREATE (:Never)", json!({})),
        ("UNWIND range(1, 25) AS i RETURN count(valueType($l))", json!({"l": vec![1; 300_000]})),
    ]
}

/// Sends a statement and does not wait.
fn send(server: &Server, statement: &str, parameters: &str) -> TcpStream {
    let statement = json!(statement);
    let body =
        format!(r#"{{"statements":[{{"statement":{statement},"parameters":{parameters}}}]}}"#);
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = "POST /db/neo4j/tx/commit HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream
}

/// Other clients work until `until`; each of their requests is answered in time. Returns the
/// longest time.
fn others_go_on(server: &Server, until: Instant, beside: &[String]) -> Duration {
    let event = json!({"events": [{"type": "T", "data": {}}]});
    let mut longest = Duration::ZERO;
    loop {
        let begun = Instant::now();
        let mut client = Client::connect(server.address).unwrap().patient();
        client.get("/health/live").unwrap().expect(200);
        client.post("/v1/append", &event).unwrap().expect(200);
        longest = longest.max(begun.elapsed());
        assert!(longest < PATIENCE, "{longest:?} beside {beside:?}");
        if Instant::now() >= until {
            return longest;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The server uses no processor soon.
fn comes_to_rest(server: &Server) {
    let begun = Instant::now();
    let mut last = processor_ms(server);
    loop {
        std::thread::sleep(Duration::from_millis(250));
        let now = processor_ms(server);
        if now - last < 60 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "it goes on: {:#?}", server.log());
        last = now;
    }
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    #[test]
    fn no_function_and_no_operator_holds_the_server_and_all_end_with_their_clients() {
        let flags = ["--max-fold-ms", "600000", "--max-long-reads", "100"];
        let server = Server::start_with(&flags);
        let mut client = GraphClient::at(server.address);
        dense(&mut client);
        let arguments = arguments().map(|arguments| arguments.to_string());
        let statements = statements();
        let generated =
            statements.iter().flat_map(|it| arguments.iter().map(move |with| (it, with)));
        let generated: Vec<_> = generated.collect();
        let mut longest = Duration::ZERO;
        for wave in generated.chunks(CLIENTS) {
            let until = Instant::now() + STAY;
            let clients: Vec<TcpStream> =
                wave.iter().map(|(statement, with)| send(&server, statement, with)).collect();
            let beside: Vec<String> =
                wave.iter().map(|(statement, _)| (*statement).clone()).collect();
            longest = longest.max(others_go_on(&server, until, &beside));
            drop(clients);
        }
        comes_to_rest(&server);
        let found = found();
        let until = Instant::now() + STAY;
        let clients =
            found.iter().map(|(statement, with)| send(&server, statement, &with.to_string()));
        let clients: Vec<TcpStream> = clients.collect();
        let beside: Vec<String> =
            found.iter().map(|(statement, _)| (*statement).to_owned()).collect();
        longest = longest.max(others_go_on(&server, until, &beside));
        drop(clients);
        comes_to_rest(&server);
        assert_eq!(client.value("MATCH (n:Never) RETURN count(n)"), json!(0));
        let most_kb = memory_kb(&server, "VmHWM:");
        println!("{longest:?}, {most_kb} kB, {} ms of processors", processor_ms(&server));
        assert!(most_kb < MOST_KB, "{most_kb} kB");
    }

    #[test]
    fn texts_patterns_and_bodies_that_grow_are_refused_before_they_do() {
        let server = Server::start();
        let mut client = GraphClient::at(server.address);
        client.run("RETURN 1", json!({}));
        let before = (processor_ms(&server), memory_kb(&server, "VmRSS:"));
        let pattern = json!({"p": "\\pL".repeat(30_000)});
        for (statement, parameters, expected) in [
            ("RETURN 'a' =~ $p".to_owned(), pattern, "Neo.ClientError.Statement.ArgumentError"),
            (format!("RETURN {}1", "-".repeat(3_800)), Value::Null, SYNTAX),
            (format!("RETURN {}true", "NOT ".repeat(950)), Value::Null, SYNTAX),
            (format!("RETURN {}1", "+-".repeat(1_900)), Value::Null, SYNTAX),
        ] {
            let body = one(&statement, parameters);
            let content = client.ask("POST", "tx/commit", &body).unwrap().expect(200);
            assert_eq!(code(&content).as_deref(), Some(expected), "{content}");
        }
        let tiny = vec![r#"{"statement":""}"#; 900_000].join(",");
        let body = format!(r#"{{"statements":[{tiny}]}}"#);
        let headers = [("Content-Type", "application/json")];
        let answer = client.client.call("POST", "/db/neo4j/tx/commit", &headers, body.as_bytes());
        let content = answer.unwrap().expect(200);
        let invalid = "Neo.ClientError.Request.InvalidFormat";
        assert_eq!(code(&content).as_deref(), Some(invalid), "{content}");
        let grown_kb = memory_kb(&server, "VmHWM:").saturating_sub(before.1);
        let taken_ms = processor_ms(&server) - before.0;
        println!("{grown_kb} kB, {taken_ms} ms");
        // The body itself takes 15 MB, and its buffer twice as much while it grows.
        assert!(grown_kb < 70_000, "{grown_kb} kB");
        assert!(taken_ms < 3_000, "{taken_ms} ms");
    }

    const SYNTAX: &str = "Neo.ClientError.Statement.SyntaxError";
}
