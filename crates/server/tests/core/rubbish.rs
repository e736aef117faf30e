//! Invalid input: every malformed request gets the documented problem that names the field, and the
//! server keeps running.

use crate::client::Client;
use crate::server::{BOTH_LOOPS, Server};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wellspring_patience::PATIENCE;

#[test]
fn malformed_appends_get_a_problem_that_names_the_field() {
    let server = Server::start();
    let mut client = server.client();
    let long = "x".repeat(256);
    let many_tags: Vec<String> = (0..65).map(|i| format!("\"t:{i}\"")).collect();
    let event = |inner: &str| format!(r#"{{"events":[{{{inner}}}]}}"#);
    let cases: Vec<(u16, &str, String)> = vec![
        (400, "", "".into()),
        (400, "", "{".into()),
        (400, "", r#"{"events":[{"type":"T","tags":[],"data":01}]}"#.into()),
        (422, "events", "{}".into()),
        (422, "events", r#"{"events":[]}"#.into()),
        (422, "events", r#"{"events":{}}"#.into()),
        (422, "evnets", r#"{"evnets":[]}"#.into()),
        (422, "events[0].type", event(r#""tags":[],"data":1"#)),
        (422, "events[0].type", event(r#""type":7,"tags":[],"data":1"#)),
        (422, "events[0].type", event(r#""type":"","tags":[],"data":1"#)),
        (413, "events[0].type", event(&format!(r#""type":"{long}","tags":[],"data":1"#))),
        (422, "events[0].tags[1]", event(r#""type":"T","tags":["a","a"],"data":1"#)),
        (422, "events[0].tags[0]", event(r#""type":"T","tags":[null],"data":1"#)),
        (422, "events[0].tags[0]", event(r#""type":"T","tags":["a\u0000b"],"data":1"#)),
        (413, "events[0].tags", event(&format!(r#""type":"T","tags":[{}],"data":1"#, many_tags.join(",")))),
        (422, "events[0].id", event(r#""type":"T","tags":[],"data":1,"id":"nope""#)),
        (422, "events[0].data_base64", event(r#""type":"T","tags":[],"data_base64":"%%%""#)),
        (422, "events[0].metadata.k", event(r#""type":"T","tags":[],"data":1,"metadata":{"k":1}"#)),
        (422, "events[0].colour", event(r#""type":"T","tags":[],"data":1,"colour":"red""#)),
        (422, "ack", r#"{"events":[{"type":"T","tags":[],"data":1}],"ack":"maybe"}"#.into()),
        (
            422,
            "condition.failIfEventsMatch.items[0].types[0]",
            r#"{"events":[{"type":"T","tags":[],"data":1}],"condition":{"failIfEventsMatch":{"items":[{"types":[""]}]}}}"#.into(),
        ),
        (
            422,
            "condition.after",
            r#"{"events":[{"type":"T","tags":[],"data":1}],"condition":{"after":-1}}"#.into(),
        ),
    ];
    for (status, field, body) in cases {
        let headers = [("Content-Type", "application/json")];
        let answer = client.call("POST", "/v1/append", &headers, body.as_bytes()).unwrap();
        let problem = answer.problem(status);
        if !field.is_empty() {
            assert_eq!(problem["field"], field, "{body}: {problem}");
        }
    }
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 0, "nothing was stored");
}

#[test]
fn what_is_said_of_a_body_is_true() {
    let server = Server::start();
    let mut client = server.client();
    let mut told = |path: &str, media: &str, body: &str, status: u16| {
        let headers = [("Content-Type", media)];
        let problem = client.call("POST", path, &headers, body.as_bytes()).unwrap().problem(status);
        problem["detail"].as_str().unwrap().to_owned()
    };
    let json = "application/json";
    // A word that only begins like one of JSON's is an error.
    for (body, column) in
        [("nope", 1), ("nul", 1), ("nullx", 1), ("  trux", 3), ("{\"events\":falsy}", 11)]
    {
        let detail = told("/v1/append", json, body, 400);
        assert!(detail.contains(&format!("line 1, column {column}")), "{body}: {detail}");
    }
    assert!(told("/v1/append", json, "null", 422).contains("not null"));
    // Both fields are named, in either order.
    for (body, field, other) in [
        (r#""data":1,"data_base64":"AA==""#, "data_base64", "data"),
        (r#""data_base64":"AA==","data":1"#, "data", "data_base64"),
    ] {
        let body = format!(r#"{{"events":[{{"type":"T",{body}}}]}}"#);
        let detail = told("/v1/append", json, &body, 422);
        let both = format!("events[0].{field} cannot be combined with events[0].{other};");
        assert!(detail.contains(&both), "{detail}");
    }
    let twice = r#"{"events":[{"type":"T","data":1,"data":2}]}"#;
    assert!(
        told("/v1/append", json, twice, 422).contains("events[0].data is given more than once")
    );
    // For lines the error names the line in the body, and nothing else.
    let lines = "{\"type\":\"T\",\"data\":1}\n{\"type\":\"T\",\"data\":nope}\n";
    for path in ["/v1/append", "/v1/import", "/e"] {
        let body = if path == "/e" { "1\nnope\n" } else { lines };
        let detail = told(path, "application/x-ndjson", body, 422);
        assert!(detail.contains("line 2") && detail.contains("column"), "{path}: {detail}");
        assert!(!detail.contains("line 1"), "{path}: {detail}");
    }
}

#[test]
fn a_body_that_ends_early_is_told_in_our_words() {
    let server = Server::start();
    for path in ["/v1/append", "/v1/import", "/e"] {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: t\r\nContent-Type: application/x-ndjson\r\n");
        for (framing, told) in [
            ("Content-Length: 100\r\n\r\n{\"type\"", "ended early"),
            ("Transfer-Encoding: chunked\r\n\r\nff\r\n{\"type\"", "ended early"),
            ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", "chunked encoding"),
        ] {
            let mut client = server.client();
            client.send(format!("{head}{framing}").as_bytes()).unwrap();
            let stream = client.into_stream();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let problem = crate::client::Client::over(stream).answer().unwrap().problem(400);
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(told), "{path} {framing}: {detail}");
            assert!(!detail.contains("connection"), "{path} {framing}: {detail}");
        }
    }
}

#[test]
fn a_query_that_asks_for_too_much_is_a_broken_rule_that_names_its_field() {
    let server = Server::start();
    let mut client = server.client();
    let texts = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    let item = |types: usize, tags: usize| json!({"types": texts(types), "tags": texts(tags)});
    for (items, field, limit) in [
        (vec![item(257, 0)], "items[0].types", 256),
        (vec![item(0, 65)], "items[0].tags", 64),
        (vec![item(1, 0); 257], "items", 256),
        (
            (0..16)
                .map(|n| json!({"types": vec![n.to_string(); 256], "tags": []}))
                .chain([json!({"types": ["last"], "tags": []})])
                .collect(),
            "items",
            4_096,
        ),
    ] {
        let query = json!({"items": items});
        let append = json!({
            "events": [{"type": "T", "data": 1}], "condition": {"failIfEventsMatch": query}
        });
        let project = json!({"projections": {"p": {"query": query, "reduce": "count"}}});
        for (path, body, before) in [
            ("/v1/query", json!({"query": query}), "query."),
            ("/v1/append", append, "condition.failIfEventsMatch."),
            ("/v1/project", project, "projections"),
        ] {
            let problem = client.post(path, &body).unwrap().problem(422);
            assert_eq!(problem["limit"], limit, "{path}: {problem}");
            let named = problem["field"].as_str().unwrap();
            assert!(named.starts_with(before), "{path}: {problem}");
            let joint = path == "/v1/project" && limit == 4_096;
            assert!(joint || named.ends_with(field), "{path}: {problem}");
        }
    }
}

#[test]
fn all_problems_are_listed_and_each_leads_to_its_own() {
    let server = Server::start();
    let mut client = server.client();
    let list = client.get("/problems").unwrap().expect(200);
    let listed = list["problems"].as_array().unwrap();
    assert!(listed.len() > 60, "{list}");
    let browser = [("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];
    let page = client.call("GET", "/problems", &browser, b"").unwrap();
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    for kind in listed {
        let path = kind["type"].as_str().unwrap();
        assert!(page.text().contains(&format!("<a href=\"{path}\">")), "{path}");
        assert_eq!(client.get(path).unwrap().expect(200)["title"], kind["title"]);
    }
}

#[test]
fn a_problem_is_explained_in_the_form_that_is_asked_for() {
    let server = Server::start();
    let mut client = server.client();
    let mut get = |accept: &str| {
        client.call("GET", "/problems/append-condition-failed", &[("Accept", accept)], b"").unwrap()
    };
    let json = get("*/*").expect(200);
    assert_eq!(
        (&json["status"], &json["type"]),
        (&409.into(), &"/problems/append-condition-failed".into())
    );
    let remedy = json["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("decide again")
            && json["again"].as_str().unwrap().contains("before retrying")
    );
    let text = get("text/plain");
    assert!(
        text.header("content-type").unwrap().starts_with("text/plain")
            && text.text().contains(remedy)
    );
    let page = get("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert!(page.text().contains(remedy) && page.header("vary") == Some("Accept"));
    client.get("/problems/nonsense").unwrap().problem(404);
}

#[test]
fn non_utf8_and_too_deep_bodies_are_refused() {
    let server = Server::start();
    let mut client = server.client();
    let headers = [("Content-Type", "application/json")];
    let body = b"{\"events\":[{\"type\":\"T\xff\",\"tags\":[],\"data\":1}]}";
    client.call("POST", "/v1/append", &headers, body).unwrap().problem(400);
    let deep = format!(
        "{{\"events\":[{{\"type\":\"T\",\"tags\":[],\"data\":{}{}}}]}}",
        "[".repeat(300_000),
        "]".repeat(300_000)
    );
    let answer = client.call("POST", "/v1/append", &headers, deep.as_bytes()).unwrap();
    assert!([200, 400, 413, 422].contains(&answer.status), "{}", answer.status);
    server.client().get("/health").unwrap().expect(200);
}

#[test]
fn oversized_bodies_are_refused_with_the_limit() {
    let server = Server::start();
    let event = |len: usize| {
        format!(r#"{{"events":[{{"type":"T","tags":[],"data":"{}"}}]}}"#, "x".repeat(len))
    };
    let headers = [("Content-Type", "application/json")];
    let answer =
        server.client().call("POST", "/v1/append", &headers, event(1 << 20).as_bytes()).unwrap();
    let problem = answer.problem(413);
    assert_eq!(problem["field"], "events[0].data");
    assert_eq!(problem["limit"], 1 << 20);
    // Refused by its announced length, before it is sent.
    let mut client = server.client();
    client
        .send(b"POST /v1/append HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n")
        .unwrap();
    client.answer().unwrap().problem(413);
}

#[test]
fn unknown_places_methods_and_parameters_are_named() {
    let server = Server::start();
    let mut client = server.client();
    client.get("/v1/nowhere").unwrap().problem(404);
    let answer = client.call("PATCH", "/v1/append", &[], b"").unwrap();
    answer.problem(405);
    assert!(answer.header("allow").unwrap().contains("POST"));
    for (query, field) in [
        ("limit=ten", "limit"),
        ("limit=0", "limit"),
        ("after=-1", "after"),
        ("order=up", "order"),
        ("colour=red", "colour"),
        ("query=%7B", "query"),
        ("consistency=strong", "consistency"),
        ("type=", "type"),
    ] {
        let problem = client.get(&format!("/v1/events?{query}")).unwrap();
        assert!([400, 413, 422].contains(&problem.status), "{query}: {}", problem.status);
        let problem = problem.problem(problem.status);
        assert_eq!(problem["field"], field, "{query}: {problem}");
    }
    client
        .call("POST", "/v1/append", &[("Content-Type", "text/plain")], b"{}")
        .unwrap()
        .problem(415);
    client.get("/v1/events/zero").unwrap().problem(422);
}

#[test]
fn broken_framing_hurts_only_its_own_connection() {
    let server = Server::start();
    let rubbish: [&[u8]; 7] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /v1/append HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/append HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/head HTTP/9.9\r\n\r\n",
        b"POST /v1/append HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{\"ev",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrubbish rubbish rubbish",
    ];
    for bytes in rubbish {
        let mut client = server.client();
        client.send(bytes).unwrap();
        drop(client);
    }
    let mut bomb = b"GET /v1/head HTTP/1.1\r\n".to_vec();
    for i in 0..20_000 {
        bomb.extend_from_slice(format!("X-{i}: {}\r\n", "y".repeat(50)).as_bytes());
    }
    let mut client = server.client();
    let _ = client.send(&bomb);
    drop(client);
    std::thread::sleep(Duration::from_millis(50));
    let mut client: Client = server.client();
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 0);
}

#[test]
fn both_stacks_refuse_what_two_readers_could_frame_differently() {
    let zeros = format!("Content-Length: {}2\r\n\r\n[]", "0".repeat(19));
    let size = format!("Transfer-Encoding: chunked\r\n\r\n{}2\r\n[]\r\n0\r\n\r\n", "0".repeat(20));
    let framings = [
        ("Content-Length: 2\r\nContent-Length: 2\r\n\r\n[]", Some("Content-Length")),
        (&*zeros, Some("Content-Length")),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
            Some("Content-Length"),
        ),
        (&*size, None),
    ];
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        for path in ["/e", "/v1/append", "/api/urls", "/nowhere"] {
            for (framing, field) in framings {
                // A sound request before it on the same connection is answered first; what comes
                // behind it is not read.
                let mut client = server.client();
                let sound = "GET /health HTTP/1.1\r\nHost: t\r\n\r\n";
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                );
                client.send(format!("{sound}{head}{framing}{sound}").as_bytes()).unwrap();
                client.answer().unwrap().expect(200);
                let answer = client.answer().unwrap();
                if field.is_some() || path != "/nowhere" {
                    let problem = answer.problem(400);
                    let named = problem.get("field").and_then(serde_json::Value::as_str);
                    assert_eq!(named, field, "{path} {framing}: {problem}");
                }
                assert!(client.answer().is_err(), "{path} {framing}: the connection ends");
            }
            // The same, well framed.
            let mut client = server.client();
            let head = format!("POST {path} HTTP/1.1\r\nHost: t\r\n");
            let body = "Transfer-Encoding: chunked\r\n\r\n0000002\r\n[]\r\n0\r\n\r\n";
            client.send(format!("{head}{body}").as_bytes()).unwrap();
            client.answer().unwrap();
            client.get("/health").unwrap().expect(200);
        }
    }
}

#[test]
fn a_request_behind_a_body_that_nobody_reads_does_not_wait() {
    // The watchdog wakes a connection after a quarter of these, which would be too late here.
    let long = ["--header-timeout-ms", "--idle-timeout-ms", "--write-timeout-ms"];
    let flags = long.map(|flag| format!("{flag}=1000000"));
    for which in BOTH_LOOPS {
        let flags: Vec<&str> =
            which.iter().copied().chain(flags.iter().map(String::as_str)).collect();
        let server = Server::start_with(&flags);
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE / 4)).unwrap();
        let text = "POST /nope/x HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n\
                    5\r\nhello\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: l\r\n\r\n";
        stream.write_all(text.as_bytes()).unwrap();
        let (mut told, mut bytes) = (Vec::new(), [0; 4_096]);
        while String::from_utf8_lossy(&told).matches("HTTP/1.1 ").count() < 2 {
            let got = stream.read(&mut bytes).expect("the second answer");
            assert!(got > 0, "{}", String::from_utf8_lossy(&told));
            told.extend_from_slice(&bytes[..got]);
        }
    }
}
