//! The log `system` over HTTP: it shows permissions, and never a hash of a password or a key.

use crate::closed::Closed;
use serde_json::{Value, json};

/// Every route that reads, applied to the log `system`.
fn reads() -> Vec<(&'static str, String, &'static str, String)> {
    let query = json!({"query": {"items": []}}).to_string();
    let mut reads = vec![];
    for log in ["system", "%73ystem", "s%79stem"] {
        for accept in ["application/json", "application/x-ndjson"] {
            reads.push(("GET", format!("/v1/logs/{log}/events"), accept, String::new()));
            reads.push(("GET", format!("/v1/logs/{log}/events?order=desc"), accept, String::new()));
            reads.push(("POST", format!("/v1/logs/{log}/query"), accept, query.clone()));
        }
        for position in 1..8 {
            let path = format!("/v1/logs/{log}/events/{position}");
            reads.push(("GET", path, "application/json", String::new()));
        }
    }
    for member in ["/password", "/sha256", ""] {
        for reduce in [
            json!({"last": member}),
            json!({"first": member}),
            json!({"group": {"by": member, "reduce": "count"}}),
            json!({"group": {"by": "/label", "reduce": {"last": member}}}),
        ] {
            // Each type by itself: the last event of all might lack the member.
            let of = |event_type: &str| json!({"query": {"items": [{"types": [event_type]}]}, "reduce": reduce});
            let projections = json!({
                "a": of("AccountAdded"), "p": of("PasswordSet"), "k": of("KeyAdded"),
            });
            let body = json!({"projections": projections}).to_string();
            reads.push(("POST", "/v1/logs/system/project".into(), "application/json", body));
        }
    }
    reads
}

/// The hashes in the files of the log: 43 characters of Base64 or 64 hexadecimal digits each.
fn hashes(closed: &Closed) -> Vec<String> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(closed.server.dir.join("logs/system")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "seg") {
            bytes.extend(std::fs::read(path).unwrap());
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let behind = |mark: &str| -> Vec<String> {
        let found = text.match_indices(mark).map(|(at, _)| &text[at + mark.len()..]);
        found.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    };
    [behind("\"password\":\""), behind("\"sha256\":\"")].concat()
}

#[test]
fn hashes_are_in_the_files_and_in_no_answer() {
    let closed = Closed::start();
    let ann = closed.add("ann", &["reader"]);
    closed.key(&ann, &json!({"role": "reader", "label": "laptop"}));
    let (_, admin_key) = closed.key(&closed.root, &json!({"role": "admin"}));
    let set = json!({"password": "another password"});
    let answer = closed.ask(&closed.root, "PUT", "/v1/accounts/ann/password", &set);
    assert_eq!(answer.status, 204, "{}", answer.text());
    let hashes = hashes(&closed);
    assert_eq!(hashes.len(), 5, "{hashes:?}");
    let hidden = |text: &str, what: &str| {
        for hash in &hashes {
            assert!(!text.contains(hash.as_str()), "{hash} is in the answer to {what}");
        }
        assert!(!text.contains("argon2"), "{what}: {text}");
    };
    for bearer in [&closed.root, &admin_key] {
        let authorization = format!("Bearer {bearer}");
        for (method, path, accept, body) in reads() {
            let headers = [
                ("Authorization", authorization.as_str()),
                ("Accept", accept),
                ("Content-Type", "application/json"),
            ];
            let answer = closed.client().call(method, &path, &headers, body.as_bytes()).unwrap();
            let what = format!("{method} {path} {body}");
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            hidden(&answer.text(), &what);
        }
        // A subscription.
        let mut client = closed.client();
        let head = format!(
            "GET /v1/logs/system/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
             Authorization: {authorization}\r\n\r\n"
        );
        client.send(head.as_bytes()).unwrap();
        assert_eq!(client.head().unwrap().0, 200);
        let mut seen = String::new();
        while seen.matches("PasswordSet").count() < 1 {
            seen.push_str(&client.line().unwrap().expect("the stream goes on"));
        }
        hidden(&seen, "a subscription");
    }
    // Everything but the hashes is shown.
    let events = closed.get(&closed.root, "/v1/logs/system/events").expect(200);
    let of = |event_type: &str| -> Vec<Value> {
        let events = events["events"].as_array().unwrap().iter();
        events.filter(|e| e["type"] == event_type).map(|e| e["data"].clone()).collect()
    };
    assert_eq!(of("AccountAdded")[1], json!({"roles": [{"role": "reader"}]}));
    assert_eq!(of("PasswordSet"), [json!({})]);
    assert_eq!(of("KeyAdded")[0], json!({"label": "laptop", "role": "reader"}));
}

