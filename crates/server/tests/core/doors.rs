//! Attempts by a page of another site: the `Host` a request names, its origin, and heads that two
//! readers could parse differently. Both stacks answer the same.

use crate::client::{Answer, Client};
use crate::closed::{Closed, PASSWORD};
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

const EVENT: &str = r#"{"events":[{"type":"T","tags":["a:1"],"data":1}]}"#;

/// Sends a request with these header lines and none added by the client.
fn ask(client: &mut Client, line: &str, headers: &[&str], body: &str) -> Answer {
    let lines: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = if body.is_empty() && line.starts_with("GET") {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    client.send(format!("{line}\r\n{lines}{length}\r\n{body}").as_bytes()).unwrap();
    client.answer().unwrap()
}

#[track_caller]
fn refused(answer: &Answer, status: u16, slug: &str) {
    assert_eq!(answer.problem(status)["type"], format!("/problems/{slug}"), "{}", answer.text());
}

/// Requests of every kind: for both stacks, with a route and without.
const LINES: [(&str, &str); 10] = [
    ("GET /v1/events?limit=1 HTTP/1.1", ""),
    ("GET /v1/head HTTP/1.1", ""),
    ("GET /metrics HTTP/1.1", ""),
    ("GET /health HTTP/1.1", ""),
    ("GET /openapi.json HTTP/1.1", ""),
    ("GET /abc HTTP/1.1", ""),
    ("GET /abc.qr HTTP/1.1", ""),
    ("GET /nothing/here HTTP/1.1", ""),
    ("POST /e?type=A HTTP/1.1", "1"),
    ("POST /v1/append HTTP/1.1", EVENT),
];

#[test]
fn an_open_server_answers_only_under_its_own_names() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let link = json!({"url": "https://example.com/x", "alias": "abc"});
        server.client().post("/api/urls", &link).unwrap().expect(201);
        let head = || server.client().get("/v1/head").unwrap().expect(200)["head"].clone();
        let before = head();
        for (line, body) in LINES {
            for agent in ["User-Agent: x", "User-Agent: Mozilla/5.0", "Accept: */*"] {
                for host in [
                    "evil.example:4711",
                    "127.0.0.1.evil.example",
                    "localhost.evil.example",
                    "",
                    ":4000",
                ] {
                    let headers =
                        [&format!("Host: {host}"), agent, "Content-Type: application/json"];
                    let answer = ask(&mut server.client(), line, &headers, body);
                    refused(&answer, 403, "foreign-host");
                    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
                    assert!(detail.contains("--own-hosts"), "{detail}");
                }
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(head(), before, "nothing was taken in, no click was counted");
        for host in [
            "localhost",
            "127.0.0.1:4000",
            "127.9.9.9",
            "[::1]:80",
            "LOCALHOST:1",
            "app.localhost",
            "l",
            "10.0.0.9",
        ] {
            let headers = [&*format!("Host: {host}"), "Content-Type: application/json"];
            for (line, body) in LINES {
                let status = ask(&mut server.client(), line, &headers, body).status;
                assert_ne!(status, 403, "{line} at {host}");
            }
        }
        // The request target takes precedence over the header, and neither hides the other.
        for (target, host) in
            [("evil.example", "localhost"), ("localhost", "evil.example"), ("localhost", "")]
        {
            let line = format!("GET http://{target}/v1/head HTTP/1.1");
            let answer = ask(&mut server.client(), &line, &[&format!("Host: {host}")], "");
            refused(&answer, 403, "foreign-host");
        }
    }
}

#[test]
fn a_name_judged_once_is_judged_again_on_the_same_connection() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        for host in ["localhost", "evil.example", "localhost", "evil.example", "evil.example"] {
            let status = if host == "localhost" { 202 } else { 403 };
            let answer = ask(&mut client, "POST /e HTTP/1.1", &[&format!("Host: {host}")], "1");
            assert_eq!(answer.status, status, "{host}");
        }
    }
}

#[test]
fn a_head_of_too_many_headers_is_told_how_many_there_may_be() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let fields: Vec<String> = (0..99).map(|n| format!("X-{n}: y")).collect();
        for line in ["GET /v1/head HTTP/1.1", "GET /nothing/here HTTP/1.1", "GET /v1/head HTTP/1.0"]
        {
            for (count, status) in [(63, 200), (64, 431), (99, 431)] {
                let fields = fields[..count].iter().map(String::as_str);
                let headers: Vec<&str> = std::iter::once("Host: localhost").chain(fields).collect();
                let answer = ask(&mut server.client(), line, &headers, "");
                if status == 431 {
                    refused(&answer, 431, "headers-too-large");
                    assert_eq!(answer.json()["limit"], 64, "{}", answer.text());
                } else {
                    assert!(answer.status < 431, "{line}: {}", answer.text());
                }
            }
        }
    }
}

