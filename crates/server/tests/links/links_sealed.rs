//! Links of a data subject: they redirect and are read until the data subject is erased; then the
//! code, the clicks and everything clear stay, also after a restart, with a snapshot or without.

use crate::client::{Answer, Client};
use crate::closed::Closed;
use crate::server::{BOTH_LOOPS, Server};
use crate::shortener::*;
use serde_json::{Value, json};
use std::fs;

const ADA: &str = "student:8f14e45f";
const BOB: &str = "student:b0b";
const ERASED: Reason = (410, "link-erased");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Sends a body for a data subject.
fn send(client: &mut Client, method: &str, path: &str, subject: &str, body: &Value) -> Answer {
    let headers = [JSON, ("Wellspring-Subject", subject)];
    client.call(method, path, &headers, body.to_string().as_bytes()).unwrap()
}

fn erase(client: &mut Client, more: &str) -> Value {
    let path = format!("/v1/subjects/{ADA}?confirm={ADA}{more}");
    client.call("DELETE", &path, &[], b"").unwrap().expect(202)
}

/// Asserts that the visits of a link are refused on both stacks.
fn is_erased(server: &Server, code: &str) {
    for general in [false, true] {
        let mut client = server.client();
        if general {
            client.get("/health").unwrap().expect(200);
        }
        refused(&follow(&mut client, code).unwrap(), ERASED);
        assert_eq!(head_of(&mut client, &format!("/{code}")).unwrap().status, 410);
    }
}

#[test]
fn a_sealed_link_redirects_until_its_subject_is_erased() {
    for flags in BOTH_LOOPS {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let server = Server::start_in(&data, &flags);
        let mut client = server.client();
        let body = json!({"url": "http://a.example/ü?q=1", "alias": "ada", "tags": ["t"]});
        let made = send(&mut client, "POST", "/api/urls", ADA, &body).expect(201);
        assert_eq!(
            (&made["original_url"], &made["tags"], &made["subject"]),
            (&body["url"], &body["tags"], &json!(ADA))
        );
        click(&mut client, "ada", "http://a.example/%C3%BC?q=1");
        click(&mut server.client(), "ada", "http://a.example/%C3%BC?q=1");
        leads_to(&head_of(&mut client, "/ada").unwrap(), "http://a.example/%C3%BC?q=1");
        let once = json!({"url": "http://a.example/once", "alias": "once", "max_clicks": 1});
        send(&mut client, "POST", "/api/urls", ADA, &once).expect(201);
        click(&mut client, "once", "http://a.example/once");
        refused(&follow(&mut client, "once").unwrap(), EXPIRED);
        let told = details(&mut client, "ada");
        assert_eq!((&told["original_url"], &told["clicks"]), (&body["url"], &json!(2)));
        assert_eq!((&told["tags"], &told["subject"]), (&body["tags"], &json!(ADA)));
        // A clear link becomes one of a data subject, with the tags that it has.
        create(&mut client, &json!({"url": "http://a.example/was", "alias": "was", "tags": ["w"]}));
        let now = json!({"url": "http://a.example/now", "enabled": true});
        let told = send(&mut client, "PATCH", "/api/urls/was", ADA, &now).expect(200);
        assert_eq!((&told["original_url"], &told["tags"]), (&now["url"], &json!(["w"])));
        let again = json!({"url": "http://a.example/again"});
        let told = send(&mut client, "PATCH", "/api/urls/was", ADA, &again).expect(200);
        assert_eq!((&told["original_url"], &told["tags"]), (&again["url"], &json!(["w"])));
        send(
            &mut client,
            "POST",
            "/api/urls",
            BOB,
            &json!({"url": "http://b.example", "alias": "bob"}),
        )
        .expect(201);
        assert_eq!(erase(&mut client, "")["state"], "complete");
        let check = |server: &Server| {
            let mut client = server.client();
            for code in ["ada", "was"] {
                is_erased(server, code);
                let told = details(&mut client, code);
                assert_eq!((&told["original_url"], &told["erased"]), (&Value::Null, &json!(true)));
                assert_eq!((&told["tags"], &told["subject"]), (&json!([]), &Value::Null));
            }
            let stats = client.get("/api/urls/ada/stats").unwrap().expect(200);
            assert_eq!(
                (&stats["clicks"], &details(&mut client, "ada")["clicks"]),
                (&json!(2), &json!(2))
            );
            assert_eq!(client.get("/ada.qr").unwrap().status, 200);
            refused(&client.post("/api/urls", &body).unwrap(), TAKEN);
            let late = json!({"url": "http://a.example/"});
            let late = send(&mut client, "POST", "/api/urls", ADA, &late).problem(409);
            assert_eq!(late["type"], "/problems/subject-erased");
            assert_eq!(details(&mut client, "bob")["original_url"], "http://b.example");
            pages(&mut client, "limit=3").concat()
        };
        let before = check(&server);
        assert!(!before.contains("a.example") && before.contains("b.example"), "{before}");
        // With a snapshot of the view, and folded from the beginning. So many events justify one.
        let events = vec![json!({"type": "X", "data": 1}); 1_000];
        for _ in 0..11 {
            client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
        }
        details(&mut client, "ada");
        drop(client);
        let mut server = server;
        server.terminate();
        drop(server);
        let views = data.join("logs/main/views");
        let snapshot = fs::read(views.join("links.snapshot")).expect("a snapshot");
        assert!(!String::from_utf8_lossy(&snapshot).contains("a.example"));
        let restored = Server::start_in(&data, &flags);
        assert_eq!(check(&restored), before);
        restored.kill();
        fs::remove_dir_all(views).unwrap();
        let refolded = Server::start_in(&data, &flags);
        assert_eq!(check(&refolded), before);
        // Another target may take its place.
        let mut client = refolded.client();
        change(&mut client, "ada", &json!({"url": "http://c.example/"}));
        click(&mut client, "ada", "http://c.example/");
    }
}

