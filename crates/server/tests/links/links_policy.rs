//! The target policy applies to every link that is followed, whoever appended its events; and only
//! the links face appends link events, unless a setting says otherwise.

use crate::client::Client;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const ACCEPTS: &str = "--link-accept-events";
/// The event types that the view of links reads.
const TYPES: [&str; 6] =
    ["LinksOpened", "LinkCreated", "LinkChanged", "LinkDeleted", "LinkFound", "LinkClicked"];

fn created(code: &str, url: &str) -> Value {
    json!({"type": "LinkCreated", "tags": [format!("link:{code}")],
        "data": {"url": url, "chosen": "alias"}})
}

fn append(server: &Server, events: &[Value]) {
    let mut client = server.client().patient();
    client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    // A list waits until everything is folded.
    client.get("/api/urls").unwrap().expect(200);
}

/// The result of following a link, on a connection of its own: in the lean loop, if enabled, and
/// after another request in the general stack.
fn follow(server: &Server, code: &str) -> [(u16, Value, Option<String>); 2] {
    [false, true].map(|general| {
        let mut client = server.client();
        if general {
            client.get("/health").unwrap().expect(200);
        }
        let answer = client.get(&format!("/{code}")).unwrap();
        let location = answer.header("location").map(str::to_owned);
        let problem =
            if answer.status == 302 { Value::Null } else { answer.problem(answer.status) };
        (answer.status, problem, location)
    })
}

fn is_refused(server: &Server, code: &str) {
    for (status, problem, location) in follow(server, code) {
        assert_eq!((status, location), (403, None), "{code}: {problem}");
        assert_eq!(problem["type"], "/problems/link-refused", "{code}");
        assert!(problem["error"].as_str().unwrap().contains(code), "{problem}");
    }
    let details = server.client().get(&format!("/api/urls/{code}")).unwrap().expect(200);
    assert_eq!(details["refused"], true, "{details}");
}

fn leads_to(server: &Server, code: &str, url: &str) {
    for (status, problem, location) in follow(server, code) {
        assert_eq!((status, location.as_deref()), (302, Some(url)), "{code}: {problem}");
    }
    let details = server.client().get(&format!("/api/urls/{code}")).unwrap().expect(200);
    assert_eq!(details.get("refused"), None, "{details}");
}

