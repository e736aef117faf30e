//! The life of open transactions: whatever ends one removes all its effects, and no other client
//! can use it.

use crate::client::Client;
use crate::closed::Closed;
use crate::graph_client::*;
use crate::server::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wellspring_patience::Patience;

const CONSTRAINT_FAILED: &str = "Neo.ClientError.Schema.ConstraintValidationFailed";
const BUSY: &str = "Neo.ClientError.Transaction.TransactionAccessedConcurrently";

/// A server with two connected nodes and a constraint.
fn prepared(flags: &[&str]) -> (Server, GraphClient) {
    let server = Server::start_with(flags);
    let mut client = GraphClient::at(server.address);
    client.run("CREATE CONSTRAINT FOR (p:P) REQUIRE p.k IS UNIQUE", json!({}));
    client.run("CREATE (:P {k: 1})-[:R]->(:Q)", json!({}));
    (server, client)
}

/// Asserts that nothing was added to the prepared graph.
#[track_caller]
fn assert_untouched(client: &mut GraphClient, about: &str) {
    let nodes = client.value("MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN [count(n), count(r)]");
    assert_eq!(nodes, json!([2, 1]), "{about}");
}

/// Statements that fail, and their codes.
const FAILING: [(&str, &str); 9] = [
    ("BOGUS", "Neo.ClientError.Statement.SyntaxError"),
    ("RETURN foo", "Neo.ClientError.Statement.SyntaxError"),
    ("RETURN 1/0", "Neo.ClientError.Statement.ArithmeticError"),
    ("RETURN $nothing", "Neo.ClientError.Statement.ParameterMissing"),
    ("CREATE (:P {k: 1})", CONSTRAINT_FAILED),
    ("UNWIND [2, 2] AS k CREATE (:P {k: k})", CONSTRAINT_FAILED),
    ("CREATE (:N) RETURN toInteger(date())", "Neo.ClientError.Statement.SyntaxError"),
    ("UNWIND [1, 0] AS x CREATE (:N) RETURN 1/x", "Neo.ClientError.Statement.ArithmeticError"),
    ("MATCH (p:P) SET p.x = {a: 1}", "Neo.ClientError.Statement.TypeError"),
];

#[test]
fn of_a_request_whose_second_statement_fails_the_first_is_not_there() {
    let (_server, mut client) = prepared(&[]);
    let first = "CREATE (:N)-[:S]->(:N) WITH 1 AS x MATCH (p:P) SET p.y = 3, p:N RETURN 1 AS one";
    for (failing, expected) in FAILING {
        let body = all(&[(first, json!({})), (failing, json!({})), ("CREATE (:N)", json!({}))]);
        for path in ["tx/commit", "tx", "open", "open/commit"] {
            let open = client.begin("CREATE (:N)", json!({}));
            let path = path.replace("open", &open.path);
            let answer = client.ask("POST", &path, &body).unwrap();
            let content = answer.expect(if path == "tx" { 201 } else { 200 });
            assert_eq!(code(&content).as_deref(), Some(expected), "{failing}: {content}");
            assert_eq!(content["results"][0]["columns"], json!(["one"]), "{content}");
            assert_eq!(content["errors"].as_array().unwrap().len(), 1);
            let over = path.starts_with(&open.path);
            let committed = if over {
                client.commit(&open)
            } else {
                client.roll_back(&open).and(Err(NOT_FOUND.to_owned()))
            };
            assert_eq!(committed, Err(NOT_FOUND.to_owned()), "{failing} in {path}");
            assert_untouched(&mut client, failing);
        }
    }
    assert_eq!(client.value("MATCH (p:P) RETURN properties(p)"), json!({"k": 1}));
}

