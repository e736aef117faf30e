//! Rubbish in: every malformed input gets the documented problem that names the
//! field, and the server goes on.

use crate::client::Client;
use crate::server::Server;
use std::time::Duration;

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
