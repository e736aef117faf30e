//! Nothing is stored twice when the lead moves: what a node forwards is sent again only where
//! nothing was done, or where a repeat is safe.

use crate::client::{Answer, Client};
use crate::closed::{PASSWORD, ask, token};
use crate::done::StopSignal;
use crate::nodes::{Nodes, TestEngine, until};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

wellspring_test_support::over_each_engine! {
    statements_are_executed_once_while_leaders_die
}

const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");

/// Hands the lead over again and again until the signal is set; returns how often.
fn hand_over_until(nodes: &Nodes, done: &StopSignal) -> usize {
    let mut handed_over = 0;
    for to in (0..).map(|n| crate::nodes::NAMES[n % 3]) {
        if done.is_set() {
            break;
        }
        let asked = nodes.client(0).post("/v1/cluster/transfer", &json!({ "to": to })).unwrap();
        handed_over += usize::from(asked.status == 200 && asked.json()["already"] == false);
        thread::sleep(Duration::from_millis(150));
    }
    handed_over
}

/// How many events of a type the log `main` has.
fn count(nodes: &Nodes, event_type: &str) -> u64 {
    let mut counted = 0;
    until("the log is confirmed", || {
        let path = "/v1/types?consistency=linearizable&wait_ms=5000";
        let answer = nodes.client(0).get(path).unwrap();
        if answer.status != 200 {
            return false;
        }
        let types = answer.json();
        let found = types["types"].as_array().unwrap().iter().find(|t| t["type"] == event_type);
        counted = found.map_or(0, |found| found["count"].as_u64().unwrap());
        true
    });
    counted
}

/// Sends a bulk to a node while the lead is handed over; returns its answer.
fn send(nodes: &Nodes, node: usize, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = [&[NDJSON], headers].concat();
    nodes.client(node).patient().call("POST", path, &headers, body.as_bytes()).unwrap()
}

/// The end of an answer: the beginning may list thousands of links.
fn short(answer: &Answer) -> String {
    let text = answer.text();
    text.chars().skip(text.chars().count().saturating_sub(400)).collect()
}

/// How many lines an answer says are stored; `None` if it does not know.
fn stored_lines(answer: &Answer) -> Option<u64> {
    let told = answer.json();
    let lines = |member: &str| match &told[member] {
        Value::Number(lines) => lines.as_u64(),
        _ => None,
    };
    match answer.status {
        200 | 201 => lines("lines"),
        _ if told["type"] == "/problems/outcome-unknown" => None,
        _ => Some(lines("durable_lines").unwrap_or(0)),
    }
}

/// Bulks at each node in turn while the lead moves: each client is told what the log has.
fn bulks_are_stored_once(what: &str, path: &str, event_type: &str, line: impl Fn(usize) -> String) {
    let Some(engine) = TestEngine::over_postgres(what) else { return };
    let nodes = engine.nodes(&["--leader-wait-ms", "10000"]);
    let done = StopSignal::default();
    let handed_over = thread::scope(|scope| {
        let mover = scope.spawn(|| hand_over_until(&nodes, &done));
        let ends = done.at_the_end();
        let (mut known, mut interrupted) = (0, 0);
        for round in 0..9 {
            let lines: String = (0..4_000).map(|n| line(round * 4_000 + n) + "\n").collect();
            let answer = send(&nodes, round % 3, path, &[], &lines);
            let before = known;
            known = count(&nodes, event_type);
            let stored = known - before;
            match stored_lines(&answer) {
                Some(told) => assert_eq!(stored, told, "round {round}: {}", short(&answer)),
                None => assert!(stored <= 4_000, "round {round}: {stored}"),
            }
            if answer.status >= 400 {
                interrupted += 1;
                assert_ne!(answer.json()["retry"], "same", "{}", short(&answer));
                assert!(answer.header("retry-after").is_none() || stored == 0);
            }
        }
        drop(ends);
        println!("{interrupted} of 9 bulks were interrupted");
        mover.join().unwrap()
    });
    assert!(handed_over > 3, "the lead moved {handed_over} times only");
}