#[test]
fn what_only_the_commit_can_refuse_leaves_nothing() {
    let (_server, mut client) = prepared(&[]);
    // A node with relationships may be deleted before them.
    let whole = all(&[("MATCH (q:Q) DELETE q", json!({})), ("CREATE (:N)", json!({}))]);
    let answer = client.ask("POST", "tx/commit", &whole).unwrap().expect(200);
    assert_eq!(code(&answer).as_deref(), Some(CONSTRAINT_FAILED));
    let open = client.begin("CREATE (:N)", json!({}));
    client.go_on(&open, "MATCH (q:Q) DELETE q", json!({})).unwrap();
    assert_eq!(client.commit(&open), Err(CONSTRAINT_FAILED.to_owned()));
    assert_eq!(client.commit(&open), Err(NOT_FOUND.to_owned()));
    assert_untouched(&mut client, "refused at the commit");
    let open = client.begin("MATCH (q:Q) DELETE q", json!({}));
    client.go_on(&open, "MATCH ()-[r:R]->() DELETE r", json!({})).unwrap();
    assert_eq!(client.commit(&open), Ok(()));
    assert_eq!(client.value("MATCH (n) RETURN count(n)"), json!(1));
}

#[test]
fn a_transaction_that_was_rolled_back_or_committed_is_over() {
    let (_server, mut client) = prepared(&[]);
    let open = client.begin("CREATE (:N)", json!({}));
    assert_eq!(client.roll_back(&open), Ok(()));
    let over = Err(NOT_FOUND.to_owned());
    let asked = |client: &mut GraphClient, open: &Open| {
        let went_on = client.go_on(open, "CREATE (:N)", json!({})).map(drop);
        [went_on, client.commit(open), client.roll_back(open)]
    };
    assert_eq!(asked(&mut client, &open), [over.clone(), over.clone(), over.clone()]);
    assert_untouched(&mut client, "rolled back");
    let open = client.begin("MATCH (q:Q) SET q:N", json!({}));
    assert_eq!(client.commit(&open), Ok(()));
    assert_eq!(asked(&mut client, &open), [over.clone(), over.clone(), over]);
    assert_untouched(&mut client, "nothing was added");
    assert_eq!(client.value("MATCH (n:N) RETURN count(n)"), json!(1));
}

