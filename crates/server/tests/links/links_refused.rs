//! Every invalid request about links, with its status, its problem type and the member `error`; and
//! that it has no effect.

use crate::client::Client;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const REQUIRED: Reason = (400, "url-required");
const BAD_URL: Reason = (400, "bad-url");
const OWN_HOST: Reason = (400, "own-host");
const HOST_REFUSED: Reason = (400, "host-refused");
const MALFORMED: Reason = (400, "malformed-json");
const BAD_CODE: Reason = (400, "bad-code");
const INVALID: Reason = (422, "invalid");
const RESERVED: Reason = (422, "alias-reserved");

fn head(client: &mut Client) -> u64 {
    client.get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap()
}

fn to(url: &str) -> String {
    json!({"url": url}).to_string()
}

/// Bodies that create no link, the reason, and part of the problem.
fn impossible() -> Vec<(String, Reason, &'static str)> {
    let with = |members: Value| {
        let mut body = json!({"url": "http://example.com"});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        body.to_string()
    };
    let many: Vec<String> = (0..1000).map(|n| format!("t{n}")).collect();
    vec![
        (String::new(), REQUIRED, ""),
        ("  ".to_owned(), REQUIRED, ""),
        ("{}".to_owned(), REQUIRED, ""),
        (to(""), REQUIRED, ""),
        (json!({"url": null}).to_string(), REQUIRED, ""),
        (json!({"alias": "abc"}).to_string(), REQUIRED, ""),
        ("{\"url\":".to_owned(), MALFORMED, ""),
        ("url=http://example.com".to_owned(), MALFORMED, ""),
        ("[]".to_owned(), INVALID, ""),
        (json!({"url": 7}).to_string(), INVALID, "url"),
        (to("example.com"), BAD_URL, "url"),
        (to("/path"), BAD_URL, "url"),
        (to("ftp://example.com"), BAD_URL, "url"),
        (to("javascript:alert(1)"), BAD_URL, "url"),
        (to("http://"), BAD_URL, "url"),
        (to("http:///path"), BAD_URL, "url"),
        (to("http://user:secret@example.com/"), BAD_URL, "url"),
        (to("http://example.com/a\r\nSet-Cookie: b"), BAD_URL, "url"),
        (to("http://example.com/\u{0}"), BAD_URL, "url"),
        (to(&format!("http://example.com/{}", "x".repeat(2048 - 18))), BAD_URL, "2048"),
        (to("http://test/Yci"), OWN_HOST, "url"),
        (to("HTTPS://TEST:80/Yci"), OWN_HOST, "url"),
        (with(json!({"colour": "red"})), INVALID, "colour"),
        (with(json!({"alias": "with-dash"})), INVALID, "alias"),
        (with(json!({"alias": ""})), INVALID, "alias"),
        (with(json!({"alias": "12345678901"})), INVALID, "alias"),
        (with(json!({"alias": "caf\u{e9}"})), INVALID, "alias"),
        (with(json!({"alias": 7})), INVALID, "alias"),
        (with(json!({"alias": "abc", "deterministic": true})), INVALID, "alias"),
        (with(json!({"deterministic": "yes"})), INVALID, "deterministic"),
        (with(json!({"expires_at": "tomorrow"})), INVALID, "expires_at"),
        (with(json!({"expires_at": "2001-01-01T00:00:00Z"})), INVALID, "expires_at"),
        (with(json!({"expires_in_s": 0})), INVALID, "expires_in_s"),
        (with(json!({"expires_in_s": -1})), INVALID, "expires_in_s"),
        (with(json!({"expires_in_s": 1, "expires_at": "2999-01-01"})), INVALID, "expires_in_s"),
        (with(json!({"tags": "one"})), INVALID, "tags"),
        (with(json!({"tags": [""]})), INVALID, "tags"),
        (with(json!({"tags": ["a", "a"]})), INVALID, "tags"),
        (with(json!({"tags": many})), (413, "too-large"), "tags"),
        (with(json!({"alias": "health"})), RESERVED, "alias"),
        (with(json!({"alias": "API"})), RESERVED, "alias"),
    ]
}

