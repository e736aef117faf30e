//! What visitors' programs send and take: hosts of all scripts, requests ahead of a click, a slash
//! behind the code, files that browsers ask for, queries.

use crate::server::{BOTH_LOOPS, Server};
use crate::shortener::*;
use serde_json::json;

#[test]
fn hosts_of_all_scripts_are_told_as_browsers_look_them_up() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        for (url, location) in [
            ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
            ("http://உதாரணம்.பரிட்சை/", "http://xn--zkc6cc5bi7f6e.xn--hlcj6aya9esc7a/"),
            ("http://ไทยแลนด์.ไทย/", "http://xn--l3cfg9ap1osa4e.xn--o3cw4h/"),
            ("HTTPS://faß.example:8443", "https://xn--fa-hia.example:8443"),
            ("http://ｅxample.example/?q={|}", "http://example.example/?q=%7B%7C%7D"),
            ("http://EXAMPLE.example/", "http://EXAMPLE.example/"),
        ] {
            let code = shorten(&mut client, url);
            let answer = follow(&mut client, &code).unwrap();
            assert_eq!((answer.status, answer.header("location")), (302, Some(location)), "{url}");
            let details = client.get(&format!("/api/urls/{code}")).unwrap().expect(200);
            assert_eq!(details["original_url"], url, "as it was given");
        }
        for url in ["http://aא.example/", "http://℀.example/", "http://xn--a.example/"] {
            let answer = client.post("/api/urls", &json!({"url": url})).unwrap();
            let problem = refused(&answer, (400, "bad-url"));
            assert!(!problem.to_string().contains("\\u{"), "{problem}");
        }
    }
}

#[test]
fn a_link_that_an_earlier_version_took_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(dir.path(), &["--link-accept-events"]);
    let old = "http://aא.example/x";
    let created = json!({"type": "LinkCreated", "tags": ["link:old"],
        "data": {"url": old, "chosen": "alias"}});
    let changed = json!({"type": "LinkChanged", "tags": ["link:old"], "data": {"tags": ["a"]}});
    let events = json!({"events": [created, changed]});
    server.client().post("/v1/append", &events).unwrap().expect(200);
    assert!(server.terminate().success());
    let server = Server::start_in(dir.path(), &["--link-deny-hosts", "bad.example"]);
    let mut client = server.client();
    let answer = follow(&mut client, "old").unwrap();
    let location = "http://a%D7%90.example/x";
    assert_eq!((answer.status, answer.header("location")), (302, Some(location)));
    let more = change(&mut client, "old", &json!({"tags": ["b"], "enabled": true}));
    assert_eq!((&more["original_url"], &more["tags"]), (&old.into(), &json!(["b"])));
    refused(&send_change(&mut client, "old", &json!({"url": old})), (400, "bad-url"));
    assert_eq!(follow(&mut client, "old").unwrap().status, 302);
}

#[test]
fn what_is_fetched_ahead_is_no_click() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        let code = shorten(&mut client, "http://example.com/");
        let path = format!("/{code}");
        for (name, value) in [
            ("Sec-Purpose", "prefetch;prerender"),
            ("sec-purpose", "prefetch"),
            ("Purpose", "prefetch"),
            ("X-Purpose", "preview"),
            ("X-Moz", "Prefetch"),
        ] {
            let answer = client.call("GET", &path, &[(name, value)], b"").unwrap();
            assert_eq!(answer.header("location"), Some("http://example.com/"), "{name}");
        }
        assert_eq!(clicks(&mut client, &code), 0);
        let answer = client.call("GET", &path, &[("Purpose", "unprefetched")], b"").unwrap();
        assert_eq!(answer.status, 302);
        assert_eq!(clicks(&mut client, &code), 1);
    }
}

#[test]
fn a_slash_behind_a_code_is_none_and_a_file_is_no_code() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        let code = shorten(&mut client, "http://example.com/");
        let answer = client.get(&format!("/{code}/")).unwrap();
        assert_eq!((answer.status, answer.header("location")), (302, Some("http://example.com/")));
        assert_eq!(clicks(&mut client, &code), 1);
        for path in ["/never/", "/docs", "/admin"] {
            let problem = refused(&client.get(path).unwrap(), (404, "link-not-found"));
            let told = problem["detail"].as_str().unwrap();
            assert!(told.contains("there is no link") && told.contains("/openapi.json"), "{told}");
        }
        refused(&client.get("/with-dash/").unwrap(), (400, "bad-code"));
        for path in ["/apple-touch-icon-precomposed.png", "/a.b"] {
            let problem = refused(&client.get(path).unwrap(), (404, "not-found"));
            assert!(problem["detail"].as_str().unwrap().contains("there is no file"), "{problem}");
        }
        for path in ["/health/", "/v1/", "/api/"] {
            let answer = client.get(path).unwrap();
            assert_eq!(answer.status, 404);
            assert!(answer.text().contains("is not a route"), "{}", answer.text());
        }
    }
}