#[test]
fn an_idle_transaction_is_rolled_back_and_forgotten() {
    let (_server, mut client) = prepared(&["--graph-transaction-timeout-ms", "1000"]);
    let [kept, left] = [(); 2].map(|()| client.begin("CREATE (:N)", json!({})));
    let begun = Instant::now();
    // Each request keeps it open, even one without a statement.
    while begun.elapsed() < Duration::from_millis(2_500) {
        let answer = client.ask("POST", &kept.path, &json!({"statements": []})).unwrap();
        let content = answer.expect(200);
        assert!(content["transaction"]["expires"].as_str().unwrap().ends_with(" GMT"));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(client.go_on(&left, "RETURN 1", json!({})), Err(NOT_FOUND.to_owned()));
    assert_eq!(client.commit(&left), Err(NOT_FOUND.to_owned()));
    assert_untouched(&mut client, "forgotten");
    assert_eq!(client.commit(&kept), Ok(()));
    assert_eq!(client.value("MATCH (n:N) RETURN count(n)"), json!(1));
}

#[test]
fn there_are_as_many_as_there_may_be() {
    const TOO_MANY: &str = "Neo.TransientError.Transaction.MaximumTransactionLimitReached";
    let (_server, mut client) = prepared(&["--graph-transactions", "2"]);
    let open = [(); 2].map(|()| client.begin("CREATE (:N)", json!({})));
    let answer = client.ask("POST", "tx", &one("CREATE (:N)", json!({}))).unwrap();
    assert_eq!(code(&answer.json()).as_deref(), Some(TOO_MANY));
    assert_eq!(answer.header("location"), None);
    client.run("MATCH (q:Q) SET q.x = 1", json!({}));
    assert_eq!(client.commit(&open[0]), Ok(()));
    let third = client.begin("CREATE (:N)", json!({}));
    assert_eq!((client.roll_back(&third), client.roll_back(&open[1])), (Ok(()), Ok(())));
    assert_eq!(client.value("MATCH (n:N) RETURN count(n)"), json!(1));
}

#[test]
fn many_go_on_at_once_however_little_long_work_there_may_be() {
    let (server, mut client) = prepared(&["--max-long-reads", "1"]);
    let times = size(5, 100);
    at_once(server.address, 32, |client, number| {
        for turn in 0..times {
            let k = json!({"k": number, "turn": turn});
            let open = client.begin("CREATE (n:N {k: $k}) RETURN n.k", k.clone());
            let second = "MATCH (n:N {k: $k}) WHERE n.turn IS NULL SET n.turn = $turn RETURN n";
            assert_eq!(client.go_on(&open, second, k).map(|rows| rows.len()), Ok(1));
            assert_eq!(client.commit(&open), Ok(()));
        }
    });
    assert_eq!(client.value("MATCH (n:N) RETURN count(n)"), json!(32 * times));
}

/// A statement that takes longer than any test.
const ENDLESS: &str =
    "CREATE (:N) WITH 1 AS x UNWIND range(1, 30000) AS a UNWIND range(1, 30000) AS b
    UNWIND range(1, 30000) AS c RETURN sum(a * b * c)";

/// The head of a request with this many bytes of content.
fn head(path: &str, length: usize) -> String {
    format!(
        "POST /db/neo4j/{path} HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

#[test]
fn of_a_request_that_is_cut_off_nothing_is_there() {
    let (server, mut client) = prepared(&["--graph-transaction-timeout-ms", "1500"]);
    let open = client.begin("CREATE (:N)", json!({}));
    let body = all(&[("CREATE (:N)", json!({})), ("CREATE (:N)", json!({}))]).to_string();
    let commit = format!("{}/commit", open.path);
    for path in ["tx/commit", "tx", &open.path, &commit] {
        for sent in [0, 1, body.len() / 2, body.len() - 1] {
            let mut cut = Client::connect(server.address).unwrap();
            cut.send(head(path, body.len()).as_bytes()).unwrap();
            cut.send(&body.as_bytes()[..sent]).unwrap();
            // The server receives it before the connection ends.
            std::thread::sleep(Duration::from_millis(5));
            drop(cut);
        }
    }
    assert_untouched(&mut client, "cut off");
    // The earlier state is unchanged.
    assert_eq!(client.go_on(&open, "MATCH (n:N) RETURN count(n)", json!({})), Ok(vec![json!([1])]));
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(client.commit(&open), Err(NOT_FOUND.to_owned()));
    assert_untouched(&mut client, "forgotten");
}

/// The number of open transactions.
fn open_transactions(client: &mut GraphClient) -> u64 {
    let text = client.client.get("/metrics").unwrap().text();
    let figure =
        |line: &str| line.strip_prefix("wellspring_graph_open_transactions ")?.parse().ok();
    text.lines().find_map(figure).expect("the figure")
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_statement_ends_its_transaction() {
    let (server, mut client) = prepared(&[]);
    for opens in [true, false] {
        let mut leaving = Client::connect(server.address).unwrap();
        let body = one(ENDLESS, json!({})).to_string();
        let open = if opens { None } else { Some(client.begin("CREATE (:N)", json!({}))) };
        let path = open.as_ref().map_or("tx", |open| &open.path);
        leaving.send((head(path, body.len()) + &body).as_bytes()).unwrap();
        let mut patience = Patience::new();
        let mut pause = |what: &str| patience.pause(what);
        while open_transactions(&mut client) != 1 {
            pause("it is not opened");
        }
        if let Some(open) = &open {
            // No other request comes between, and a failed attempt does not end the transaction.
            while client.go_on(open, "CREATE (:N)", json!({})) != Err(BUSY.to_owned()) {
                pause("it is not executed");
            }
            assert_eq!(client.commit(open), Err(BUSY.to_owned()));
        }
        drop(leaving);
        while open_transactions(&mut client) != 0 {
            pause("it is still open");
        }
        if let Some(open) = open {
            assert_eq!(client.commit(&open), Err(NOT_FOUND.to_owned()));
        }
        assert_untouched(&mut client, "left");
    }
}

#[test]
fn transactions_of_others_are_unknown() {
    let closed = Closed::start();
    let shown = |bearer: &str| format!("Bearer {bearer}");
    let ann = shown(&closed.add("ann", &["writer"]));
    let bob = shown(&closed.add("bob", &["writer"]));
    let root = shown(&closed.root);
    closed.ask(&closed.root, "PUT", "/v1/logs/other", &json!({})).expect(201);
    let client = |shown: &str, database: &str| {
        GraphClient::at(closed.server.address).showing(shown).of(database)
    };
    let open = client(&ann, "neo4j").begin("CREATE (:N)", json!({}));
    let over = [(); 3].map(|()| Err(NOT_FOUND.to_owned()));
    let asked = |shown: &str, database: &str, open: &Open| {
        let mut client = client(shown, database);
        let went_on = client.go_on(open, "CREATE (:N)", json!({})).map(drop);
        [went_on, client.commit(open), client.roll_back(open)]
    };
    for (shown, database) in [(&bob, "neo4j"), (&root, "neo4j"), (&ann, "other")] {
        assert_eq!(asked(shown, database, &open), over, "{database}");
    }
    for id in ["0", "1", "-1", "x", "18446744073709551616", "%20", "1.0", &"9".repeat(300)] {
        let nothing = Open { path: format!("tx/{id}"), rows: vec![] };
        assert_eq!(asked(&ann, "neo4j", &nothing), over, "{id}");
    }
    // By any name of the same log, over any connection of the same account.
    let read = "MATCH (n:N) RETURN count(n)";
    assert_eq!(client(&ann, "nornic").go_on(&open, read, json!({})), Ok(vec![json!([1])]));
    assert_eq!(client(&ann, "main").commit(&open), Ok(()));
    assert_eq!(client(&bob, "neo4j").value(read), json!(1));
}

#[test]
fn of_requests_at_once_in_one_transaction_those_count_that_were_not_told_to_wait() {
    let (server, mut client) = prepared(&[]);
    for _ in 0..size(10, 200) {
        let open = client.begin("CREATE (:N)", json!({}));
        let told = at_once(server.address, 4, |client, _| {
            [(); 8].map(|()| client.go_on(&open, "CREATE (:N)", json!({})))
        });
        let told: Vec<_> = told.into_iter().flatten().collect();
        let done = told.iter().filter(|told| told.is_ok()).count();
        for other in told.iter().filter_map(|told| told.as_ref().err()) {
            assert_eq!(other, BUSY);
        }
        let there = client.go_on(&open, "MATCH (n:N) RETURN count(n)", json!({}));
        assert_eq!(there, Ok(vec![json!([done + 1])]));
        // One commits it, or one rolls it back; never both.
        let ended = at_once(server.address, 4, |client, number| match number % 2 {
            0 => client.commit(&open),
            _ => client.roll_back(&open),
        });
        let by: Vec<usize> = (0..4).filter(|at| ended[*at].is_ok()).collect();
        assert_eq!(by.len(), 1, "{ended:?}");
        for other in ended.iter().filter_map(|ended| ended.as_ref().err()) {
            assert!([BUSY, NOT_FOUND].contains(&other.as_str()), "{ended:?}");
        }
        let expected = if by[0].is_multiple_of(2) { done + 1 } else { 0 };
        assert_eq!(client.value("MATCH (n:N) RETURN count(n)"), json!(expected));
        client.run("MATCH (n:N) DELETE n", json!({}));
    }
    assert_eq!(open_transactions(&mut client), 0);
    let none: [Value; 0] = [];
    assert_eq!(client.run("MATCH (n:N) RETURN n", json!({})), none);
}