#[test]
fn bulks_of_events_are_stored_once_while_the_lead_is_handed_over() {
    let text = "x".repeat(200);
    bulks_are_stored_once("bulks of events", "/v1/append", "Bulked", |n| {
        json!({"type": "Bulked", "data": {"n": n, "text": text}}).to_string()
    });
}

#[test]
fn bulks_of_links_are_made_once_while_the_lead_is_handed_over() {
    bulks_are_stored_once("bulks of links", "/api/urls", "LinkCreated", |n| {
        json!({ "url": format!("https://example.com/{n}") }).to_string()
    });
}

#[test]
fn bulks_of_items_are_added_once_while_the_lead_is_handed_over() {
    bulks_are_stored_once("bulks of items", "/v1/catalogue/items", "CatalogueItemAdded", |n| {
        json!({"sku": format!("s-{n}"), "name": "x", "topic": "t", "price": "1.00"}).to_string()
    });
}

#[test]
fn a_bulk_with_a_key_is_completed_across_handovers_and_stored_once() {
    let Some(engine) = TestEngine::over_postgres(
        "a bulk with a key is completed across handovers and stored once",
    ) else {
        return;
    };
    let nodes = engine.nodes(&["--leader-wait-ms", "10000"]);
    let done = StopSignal::default();
    thread::scope(|scope| {
        scope.spawn(|| hand_over_until(&nodes, &done));
        let _ends = done.at_the_end();
        for round in 0..4 {
            let event = |n: usize| json!({"type": format!("R{round}"), "data": n}).to_string();
            let body: String = (0..6_000).map(|n| event(n) + "\n").collect();
            let key = format!("bulk-{round}");
            until("the bulk is complete", || {
                let key = [("Idempotency-Key", key.as_str())];
                let answer = send(&nodes, round % 3, "/v1/append", &key, &body);
                assert!(matches!(answer.status, 200 | 500 | 503), "{}", answer.text());
                answer.status == 200
            });
            assert_eq!(count(&nodes, &format!("R{round}")), 6_000, "round {round}");
        }
    });
}

/// `CREATE` of a node with a unique number at a server; its status.
fn create(client: &mut Client, number: &str, headers: &[(&str, &str)]) -> u16 {
    let statement = json!({"statement": "CREATE (:T {n: $n})", "parameters": {"n": number}});
    let body = json!({ "statements": [statement] }).to_string();
    let headers = [&[("Content-Type", "application/json")], headers].concat();
    let path = "/db/main/tx/commit";
    match client.call("POST", path, &headers, body.as_bytes()) {
        Ok(answer) if answer.status == 200 && answer.json()["errors"] == json!([]) => 200,
        Ok(answer) if answer.status == 200 => 400,
        Ok(answer) => answer.status,
        Err(_) => 0,
    }
}