#[test]
fn what_cannot_be_sealed_of_a_link_is_refused() {
    let server = Server::start();
    let mut client = server.client();
    let of = |answer: Answer| answer.problem(422)["field"].clone();
    let body = json!({"url": "http://a.example/", "deterministic": true});
    assert_eq!(of(send(&mut client, "POST", "/api/urls", ADA, &body)), "deterministic");
    let body = json!({"url": "http://a.example/", "alias": "a"});
    let no_name = send(&mut client, "POST", "/api/urls", "ada@example.com", &body);
    assert_eq!(of(no_name), "Wellspring-Subject");
    for url in ["sealed:", "sealed:1"] {
        refused(&client.post("/api/urls", &json!({"url": url})).unwrap(), (400, "bad-url"));
    }
    send(&mut client, "POST", "/api/urls", ADA, &body).expect(201);
    let no_url = send(&mut client, "PATCH", "/api/urls/a", ADA, &json!({"tags": ["t"]}));
    assert_eq!(of(no_url), "url");
    assert_eq!(of(send_change(&mut client, "a", &json!({"tags": ["t"]}))), "tags");
    let told = change(&mut client, "a", &json!({"enabled": false, "max_clicks": 3}));
    assert_eq!((&told["original_url"], &told["max_clicks"]), (&body["url"], &json!(3)));
}