#[test]
fn names_that_are_set_are_its_own_and_with_accounts_any_name_is() {
    let own = [
        "--own-hosts",
        "store.example.com,*.internal.example",
        "--link-base-url",
        "https://go.example",
    ];
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&[&lean[..], &own].concat());
        for (host, status) in [
            ("store.example.com:4000", 202),
            ("STORE.example.com", 202),
            ("a.b.internal.example", 202),
            ("go.example", 202),
            ("internal.example", 403),
            ("other.example.com", 403),
            ("store.example.com.evil.example", 403),
        ] {
            let headers = [&*format!("Host: {host}")];
            let answer = ask(&mut server.client(), "POST /e HTTP/1.1", &headers, "1");
            assert_eq!(answer.status, status, "{host}");
        }
        let closed = Closed::start_with(&lean);
        let bearer = format!("Authorization: Bearer {}", closed.root);
        for (line, body) in LINES {
            let headers = ["Host: any.example", &bearer, "Content-Type: application/json"];
            let answer = ask(&mut closed.client(), line, &headers, body);
            assert_ne!(answer.status, 403, "{line}");
        }
    }
}

#[test]
fn a_remembered_password_is_of_no_use_to_a_page_of_another_site() {
    for lean in BOTH_LOOPS {
        let flags = [&lean[..], &["--cors-origins", "https://app.example"]].concat();
        for flags in [&lean[..], &flags] {
            let closed = Closed::start_with(flags);
            let basic =
                format!("Authorization: basic {}", STANDARD.encode(format!("root:{PASSWORD}")));
            let bearer = format!("Authorization: Bearer {}", closed.root);
            let may_app = flags.len() > lean.len();
            let pages = [
                ("http://evil.example", false),
                ("null", false),
                ("", false),
                ("http://localhost:9", false),
                ("http://log.example:4000", true),
                ("https://app.example", may_app),
            ];
            let lines = [
                ("POST /e?type=Evil&tag=link:evil HTTP/1.1", "{\"url\":\"https://evil.example/\"}"),
                ("POST /v1/append HTTP/1.1", EVENT),
                ("POST /auth/logout HTTP/1.1", ""),
                ("GET /v1/events HTTP/1.1", ""),
                ("GET /auth/me HTTP/1.1", ""),
                ("DELETE /v1/logs/main?confirm=main HTTP/1.1", ""),
            ];
            for (line, body) in lines {
                for (origin, may) in pages {
                    let origin = format!("Origin: {origin}");
                    let host = "Host: log.example:4000";
                    let send = |login: &str| {
                        // So that the log is not deleted, and the logout ends no session.
                        let (line, body) =
                            if may { ("POST /e HTTP/1.1", "1") } else { (line, body) };
                        let headers = [host, &origin, login, "Content-Type: text/plain"];
                        ask(&mut closed.client(), line, &headers, body)
                    };
                    if may {
                        assert_eq!(send(&basic).status, 202, "{line} from {origin}");
                    } else {
                        refused(&send(&basic), 403, "foreign-page");
                    }
                    // A page that has a token was given it by its user.
                    if line.starts_with("POST /e") {
                        assert_eq!(send(&bearer).status, 202, "{line} from {origin}");
                    }
                }
            }
        }
    }
}

/// `*` lets any page read; that does not cover remembered passwords.
#[test]
fn a_star_gives_no_page_a_remembered_password() {
    let closed = Closed::start_with(&["--cors-origins", "*"]);
    let basic = format!("Authorization: Basic {}", STANDARD.encode(format!("root:{PASSWORD}")));
    let headers = ["Host: localhost", "Origin: https://evil.example", &basic];
    let answer = ask(&mut closed.client(), "POST /e HTTP/1.1", &headers, "1");
    refused(&answer, 403, "foreign-page");
}