fn statements_are_executed_once_while_leaders_die(engine: TestEngine) {
    let mut nodes = engine.nodes(&["--lead-timeout-ms", "500"]);
    let done = StopSignal::default();
    let addresses: Vec<_> = (0..3).map(|node| nodes.address(node)).collect();
    let answered = thread::scope(|scope| {
        let writers: Vec<_> = (0..12)
            .map(|writer| {
                let (done, addresses) = (&done, &addresses);
                scope.spawn(move || {
                    let mut answered = Vec::new();
                    for n in 0.. {
                        if done.is_set() {
                            break;
                        }
                        let number = format!("{writer}-{n}");
                        let status = Client::connect(addresses[(writer + n) % 3])
                            .map_or(0, |mut client| create(&mut client, &number, &[]));
                        answered.push((number, status));
                        if status != 200 {
                            thread::sleep(Duration::from_millis(20));
                        }
                    }
                    answered
                })
            })
            .collect();
        let ends = done.at_the_end();
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(1_500));
            let leader = nodes.leader();
            nodes.kill(leader);
            thread::sleep(Duration::from_millis(1_500));
            nodes.start_again(leader);
        }
        drop(ends);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    let statement = "MATCH (t:T) RETURN t.n, count(*)";
    let body = json!({"statements": [{ "statement": statement }]});
    let mut client = nodes.client(0).patient();
    let path = "/db/main/tx/commit?consistency=linearizable";
    let rows = client.post(path, &body).unwrap().expect(200)["results"][0]["data"].take();
    let rows = rows.as_array().unwrap().iter().map(|row| {
        let row = &row["row"];
        (row[0].as_str().unwrap().to_owned(), row[1].as_u64().unwrap())
    });
    let times: std::collections::HashMap<String, u64> = rows.collect();
    let done = answered.iter().filter(|(_, status)| *status == 200).count();
    assert!(done > 100, "only {done} statements were executed");
    for (number, status) in &answered {
        let times = times.get(number).copied().unwrap_or(0);
        assert!(times <= 1, "{number}, answered {status}, is there {times} times");
        assert!(*status != 200 || times == 1, "{number} was acknowledged and is missing");
        assert!(*status != 503 || times == 0, "{number} was refused and is there");
    }
}

#[test]
fn a_key_is_refused_where_it_protects_from_nothing() {
    let server = crate::server::Server::start();
    let key = [("Idempotency-Key", "k"), ("Content-Type", "application/json")];
    let mut client = server.client();
    // Faults of statements are results.
    assert_eq!(create(&mut client, "1", &key), 400);
    assert_eq!(create(&mut client, "1", &[]), 200);
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 1);
    for (method, path, body) in [
        ("POST", "/v1/leases/l", r#"{"ttl_ms":1000}"#),
        ("DELETE", "/api/urls/abc", ""),
        ("PUT", "/v1/logs/other", ""),
        ("POST", "/v1/keys", "{}"),
        ("POST", "/v1/accounts", "{}"),
        ("POST", "/append", "{}"),
        ("POST", "/v1/e", "{}"),
    ] {
        let refused = client.call(method, path, &key, body.as_bytes()).unwrap().problem(422);
        assert_eq!(refused["field"], "Idempotency-Key", "{method} {path}: {refused}");
    }
    let event = json!({"events": [{"type": "A", "data": 1}]}).to_string();
    for replayed in [false, true] {
        let answer = client.call("POST", "/v1/append", &key, event.as_bytes()).unwrap();
        assert_eq!(answer.expect(200)["replayed"], replayed);
    }
    client.call("GET", "/v1/head", &key[..1], b"").unwrap().expect(200);
    // Items know each other again by their SKUs, and stocks that are set are set again.
    let items = [key[0], NDJSON];
    let item = r#"{"sku":"s","name":"x","topic":"t","price":"1.00"}"#;
    let refused = client.call("POST", "/v1/catalogue/items", &items, item.as_bytes()).unwrap();
    assert_eq!(refused.problem(422)["field"], "Idempotency-Key");
    let single = [("Idempotency-Key", "item"), key[1]];
    client.call("POST", "/v1/catalogue/items", &single, item.as_bytes()).unwrap().expect(201);
}

/// As `closed::ask`, by a client whose node may die.
fn try_ask(
    client: &mut Client,
    bearer: &str,
    line: (&str, &str),
    body: &Value,
) -> std::io::Result<Answer> {
    let authorization = format!("Bearer {bearer}");
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    client.call(line.0, line.1, &headers, body.to_string().as_bytes())
}

/// Creates a key with this label, and ends it again; the status of the first.
fn make_key(client: &mut Client, root: &str, label: &str) -> std::io::Result<u16> {
    let body = json!({"role": "reader", "label": label});
    let made = try_ask(client, root, ("POST", "/v1/keys"), &body)?;
    if made.status == 201 {
        let path = format!("/v1/keys/{}", made.json()["id"].as_str().unwrap());
        // Whatever becomes of it: an account has room for 100 keys.
        let _ = try_ask(client, root, ("DELETE", &path), &json!({}));
    }
    Ok(made.status)
}

