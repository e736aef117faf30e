//! Requests that were in progress when access was revoked: streams, slow bodies, commands. Also
//! data folders that have lost their accounts.

use crate::client::Client;
use crate::closed::{Closed, PASSWORD, ask};
use crate::server::Server;
use base64::Engine as _;
use serde_json::{Value, json};
use std::process::Command;

/// Sends a head and the beginning of a body.
fn begin(client: &mut Client, head: &str, bearer: &str, body: &str, now: usize) {
    let credentials = match bearer {
        "" => String::new(),
        bearer => format!("Authorization: Bearer {bearer}\r\n"),
    };
    let length = body.len();
    let head = format!(
        "{head} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n{credentials}Content-Length: {length}\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    client.send(&body.as_bytes()[..now]).unwrap();
    // Admitted, and waiting for the rest.
    std::thread::sleep(std::time::Duration::from_millis(300));
}

fn disable(closed: &Closed, name: &str) {
    let path = format!("/v1/accounts/{name}");
    closed.ask(&closed.root, "PATCH", &path, &json!({"enabled": false})).expect(200);
}

#[test]
fn a_command_begun_before_its_sender_was_disabled_does_nothing() {
    let closed = Closed::start();
    let eve = json!({"name": "eve", "password": PASSWORD, "roles": ["admin"]}).to_string();
    let password = json!({"password": "something else"}).to_string();
    let event = json!({"events": [{"type": "T", "data": 1}]}).to_string();
    let key = json!({"role": "writer"}).to_string();
    for (n, (head, body, now)) in [
        ("POST /v1/accounts", &eve, 5),
        ("PUT /v1/accounts/root/password", &password, 5),
        ("POST /v1/append", &event, 5),
        ("POST /v1/keys", &key, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("mallory{n}");
        let mallory = closed.add(&name, &["admin"]);
        let mut client = closed.client();
        begin(&mut client, head, &mallory, body, now);
        disable(&closed, &name);
        client.send(&body.as_bytes()[now..]).unwrap();
        let refused = client.answer().unwrap();
        assert!(refused.header("www-authenticate").is_some(), "{head}");
        assert_eq!(refused.problem(401)["type"], "/problems/unauthenticated", "{head}");
    }
    closed.get(&closed.root, "/v1/accounts/eve").problem(404);
    assert!(closed.counts(&closed.root), "its password is what it was");
    assert_eq!(closed.get(&closed.root, "/v1/head").expect(200)["head"], 0);
    assert_eq!(closed.get(&closed.root, "/v1/keys").expect(200)["keys"], json!([]));
}

#[test]
fn a_request_admitted_while_there_were_no_accounts_creates_none() {
    let server = Server::start();
    let (eve, late) =
        (json!({"name": "eve", "roles": ["admin"]}).to_string(), json!({"events": []}));
    let (mut making, mut appending) = (server.client(), server.client());
    begin(&mut making, "POST /v1/accounts", "", &eve, 5);
    begin(&mut appending, "POST /v1/append", "", &late.to_string(), 5);
    let first = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
    server.client().post("/v1/accounts", &first).unwrap().expect(201);
    making.send(&eve.as_bytes()[5..]).unwrap();
    making.answer().unwrap().problem(401);
    appending.send(&late.to_string().as_bytes()[5..]).unwrap();
    appending.answer().unwrap().problem(401);
}

#[test]
fn a_bulk_accepts_no_more_lines_once_the_account_is_disabled() {
    let closed = Closed::start();
    let bob = closed.add("bob", &["writer"]);
    let mut client = closed.client();
    let head = format!(
        "POST /v1/append HTTP/1.1\r\nHost: t\r\nContent-Type: application/x-ndjson\r\nAuthorization: Bearer {bob}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    client.send(chunk("{\"type\":\"A\",\"data\":1}\n").as_bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    disable(&closed, "bob");
    client.send(chunk("{\"type\":\"B\",\"data\":1}\n").as_bytes()).unwrap();
    let problem = client.answer().unwrap().problem(401);
    assert_eq!(problem["durable_lines"], 1, "the line sent while bob was enabled");
    let types = closed.get(&closed.root, "/v1/types").expect(200);
    assert!(types.to_string().contains("\"A\"") && !types.to_string().contains("\"B\""), "{types}");
}

#[test]
fn a_foreign_page_rotates_nothing_with_the_password_a_browser_remembers() {
    let closed = Closed::start();
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("root:{PASSWORD}"));
    let basic = format!("Basic {pair}");
    let credentials = ("Authorization", basic.as_str());
    let (key, _) = closed.key(&closed.root, &json!({"role": "reader"}));
    let page = ("Origin", "https://evil.example");
    let mut client = closed.client();
    for path in ["/auth/rotate", "/auth/logout", &format!("/v1/keys/{key}/rotate")] {
        for simple in ["text/plain", "application/x-www-form-urlencoded"] {
            let headers = [credentials, page, ("Content-Type", simple)];
            client.call("POST", path, &headers, b"").unwrap().problem(403);
        }
        client.call("POST", path, &[credentials, page], b"").unwrap().problem(403);
    }
    let said = [credentials, page, ("Content-Type", "application/json")];
    client.call("POST", "/auth/rotate", &said, b"").unwrap().problem(403);
    // Its own pages may send preflighted requests; other clients are not affected.
    let own = ("Origin", "http://test");
    client.call("POST", "/auth/rotate", &[credentials, own], b"").unwrap().problem(415);
    let said = [credentials, own, ("Content-Type", "application/json")];
    client.call("POST", "/auth/rotate", &said, b"").unwrap().expect(200);
    client.call("POST", "/auth/rotate", &[credentials], b"").unwrap().expect(200);
}

#[test]
fn no_page_makes_itself_the_first_admin() {
    let server = Server::start();
    let page = ("Origin", "https://evil.example");
    let first = json!({"name": "eve", "password": PASSWORD, "roles": ["admin"]}).to_string();
    let event = json!({"events": [{"type": "T", "data": 1}]}).to_string();
    let mut client = server.client();
    for (path, body) in [
        ("/v1/accounts", &first),
        ("/v1/append", &event),
        ("/append", &event),
        ("/api/urls", &event),
        ("/e", &event),
    ] {
        // A body without a type, which a browser sends without a preflight; one that is not text;
        // and a request of a page whose own name was rebound to this machine.
        let typed = ("Content-Type", "application/json");
        for headers in [
            &[page][..],
            &[page, ("Content-Type", "text/plain")],
            &[page, ("Content-Type", "ä")],
            &[page, typed],
            &[("Origin", "null"), typed],
        ] {
            let refused = client.call("POST", path, headers, body.as_bytes()).unwrap();
            refused.problem(403);
            assert!(refused.text().contains("foreign-page"), "{path} {headers:?}");
        }
    }
    // Reads are refused too: they have no Origin, but a foreign Host.
    let browser = "GET /v1/events HTTP/1.1\r\nUser-Agent: x\r\nHost: ";
    for (host, status) in [("evil.example", 403), ("localhost:4000", 200), ("127.0.0.1", 200)] {
        client.send(format!("{browser}{host}\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(client.answer().unwrap().status, status, "{host}");
    }
    let me = client.get("/auth/me").unwrap().expect(200);
    assert_eq!(me["accounts"], false);
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 0);
}

/// Subscribes, and reads until the first heartbeat.
fn subscribe(closed: &Closed, bearer: &str) -> Client {
    let mut client = closed.client();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\nAuthorization: Bearer {bearer}\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.head().unwrap().0, 200);
    while client.line().unwrap().expect("a stream") != ": wellspring" {}
    client
}

fn rest(mut client: Client) -> String {
    let mut text = String::new();
    while let Ok(Some(line)) = client.line() {
        text.push_str(&line);
        text.push('\n');
        if line == "0" {
            break;
        }
    }
    text
}

/// Revokes what the token was admitted for.
type End<'a> = &'a dyn Fn(&str);

#[test]
fn a_subscription_ends_with_what_it_was_let_in_for() {
    let closed = Closed::start();
    let append = |root: &str, event_type: &str| {
        let event = json!({"events": [{"type": event_type, "data": 1}]});
        closed.ask(root, "POST", "/v1/append", &event).expect(200);
    };
    let ends: [(&str, End<'_>); 5] = [
        ("disabled", &|_| disable(&closed, "disabled")),
        ("lessened", &|_| {
            let none = json!({"roles": ["reader:other"]});
            closed.ask(&closed.root, "PATCH", "/v1/accounts/lessened", &none).expect(200);
        }),
        ("gone", &|bearer| {
            drop(closed.ask(bearer, "POST", "/auth/logout", &json!({})).expect(200))
        }),
        ("renewed", &|_| {
            let new = json!({"password": "something else"});
            let path = "/v1/accounts/renewed/password";
            assert_eq!(closed.ask(&closed.root, "PUT", path, &new).status, 204);
        }),
        ("rotated", &|_| {
            let root = crate::closed::token(&mut closed.client(), "root");
            for body in [json!({}), json!({"retire": true})] {
                ask(&mut closed.client(), &root, "POST", "/auth/rotate", &body);
            }
        }),
    ];
    for (name, end) in ends {
        let bearer = closed.add(name, &["reader"]);
        let client = subscribe(&closed, &bearer);
        end(&bearer);
        // The last of them has also revoked the token of `root`.
        append(&crate::closed::token(&mut closed.client(), "root"), name);
        let text = rest(client);
        assert!(!text.contains(&format!("\"type\":\"{name}\"")), "{name}: {text}");
        assert!(text.ends_with("0\n"), "{name}: an end, not a cut: {text:?}");
    }
}

#[test]
fn a_subscription_goes_on_while_others_come_and_go() {
    let closed = Closed::start();
    let bob = closed.add("bob", &["reader"]);
    let mut client = subscribe(&closed, &bob);
    closed.add("ann", &["writer"]);
    disable(&closed, "ann");
    let event = json!({"events": [{"type": "Told", "data": 1}]});
    closed.ask(&closed.root, "POST", "/v1/append", &event).expect(200);
    while !client.line().unwrap().expect("it goes on").contains("Told") {}
}

#[test]
fn a_folder_that_has_lost_its_accounts_does_not_start_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut closed = Closed::start_in(dir.path());
    assert!(closed.server.terminate().success());
    let system = dir.path().join("logs/system");
    std::fs::rename(&system, dir.path().join("aside")).unwrap();
    let start = || {
        let words = ["serve", "--listen", "127.0.0.1:0", "--data", dir.path().to_str().unwrap()];
        Command::new(env!("CARGO_BIN_EXE_wellspring")).args(words).output().unwrap()
    };
    for _ in 0..2 {
        let refused = start();
        assert_eq!(refused.status.code(), Some(1));
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains("there were accounts"), "{told}");
    }
    assert!(!system.exists(), "its place is free");
    std::fs::rename(dir.path().join("aside"), &system).unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let me = ask(&mut server.client(), &closed.root, "GET", "/auth/me", &Value::Null).expect(200);
    assert_eq!(me["account"], "root");
}
