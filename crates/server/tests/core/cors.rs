//! CORS for browsers: which pages may use the server, and which headers its images carry.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::json;

const PAGE: &str = "https://app.example.com";
const OTHER: &str = "https://evil.example";

fn from(client: &mut Client, method: &str, path: &str, origin: &str) -> Answer {
    let body: &[u8] = if method == "POST" { b"{}" } else { b"" };
    let headers = [("Origin", origin), ("Content-Type", "application/json")];
    client.call(method, path, &headers, body).unwrap()
}

fn preflight(client: &mut Client, path: &str, origin: &str) -> Answer {
    let headers = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,content-type"),
    ];
    client.call("OPTIONS", path, &headers, b"").unwrap()
}

fn allowed(answer: &Answer) -> Option<&str> {
    answer.header("access-control-allow-origin")
}

fn any_cors(answer: &Answer) -> bool {
    answer.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("access-control"))
}

/// The header's lower-cased names.
fn names(answer: &Answer, header: &str) -> Vec<String> {
    let line = answer.header(header).unwrap_or_else(|| panic!("{header}"));
    line.split(',').map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[test]
fn off_by_default() {
    let server = Server::start();
    let mut client = server.client();
    for (answer, status) in [
        // Without accounts a page of another site may do nothing at all.
        (from(&mut client, "GET", "/v1/head", PAGE), 403),
        (from(&mut client, "POST", "/e", PAGE), 403),
        (from(&mut client, "GET", "/v1/head", "http://localhost:5173"), 200),
        (preflight(&mut client, "/v1/append", PAGE), 204),
    ] {
        assert!(answer.status == status && !any_cors(&answer), "{answer:?}");
        assert_eq!(answer.header("vary"), None);
    }
}

#[test]
fn pages_that_may_are_told_so_on_every_answer() {
    let origins = format!("{PAGE},http://localhost:5173");
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let server = Server::start_with(&["--cors-origins", &origins, lean]);
        let mut client = server.client();
        for origin in [PAGE, "http://localhost:5173"] {
            for (method, path, status) in [
                ("GET", "/v1/head", 200),
                ("GET", "/v1/events/99", 404),
                ("GET", "/lookup", 200),
                ("GET", "/nothing/here", 404),
                ("DELETE", "/v1/head", 405),
                ("POST", "/v1/append", 422),
                ("POST", "/e?type=A", 202),
            ] {
                // A connection each: the lean loop reads the head.
                let answer = from(&mut server.client(), method, path, origin);
                assert_eq!(answer.status, status, "{method} {path}");
                assert_eq!(allowed(&answer), Some(origin), "{method} {path}");
                assert_eq!(answer.header("vary"), Some("Origin"));
                assert_eq!(answer.header("access-control-allow-credentials"), None);
                let shown = names(&answer, "access-control-expose-headers");
                for header in ["wellspring-position", "etag"] {
                    assert!(shown.contains(&header.to_owned()), "{shown:?}");
                }
            }
        }
        for origin in
            [OTHER, "null", "https://app.example.com.evil.example", "HTTPS://app.example.com"]
        {
            for path in ["/v1/head", "/nothing/here"] {
                let answer = from(&mut client, "GET", path, origin);
                assert!(!any_cors(&answer), "{origin}");
                assert_eq!(answer.header("vary"), Some("Origin"));
            }
            assert_eq!(allowed(&from(&mut server.client(), "POST", "/e", origin)), None);
        }
    }
}

#[test]
fn a_preflight_needs_no_credentials_and_says_what_may_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let env = ["env", "WELLSPRING_ADMIN_PASSWORD=correct horse"];
    let server = Server::start_under(&env, dir.path(), &["--cors-origins", PAGE]);
    let mut client = server.client();
    for path in ["/v1/append", "/e", "/v1/logs/absent/append", "/api/urls", "/auth/token"] {
        let answer = preflight(&mut client, path, PAGE);
        assert_eq!((answer.status, allowed(&answer)), (204, Some(PAGE)), "{path}");
        assert!(names(&answer, "access-control-allow-methods").contains(&"post".to_owned()));
        let headers = names(&answer, "access-control-allow-headers");
        for header in [
            "authorization",
            "content-type",
            "idempotency-key",
            "x-api-key",
            "if-match",
            "if-none-match",
        ] {
            assert!(headers.contains(&header.to_owned()), "{header}");
        }
        assert!(answer.header("access-control-max-age").is_some());
        assert!(!any_cors(&preflight(&mut client, path, OTHER)), "{path}");
    }
    assert_eq!(preflight(&mut client, "/nothing/here", PAGE).status, 404);
    // The request itself does need credentials, and its page can read that it does.
    for (method, path) in [("GET", "/v1/head"), ("POST", "/e")] {
        let refused = from(&mut client, method, path, PAGE);
        refused.problem(401);
        assert_eq!(allowed(&refused), Some(PAGE));
        assert!(
            names(&refused, "access-control-expose-headers")
                .contains(&"www-authenticate".to_owned())
        );
    }
}

#[test]
fn any_page_is_a_star_and_never_with_credentials() {
    let server = Server::start_with(&["--cors-origins", "*"]);
    let mut client = server.client();
    for origin in [OTHER, "null"] {
        for answer in [
            from(&mut client, "GET", "/v1/head", origin),
            preflight(&mut client, "/v1/append", origin),
        ] {
            assert_eq!((allowed(&answer), answer.header("vary")), (Some("*"), None));
            assert_eq!(answer.header("access-control-allow-credentials"), None);
        }
    }
}

#[test]
fn without_an_origin_the_lean_loop_keeps_its_requests_and_redirects_stay_as_they_are() {
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let server = Server::start_with(&["--cors-origins", PAGE, lean]);
        let mut client = server.client();
        let link = json!({"url": "https://example.com/x", "alias": "abc"});
        client.post("/api/urls", &link).unwrap().expect(201);
        for _ in 0..2 {
            let found = from(&mut server.client(), "GET", "/abc", PAGE);
            assert_eq!(found.status, 302, "{}", found.text());
            assert!(!any_cors(&found));
        }
        let plain = server.client().call("POST", "/e", &[], b"{}").unwrap();
        assert!(plain.status == 202 && !any_cors(&plain));
    }
}

#[test]
fn pictures_are_shut_in_and_nothing_is_guessed() {
    let server = Server::start();
    let mut client = server.client();
    let link = json!({"url": "https://example.com/x", "alias": "abc"});
    client.post("/api/urls", &link).unwrap().expect(201);
    let picture = client.get("/abc.qr").unwrap();
    assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/svg+xml")));
    for (header, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(picture.header(header), Some(value));
    }
    let policy = picture.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    assert_eq!(picture.header("strict-transport-security"), None);
    let figures = client.get("/metrics").unwrap();
    assert_eq!(figures.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(client.get("/v1/head").unwrap().header("content-security-policy"), None);
}
