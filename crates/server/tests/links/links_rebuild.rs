//! A view's snapshot is only a shortcut: with it, without it, with an old or a damaged one, every
//! answer about links is byte for byte the same.

use crate::client::Client;
use crate::links_load::{Connections, KnownLinks, use_until_cut};
use crate::numbered::Coins;
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FLAGS: [&str; 2] = ["--trusted-proxies", "127.0.0.1"];
/// More events than justify a snapshot when the server stops.
const LINKS: usize = 11_000;

/// The snapshot file below a folder, if there is one.
fn snapshot(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter_map(|path| {
            if path.is_dir() {
                snapshot(&path)
            } else {
                path.ends_with("links.snapshot").then_some(path)
            }
        })
        .next()
}

/// Position of the snapshot from which the view of links started, or 0.
fn began_at(client: &mut Client) -> u64 {
    let views = client.get("/v1/views").unwrap().expect(200);
    let views = views["views"].as_array().unwrap();
    let links = views.iter().find(|view| view["view"] == "links").expect("the view of links");
    assert_eq!(links["state"], "live", "{links}");
    links["snapshot"].as_u64().unwrap()
}

/// A random life of many links: created in every way, changed, deleted, followed by all kinds of
/// visitors.
fn live_a_life(server: &Server, coins: &mut Coins) {
    let mut client = server.client().patient();
    let line = |n: usize| {
        let mut link = json!({"url": format!("http://example.com/{}", n / 2)});
        match n % 10 {
            0 => link["alias"] = Value::from(format!("alias{n}")),
            1 => link["deterministic"] = Value::from(true),
            2 => link["tags"] = json!([format!("tag{}", n % 7), "even"]),
            3 => link["expires_in_s"] = Value::from(100_000 + n),
            _ => {}
        }
        format!("{link}\n")
    };
    let lines: String = (0..LINKS).map(line).collect();
    let made = bulk(&mut client, &lines, &[]).expect(201);
    let codes: Vec<String> = made["links"].as_array().unwrap().iter().map(code_of).collect();
    for n in 0..3_000 {
        // A few are followed often, and the first two are not changed.
        let most = 1 + coins.below(if n % 2 == 0 { 5 } else { codes.len() as u64 });
        let at = coins.below(most) as usize;
        let (code, what) = (&codes[at], if at < 2 { u64::MAX } else { coins.below(30) });
        match what {
            0 => drop(delete(&mut client, code)),
            1 => drop(send_change(&mut client, code, &json!({"enabled": n % 4 < 2}))),
            2 => drop(send_change(&mut client, code, &json!({"url": format!("http://other/{n}")}))),
            3 => drop(send_change(&mut client, code, &json!({"tags": [format!("new{}", n % 5)]}))),
            4 => drop(send_change(&mut client, code, &json!({"expires_at": "2001-01-01"}))),
            5 => drop(send_change(&mut client, code, &json!({"expires_at": null}))),
            _ => visit(&mut client, code, coins),
        }
    }
}

/// Follows a link as one of some hundred visitors.
fn visit(client: &mut Client, code: &str, coins: &mut Coins) {
    let agents = ["curl/8.5.0", "Mozilla/5.0 (compatible; Googlebot/2.1)", "Firefox/128.0", ""];
    let address = format!("10.0.{}.{}", coins.below(2), coins.below(200));
    let referrer = format!("http://site{}.example/", coins.below(90));
    let agent = agents[coins.below(4) as usize];
    let mut headers = vec![("X-Forwarded-For", &*address), ("User-Agent", agent)];
    if coins.below(3) > 0 {
        headers.push(("Referer", &referrer));
    }
    client.call("GET", &format!("/{code}"), &headers, b"").unwrap();
}

