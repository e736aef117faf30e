//! Appends over HTTP: events are stored as sent, a retry is safe, and bulk reports each line.

use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};

fn post_raw(
    client: &mut Client,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> crate::client::Answer {
    let mut all = vec![("Content-Type", "application/json")];
    all.extend_from_slice(headers);
    client.call("POST", path, &all, body.as_bytes()).unwrap()
}

#[test]
fn json_data_comes_back_byte_for_byte() {
    let server = Server::start();
    let mut client = server.client();
    let payloads = [
        r#"{"b":1,"a":2,"b":3}"#,
        r#"1.10"#,
        r#"9007199254740993"#,
        r#"123456789012345678901234567890.000001e-400"#,
        r#""\u00e9\/\n é 😀 \ud83d\ude00""#,
        "[ 1 ,\t2 , {\"x\" :  null} ]",
        "null",
        "\"\"",
    ];
    for (i, payload) in payloads.iter().enumerate() {
        let body = format!(r#"{{"events":[{{"type":"P","tags":["p:{i}"],"data":{payload}}}]}}"#);
        assert_eq!(post_raw(&mut client, "/v1/append", &[], &body).status, 200, "{payload}");
        let answer = client.get(&format!("/v1/events/{}", i + 1)).unwrap();
        assert!(
            answer.text().contains(&format!("\"data\":{payload}")),
            "{payload} came back as {}",
            answer.text()
        );
    }
}

#[test]
fn an_idempotency_key_makes_a_retry_safe_across_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let body = json!({"events": [{"type": "A", "tags": [], "data": 1}, {"type": "B", "tags": [], "data": 2}],
        "condition": {"failIfEventsMatch": {"items": [{"types": ["A"]}]}}})
    .to_string();
    let server = Server::start_in(dir.path(), &[]);
    let key = [("Idempotency-Key", "once")];
    let first = post_raw(&mut server.client(), "/v1/append", &key, &body).expect(200);
    assert_eq!(
        (&first["first"], &first["last"], &first["replayed"]),
        (&json!(1), &json!(2), &json!(false))
    );
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    let again = post_raw(&mut server.client(), "/v1/append", &key, &body).expect(200);
    assert_eq!(
        (&again["first"], &again["last"], &again["replayed"]),
        (&json!(1), &json!(2), &json!(true))
    );
    let other = body.replace("\"B\"", "\"C\"");
    post_raw(&mut server.client(), "/v1/append", &key, &other).problem(422);
    post_raw(&mut server.client(), "/v1/append", &[], &body).problem(409);
}

#[test]
fn keys_that_are_no_text_are_refused_not_taken_for_one_another() {
    let server = Server::start();
    let body = r#"{"events":[{"type":"A","tags":[],"data":1}]}"#;
    for key in [&b"k\xe4"[..], b"k\xf6"] {
        let mut request = b"POST /v1/append HTTP/1.1\r\nHost: t\r\nIdempotency-Key: ".to_vec();
        request.extend_from_slice(key);
        let rest = format!("\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        request.extend_from_slice(rest.as_bytes());
        let mut client = server.client();
        client.send(&request).unwrap();
        assert_eq!(client.answer().unwrap().problem(422)["field"], "Idempotency-Key");
    }
    assert_eq!(server.client().get("/v1/head").unwrap().expect(200)["head"], 0);
    // UTF-8 is text.
    let key = [("Idempotency-Key", "kä")];
    post_raw(&mut server.client(), "/v1/append", &key, body).expect(200);
}

#[test]
fn accepted_appends_are_counted_and_arrive() {
    let server = Server::start();
    let mut client = server.client();
    for _ in 0..20 {
        let body = json!({"events": [{"type": "A", "tags": [], "data": 1}], "ack": "accepted"});
        assert_eq!(client.post("/v1/append", &body).unwrap().expect(202), json!({"accepted": 1}));
    }
    let headers = [("Wellspring-Min-Position", "20")];
    let answer = client.call("GET", "/v1/head?wait_ms=5000", &headers, b"").unwrap().expect(200);
    assert_eq!(answer["head"], 20);
}

#[test]
fn bulk_tells_the_bad_line_and_keeps_what_came_before() {
    let server = Server::start();
    let mut client = server.client();
    let mut lines: Vec<String> = (1..=2500)
        .map(|i| json!({"type": "Line", "tags": [format!("n:{i}")], "data": i}).to_string())
        .collect();
    let headers = [("Content-Type", "application/x-ndjson")];
    let answer = client.call("POST", "/v1/append", &headers, lines.join("\n").as_bytes()).unwrap();
    let answer = answer.expect(200);
    assert_eq!(answer["last"], 2500, "{answer}");
    lines[2220] = r#"{"type":"","tags":[],"data":1}"#.into();
    let answer = client.call("POST", "/v1/append", &headers, lines.join("\n").as_bytes()).unwrap();
    let problem = answer.problem(422);
    assert_eq!(problem["line"], 2221, "{problem}");
    let head = server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
    let durable = head - 2500;
    assert!((2000..=2220).contains(&durable), "{durable} lines before the bad one are durable");
    assert!(problem.to_string().contains(&durable.to_string()), "the answer tells: {problem}");
}

/// Longer than any line may be, over HTTP in several pieces.
#[test]
fn a_blank_line_that_is_too_long_does_not_hide_the_lines_after_it() {
    let server = Server::start();
    let mut body = " ".repeat(4 << 20);
    body.push('\n');
    body.push_str(r#"{"type":"Line","tags":[],"data":1}"#);
    let headers = [("Content-Type", "application/x-ndjson")];
    let answer = server.client().call("POST", "/v1/append", &headers, body.as_bytes()).unwrap();
    let problem = answer.problem(413);
    assert_eq!((&problem["line"], &problem["durable_lines"]), (&json!(1), &json!(0)), "{problem}");
}

#[test]
fn binary_data_ids_and_metadata_come_back() {
    let server = Server::start();
    let mut client = server.client();
    let id = "018f5c3e-9b2a-7c11-8d3e-0123456789ab";
    let event = json!({"type": "Bin", "tags": ["k:ü"], "data_base64": "AP8Q", "id": id,
        "metadata": {"trace": "a\"b", "user": "ada"}});
    let body = json!({"events": [event]});
    assert_eq!(client.post("/v1/append", &body).unwrap().expect(200)["first"], 1);
    assert_eq!(client.post("/v1/append", &body).unwrap().expect(200)["replayed"], true);
    let found = client.get(&format!("/v1/events/by-id/{id}")).unwrap().expect(200);
    for member in ["type", "tags", "data_base64", "id", "metadata"] {
        assert_eq!(found[member], event[member]);
    }
    let recorded = found["recorded_at"].as_str().unwrap();
    assert!(recorded.ends_with('Z') && recorded.starts_with("20"), "{recorded}");
    client.get("/v1/events/by-id/018f5c3e-9b2a-7c11-8d3e-000000000000").unwrap().problem(404);
    client.get("/v1/events/99").unwrap().problem(404);
}

#[test]
fn leases_exclude_and_fence() {
    let server = Server::start();
    let mut client = server.client();
    let lease = client.post("/v1/leases/job", &json!({"ttl_ms": 60000})).unwrap();
    assert!(lease.status == 200 || lease.status == 201, "{lease:?}");
    let token = lease.json()["token"].clone();
    client.post("/v1/leases/job", &json!({"ttl_ms": 1000})).unwrap().problem(409);
    let fenced = |token: &Value| json!({"events": [{"type": "Done", "tags": [], "data": 1}], "fence": {"lease": "job", "token": token}});
    client.post("/v1/append", &fenced(&token)).unwrap().expect(200);
    let wrong = json!(token.as_u64().unwrap() + 1);
    client.post("/v1/append", &fenced(&wrong)).unwrap().problem(409);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let body = json!({"ttl_ms": 1000, "wait_ms": 10000});
            server.client().post("/v1/leases/job", &body).unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        let path = format!("/v1/leases/job?token={token}");
        let released = client.call("DELETE", &path, &[], b"").unwrap();
        assert!(released.status < 300, "{released:?}");
        let next = waiting.join().unwrap();
        assert!(next.status < 300, "{next:?}");
        assert!(next.json()["token"].as_u64() > token.as_u64());
    });
    client.post("/v1/append", &fenced(&token)).unwrap().problem(409);
}

#[test]
fn a_projection_brings_the_condition_that_protects_its_decision() {
    let server = Server::start();
    let mut client = server.client();
    for amount in [5, 7] {
        let event = json!({"type": "Paid", "tags": ["account:1"], "data": {"amount": amount}});
        client.post("/v1/append", &json!({"events": [event]})).unwrap().expect(200);
    }
    let query = json!({"items": [{"types": ["Paid"], "tags": ["account:1"]}]});
    let body = json!({"projections": {
        "total": {"query": query, "reduce": {"sum": "/amount"}},
        "count": {"query": query, "reduce": "count"}}});
    let answer = client.post("/v1/project", &body).unwrap().expect(200);
    assert_eq!(answer["states"], json!({"total": 12, "count": 2}));
    assert_eq!(answer["position"], 2);
    let event = json!({"type": "Paid", "tags": ["account:1"], "data": {"amount": 1}});
    let guarded = json!({"events": [event], "condition": answer["appendCondition"]});
    client.post("/v1/append", &guarded).unwrap().expect(200);
    client.post("/v1/append", &guarded).unwrap().problem(409);
}

#[test]
fn logs_are_separate_and_dropping_one_needs_its_name() {
    let server = Server::start();
    let mut client = server.client();
    let made = client.call("PUT", "/v1/logs/other", &[], b"").unwrap();
    assert!(made.status == 200 || made.status == 201, "{made:?}");
    let event = json!({"events": [{"type": "A", "tags": [], "data": 1}]});
    client.post("/v1/logs/other/append", &event).unwrap().expect(200);
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 0);
    assert_eq!(client.get("/v1/logs/other/head").unwrap().expect(200)["head"], 1);
    client.post("/v1/logs/absent/append", &event).unwrap().problem(404);
    client.call("PUT", "/v1/logs/..%2Fevil", &[], b"").unwrap().problem(422);
    client.call("DELETE", "/v1/logs/other", &[], b"").unwrap().problem(422);
    let dropped = client.call("DELETE", "/v1/logs/other?confirm=other", &[], b"").unwrap();
    assert!(dropped.status < 300, "{dropped:?}");
    client.get("/v1/logs/other/head").unwrap().problem(404);
}

