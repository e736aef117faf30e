//! Many links: listed, searched, created in bulk, created once in spite of retries, and under the
//! load that shorteners are tested with.

use crate::client::Client;
use crate::load_tester;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use std::collections::HashSet;

#[test]
fn links_are_listed_page_by_page_and_found() {
    let server = Server::start();
    let mut client = server.client();
    let mut made: Vec<String> = Vec::new();
    for n in 0..25 {
        let tags: &[&str] = if n % 3 == 0 { &["third", "all"] } else { &["all"] };
        let url = format!("http://example.com/Page{n}");
        made.push(code_of(&create(&mut client, &json!({"url": url, "tags": tags}))));
    }
    let newest: Vec<String> = made.iter().rev().cloned().collect();
    for limit in [1, 7, 25, 1000] {
        assert_eq!(codes(&mut client, &format!("limit={limit}&order=asc")), made, "{limit}");
        assert_eq!(codes(&mut client, &format!("limit={limit}&order=desc")), newest, "{limit}");
        assert_eq!(codes(&mut client, &format!("limit={limit}")), newest, "{limit}");
    }
    assert_eq!(pages(&mut client, "limit=7").len(), 4);
    let thirds: Vec<String> = made.iter().step_by(3).cloned().collect();
    assert_eq!(codes(&mut client, "tag=third&order=asc&limit=2"), thirds);
    assert_eq!(codes(&mut client, "search=PAGE24"), [made[24].clone()]);
    assert_eq!(codes(&mut client, "search=page1&order=asc").len(), 11, "1 and 10 to 19");
    assert_eq!(codes(&mut client, "search=nowhere"), [""; 0]);
    assert_eq!(codes(&mut client, &format!("search={}", made[3].to_lowercase())).len().min(1), 1);
    click(&mut client, &made[24], "http://example.com/Page24");
    let listed = listed(&mut client, "search=page24");
    assert_eq!(listed[0], details(&mut client, &made[24]), "a list shows what details show");
    assert_eq!(listed[0]["clicks"], 1);

    // Pages keep their place while links are created and deleted.
    let first = client.get("/api/urls?limit=5").unwrap().expect(200);
    let fresh = shorten(&mut client, "http://example.com/new");
    assert_eq!(delete(&mut client, &made[10]).status, 204);
    change(&mut client, &made[12], &json!({"tags": ["third"]}));
    let query = format!("limit=5&after={}", first["next"]);
    let rest = codes(&mut client, &query);
    let expected: Vec<String> = newest[5..].iter().filter(|c| **c != made[10]).cloned().collect();
    assert_eq!(rest, expected);
    assert_eq!(codes(&mut client, "limit=3")[0], fresh);
    assert!(!codes(&mut client, "limit=3").contains(&made[10]));
    let thirds = codes(&mut client, "tag=third&order=asc");
    assert_eq!(thirds.len(), 9);
    assert!(thirds.contains(&made[12]) && !codes(&mut client, "tag=all").contains(&made[12]));
}