/// Every answer about every link, byte for byte, after the status.
fn answers(client: &mut Client) -> Vec<String> {
    let mut answers = pages(client, "limit=1000&order=asc");
    answers.extend(pages(client, "limit=999&tag=even&search=EXAMPLE"));
    // Deleted links exist only in the log.
    let headers = [("Accept", "application/x-ndjson")];
    let events = client.call("GET", "/v1/events?type=LinkCreated", &headers, b"").unwrap();
    assert_eq!(events.status, 200);
    let mut most = 0;
    for (n, event) in events.text().lines().enumerate() {
        let event: Value = serde_json::from_str(event).unwrap();
        let tags = event["tags"].as_array().unwrap().iter();
        let code = tags.filter_map(|tag| tag.as_str().unwrap().strip_prefix("link:")).next();
        let code = code.expect("a link's tag");
        let mut ask = |of: &str| {
            let answer = client.get(&format!("/api/urls/{code}{of}{PATIENTLY}")).unwrap();
            let text = format!("{code} {} {}", answer.status, answer.text());
            answers.push(text);
            answer.json()["clicks"].as_u64().unwrap_or(0)
        };
        let clicks = ask("?");
        most = most.max(clicks);
        if clicks > 0 || n % 50 == 0 {
            ask("/stats?bucket=hour&");
            ask("/stats?bucket=day&");
        }
        if n % 20 == 0 {
            let led = head_of(client, &format!("/{code}")).unwrap();
            answers.push(format!("{code} {} {:?}", led.status, led.header("location")));
        }
    }
    assert!(answers.len() > LINKS && most > 100, "{} answers, {most} clicks", answers.len());
    answers
}

#[track_caller]
fn the_same(are: &[String], were: &[String]) {
    for (is, was) in are.iter().zip(were) {
        assert_eq!(is, was);
    }
    assert_eq!(are.len(), were.len());
}

#[test]
fn a_view_answers_byte_for_byte_the_same_with_its_snapshot_and_without() {
    let dir = tempfile::tempdir().unwrap();
    let start = || Server::start_in(dir.path(), &FLAGS);
    let mut server = start();
    live_a_life(&server, &mut Coins::new(5));
    let live = answers(&mut server.client().patient());
    assert!(server.terminate().success());
    let file = snapshot(dir.path()).expect("a snapshot is written when the server stops");

    let mut server = start();
    let mut client = server.client().patient();
    let at = began_at(&mut client);
    assert!(at > LINKS as u64, "the snapshot is used: {at}");
    the_same(&answers(&mut client), &live);
    assert!(server.terminate().success());

    std::fs::remove_file(&file).unwrap();
    let mut server = start();
    let mut client = server.client().patient();
    assert_eq!(began_at(&mut client), 0);
    the_same(&answers(&mut client), &live);
    assert!(server.terminate().success());

    // A rewritten snapshot is as good as the first; a damaged one is detected and not used.
    let whole = std::fs::read(&file).expect("it is written again");
    let mut coins = Coins::new(7);
    let damages = (0..4).map(|n| {
        let mut bytes = whole.clone();
        let at = coins.below(bytes.len() as u64) as usize;
        match n {
            0 => bytes.truncate(at),
            1 => bytes.push(0),
            _ => bytes[at] ^= 1 << (at % 8),
        }
        bytes
    });
    for damaged in damages {
        std::fs::write(&file, &damaged).unwrap();
        let server = start();
        let mut client = server.client().patient();
        assert_eq!(began_at(&mut client), 0, "a damaged snapshot is not used");
        let pages = pages(&mut client, "limit=1000&order=asc");
        the_same(&pages, &live[..pages.len()]);
        server.kill();
    }
}

#[test]
fn an_old_snapshot_and_what_came_after_it_are_the_whole_even_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let start = || Server::start_in(dir.path(), &FLAGS);
    let mut server = start();
    live_a_life(&server, &mut Coins::new(11));
    assert!(server.terminate().success());
    let file = snapshot(dir.path()).expect("a snapshot is written when the server stops");
    for cycle in 0..3 {
        let server = start();
        let (address, known) = (server.address, KnownLinks::default());
        std::thread::scope(|scope| {
            for user in 0..3 {
                let (known, name) = (&known, format!("c{cycle}u{user}"));
                scope.spawn(move || use_until_cut(address, known, &name, Connections::Two, user));
            }
            std::thread::sleep(Duration::from_millis(150));
            server.kill();
        });
    }
    let server = start();
    let mut client = server.client().patient();
    let (at, head) = (began_at(&mut client), client.get("/v1/head").unwrap().expect(200));
    assert!(at > LINKS as u64 && at < head["head"].as_u64().unwrap(), "an old one: {at}, {head}");
    let with = answers(&mut client);
    server.kill();
    std::fs::remove_file(&file).unwrap();
    let server = start();
    let mut client = server.client().patient();
    assert_eq!(began_at(&mut client), 0);
    the_same(&answers(&mut client), &with);
}