/// Creates an account of this name, which no other client uses.
fn make_account(client: &mut Client, root: &str, name: &str) -> std::io::Result<()> {
    let body = json!({"name": name, "password": PASSWORD, "roles": []});
    let made = try_ask(client, root, ("POST", "/v1/accounts"), &body)?;
    assert_ne!(made.status, 409, "{name} was made before: {}", made.text());
    Ok(())
}

#[test]
fn keys_and_accounts_are_made_once_while_leaders_die_and_hand_over() {
    let Some(engine) = TestEngine::over_postgres(
        "keys and accounts are made once while leaders die and hand over",
    ) else {
        return;
    };
    let mut nodes = engine.nodes(&["--lead-timeout-ms", "500"]);
    let first = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
    nodes.client(0).post("/v1/accounts", &first).unwrap().expect(201);
    let root = token(&mut nodes.client(0), "root");
    let addresses: Vec<_> = (0..3).map(|node| nodes.address(node)).collect();
    let done = StopSignal::default();
    let (root, addresses, stop) = (root.as_str(), &addresses, &done);
    let made = thread::scope(|scope| {
        let make = move |writer: usize| {
            let mut made = Vec::new();
            for n in (0..).take_while(|_| !stop.is_set()) {
                let name = format!("w{writer}-{n}");
                let Ok(mut client) = Client::connect(addresses[(writer + n) % 3]) else { continue };
                if n % 4 == 3 {
                    let _ = make_account(&mut client, root, &name);
                } else {
                    let status = make_key(&mut client, root, &name).unwrap_or(0);
                    made.push((name, status));
                }
            }
            made
        };
        let writers: Vec<_> = (0..6).map(|writer| scope.spawn(move || make(writer))).collect();
        let ends = done.at_the_end();
        for round in 0..3 {
            thread::sleep(Duration::from_millis(1_000));
            let leader = leader_of(&nodes, root);
            if round == 1 {
                let to = json!({"to": crate::nodes::NAMES[(leader + 1) % 3]});
                let mut client = nodes.client(leader);
                assert_eq!(ask(&mut client, root, "POST", "/v1/cluster/transfer", &to).status, 200);
                continue;
            }
            nodes.kill(leader);
            thread::sleep(Duration::from_millis(1_500));
            nodes.start_again(leader);
        }
        drop(ends);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    let path = "/v1/logs/system/events?type=KeyAdded&limit=1000&consistency=linearizable";
    let events = ask(&mut nodes.client(0).patient(), root, "GET", path, &Value::Null).expect(200);
    let events = events["events"].as_array().unwrap();
    assert!(events.len() < 1_000, "one page");
    let mut times = std::collections::HashMap::<&str, u64>::new();
    for event in events {
        *times.entry(event["data"]["label"].as_str().unwrap()).or_default() += 1;
    }
    assert!(made.iter().filter(|(_, status)| *status == 201).count() > 20, "{}", made.len());
    for (name, status) in &made {
        let times = times.get(name.as_str()).copied().unwrap_or(0);
        assert!(times <= 1, "{name}, answered {status}, was made {times} times");
        assert!(*status != 201 || times == 1, "{name} was acknowledged and is missing");
        assert!(*status != 503 || times == 0, "{name} was refused and made");
    }
}

/// The leader, according to a client with credentials.
fn leader_of(nodes: &Nodes, root: &str) -> usize {
    let mut found = None;
    until("a node leads", || {
        let mut client = nodes.client(0);
        let told = ask(&mut client, root, "GET", "/v1/cluster", &Value::Null);
        let leader = told.json()["leader"]["node"].as_str().map(str::to_owned);
        found = leader.and_then(|name| crate::nodes::NAMES.iter().position(|known| *known == name));
        found.is_some()
    });
    found.expect("just found")
}