/// Appends events of a type with these tags and data, a thousand at a time.
fn append(client: &mut Client, kind: &str, tags: &[String], data: &Value) {
    for tags in tags.chunks(1000) {
        let event = |tag| json!({"type": kind, "tags": [tag], "data": data});
        let events: Vec<Value> = tags.iter().map(event).collect();
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
}

#[test]
fn a_page_among_very_many_is_short_and_says_where_to_go_on() {
    let server = Server::start_with(&["--link-accept-events"]);
    let mut client = server.client().patient();
    let named =
        |from: usize, to: usize| (from..to).map(|n| format!("link:n{n}")).collect::<Vec<_>>();
    let needle = code_of(&create(&mut client, &json!({"url": "http://example.com/needle"})));
    let hay = json!({"url": "http://example.com/hay", "chosen": "alias"});
    append(&mut client, "LinkCreated", &named(0, 20_500), &hay);
    // One search covers 20,000 links.
    let first = client.get(&format!("/api/urls?search=needle&{PATIENTLY}")).unwrap().expect(200);
    assert_eq!(first["links"], json!([]));
    assert!(first["next"].is_u64(), "{first}");
    assert_eq!(codes(&mut client, "search=needle"), [&*needle]);
    assert_eq!(codes(&mut client, "search=needle&order=asc"), [&*needle]);
    // A page behind more deleted links than one step skips is still complete.
    append(&mut client, "LinkDeleted", &named(18_000, 20_500), &json!({}));
    let page = client.get(&format!("/api/urls?limit=2&{PATIENTLY}")).unwrap().expect(200);
    let found: Vec<String> = page["links"].as_array().unwrap().iter().map(code_of).collect();
    assert_eq!(found, ["n17999", "n17998"]);
    // Figures of a few clicks and of many are stored differently.
    let click = json!({"visitor": "0123456789abcdef", "agent": "Firefox"});
    for clicks in [500, 501, 1700] {
        let so_far = clicks_of(&mut client, &needle);
        let tags = vec![format!("clicked:{needle}"); clicks - so_far];
        append(&mut client, "LinkClicked", &tags, &click);
        assert_eq!(clicks_of(&mut client, &needle), clicks);
    }
}

fn clicks_of(client: &mut Client, code: &str) -> usize {
    let path = format!("/api/urls/{code}/stats?{PATIENTLY}");
    let stats = client.get(&path).unwrap().expect(200);
    let sum: u64 =
        stats["series"].as_array().unwrap().iter().map(|p| p["clicks"].as_u64().unwrap()).sum();
    assert_eq!(stats["clicks"], sum);
    sum as usize
}

#[test]
fn a_code_can_be_photographed() {
    let server = Server::start();
    let mut client = server.client();
    let codes =
        ["http://example.com/1", "http://example.com/2"].map(|url| shorten(&mut client, url));
    let pictures = codes.each_ref().map(|code| {
        let answer = client.get(&format!("/{code}.qr")).unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/svg+xml")));
        let svg = answer.text();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
        svg
    });
    assert_ne!(pictures[0], pictures[1]);
    assert_eq!(clicks(&mut client, &codes[0]), 0, "to look is no click");
    refused(&client.get("/nowhere.qr").unwrap(), NOT_FOUND);
}

/// Lines with links to this many pages, the one at `bad` invalid.
fn lines(count: usize, bad: Option<(usize, &str)>) -> String {
    let line = |n: usize| match bad {
        Some((at, line)) if at == n => format!("{line}\n"),
        _ => format!("{}\n", json!({"url": format!("http://example.com/bulk/{n}")})),
    };
    (1..=count).map(line).collect()
}

#[test]
fn a_bulk_makes_a_link_a_line_and_loses_nothing_before_a_bad_one() {
    let server = Server::start();
    let mut client = server.client().patient();
    let answer = bulk(&mut client, &lines(2500, None), &[]).expect(201);
    assert_eq!((&answer["lines"], &answer["created"]), (&json!(2500), &json!(2500)));
    let links = answer["links"].as_array().unwrap();
    let made: HashSet<String> = links.iter().map(code_of).collect();
    assert_eq!(made.len(), 2500, "no code twice");
    for (n, link) in (1..).zip(links) {
        assert_eq!(link["original_url"], format!("http://example.com/bulk/{n}"));
    }
    click(&mut client, &code_of(&links[2499]), "http://example.com/bulk/2500");

    // Whatever is wrong with a line: the lines before it take effect, the lines after it do not.
    let mut there = 2500;
    for (at, bad, status) in [
        (1, "{}", 400),
        (700, r#"{"url":"ftp://example.com"}"#, 400),
        (1300, "{\"url\":", 422),
        (260, r#"{"url":"http://example.com","colour":"red"}"#, 422),
        (3, r#"{"url":"http://example.com","alias":"health"}"#, 422),
    ] {
        let answer = bulk(&mut client, &lines(1400, Some((at, bad))), &[]);
        let problem = answer.problem(status);
        assert_eq!(problem["line"], at, "{problem}");
        assert_eq!(problem["durable_lines"], at - 1, "{problem}");
        assert_eq!(problem["links"].as_array().unwrap().len(), at - 1, "their codes are told");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("line {at}: ")), "{problem}");
        there += at - 1;
        assert_eq!(codes(&mut client, "limit=1000").len(), there, "{bad}");
    }
    let twice = "{\"url\":\"http://a.example\",\"alias\":\"twice\"}\n".repeat(2);
    let problem = refused(&bulk(&mut client, &twice, &[]), TAKEN);
    assert_eq!((&problem["line"], &problem["durable_lines"]), (&json!(2), &json!(1)));
    let same = "{\"url\":\"http://a.example\",\"deterministic\":true}\n".repeat(3);
    let answer = bulk(&mut client, &same, &[]).expect(201);
    assert_eq!((&answer["lines"], &answer["created"]), (&json!(3), &json!(1)), "{answer}");
}

#[test]
fn a_retry_with_its_key_makes_nothing_twice() {
    let server = Server::start();
    let mut client = server.client().patient();
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "once")];
    let body = json!({"url": "http://example.com/once"}).to_string();
    let mut post =
        |body: &str| client.call("POST", "/api/urls", &headers, body.as_bytes()).unwrap();
    let first = post(&body);
    first.expect(201);
    for _ in 0..3 {
        let again = post(&body);
        again.expect(201);
        assert_eq!(again.body, first.body);
    }
    let other = post(&json!({"url": "http://example.com/another"}).to_string());
    refused(&other, (422, "idempotency-key-reused"));
    assert_eq!(codes(&mut client, "").len(), 1);

    let key = [("Idempotency-Key", "many")];
    let first = bulk(&mut client, &lines(1100, None), &key).expect(201);
    let again = bulk(&mut client, &lines(1100, None), &key).expect(201);
    assert_eq!(first["links"], again["links"]);
    assert_eq!(codes(&mut client, "limit=1000").len(), 1101);
}

#[test]
fn the_shorteners_own_load_scenario_fails_nowhere() {
    if load_tester::bench().is_none() {
        return;
    }
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/links.toml");
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let dir = tempfile::tempdir().unwrap();
        let url = server.url();
        let flags = ["scenario", scenario, "--url", &url, "--users", "20", "-z", "2s"];
        let output = load_tester::bench()
            .expect("looked for before")
            .args(flags)
            .args(["--no-headroom", "--json", "r.json"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result = std::fs::read(dir.path().join("r.json")).unwrap();
        let result: Value = serde_json::from_slice(&result).unwrap();
        let endpoints = result["steps"][0]["runs"][0]["endpoints"].as_array().unwrap();
        assert_eq!(endpoints.len(), 4, "health, create, redirect, details");
        for endpoint in endpoints {
            let counters = &endpoint["counters"];
            assert_eq!(counters["sent"], counters["successes"], "{endpoint}");
            assert!(counters["sent"].as_u64() > Some(10), "{counters}");
        }
    }
}
