//! Who did what, recorded as events of the system log and read over the wire.

use crate::client::{Answer, Client};
use crate::exposition;
use crate::server::Server;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wellspring_patience::PATIENCE;

const ADMIN: &str = "correct horse";

/// A server with an admin who may do everything.
struct Closed {
    server: Server,
    admin: String,
    dir: tempfile::TempDir,
}

impl Closed {
    fn start(flags: &[&str]) -> Closed {
        Closed::start_in(tempfile::tempdir().unwrap(), flags)
    }

    fn start_in(dir: tempfile::TempDir, flags: &[&str]) -> Closed {
        let password = format!("WELLSPRING_ADMIN_PASSWORD={ADMIN}");
        let server = Server::start_under(&["env", &password], dir.path(), flags);
        let log_in = json!({"username": "admin", "password": ADMIN});
        let told = server.client().post("/auth/token", &log_in).unwrap().expect(200);
        let admin = format!("Bearer {}", told["access_token"].as_str().unwrap());
        Closed { server, admin, dir }
    }

    fn call(&self, line: &str, authorization: &str, body: &Value) -> Answer {
        call(&mut self.server.client(), line, authorization, body)
    }

    /// Id and secret of a new key.
    fn key(&self, grant: Value) -> (String, String) {
        let made = self.call("POST /v1/keys", &self.admin, &grant).expect(201);
        let text = |member: &str| made[member].as_str().unwrap().to_owned();
        (text("id"), format!("Bearer {}", text("secret")))
    }

