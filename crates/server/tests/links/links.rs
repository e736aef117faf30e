//! The life of links over HTTP, word for word: created, followed, counted, changed, listed,
//! deleted; in both HTTP/1.1 stacks and over HTTP/2.

use crate::client::Client;
use crate::client::said;
use crate::done::StopSignal;
use crate::load_tester;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wellspring_patience::Patience;

/// Whether a text matches this pattern, in which `9` stands for any digit.
fn looks_like(text: &str, pattern: &str) -> bool {
    let same = |(is, like): (u8, u8)| if like == b'9' { is.is_ascii_digit() } else { is == like };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(same)
}

#[test]
fn a_link_is_made_followed_counted_changed_and_deleted() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        let url = "http://example.com/test";
        let answer = client.post("/api/urls", &json!({"url": url})).unwrap();
        let made = answer.expect(201);
        let (code, at) = (code_of(&made), made["created_at"].as_str().unwrap().to_owned());
        assert!(looks_like(&at, "9999-99-99T99:99:99.999999"), "{at}");
        assert!(code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphanumeric()), "{code}");
        let link = format!(
            r#""created_at":"{at}","original_url":"{url}","short_code":"{code}","short_url":"http://test/{code}""#
        );
        assert_eq!(answer.text(), format!("{{{link}}}"));
        assert_eq!(answer.header("location"), Some(&*format!("/api/urls/{code}")));
        assert_eq!(answer.header("content-type"), Some("application/json"));

        click(&mut client, &code, url);
        let answer = client.get(&format!("/api/urls/{code}")).unwrap();
        answer.expect(200);
        let rest = r#""enabled":true,"expires_at":null,"tags":[],"visitors":1,"bots":0"#;
        assert_eq!(answer.text(), format!("{{\"clicks\":1,{link},{rest}}}"));

        let off = change(&mut client, &code, &json!({"enabled": false}));
        assert_eq!(off["enabled"], false);
        refused(&follow(&mut client, &code).unwrap(), DISABLED);
        change(&mut client, &code, &json!({"enabled": true}));
        click(&mut client, &code, url);

        let elsewhere = "https://example.org/a?b=c&d=%C3%A9#f";
        let changed = change(&mut client, &code, &json!({"url": elsewhere, "tags": ["x", "y"]}));
        assert_eq!(changed["original_url"], elsewhere);
        assert_eq!(changed["tags"], json!(["x", "y"]));
        assert_eq!(changed["created_at"], at);
        click(&mut client, &code, elsewhere);
        assert_eq!(clicks(&mut client, &code), 3, "a link that leads nowhere is not clicked");

        let gone = delete(&mut client, &code);
        assert_eq!((gone.status, gone.body.len()), (204, 0));
        for answer in [
            follow(&mut client, &code).unwrap(),
            client.get(&format!("/api/urls/{code}")).unwrap(),
            client.get(&format!("/api/urls/{code}/stats")).unwrap(),
            client.get(&format!("/{code}.qr")).unwrap(),
            send_change(&mut client, &code, &json!({"enabled": true})),
        ] {
            refused(&answer, DELETED);
        }
        let again = client.post("/api/urls", &json!({"url": url, "alias": code})).unwrap();
        refused(&again, TAKEN);
        assert_eq!(codes(&mut client, ""), [""; 0]);
    }
}

#[test]
fn aliases_are_taken_as_given_and_deterministic_links_are_made_once() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        for alias in ["a", "Z9", "promo", "Promo", "0123456789"] {
            let url = format!("http://example.com/{alias}");
            let made = create(&mut client, &json!({"url": url, "alias": alias}));
            assert_eq!(code_of(&made), alias);
            let again = client.post("/api/urls", &json!({"url": url, "alias": alias})).unwrap();
            assert_eq!(refused(&again, TAKEN)["field"], "alias");
        }
        for alias in ["a", "Z9", "promo", "Promo", "0123456789"] {
            click(&mut client, alias, &format!("http://example.com/{alias}"));
        }
        let same = json!({"url": "http://example.com/same", "deterministic": true});
        let first = client.post("/api/urls", &same).unwrap();
        first.expect(201);
        let second = client.post("/api/urls", &same).unwrap();
        second.expect(200);
        assert_eq!(first.body, second.body);
        assert_eq!(first.header("location"), second.header("location"));
        let other =
            create(&mut client, &json!({"url": "http://example.com/o", "deterministic": true}));
        assert_ne!(code_of(&other), code_of(&first.json()));
        // The same on another server: the code depends only on the URL.
        let elsewhere = create(&mut Server::start_with(&lean).client(), &same);
        assert_eq!(code_of(&elsewhere), code_of(&first.json()));
        // The code of a deleted link is never reused.
        assert_eq!(delete(&mut client, &code_of(&first.json())).status, 204);
        let anew = create(&mut client, &same);
        assert_ne!(code_of(&anew), code_of(&first.json()));
        click(&mut client, &code_of(&anew), "http://example.com/same");
    }
}