/// A form that is sent twice: the second decision is not made, because the first one's events are
/// there.
#[test]
fn a_projection_for_a_key_tells_what_was_appended_under_it() {
    let server = Server::start();
    let mut client = server.client();
    let projection = json!({"seats": {"types": ["Taken"], "reduce": "count"}});
    let for_key = |key: &str| json!({"projections": projection, "key": key});
    let before = client.post("/v1/project", &for_key("form-1")).unwrap().expect(200);
    assert_eq!((&before["states"]["seats"], before.get("appended")), (&json!(0), None));
    let events = json!([{"type": "Taken", "data": 1}, {"type": "Paid", "data": 2}]);
    let body = json!({"events": events, "condition": before["appendCondition"]}).to_string();
    let keyed = [("Content-Type", "application/json"), ("Idempotency-Key", "form-1")];
    client.call("POST", "/v1/append", &keyed, body.as_bytes()).unwrap().expect(200);
    let after = client.post("/v1/project", &for_key("form-1")).unwrap().expect(200);
    assert_eq!(after["appended"], json!({"first": 1, "last": 2}), "{after}");
    assert_eq!((&after["states"]["seats"], &after["position"]), (&json!(1), &json!(2)));
    // Of two at once the later is told that the key is used, not that its condition failed.
    let other = json!({"events": events, "condition": {"after": 0}}).to_string();
    let refused = client.call("POST", "/v1/append", &keyed, other.as_bytes()).unwrap().problem(422);
    assert_eq!(refused["type"], "/problems/idempotency-key-reused");
    let unknown = client.post("/v1/project", &for_key("form-2")).unwrap().expect(200);
    assert_eq!(unknown.get("appended"), None);
    // Keys that are not their own names in the log are found, too.
    let odd = [("Content-Type", "application/json"), ("Idempotency-Key", "form#3")];
    let body = json!({"events": [{"type": "Other", "data": 1}]}).to_string();
    client.call("POST", "/v1/append", &odd, body.as_bytes()).unwrap().expect(200);
    let found = client.post("/v1/project", &for_key("form#3")).unwrap().expect(200);
    assert_eq!(found["appended"], json!({"first": 3, "last": 3}));
    for (wrong, status) in [("", 422), (&*"k".repeat(256), 413)] {
        let refused = client.post("/v1/project", &for_key(wrong)).unwrap().problem(status);
        assert_eq!(refused["field"], "key", "{refused}");
    }
}
