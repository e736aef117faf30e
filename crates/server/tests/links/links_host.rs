//! The `Host` of a request, where short URLs are built from it: used if valid, never shared between
//! clients, and required only once.

use crate::client::Answer;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use crate::shortener::*;
use serde_json::json;

/// Without accounts a server accepts only names that no page can have, and these.
const NAMED: [&str; 2] = ["--own-hosts", "*.example"];

/// Sends a request with these headers and none added by the client.
fn ask(server: &Server, line: &str, headers: &[&str], body: &str) -> Answer {
    let mut request = format!("{line}\r\n");
    for header in headers {
        request.push_str(&format!("{header}\r\n"));
    }
    if !body.is_empty() {
        let length = body.len();
        request
            .push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
    }
    let mut client = server.client();
    client.send(format!("{request}\r\n{body}").as_bytes()).unwrap();
    client.answer().unwrap()
}

#[test]
fn a_short_url_begins_with_a_host_that_can_be_one() {
    let server = Server::start_with(&NAMED);
    let body = r#"{"url":"http://example.com/a","alias":"a"}"#;
    let made = ask(&server, "POST /api/urls HTTP/1.1", &["Host: go.example:81"], body);
    assert_eq!(made.expect(201)["short_url"], "http://go.example:81/a");
    assert_eq!(made.header("location"), Some("/api/urls/a"));
    let own = format!("{}/a", server.url());
    for host in ["a b", "user@host", "evil/x", "evil?x", "a:b", "a:0", "\"", "<b>"] {
        let header = format!("Host: {host}");
        let details = ask(&server, "GET /api/urls/a HTTP/1.1", &[&header], "").expect(200);
        assert_eq!(details["short_url"], own, "{host}");
        let list = ask(&server, "GET /api/urls HTTP/1.1", &[&header], "").expect(200);
        assert_eq!(list["links"][0]["short_url"], own, "{host}");
        let change = r#"{"enabled":true}"#;
        let changed = ask(&server, "PATCH /api/urls/a HTTP/1.1", &[&header], change).expect(200);
        assert_eq!(changed["short_url"], own, "{host}");
    }
    // The request target takes precedence over the header.
    let line = "GET http://there.example/api/urls/a HTTP/1.1";
    let details = ask(&server, line, &["Host: here.example"], "").expect(200);
    assert_eq!(details["short_url"], "http://there.example/a");
}

#[test]
fn http_1_1_asks_for_one_host() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&[&lean[..], &NAMED].concat());
        let body = r#"{"url":"http://example.com/a","alias":"a"}"#;
        create(&mut server.client(), &json!({"url": "http://example.com/a", "alias": "a"}));
        for headers in [&[][..], &["Host: a.example", "Host: b.example"]] {
            for (line, body) in [
                ("POST /api/urls HTTP/1.1", body),
                ("GET /api/urls HTTP/1.1", ""),
                ("GET /api/urls/a HTTP/1.1", ""),
                ("PATCH /api/urls/a HTTP/1.1", r#"{"enabled":false}"#),
                ("GET /a HTTP/1.1", ""),
                ("GET /a.qr HTTP/1.1", ""),
            ] {
                refused(&ask(&server, line, headers, body), (400, "bad-request"));
            }
        }
        let details = ask(&server, "GET /api/urls/a HTTP/1.0", &[], "").expect(200);
        assert_eq!(details["short_url"], format!("{}/a", server.url()));
        assert_eq!((&details["enabled"], &details["clicks"]), (&json!(true), &json!(0)));
    }
}

#[test]
fn a_picture_of_what_one_client_said_is_for_no_other() {
    for (flags, caching) in [
        (&[][..], "private, max-age=3600"),
        (&["--link-base-url", "https://go.example"], "public, max-age=3600"),
    ] {
        let server = Server::start_with(&[flags, &NAMED].concat());
        create(&mut server.client(), &json!({"url": "http://example.com/a", "alias": "a"}));
        let hosts = ["Host: a.example", "Host: b.example", "Host: c/d", "Host: e@f"];
        let pictures = hosts.map(|host| ask(&server, "GET /a.qr HTTP/1.1", &[host], ""));
        for picture in &pictures {
            assert_eq!((picture.status, picture.header("cache-control")), (200, Some(caching)));
        }
        let same = pictures[0].body == pictures[1].body;
        assert_eq!(same, !flags.is_empty(), "each sees its own host");
        assert_eq!(pictures[2].body, pictures[3].body, "and no host that is none");
    }
}