/// Waits until a code is refused for this reason.
fn becomes(client: &mut Client, code: &str, reason: Reason) {
    let mut patience = Patience::new();
    loop {
        let answer = follow(client, code).unwrap();
        if answer.status != 302 {
            refused(&answer, reason);
            return;
        }
        patience.pause(format_args!("{code} still leads somewhere"));
    }
}

#[test]
fn links_end_when_they_are_to() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let (mut client, mut other) = (server.client(), server.client());
        let url = "http://example.com/soon";
        let began = Instant::now();
        let soon = create(&mut client, &json!({"url": url, "expires_in_s": 1}));
        let code = code_of(&soon);
        assert!(looks_like(soon["expires_at"].as_str().unwrap(), "9999-99-99T99:99:99.999999Z"));
        click(&mut other, &code, url);
        becomes(&mut other, &code, EXPIRED);
        assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
        // It still exists, and its expiry can be changed.
        assert_eq!(details(&mut client, &code)["enabled"], true);
        let extended =
            change(&mut client, &code, &json!({"expires_at": "2999-01-31T12:00:00+01:00"}));
        assert_eq!(extended["expires_at"], "2999-01-31T11:00:00.000000Z");
        click(&mut other, &code, url);
        change(&mut client, &code, &json!({"expires_at": "2001-01-01T00:00:00Z"}));
        becomes(&mut other, &code, EXPIRED);
        let endless = change(&mut client, &code, &json!({"expires_at": null}));
        assert_eq!(endless["expires_at"], Value::Null);
        click(&mut other, &code, url);
        let body = json!({"url": url, "expires_at": "2999-12-31T23:59:59.5Z", "tags": ["t"]});
        let made = create(&mut client, &body);
        assert_eq!(made["expires_at"], "2999-12-31T23:59:59.500000Z");
        assert_eq!(made["tags"], json!(["t"]));
    }
}

#[test]
fn a_look_at_a_link_shows_every_click_answered_before() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let url = "http://example.com/busy";
        let code = shorten(&mut server.client(), url);
        let (sent, answered, done) = (AtomicU64::new(0), AtomicU64::new(0), StopSignal::default());
        let looks: u64 = std::thread::scope(|scope| {
            let (server, code, sent, answered, done) = (&server, &code, &sent, &answered, &done);
            let enough = done.at_the_end();
            for _ in 0..3 {
                scope.spawn(move || {
                    let mut client = server.client();
                    // No more than any log can store while it is being read: none may be shed.
                    for _ in 0..10_000 {
                        if done.is_set() {
                            break;
                        }
                        sent.fetch_add(1, SeqCst);
                        click(&mut client, code, url);
                        answered.fetch_add(1, SeqCst);
                    }
                });
            }
            let look = |path: String| {
                let (mut client, mut looks) = (server.client().patient(), 0);
                let began = Instant::now();
                while looks < 5 || began.elapsed() < Duration::from_millis(500) {
                    let before = answered.load(SeqCst);
                    let answer = client.get(&path).unwrap();
                    let seen = answer.expect(200)["clicks"].as_u64().unwrap();
                    let after = sent.load(SeqCst);
                    assert!(before <= seen && seen <= after, "{before} <= {seen} <= {after}");
                    looks += 1;
                }
                looks
            };
            let lookers = ["", "/stats"]
                .map(|of| format!("/api/urls/{code}{of}?{PATIENTLY}"))
                .map(|path| scope.spawn(move || look(path)));
            let looks = lookers.into_iter().map(|looker| looker.join().unwrap()).sum();
            drop(enough);
            looks
        });
        let total = answered.load(SeqCst);
        // On a busy machine folding takes longer than the usual wait.
        let path = format!("/api/urls/{code}?{PATIENTLY}");
        let seen = server.client().patient().get(&path).unwrap().expect(200);
        assert_eq!(seen["clicks"], total);
        assert!(looks >= 10 && total > 100, "{looks} looks, {total} clicks");
        let cached = format!("/api/urls/{code}?consistency=cached");
        assert!(
            server.client().get(&cached).unwrap().expect(200)["clicks"].as_u64() <= Some(total)
        );
    }
}

#[test]
fn to_ask_with_head_is_no_click_and_to_ask_by_http_2_is_one() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        create(&mut client, &json!({"url": "http://example.com/h", "alias": "asked"}));
        for _ in 0..5 {
            leads_to(&head_of(&mut server.client(), "/asked").unwrap(), "http://example.com/h");
        }
        assert_eq!(head_of(&mut server.client(), "/nowhere").unwrap().status, 404);
        assert_eq!(clicks(&mut client, "asked"), 0);
        let url = format!("{}/asked", server.url());
        let flags = ["--h2c", "-n", "50", "-c", "2", "--expect", "302", "--no-headroom", &url];
        let Some(mut bench) = load_tester::bench() else { continue };
        let output = bench.args(flags).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(clicks(&mut client, "asked"), 50);
    }
}