#[test]
fn a_link_that_cannot_be_made_is_refused_by_name() {
    let cases = impossible();
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        let headers = [("Content-Type", "application/json")];
        for (body, reason, told) in &cases {
            let answer = client.call("POST", "/api/urls", &headers, body.as_bytes()).unwrap();
            let problem = refused(&answer, *reason);
            assert!(problem.to_string().contains(told), "{body}: {problem}");
        }
        // The same as a form is not supported; JSON of this size is not read.
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let answer = client.call("POST", "/api/urls", &form, b"url=http://example.com").unwrap();
        refused(&answer, (415, "unsupported-media-type"));
        let large = to(&format!("http://example.com/{}", "x".repeat(1 << 20)));
        let answer = server.client().call("POST", "/api/urls", &headers, large.as_bytes()).unwrap();
        refused(&answer, (413, "too-large"));
        assert_eq!(head(&mut client), 0, "nothing was appended");
        // The longest URL allowed, and one with every character allowed.
        let longest = format!("http://example.com/{}", "x".repeat(2048 - 19));
        let odd = "https://xn--caf-dma.example:8443/a%20b;c=1,2/@:!$&'()*+?q=[1]#~._-";
        for url in [longest.as_str(), odd] {
            let code = shorten(&mut client, url);
            click(&mut client, &code, url);
        }
    }
}

#[test]
fn a_code_without_a_link_or_that_cannot_be_one_is_told_so_everywhere() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        for (code, reason) in [
            ("Yci", NOT_FOUND),
            ("0000000000", NOT_FOUND),
            ("12345678901", BAD_CODE),
            ("with-dash", BAD_CODE),
            ("a%2Fb", BAD_CODE),
            ("%C3%A9", BAD_CODE),
        ] {
            let api = format!("/api/urls/{code}");
            let change = json!({"enabled": true});
            refused(&follow(&mut client, code).unwrap(), reason);
            refused(&client.get(&api).unwrap(), reason);
            refused(&client.get(&format!("{api}/stats")).unwrap(), reason);
            refused(&client.get(&format!("/{code}.qr")).unwrap(), reason);
            refused(&send_change(&mut client, code, &change), reason);
            refused(&delete(&mut client, code), reason);
        }
        assert_eq!(head(&mut client), 0);
    }
}

#[test]
fn wrong_changes_and_questions_are_refused_by_name() {
    let server = Server::start();
    let mut client = server.client();
    let url = "http://example.com/kept";
    let code = code_of(&create(&mut client, &json!({"url": url, "tags": ["kept"]})));
    let before = (details(&mut client, &code), head(&mut client));
    for (change, reason, told) in [
        (json!({}), INVALID, "enabled"),
        (json!({"enabled": "no"}), INVALID, "enabled"),
        (json!({"url": ""}), REQUIRED, ""),
        (json!({"url": "ftp://example.com"}), BAD_URL, "url"),
        (json!({"url": "http://test/x"}), OWN_HOST, "url"),
        (json!({"alias": "new"}), INVALID, "alias"),
        (json!({"expires_at": "soon"}), INVALID, "expires_at"),
        (json!({"tags": [7]}), INVALID, "tags"),
    ] {
        let problem = refused(&send_change(&mut client, &code, &change), reason);
        assert!(problem.to_string().contains(told), "{change}: {problem}");
    }
    for (path, field) in [
        ("/api/urls?limit=0", "limit"),
        ("/api/urls?limit=1000000", "limit"),
        ("/api/urls?after=x", "after"),
        ("/api/urls?order=sideways", "order"),
        ("/api/urls?colour=red", "colour"),
        ("/api/urls/CODE/stats?bucket=week", "bucket"),
        ("/api/urls/CODE/stats?from=yesterday", "from"),
        ("/api/urls/CODE?consistency=none", "consistency"),
        ("/CODE.qr?size=1", "size"),
    ] {
        let answer = client.get(&path.replace("CODE", &code)).unwrap();
        let problem = refused(&answer, INVALID);
        assert!(problem.to_string().contains(field), "{path}: {problem}");
    }
    for (method, path) in
        [("DELETE", "/api/urls"), ("POST", "/api/urls/CODE"), ("POST", "/CODE"), ("PUT", "/CODE")]
    {
        let answer = client.call(method, &path.replace("CODE", &code), &[], b"").unwrap();
        refused(&answer, (405, "method-not-allowed"));
        assert!(answer.header("allow").is_some_and(|allow| !allow.contains(method)), "{answer:?}");
    }
    assert_eq!((details(&mut client, &code), head(&mut client)), before, "nothing has changed");
}

