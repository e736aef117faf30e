//! What programs write before, in and around JSON: byte-order marks, UTF-16, control characters.

use crate::server::Server;
use serde_json::Value;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const LINES: (&str, &str) = ("Content-Type", "application/x-ndjson");
const MARK: &str = "\u{feff}";

/// Method, path, headers, body.
type Call = (&'static str, &'static str, Vec<(&'static str, &'static str)>, String);

/// Routes that read JSON, and a body for each.
fn bodies() -> Vec<Call> {
    let event = r#"{"type":"T","data":1}"#;
    let item = r#"{"sku":"s","name":"n","topic":"t","price":1,"currency":"EUR","stock":1}"#;
    vec![
        ("POST", "/v1/append", vec![JSON], format!(r#"{{"events":[{event}]}}"#)),
        ("POST", "/v1/append", vec![LINES], format!("{event}\n{MARK}{event}\n")),
        ("POST", "/v1/import", vec![LINES], format!("{event}\n{MARK}{event}\n{MARK}\n")),
        ("POST", "/e", vec![JSON], "{\"e\":1}".to_owned()),
        ("POST", "/e", vec![], "{\"e\":1}".to_owned()),
        ("POST", "/e", vec![LINES], format!("{{\"e\":1}}\n{MARK}{{\"e\":2}}\n")),
        ("POST", "/v1/query", vec![JSON], "{}".to_owned()),
        ("POST", "/v1/catalogue/items", vec![JSON], item.to_owned()),
        ("POST", "/v1/catalogue/items", vec![LINES], format!("{item}\n")),
        ("POST", "/db/neo4j/tx/commit", vec![JSON], r#"{"statements":[]}"#.to_owned()),
        (
            "PUT",
            "/v1/sinks/s",
            vec![JSON],
            r#"{"log":"main","url":"http://127.0.0.1:9/"}"#.to_owned(),
        ),
    ]
}

#[test]
fn a_byte_order_mark_is_no_part_of_json_on_any_route() {
    let server = Server::start();
    for (method, path, headers, body) in bodies() {
        let plain = server.client().call(method, path, &headers, body.as_bytes()).unwrap();
        // An item may be added once.
        let marked = format!("{MARK}{}", body.replace("\"sku\":\"s\"", "\"sku\":\"m\""));
        let marked = server.client().call(method, path, &headers, marked.as_bytes()).unwrap();
        let of_route = format!("{method} {path} {headers:?}");
        assert_eq!(plain.status / 100, marked.status / 100, "{of_route}: {}", marked.text());
        assert!(!marked.text().contains("expected "), "{of_route}: {}", marked.text());
    }
    let all =
        server.client().call("GET", "/v1/events", &[("Accept", LINES.1)], b"").unwrap().text();
    assert!(!all.contains(MARK) && !all.contains("data_base64"), "{all}");
}

#[test]
fn utf_16_is_named() {
    let server = Server::start();
    let wide = |text: &str, mark: bool| -> Vec<u8> {
        let mark = mark.then_some(0xfeff);
        mark.into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    for (method, path, headers, body) in bodies() {
        for mark in [true, false] {
            if headers.is_empty() && !mark {
                continue;
            }
            let body = wide(&body.replace(MARK, ""), mark);
            let answer = server.client().call(method, path, &headers, &body).unwrap();
            assert!(answer.text().contains("UTF-16"), "{path} {headers:?}: {}", answer.text());
        }
    }
    assert_eq!(server.client().get("/v1/head").unwrap().expect(200)["head"], 0);
}

#[test]
fn a_head_with_control_characters_gets_a_problem_on_both_stacks() {
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let server = Server::start_with(&[lean]);
        for line in ["POST /e", "POST /v1/append", "GET /v1/head", "DELETE /v1/links/x"] {
            for header in ["Idempotency-Key: a\x1b[31m", "X: a\0b", "Na\x01me: x", "Na me: x"] {
                let mut client = server.client();
                let request = format!(
                    "{line} HTTP/1.1\r\nHost: t\r\n{header}\r\nContent-Length: 2\r\n\r\n{{}}"
                );
                client.send(request.as_bytes()).unwrap();
                let answer = client.answer().unwrap();
                let of_head = format!("{lean}, {line}, {header:?}");
                assert_eq!(answer.status, 400, "{of_head}");
                let problem: Value = serde_json::from_slice(&answer.body).expect(&of_head);
                assert_eq!(problem["type"], "/problems/bad-request", "{of_head}");
                assert_eq!(client.line().unwrap(), None, "{of_head}: the connection ends");
            }
        }
        // Behind answers to requests of the same connection.
        let mut client = server.client();
        let both = "GET /v1/head HTTP/1.1\r\nHost: t\r\n\r\nGET /v1/head HTTP/1.1\r\nHost: t\r\nX: \x1b\r\n\r\n";
        client.send(both.as_bytes()).unwrap();
        assert_eq!(client.answer().unwrap().status, 200);
        client.answer().unwrap().problem(400);
        let mut client = server.client();
        let long =
            format!("GET /v1/head HTTP/1.1\r\nHost: t\r\nX: {}\r\n\r\n", "x".repeat(2 << 20));
        let _ = client.send(long.as_bytes());
        if let Ok(answer) = client.answer() {
            let problem: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(problem["type"], "/problems/headers-too-large");
        }
    }
}

#[test]
fn what_is_not_base64_is_told_in_words() {
    let server = Server::start();
    for (text, word) in
        [("_-8=", "symbol '_' at offset 0"), ("AAAA\\nAAAA", "a line break at offset 4")]
    {
        let body = format!(r#"{{"events":[{{"type":"T","data_base64":"{text}"}}]}}"#);
        let answer = server.client().call("POST", "/v1/append", &[JSON], body.as_bytes()).unwrap();
        let problem = answer.problem(422);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("is not Base64: ") && detail.contains(word), "{detail}");
    }
}