#[test]
fn a_query_is_passed_on_where_a_setting_says_so() {
    for lean in BOTH_LOOPS {
        for (flags, expected) in [
            (&["--link-pass-query"][..], "http://example.com/x?a=1&utm_source=m%C3%BC&b#top"),
            (&[], "http://example.com/x?a=1#top"),
        ] {
            let server = Server::start_with(&[&lean[..], flags].concat());
            let mut client = server.client();
            let code = shorten(&mut client, "http://example.com/x?a=1#top");
            for _ in 0..2 {
                let answer = follow(&mut client, &format!("{code}?utm_source=m%C3%BC&b")).unwrap();
                assert_eq!((answer.status, answer.header("location")), (302, Some(expected)));
            }
            let answer = follow(&mut client, &code).unwrap();
            assert_eq!(answer.header("location"), Some("http://example.com/x?a=1#top"));
            assert_eq!(clicks(&mut client, &code), 3);
        }
    }
}

/// Follows a link by many clients at once; returns how often it redirected.
fn follow_at_once(server: &Server, code: &str, clients: usize, times: usize) -> usize {
    let follow_often = || {
        let mut client = server.client();
        let answers = (0..times).map(|_| follow(&mut client, code).unwrap());
        let told = answers.map(|answer| match answer.status {
            302 => 1,
            410 => 0,
            status => panic!("{status}: {}", answer.text()),
        });
        told.sum::<usize>()
    };
    std::thread::scope(|scope| {
        let following: Vec<_> = (0..clients).map(|_| scope.spawn(follow_often)).collect();
        following.into_iter().map(|it| it.join().unwrap()).sum()
    })
}

#[test]
fn a_link_with_a_maximum_redirects_exactly_so_often() {
    for lean in BOTH_LOOPS {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start_in(dir.path(), &lean);
        let mut client = server.client();
        let link = json!({"url": "http://bücher.example/", "alias": "few", "max_clicks": 25});
        assert_eq!(create(&mut client, &link)["max_clicks"], 25);
        leads_to(&follow(&mut client, "few").unwrap(), "http://xn--bcher-kva.example/");
        leads_to(&head_of(&mut server.client(), "/few").unwrap(), "http://xn--bcher-kva.example/");
        let ahead = client.call("GET", "/few", &[("Sec-Purpose", "prefetch")], b"").unwrap();
        assert_eq!(ahead.status, 302);
        assert_eq!(follow_at_once(&server, "few", 4, 2), 8);
        assert_eq!(clicks(&mut client, "few"), 10);
        // What was answered is on disk.
        server.kill();
        let server = Server::start_in(dir.path(), &lean);
        let mut client = server.client();
        assert_eq!(follow_at_once(&server, "few", 5, 6), 15);
        refused(&follow(&mut client, "few").unwrap(), EXPIRED);
        let told = follow(&mut client, "few").unwrap().text();
        assert!(told.contains("as often as it may be"), "{told}");
        assert_eq!(head_of(&mut server.client(), "/few").unwrap().status, 410);
        let details = details(&mut client, "few");
        assert_eq!((&details["clicks"], &details["max_clicks"]), (&json!(25), &json!(25)));
        change(&mut client, "few", &json!({"max_clicks": 27}));
        assert_eq!(follow_at_once(&server, "few", 3, 2), 2);
        change(&mut client, "few", &json!({"max_clicks": null}));
        assert_eq!(follow_at_once(&server, "few", 2, 2), 4);
        assert_eq!(clicks(&mut client, "few"), 31);
        change(&mut client, "few", &json!({"max_clicks": 40, "enabled": false}));
        refused(&follow(&mut client, "few").unwrap(), DISABLED);
        assert_eq!(clicks(&mut client, "few"), 31);
    }
}