#[test]
fn no_code_can_be_the_first_segment_of_a_route() {
    let server = Server::start();
    let mut client = server.client();
    let document = client.get("/openapi.json").unwrap().expect(200);
    let paths = document["paths"].as_object().unwrap().keys();
    let segments: BTreeSet<&str> = paths.map(|path| path.split('/').nth(1).unwrap()).collect();
    let is_code = |word: &&str| {
        (1..=10).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let mut words: Vec<&str> = segments.into_iter().filter(is_code).collect();
    assert!(
        words.contains(&"health") && words.contains(&"api") && words.contains(&"v1"),
        "{words:?}"
    );
    // Reserved for later, or for pages that people expect there.
    words.extend(["favicon", "robots", "admin", "login"]);
    for word in words {
        for alias in [word.to_owned(), word.to_uppercase()] {
            let body = json!({"url": "http://example.com", "alias": alias});
            let answer = client.post("/api/urls", &body).unwrap();
            if word.len() <= 10 {
                refused(&answer, RESERVED);
            }
        }
        let there = client.get(&format!("/{word}")).unwrap();
        assert_ne!(there.status, 302, "{word}");
    }
    assert_eq!(client.get("/health").unwrap().expect(200)["status"], "healthy");
}

#[test]
fn links_lead_neither_back_here_nor_to_hosts_that_are_not_allowed() {
    let flags = [
        "--link-base-url",
        "https://go.example.com/",
        "--link-deny-hosts",
        "evil.example,*.evil.example",
    ];
    let server = Server::start_with(&flags);
    let mut client = server.client();
    let port = server.address.port();
    for own in [
        "https://go.example.com/abc".to_owned(),
        "http://GO.example.com.".to_owned(),
        format!("http://127.0.0.1:{port}/abc"),
        format!("http://localhost:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://0x7f.1:{port}/"),
        "http://test/abc".to_owned(),
    ] {
        let answer = client.post("/api/urls", &json!({"url": own})).unwrap();
        let problem = refused(&answer, if own.contains("0x7f") { BAD_URL } else { OWN_HOST });
        assert_eq!(problem["field"], "url", "{own}");
    }
    for denied in
        ["http://evil.example", "https://a.b.EVIL.example:8080/x", "http://evil.example./"]
    {
        refused(&client.post("/api/urls", &json!({"url": denied})).unwrap(), HOST_REFUSED);
    }
    let made = create(&mut client, &json!({"url": "http://notevil.example", "alias": "fine"}));
    assert_eq!(made["short_url"], "https://go.example.com/fine");
    assert_eq!(details(&mut client, "fine")["short_url"], "https://go.example.com/fine");
    // A link cannot be changed to a target that it could not be created with.
    let turned = send_change(&mut client, "fine", &json!({"url": "http://evil.example"}));
    refused(&turned, HOST_REFUSED);

    let server = Server::start_with(&["--link-allow-hosts", "good.example,*.good.example"]);
    let mut client = server.client();
    refused(
        &client.post("/api/urls", &json!({"url": "http://other.example"})).unwrap(),
        HOST_REFUSED,
    );
    for url in ["http://good.example", "https://a.good.example/x"] {
        shorten(&mut client, url);
    }
}

#[test]
fn one_address_makes_only_so_many_links_a_minute_and_follows_any_number() {
    let flags = ["--link-creates-per-minute", "5", "--trusted-proxies", "127.0.0.1"];
    let server = Server::start_with(&flags);
    let mut client = server.client();
    let mut make = |address: &str| {
        let headers = [("Content-Type", "application/json"), ("X-Forwarded-For", address)];
        client.call("POST", "/api/urls", &headers, br#"{"url":"http://example.com"}"#).unwrap()
    };
    let code = code_of(&make("203.0.113.1").expect(201));
    for _ in 0..4 {
        make("203.0.113.1").expect(201);
    }
    let answer = make("203.0.113.1");
    refused(&answer, (429, "too-many-links"));
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=12).contains(&seconds), "{seconds}");
    make("203.0.113.2").expect(201);
    for _ in 0..50 {
        click(&mut client, &code, "http://example.com");
    }
    let line = "{\"url\":\"http://example.com\"}\n";
    let headers = [("X-Forwarded-For", "203.0.113.3")];
    let problem = refused(&bulk(&mut client, &line.repeat(9), &headers), (429, "too-many-links"));
    assert_eq!((&problem["line"], &problem["durable_lines"]), (&json!(6), &json!(5)));
}
