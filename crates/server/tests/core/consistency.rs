//! Freshness of answers: what each value of `consistency` promises for every kind of read, and that
//! nothing unconfirmed is called confirmed.

use crate::catalogue_client::{add, new_item, order};
use crate::client::{Answer, Client};
use crate::device;
use crate::server::Server;
use crate::shortener::{click, create, follow};
use serde_json::{Value, json};

/// The values, least fresh first.
const WORDS: [&str; 3] = ["cached", "local", "linearizable"];

const ADD: &str = "CREATE (:Thing {n: 1})";
const COUNT: &str = "MATCH (t:Thing) RETURN count(t)";

fn event(n: u64) -> Value {
    json!({"events": [{"type": "T", "tags": ["a:1"], "data": n}]})
}

fn with(headers: &[(&str, &str)], client: &mut Client, (path, body): (&str, &Value)) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let method = if body.is_null() { "GET" } else { "POST" };
    let json = [("Content-Type", "application/json")];
    client.call(method, path, &[headers, &json].concat(), text.as_bytes()).unwrap()
}

/// A read of each kind: its path and body, and where the answer holds the number that was written.
fn reads() -> Vec<(&'static str, Value, &'static str)> {
    let query = json!({"items": [{"tags": ["a:1"]}]});
    let projection = json!({"projections": {"p": {"query": query, "reduce": "count"}}});
    vec![
        ("/v1/events?tag=a:1&limit=1&order=desc", Value::Null, "/events/0/data"),
        ("/v1/types", Value::Null, "/types/0/count"),
        ("/v1/project", projection, "/states/p"),
        ("/api/urls/asked", Value::Null, "/clicks"),
        ("/v1/catalogue/orders?item=1&limit=1", Value::Null, "/orders/0/amount"),
        (
            "/db/neo4j/tx/commit",
            json!({"statements": [{"statement": COUNT}]}),
            "/results/0/data/0/row/0",
        ),
    ]
}

/// A problem as each face renders it: graphs put it into an envelope.
#[track_caller]
fn refused(answer: &Answer, status: u16) -> Value {
    let problem = answer.json();
    assert_eq!((answer.status, &problem["status"]), (status, &json!(status)), "{problem}");
    problem
}

/// The read with one more parameter.
fn asking(path: &str, more: &str) -> String {
    format!("{path}{}{more}", if path.contains('?') { '&' } else { '?' })
}

/// One write of each kind.
fn write(client: &mut Client, n: u64) {
    client.post("/v1/append", &event(n)).unwrap().expect(200);
    let add = json!({"statements": [{"statement": ADD}]});
    let added = client.post("/db/neo4j/tx/commit", &add).unwrap().expect(200);
    assert_eq!(added["errors"], json!([]), "{added}");
    click(client, "asked", "http://example.com/a");
    order(client, 1, n, None).unwrap().expect(201);
}

/// Creates the link to follow and the item to order.
fn begin(client: &mut Client) {
    create(client, &json!({"url": "http://example.com/a", "alias": "asked"}));
    add(client, &new_item("Asked", "1", 1_000_000));
}

#[test]
fn no_read_that_is_to_be_fresh_shows_less_than_an_answered_write() {
    let server = Server::start();
    let mut client = server.client();
    begin(&mut client);
    let mut others: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for n in 1..=100 {
        write(&mut client, n);
        for (at, (path, body, number)) in reads().into_iter().enumerate() {
            let reader = &mut others[(at + n as usize) % 4];
            let word = WORDS[1 + (at + n as usize) % 2];
            let path = asking(path, &format!("consistency={word}&wait_ms=30000"));
            let answer = with(&[], reader, (&path, &body)).expect(200);
            if path.starts_with("/v1/types") {
                // Pages of types are sorted by name; each of these events has type T.
                let types = answer["types"].as_array().unwrap().iter();
                let mut ours = types.filter(|one| one["type"] == "T");
                assert_eq!(ours.next().unwrap()["count"], n, "{path}: {answer}");
            } else {
                assert_eq!(answer.pointer(number), Some(&json!(n)), "{path}: {answer}");
            }
        }
    }
}