#[test]
fn other_logs_show_all_that_was_sent() {
    let closed = Closed::start();
    let event =
        json!({"type": "PasswordSet", "tags": [], "data": {"password": "$x", "sha256": "y"}});
    let body = json!({"events": [event]});
    closed.ask(&closed.root, "POST", "/v1/append", &body).expect(200);
    let events = closed.get(&closed.root, "/v1/events").expect(200);
    assert_eq!(events["events"][0]["data"], event["data"]);
}

/// Personal data is for callers that may write to the log, in every way in which events are read.
#[test]
fn personal_data_is_withheld_from_readers() {
    let closed = Closed::start();
    let (ann, bob) = (closed.add("ann", &["reader"]), closed.add("bob", &["writer"]));
    let event =
        json!({"type": "N", "tags": ["t"], "data": {"n": 1}, "personal": {"u:1": "secret-1"}});
    let whole = json!({"type": "W", "subject": "u:1", "data": {"name": "secret-2"}});
    closed.ask(&bob, "POST", "/v1/append", &json!({"events": [event, whole]})).expect(200);
    let query = json!({"query": {"items": []}});
    let project =
        json!({"projections": {"p": {"query": {"items": []}, "reduce": {"last": "/name"}}}});
    let accepts =
        ["application/json", "application/x-ndjson", "application/vnd.wellspring.records"];
    let mut reads = vec![("POST", "/v1/project".to_owned(), accepts[0], project.to_string())];
    for accept in accepts {
        // Over the lean loop, and over the general stack.
        for more in ["", "&consistency=local"] {
            reads.push(("GET", format!("/v1/events?limit=9{more}"), accept, String::new()));
        }
        reads.push(("POST", "/v1/query".to_owned(), accept, query.to_string()));
    }
    reads.push(("GET", "/v1/events/2".to_owned(), accepts[0], String::new()));
    for (method, path, accept, body) in &reads {
        for (bearer, sees) in [(&ann, false), (&bob, true), (&closed.root, true)] {
            let authorization = format!("Bearer {bearer}");
            let headers = [
                ("Authorization", authorization.as_str()),
                ("Accept", *accept),
                ("Content-Type", "application/json"),
            ];
            let answer = closed.client().call(method, path, &headers, body.as_bytes()).unwrap();
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(answer.status, 200, "{method} {path} {accept}: {text}");
            assert_eq!(text.contains("secret-2"), sees, "{method} {path} {accept}: {text}");
            assert!(sees || !text.contains("secret"), "{method} {path} {accept}: {text}");
            let is_json = path.starts_with("/v1/events") || path == "/v1/query";
            let says = is_json && *accept != accepts[2];
            assert_eq!(
                text.contains(r#""withheld":true"#),
                says && !sees,
                "{path} {accept}: {text}"
            );
        }
    }
    // Nor may a reader erase, or learn what there is.
    for (method, path) in [
        ("GET", "/v1/subjects/u:1"),
        ("DELETE", "/v1/subjects/u:1?confirm=u:1"),
        ("GET", "/v1/erasures"),
        ("GET", "/v1/subject-keys/store"),
        ("POST", "/v1/subject-keys/rotate"),
    ] {
        for bearer in [&ann, &bob] {
            assert_eq!(
                closed.ask(bearer, method, path, &Value::Null).status,
                403,
                "{method} {path}"
            );
        }
    }
    let mut client = closed.client();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
         Authorization: Bearer {ann}\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.head().unwrap().0, 200);
    let mut seen = String::new();
    while seen.matches("withheld").count() < 2 {
        seen.push_str(&client.line().unwrap().expect("the stream goes on"));
    }
    assert!(!seen.contains("secret"), "{seen}");
    // Who gets it, and loses the role, is cut off before the next event.
    let mut client = closed.client();
    client.send(head.replace(&ann, &bob).as_bytes()).unwrap();
    assert_eq!(client.head().unwrap().0, 200);
    let mut seen = String::new();
    while seen.matches("secret").count() < 2 {
        seen.push_str(&client.line().unwrap().expect("the stream goes on"));
    }
    let lower = json!({"roles": ["reader"]});
    assert_eq!(closed.ask(&closed.root, "PATCH", "/v1/accounts/bob", &lower).status, 200);
    let more = json!({"events": [{"type": "W", "subject": "u:1", "data": "secret-3"}]});
    closed.ask(&closed.root, "POST", "/v1/append", &more).expect(200);
    // The last chunk is empty.
    loop {
        let line = client.line().unwrap().expect("the stream ends in order");
        assert!(!line.contains("secret-3"), "{line}");
        if line.trim() == "0" {
            return;
        }
    }
}