/// The outcome of each head, on either stack: status, and the field that is named.
const HEADS: &[(&[&str], u16, Option<&str>)] = &[
    (&["Host: l"], 0, None),
    (&[], 400, Some("Host")),
    (&["Host: l", "Host: l"], 400, Some("Host")),
    (&["Host: l", "host: other"], 400, Some("Host")),
    (&["Host: l", "Transfer-Encoding: gzip, chunked"], 400, Some("Transfer-Encoding")),
    (&["Host: l", "Transfer-Encoding: identity, chunked"], 400, Some("Transfer-Encoding")),
    (&["Host: l", "Transfer-Encoding: chunked, chunked"], 400, Some("Transfer-Encoding")),
    (
        &["Host: l", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        400,
        Some("Transfer-Encoding"),
    ),
    (
        &["Host: l", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked"],
        400,
        Some("Transfer-Encoding"),
    ),
    (&["Host: l", "Transfer-Encoding: chunked"], 0, None),
    (&["Host: l", "Transfer-Encoding: Chunked"], 0, None),
    (&["Host: l", "Content-Length: 1", "Expect: tea"], 417, Some("Expect")),
    (&["Host: l", "Content-Length: 1", "Expect: 100-continue", "Expect: tea"], 417, Some("Expect")),
    (&["Host: l", "Content-Length: 1", "Expect: tea", "Expect: 100-continue"], 417, Some("Expect")),
    (
        &["Host: l", "Content-Encoding: gzip", "Content-Encoding: gzip"],
        415,
        Some("Content-Encoding"),
    ),
    (
        &["Host: l", "Content-Encoding: identity", "Content-Encoding: gzip"],
        415,
        Some("Content-Encoding"),
    ),
    (&["Host: l", "Content-Encoding: Identity"], 0, None),
    (
        &["Host: l", "Authorization: Bearer a", "Authorization: Bearer a"],
        400,
        Some("Authorization"),
    ),
    (&["Host: l", "X-API-Key: a", "X-API-Key: a"], 400, Some("X-API-Key")),
    (&["Host: l", "Idempotency-Key: a", "Idempotency-Key: b"], 400, Some("Idempotency-Key")),
    (
        &["Host: l", "Wellspring-Min-Position: 1", "wellspring-min-position: 1"],
        400,
        Some("Wellspring-Min-Position"),
    ),
    (&["Host: l", "Last-Event-ID: 1", "Last-Event-ID: 2"], 400, Some("Last-Event-ID")),
    (&["Host: l", "If-Match: \"c1\"", "If-Match: \"c2\""], 400, Some("If-Match")),
    (
        &["Host: l", "Content-Type: text/plain", "Content-Type: application/json"],
        400,
        Some("Content-Type"),
    ),
    (&["Host: l", "Origin: http://localhost", "Origin: http://evil.example"], 400, Some("Origin")),
    (&["Host: l", "X-Anything: a", "X-Anything: b"], 0, None),
];

#[test]
fn the_same_head_gets_the_same_answer_from_both_stacks_on_every_route() {
    let servers = BOTH_LOOPS.map(|lean| Server::start_with(&lean));
    let link = json!({"url": "https://example.com/x", "alias": "abc"});
    for server in &servers {
        server.client().post("/api/urls", &link).unwrap().expect(201);
    }
    let lines = [
        "POST /e",
        "POST /v1/logs/main/e?type=A",
        "POST /e?colour=red",
        "GET /abc",
        "GET /health",
        "GET /v1/head",
        "POST /v1/append",
        "POST /v1/import",
        "POST /nothing/here",
        "PATCH /health",
    ];
    let mut asked = 0;
    for line in lines {
        for (headers, status, field) in HEADS {
            let chunked = headers.iter().any(|header| header.to_lowercase().contains("chunked"));
            let framed = headers.iter().any(|header| header.starts_with("Content-Length"));
            let mut request = format!("{line} HTTP/1.1\r\n");
            headers.iter().for_each(|header| request.push_str(&format!("{header}\r\n")));
            if !chunked && !framed {
                request.push_str("Content-Length: 1\r\n");
            }
            request.push_str(if chunked { "\r\n1\r\n1\r\n0\r\n\r\n" } else { "\r\n1" });
            let [lean, general, handed_over] =
                [(0, false), (1, false), (0, true)].map(|(at, after)| {
                    let mut client = servers[at].client();
                    if after {
                        // From here on the general stack serves the connection.
                        client.get("/v1/head").unwrap().expect(200);
                    }
                    client.send(request.as_bytes()).unwrap();
                    client.answer().unwrap()
                });
            asked += 3;
            for answer in [&lean, &general, &handed_over] {
                if *status == 0 {
                    assert!(answer.status != 417 && answer.status != 403, "{request:?} {answer:?}");
                } else {
                    let problem = answer.problem(*status);
                    assert_eq!(problem["field"].as_str(), *field, "{request:?} {problem}");
                }
            }
            let statuses = [lean, general, handed_over].map(|answer| answer.status);
            assert_eq!(statuses, [statuses[0]; 3], "{request:?}");
        }
    }
    assert!(asked > 700, "{asked}");
}

#[test]
fn a_key_is_taken_where_it_means_something_and_said_to_be_of_no_use_where_it_may_be_meant_to() {
    let server = Server::start();
    let event = json!({"type": "T", "tags": [], "data": 1});
    let line = format!("{event}\n{event}\n");
    let call = |path: &str, media: &str, body: &str| {
        let headers = [("Content-Type", media), ("Idempotency-Key", "k")];
        server.client().call("POST", path, &headers, body.as_bytes()).unwrap()
    };
    let ndjson = "application/x-ndjson";
    for replayed in [false, true, true] {
        let answer = call("/v1/append", ndjson, &line).expect(200);
        assert_eq!(
            (&answer["replayed"], &answer["last"]),
            (&json!(replayed), &json!(2)),
            "{answer}"
        );
    }
    assert_eq!(call("/v1/import", ndjson, &line).problem(422)["field"], "Idempotency-Key");
    assert_eq!(call("/e", "text/plain", "x").problem(422)["field"], "Idempotency-Key");
    // A read gives the same result each time anyway.
    let query = json!({"query": {"items": []}}).to_string();
    assert_eq!(call("/v1/query", "application/json", &query).expect(200)["head"], 2);
    let count =
        json!({"projections": {"n": {"query": {"items": []}, "reduce": "count"}}}).to_string();
    assert_ne!(call("/v1/project", "application/json", &count).status, 409);
}