fn cli(args: &[&str], stdin: &str) -> Output {
    use std::io::Write as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Asserts that a request with these events is refused, naming the invalid field.
fn refuses(client: &mut Client, path: &str, media: &str, body: &str, field: &str) {
    let headers = [("Content-Type", media)];
    let problem = client.call("POST", path, &headers, body.as_bytes()).unwrap().problem(422);
    assert_eq!(problem["type"], "/problems/invalid", "{path}: {problem}");
    assert_eq!(problem["field"], field, "{path}: {problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(ACCEPTS) && detail.contains("/api/urls"), "{path}: {detail}");
}

#[test]
fn the_events_of_links_come_in_by_no_door_but_their_own() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        client.call("PUT", "/v1/logs/orders", &[], b"").unwrap().expect(201);
        let (json, ndjson) = ("application/json", "application/x-ndjson");
        for event_type in TYPES {
            let event = format!(r#"{{"type":"{event_type}","tags":["link:a1"],"data":{{}}}}"#);
            let fine = r#"{"type":"T","tags":[],"data":1}"#;
            let two = format!(r#"{{"events":[{fine},{event}]}}"#);
            let at = "events[1].type";
            refuses(&mut client, "/v1/append", json, &two, at);
            refuses(&mut client, "/v1/logs/main/append", json, &two, at);
            let dialect = two.replace("\"data\":{}", "\"data\":\"{}\"").replace(":1}", ":\"1\"}");
            refuses(&mut client, "/append", json, &dialect, at);
            let one = format!(r#"{{"events":[{}]}}"#, event.replace("\"type\"", "\"ty\\u0070e\""));
            refuses(&mut client, "/v1/append", json, &one, "events[0].type");
            refuses(&mut client, "/v1/append", ndjson, &format!("{event}\n"), "type");
            refuses(&mut client, "/v1/import", ndjson, &format!("{event}\n"), "type");
            for path in ["/e", "/v1/e", "/v1/logs/main/e", "/v1/logs/m%61in/e"] {
                for ack in ["", "&ack=durable"] {
                    let path = format!("{path}?type={event_type}&tag=link:a1{ack}");
                    refuses(&mut server.client(), &path, json, "{}", "type");
                }
            }
            // In other logs link events are ordinary events.
            let one = format!(r#"{{"events":[{event}]}}"#);
            let headers = [("Content-Type", json)];
            let other = "/v1/logs/orders/append";
            client.call("POST", other, &headers, one.as_bytes()).unwrap().expect(200);
            let other = format!("/v1/logs/orders/e?type={event_type}");
            assert_eq!(client.call("POST", &other, &headers, b"{}").unwrap().status, 202);
        }
        assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 0, "nothing came in");
        // Types that only share a prefix are not reserved.
        append(&server, &[json!({"type": "LinkCreatedBy", "tags": ["link:a1"], "data": 1})]);
        let url = server.url();
        let event = ["append", "--url", &url, "--type", "LinkDeleted", "--data", "{}"];
        let output = cli(&event, "");
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(ACCEPTS), "{said}");
    }
}

#[test]
fn a_forged_link_is_followed_only_where_links_may_lead() {
    for lean in BOTH_LOOPS {
        let deny = ["--link-deny-hosts", "evil.example,*.bad.example", ACCEPTS];
        let server = Server::start_with(&[&lean[..], &deny].concat());
        let own = format!("{}/good", server.url());
        append(
            &server,
            &[
                created("evil", "http://evil.example/"),
                created("below", "https://x.bad.example/p?q"),
                created("circle", &own),
                created("good", "http://good.example/"),
                created("moved", "http://good.example/"),
                json!({"type": "LinkChanged", "tags": ["link:moved"],
                    "data": {"url": "http://EVIL.example./"}}),
                created("back", "http://evil.example/"),
                json!({"type": "LinkChanged", "tags": ["link:back"],
                    "data": {"url": "http://good.example/again"}}),
                json!({"type": "LinkChanged", "tags": ["link:evil"], "data": {"tags": ["t"]}}),
            ],
        );
        let port = server.address.port();
        let tag = "/e?type=LinkCreated&tag=link:loop&ack=durable";
        let body = format!(r#"{{"url":"http://localhost:{port}/x","chosen":"alias"}}"#);
        assert_eq!(server.client().call("POST", tag, &[], body.as_bytes()).unwrap().status, 202);
        server.client().get("/api/urls").unwrap().expect(200);
        for code in ["evil", "below", "circle", "moved", "loop"] {
            is_refused(&server, code);
        }
        leads_to(&server, "good", "http://good.example/");
        leads_to(&server, "back", "http://good.example/again");
        let clicks = server.client().get("/api/urls/evil").unwrap().expect(200);
        assert_eq!(clicks["clicks"], 0, "nobody came there");
    }
}

#[test]
fn other_settings_are_asked_of_the_same_links_whatever_a_snapshot_holds() {
    let dir = tempfile::tempdir().unwrap();
    let start = |flags: &[&str]| Server::start_in(dir.path(), flags);
    let mut server = start(&[]);
    for (alias, host) in [("a", "a.example"), ("b", "b.example")] {
        create(&mut server.client(), &json!({"url": format!("http://{host}/"), "alias": alias}));
    }
    leads_to(&server, "a", "http://a.example/");
    assert!(server.terminate().success());
    drop(server);
    let mut server = start(&["--link-deny-hosts", "a.example"]);
    is_refused(&server, "a");
    leads_to(&server, "b", "http://b.example/");
    // Disabled and enabled again, the policy is the same.
    for enabled in [false, true] {
        let body = json!({"enabled": enabled}).to_string();
        let headers = [("Content-Type", "application/json")];
        let mut client = server.client();
        client.call("PATCH", "/api/urls/a", &headers, body.as_bytes()).unwrap().expect(200);
        if enabled {
            is_refused(&server, "a");
        } else {
            assert!(follow(&server, "a").iter().all(|(status, ..)| *status == 410));
        }
    }
    assert!(server.terminate().success());
    drop(server);
    let mut server = start(&["--link-allow-hosts", "a.example"]);
    leads_to(&server, "a", "http://a.example/");
    is_refused(&server, "b");
    assert!(server.terminate().success());
    drop(server);
    let server = start(&["--own-hosts", "b.example"]);
    leads_to(&server, "a", "http://a.example/");
    is_refused(&server, "b");
}

/// Exports the log main of one server and imports it into another.
fn restore(from: &Server, to: &Server, dir: &Path) -> Output {
    let file = dir.join("main.ndjson");
    let path = file.to_str().unwrap();
    let exported = cli(&["export", "--url", &from.url(), "-o", path], "");
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    cli(&["import", "--url", &to.url(), path], "")
}

#[test]
fn links_are_exported_and_restored_with_the_setting_and_without_it_the_refusal_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let from = Server::start();
    create(&mut from.client(), &json!({"url": "http://a.example/", "alias": "a"}));
    let automatic = code_of(&create(&mut from.client(), &json!({"url": "http://b.example/"})));
    from.client().get("/a").unwrap();
    let plain = Server::start();
    let refused = restore(&from, &plain, dir.path());
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(ACCEPTS) && said.contains("type"), "{said}");
    let to = Server::start_with(&[ACCEPTS]);
    let restored = restore(&from, &to, dir.path());
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    to.client().get("/api/urls").unwrap().expect(200);
    leads_to(&to, "a", "http://a.example/");
    leads_to(&to, &automatic, "http://b.example/");
    let next = code_of(&create(&mut to.client(), &json!({"url": "http://c.example/"})));
    let also = code_of(&create(&mut from.client(), &json!({"url": "http://c.example/"})));
    assert_eq!(next, also, "codes go on in the same order");
}

/// The candidate codes for a URL, as described in `docs/links.md`.
fn candidates(url: &str, count: usize) -> Vec<String> {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let first = Sha256::digest(url.as_bytes());
    let mut codes = Vec::new();
    for round in 0u64.. {
        let digest = match round {
            0 => first,
            _ => Sha256::new().chain_update(first).chain_update(round.to_be_bytes()).finalize(),
        };
        let mut number = u128::from_be_bytes(digest[..16].try_into().unwrap());
        let mut text = String::new();
        for _ in 0..10 {
            text.push(DIGITS[(number % 62) as usize].into());
            number /= 62;
        }
        codes.extend((7..=10).map(|chars| text[..chars].to_owned()));
        if codes.len() >= count {
            codes.truncate(count);
            return codes;
        }
    }
    unreachable!("there is a code for every count")
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    #[test]
    fn the_search_for_a_deterministic_code_ends_and_a_bulk_of_it_holds_up_nobody() {
        let url = "http://example.com/wanted";
        let server = Server::start_with(&[ACCEPTS]);
        let first = create(&mut server.client(), &json!({"url": url, "deterministic": true}));
        let codes = candidates(url, 20_000);
        assert_eq!(code_of(&first), codes[0], "the test knows what is asked for");
        server.client().call("DELETE", &format!("/api/urls/{}", codes[0]), &[], b"").unwrap();
        let others: Vec<Value> =
            codes[1..].iter().map(|code| created(code, "http://example.com/other")).collect();
        for some in others.chunks(500) {
            append(&server, some);
        }
        let mut client = server.client().patient();
        let body = json!({"url": url, "deterministic": true});
        let problem = client.post("/api/urls", &body).unwrap().problem(409);
        assert_eq!(problem["type"], "/problems/codes-taken", "{problem}");
        assert_eq!(problem["field"], "deterministic", "{problem}");
        let other = json!({"url": "http://example.com/other", "deterministic": true});
        create(&mut client, &other);
        // 500 lines whose link exists.
        let lines = format!("{other}\n").repeat(500);
        let headers = [("Content-Type", "application/x-ndjson")];
        let begun = Instant::now();
        let answer = client.call("POST", "/api/urls", &headers, lines.as_bytes()).unwrap();
        assert_eq!(answer.expect(200)["created"], 0);
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
}