#[test]
fn both_ways_to_serve_a_redirect_say_the_same() {
    let flags = ["--link-referrer-policy", "origin"];
    let servers = BOTH_LOOPS.map(|lean| Server::start_with(&[&flags[..], &lean].concat()));
    let [lean, general] = servers.each_ref().map(|server| {
        let mut client = server.client();
        let make = |client: &mut Client, alias: &str| {
            create(client, &json!({"url": "http://example.com/x?y=%20z", "alias": alias}))
        };
        for alias in ["on", "off", "gone", "ended"] {
            make(&mut client, alias);
        }
        change(&mut client, "off", &json!({"enabled": false}));
        delete(&mut client, "gone");
        change(&mut client, "ended", &json!({"expires_at": "2001-01-01T00:00:00Z"}));
        let mut answers = Vec::new();
        for code in ["on", "off", "gone", "ended", "never", "bad-code", "12345678901", "on?utm=1"] {
            // A connection each: effects of one answer must not hide another's.
            answers.push(follow(&mut server.client(), code).unwrap());
            // A read waits for earlier clicks, so the positions in later answers are equal too.
            client.get("/api/urls/on").unwrap().expect(200);
            answers.push(head_of(&mut server.client(), &format!("/{code}")).unwrap());
        }
        answers
    });
    assert_eq!(lean[0].header("referrer-policy"), Some("origin"));
    for (lean, general) in lean.iter().zip(&general) {
        assert_eq!(said(lean), said(general));
    }
}

#[test]
fn visitors_are_counted_and_no_address_is_stored() {
    const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
    const GOOGLEBOT: &str =
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&[&["--trusted-proxies", "127.0.0.1"], &lean[..]].concat());
        let mut client = server.client();
        let code = shorten(&mut client, "http://example.com/who");
        let visit = |address: &str, agent: &str, referrer: Option<&str>| {
            let mut headers = vec![("X-Forwarded-For", address), ("User-Agent", agent)];
            headers.extend(referrer.map(|referrer| ("Referer", referrer)));
            let answer = server.client().call("GET", &format!("/{code}"), &headers, b"");
            leads_to(&answer.unwrap(), "http://example.com/who");
        };
        let from = "https://News.example:8443/path?secret=1";
        for n in 0..4 {
            visit(&format!("203.0.113.{}", n % 3), FIREFOX, Some(from));
        }
        visit("203.0.113.7", "curl/8.5.0", None);
        visit("198.51.100.9", GOOGLEBOT, Some("not a URL"));
        let details = details(&mut client, &code);
        assert_eq!((&details["clicks"], &details["bots"]), (&json!(6), &json!(1)), "{details}");
        assert_eq!(details["visitors"], 4, "three of Firefox, one of curl, bots not");
        let stats = client.get(&format!("/api/urls/{code}/stats")).unwrap().expect(200);
        for member in ["clicks", "visitors", "bots"] {
            assert_eq!(stats[member], details[member], "{stats}");
        }
        let referrers = json!([
            {"referrer": "news.example", "clicks": 4},
            {"referrer": null, "clicks": 2},
        ]);
        assert_eq!(stats["referrers"], referrers);
        let agents = json!([
            {"agent": "Firefox", "clicks": 4},
            {"agent": "Googlebot", "clicks": 1},
            {"agent": "curl", "clicks": 1},
        ]);
        assert_eq!(stats["agents"], agents);
        let headers = [("Accept", "application/x-ndjson")];
        let events = client.call("GET", "/v1/events", &headers, b"").unwrap().text();
        assert_eq!(events.matches("\"LinkClicked\"").count(), 6, "{events}");
        for secret in ["203.0.113", "198.51.100", "127.0.0.1", "secret", "8443"] {
            assert!(!events.contains(secret), "{secret} is in the log: {events}");
        }
    }
}

#[test]
fn figures_add_up_over_time() {
    let server = Server::start();
    let mut client = server.client();
    let code = shorten(&mut client, "http://example.com/time");
    for _ in 0..20 {
        click(&mut client, &code, "http://example.com/time");
    }
    let mut ask =
        |query: &str| client.get(&format!("/api/urls/{code}/stats{query}")).unwrap().expect(200);
    let sum = |stats: &Value| -> u64 {
        let series = stats["series"].as_array().unwrap().iter();
        series.map(|point| point["clicks"].as_u64().unwrap()).sum()
    };
    for (query, bucket, start) in [
        ("", "day", "9999-99-99T00:00:00Z"),
        ("?bucket=day", "day", "9999-99-99T00:00:00Z"),
        ("?bucket=hour", "hour", "9999-99-99T99:00:00Z"),
        ("?bucket=hour&from=2001-01-01&to=2999-01-01T00:00:00Z", "hour", "9999-99-99T99:00:00Z"),
    ] {
        let stats = ask(query);
        assert_eq!((&stats["bucket"], &stats["clicks"]), (&json!(bucket), &json!(20)), "{stats}");
        assert_eq!(sum(&stats), 20, "{stats}");
        assert!(looks_like(stats["series"][0]["start"].as_str().unwrap(), start), "{stats}");
        assert_eq!(stats["short_code"], code);
    }
    for query in ["?to=2001-01-01", "?bucket=hour&from=2999-01-01T00:00:00Z"] {
        let stats = ask(query);
        assert_eq!((&stats["series"], &stats["clicks"]), (&json!([]), &json!(20)), "{query}");
    }
}