#[test]
fn what_is_cached_is_never_behind_the_position_that_its_client_has_seen() {
    let server = Server::start();
    let mut client = server.client();
    begin(&mut client);
    for n in 1..=50 {
        write(&mut client, n);
        let head = client.get("/v1/head").unwrap().expect(200)["head"].to_string();
        for (path, body, _) in reads() {
            let path = asking(path, "consistency=cached&wait_ms=30000");
            let answer = with(&[("Wellspring-Min-Position", &head)], &mut client, (&path, &body));
            answer.expect(200);
            let shown: u64 = answer.header("wellspring-position").unwrap().parse().unwrap();
            assert!(shown >= head.parse().unwrap(), "{path}: {shown} of {head}");
        }
    }
    for word in WORDS {
        for (path, body, _) in reads() {
            let path = asking(path, &format!("consistency={word}&wait_ms=20"));
            let far = [("Wellspring-Min-Position", "1000000")];
            let problem = refused(&with(&far, &mut client, (&path, &body)), 503);
            assert_eq!(problem["type"], "/problems/not-yet", "{path}: {problem}");
            let bad = [("Wellspring-Min-Position", "soon")];
            let problem = refused(&with(&bad, &mut client, (&path, &body)), 400);
            assert_eq!(problem["field"], "Wellspring-Min-Position", "{path}: {problem}");
        }
    }
}

/// After a failure of the journal no answer claims what the log holds beyond what can be read:
/// recovery decides.
#[test]
fn after_a_failed_barrier_nothing_is_confirmed_and_everything_else_is_read() {
    let (data, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = device::start(data.path(), tools.path());
    let mut client = server.client();
    begin(&mut client);
    write(&mut client, 1);
    let listed = [
        "/v1/logs",
        "/v1/logs/main",
        "/v1/views",
        "/v1/head",
        "/v1/events/1",
        "/api/urls",
        "/lookup",
        "/lookup/1",
        "/v1/catalogue/items/1",
    ];
    let all = || reads().into_iter().chain(listed.map(|path| (path, Value::Null, "")));
    for word in WORDS {
        for (path, body, _) in all() {
            with(&[], &mut client, (&asking(path, &format!("consistency={word}")), &body))
                .expect(200);
        }
    }
    std::fs::write(tools.path().join("fail-barriers"), "").unwrap();
    client.post("/v1/append", &event(2)).unwrap().problem(500);
    // A click that can no longer be stored delays no read.
    assert_eq!(follow(&mut server.client(), "asked").unwrap().status, 302);
    for (path, body, number) in all() {
        let asked = asking(path, "consistency=linearizable&wait_ms=2000");
        let problem = refused(&with(&[], &mut client, (&asked, &body)), 503);
        assert_eq!(problem["type"], "/problems/not-confirmed", "{path}: {problem}");
        assert_eq!(problem["retry"], "same", "{path}: {problem}");
        for word in ["cached", "local"] {
            let asked = asking(path, &format!("consistency={word}"));
            let answer = with(&[], &mut client, (&asked, &body)).expect(200);
            if !number.is_empty() && path != "/v1/types" {
                assert_eq!(answer.pointer(number), Some(&json!(1)), "{asked}: {answer}");
            }
        }
    }
    // Accounts belong to another log, whose journal has not failed.
    client.get("/auth/me?consistency=linearizable").unwrap().expect(200);
    let told = client.get("/problems/not-confirmed").unwrap().expect(200);
    assert_eq!(told["status"], 503, "{told}");
    std::fs::remove_file(tools.path().join("fail-barriers")).unwrap();
    server.kill();
    let server = device::start(data.path(), tools.path());
    let mut client = server.client();
    for (path, body, _) in all() {
        let asked = asking(path, "consistency=linearizable&wait_ms=30000");
        with(&[], &mut client, (&asked, &body)).expect(200);
    }
}