    /// The audit events with this tag (empty: all), once there are this many.
    fn audited(&self, tag: &str, count: usize) -> Vec<Value> {
        let tag = if tag.is_empty() { String::new() } else { format!("&tag={tag}") };
        let types =
            "type=Accessed&type=AccessRefused&type=AccessRefusedOften&type=AccessFailedOften";
        let line = format!("GET /v1/logs/system/events?{types}{tag}&limit=1000");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let page = self.call(&line, &self.admin, &Value::Null).expect(200);
            let events = page["events"].as_array().unwrap().clone();
            if events.len() >= count || Instant::now() > deadline {
                assert_eq!(events.len(), count, "{page:#}");
                return events;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn call(client: &mut Client, line: &str, authorization: &str, body: &Value) -> Answer {
    let (method, path) = line.split_once(' ').unwrap();
    let mut headers = vec![("Content-Type", "application/json"), ("X-Request-Id", "req-1")];
    if !authorization.is_empty() {
        headers.push(("Authorization", authorization));
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.call(method, path, &headers, body.as_bytes()).unwrap()
}

/// A summary of an event: type, account, authentication, method and path, status.
fn short(event: &Value) -> String {
    let data = &event["data"];
    let text = |member: &str| data[member].as_str().unwrap_or("-").to_owned();
    format!(
        "{} {} by {}: {} {} {}",
        event["type"].as_str().unwrap(),
        text("account"),
        text("by"),
        text("method"),
        text("path"),
        data["status"]
    )
}

#[test]
fn changes_logins_and_refusals_are_recorded_with_the_caller() {
    let closed = Closed::start(&[]);
    closed.call("PUT /v1/logs/orders", &closed.admin, &Value::Null).expect(201);
    let (id, key) = closed.key(json!({"role": "writer", "log": "orders"}));
    closed.call("PUT /v1/logs/more?token=canary", &key, &Value::Null).problem(403);
    closed
        .call("POST /v1/logs/orders/append", &key, &json!({"events": [{"type": "A", "data": 1}]}))
        .expect(200);
    closed.call("GET /v1/head", "Bearer nonsense-canary", &Value::Null).problem(401);
    closed.call("GET /v1/head", "", &Value::Null).problem(401);
    let wrong = |name: &str| json!({"username": name, "password": "canary"});
    closed.call("POST /auth/token", "", &wrong("admin")).problem(401);
    closed.call("POST /auth/token", "", &wrong("canary-typed-in-the-wrong-field")).problem(401);
    let events = closed.audited("", 7);
    let found: Vec<String> = events.iter().map(short).collect();
    assert_eq!(
        found,
        [
            "Accessed admin by password: POST /auth/token 200",
            "Accessed admin by token: PUT /v1/logs/orders 201",
            "Accessed admin by token: POST /v1/keys 201",
            "AccessRefused admin by key: PUT /v1/logs/more 403",
            "AccessRefused - by nothing: GET /v1/head 401",
            "AccessRefused - by nothing: POST /auth/token 401",
            "AccessRefused - by nothing: POST /auth/token 401",
        ]
    );
    let refused = &events[3];
    assert_eq!(
        refused["data"],
        json!({"account": "admin", "by": "key", "key": id, "method": "PUT", "path": "/v1/logs/more",
            "route": "/v1/logs/{log}", "log": "more", "status": 403, "client": "127.0.0.1",
            "request": "req-1"})
    );
    assert_eq!(events[5]["data"]["claimed"], "admin");
    assert_eq!(events[6]["data"].get("claimed"), None, "there is no such account");
    let all = serde_json::to_string(&events).unwrap();
    assert!(!all.contains("canary") && !all.contains(ADMIN), "{all}");
    // Every event can be found by account, credential, path and address.
    closed.audited("account:admin", 4);
    closed.audited(&format!("key:{id}"), 1);
    closed.audited("log:orders", 1);
    closed.audited("claimed:admin", 1);
    closed.audited("client:127.0.0.1", 7);
}

#[test]
fn tail_shows_it_and_nobody_else_may() {
    let closed = Closed::start(&[]);
    closed.call("PUT /v1/logs/orders", &closed.admin, &Value::Null).expect(201);
    closed.audited("", 2);
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(["tail", "--url", &closed.server.url(), "--log", "system"])
        .env("WELLSPRING_TOKEN", closed.admin.strip_prefix("Bearer ").unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Accessed") && text.contains("/v1/logs/orders"), "{text}");
    let (_, reader) = closed.key(json!({"role": "reader", "log": "main"}));
    closed.call("GET /v1/logs/system/events", &reader, &Value::Null).problem(403);
    closed.call("POST /v1/logs/system/append", &closed.admin, &json!({"events": []})).problem(403);
}

#[test]
fn with_writes_every_event_taken_in_is_kept_on_both_stacks() {
    let closed = Closed::start(&["--audit", "writes"]);
    let (id, key) = closed.key(json!({"role": "writer"}));
    let mut client = closed.server.client();
    for n in 0..5 {
        call(&mut client, "POST /e", &key, &json!({ "n": n })).expect(202);
    }
    call(&mut client, "POST /v1/append", &key, &json!({"events": [{"type": "A", "data": 1}]}))
        .expect(200);
    call(&mut client, "GET /v1/head", &key, &Value::Null).expect(200);
    let events = closed.audited(&format!("key:{id}"), 6);
    let routes: Vec<&str> = events.iter().map(|e| e["data"]["route"].as_str().unwrap()).collect();
    assert_eq!(routes, ["/e", "/e", "/e", "/e", "/e", "/v1/append"]);
    closed.audited("log:main", 6);
}

#[test]
fn with_all_reads_are_kept_but_no_clicks_and_with_off_nothing_is() {
    let closed = Closed::start(&["--audit", "all"]);
    let made =
        closed.call("POST /api/urls", &closed.admin, &json!({"url": "https://example.com/"}));
    let code = made.expect(201)["short_code"].as_str().unwrap().to_owned();
    for lean in [true, false] {
        let mut client = closed.server.client();
        if !lean {
            // From here on the general stack serves the connection.
            client.get("/health").unwrap().expect(200);
        }
        assert_eq!(client.get(&format!("/{code}")).unwrap().status, 302);
    }
    closed.call("GET /v1/head", &closed.admin, &Value::Null).expect(200);
    // Reading them is a recorded read itself: this reads once.
    std::thread::sleep(Duration::from_millis(300));
    let paths: Vec<String> = closed
        .audited("", 3)
        .iter()
        .map(|event| event["data"]["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["/auth/token", "/api/urls", "/v1/head"]);
    let Closed { mut server, dir, .. } = closed;
    server.terminate();
    let mut closed = Closed::start_in(dir, &["--audit", "off"]);
    let head = |closed: &Closed| {
        let line = "GET /v1/logs/system/head";
        closed.call(line, &closed.admin, &Value::Null).expect(200)["head"].as_u64().unwrap()
    };
    let before = head(&closed);
    closed.call("PUT /v1/logs/orders", &closed.admin, &Value::Null).expect(201);
    closed.call("GET /v1/head", "Bearer nonsense", &Value::Null).problem(401);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(head(&closed), before);
    closed.server.terminate();
}

#[test]
fn a_flood_of_wrong_keys_is_kept_by_its_number_and_survives_the_stop() {
    let mut closed = Closed::start(&[]);
    let mut client = closed.server.client();
    for _ in 0..500 {
        call(&mut client, "GET /v1/head", "Bearer nonsense", &Value::Null).problem(401);
    }
    let text = closed.call("GET /metrics", &closed.admin, &Value::Null).text();
    let page = exposition::read(&text);
    let count = |line: &str| exposition::value(&page, line, &[]) as u64;
    let (kept, rest) =
        (count("wellspring_audit_events_total"), count("wellspring_audit_refusals_not_kept_total"));
    // The login; meanwhile the quota recovers by one every three seconds.
    assert!((21..60).contains(&kept) && (450..=480).contains(&rest), "{kept} kept, {rest} not");
    assert_eq!(count("wellspring_audit_shed_total"), 0);
    closed.server.terminate();
    let Closed { dir, .. } = closed;
    let closed = Closed::start_in(dir, &["--audit", "off"]);
    let line = "GET /v1/logs/system/events?type=AccessRefusedOften";
    let page = closed.call(line, &closed.admin, &Value::Null).expect(200);
    let counts = page["events"].as_array().unwrap().iter();
    let told: u64 = counts.map(|event| event["data"]["count"].as_u64().unwrap()).sum();
    assert!(told >= rest, "{told} of {rest}: {page}");
}