#[test]
fn a_retry_finds_its_sealed_links() {
    let server = Server::start();
    let mut client = server.client();
    let (subject, key) = (("Wellspring-Subject", ADA), ("Idempotency-Key", "once"));
    let one = |client: &mut Client, url: &str| {
        let body = json!({"url": url}).to_string();
        client.call("POST", "/api/urls", &[JSON, subject, key], body.as_bytes()).unwrap()
    };
    let made = one(&mut client, "http://a.example/1").expect(201);
    assert_eq!(one(&mut client, "http://a.example/1").expect(201), made);
    let other = one(&mut client, "http://a.example/2").problem(422);
    assert_eq!(other["type"], "/problems/idempotency-key-reused");
    let line = |n| json!({"url": format!("http://a.example/{n}"), "tags": ["b"]}).to_string();
    let lines: Vec<String> = (0..300).map(line).collect();
    let lines = lines.join("\n");
    let many = [subject, ("Idempotency-Key", "many")];
    let made = bulk(&mut client, &lines, &many).expect(201);
    assert_eq!(made["links"][299]["original_url"], "http://a.example/299");
    assert_eq!(bulk(&mut client, &lines, &many).expect(201)["links"], made["links"]);
    let deterministic = json!({"url": "http://a.example/", "deterministic": true}).to_string();
    let problem = bulk(&mut client, &deterministic, &[subject]).problem(422);
    assert_eq!((&problem["line"], &problem["field"]), (&json!(1), &json!("deterministic")));
    assert_eq!(codes(&mut client, "limit=1000").len(), 301);
    erase(&mut client, "");
    let late = one(&mut client, "http://a.example/1").problem(409);
    assert_eq!(late["type"], "/problems/subject-erased");
    assert_eq!(codes(&mut client, "limit=1000").len(), 301);
}

#[test]
fn a_reader_sees_that_a_link_is_sealed_and_an_erasure_that_waits_withholds_it() {
    let closed = Closed::start();
    let (reader, writer) = (closed.add("ann", &["reader"]), closed.add("bea", &["writer"]));
    let authorization = format!("Bearer {writer}");
    let headers = [JSON, ("Wellspring-Subject", ADA), ("Authorization", authorization.as_str())];
    let body = json!({"url": "http://a.example/secret", "alias": "a", "tags": ["secret"]});
    let mut client = closed.client();
    client.call("POST", "/api/urls", &headers, body.to_string().as_bytes()).unwrap().expect(201);
    for query in ["", "?tag=secret", "?search=secret"] {
        let told = closed.get(&reader, &format!("/api/urls{query}")).expect(200);
        assert!(!told.to_string().contains("secret"), "{told}");
    }
    let told = closed.get(&reader, "/api/urls/a").expect(200);
    assert_eq!((&told["original_url"], &told["withheld"]), (&Value::Null, &json!(true)));
    let told = closed.get(&writer, "/api/urls").expect(200);
    assert_eq!(told["links"][0]["original_url"], body["url"]);
    // Following it is public.
    click(&mut closed.client(), "a", "http://a.example/secret");
    let path = format!("/v1/subjects/{ADA}?confirm={ADA}&grace_s=3600");
    let waiting = closed.ask(&closed.root, "DELETE", &path, &Value::Null).expect(202);
    is_erased(&closed.server, "a");
    assert_eq!(closed.get(&writer, "/api/urls/a").expect(200)["original_url"], Value::Null);
    let path = format!("/v1/erasures/{}/cancel", waiting["erasure"].as_str().unwrap());
    closed.ask(&closed.root, "POST", &path, &Value::Null).expect(200);
    click(&mut closed.client(), "a", "http://a.example/secret");
}

#[test]
fn restored_links_are_sealed_again_and_judged_when_they_are_followed() {
    let server = Server::start_with(&["--link-accept-events", "--link-deny-hosts", "bad.example"]);
    let mut client = server.client();
    let event = |code: &str, url: &str, target: Value| {
        json!({"type": "LinkCreated", "tags": [format!("link:{code}"), ADA],
            "data": {"url": url, "chosen": "alias"}, "personal": {ADA: target}})
    };
    let target = |url: &str| json!({"url": url, "tags": []});
    let events = [
        event("good", "sealed:", target("http://a.example/")),
        event("bad", "sealed:", target("http://bad.example/")),
        event("evil", "sealed:", target("javascript:x")),
        event("gone", "sealed:", Value::Null),
        event("forged", "sealed:1", target("http://a.example/")),
    ];
    client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    details(&mut client, "good");
    click(&mut client, "good", "http://a.example/");
    for code in ["bad", "evil"] {
        refused(&follow(&mut client, code).unwrap(), (403, "link-refused"));
        assert_eq!(details(&mut client, code)["refused"], true);
    }
    is_erased(&server, "gone");
    refused(&follow(&mut client, "forged").unwrap(), NOT_FOUND);
}
