//! Reads by time, of events that were recorded at times the test knows: those of an import.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};

/// Appends events numbered from 1, one for each of these minutes of an hour.
fn record(client: &mut Client, minutes: &[u32]) {
    let line = |(number, minute): (usize, &u32)| {
        let time = format!("2026-01-02T03:{minute:02}:00Z");
        json!({"type": "T", "tags": ["t:1"], "data": number + 1, "recorded_at": time}).to_string()
    };
    let lines: Vec<String> = minutes.iter().enumerate().map(line).collect();
    let headers = [("Content-Type", "application/x-ndjson")];
    let body = lines.join("\n");
    let path = "/v1/import?recorded_at=keep";
    client.call("POST", path, &headers, body.as_bytes()).unwrap().expect(200);
}

const MINUTES: [u32; 7] = [0, 10, 10, 10, 20, 30, 30];

fn positions(events: &Value) -> Vec<u64> {
    events.as_array().unwrap().iter().map(|event| event["position"].as_u64().unwrap()).collect()
}

fn at(minute: u32) -> String {
    format!("2026-01-02T03:{minute:02}:00Z")
}

#[test]
fn a_page_begins_and_ends_with_times_and_names_their_positions() {
    let server = Server::start();
    let mut client = server.client();
    record(&mut client, &MINUTES);
    let head = client.get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
    for (since, until, first, end) in [
        (10, 30, 2, 6),
        (0, 10, 1, 2),
        (11, 12, 5, 5),
        (30, 31, 6, 8),
        (5, 5, 2, 2),
        (20, 10, 5, 2),
    ] {
        let expected = first..end;
        let query = format!("since={}&until={}", at(since), at(until));
        let page = client.get(&format!("/v1/events?{query}")).unwrap().expect(200);
        assert_eq!(positions(&page["events"]), expected.clone().collect::<Vec<_>>(), "{page}");
        assert_eq!((&page["since"], &page["until"]), (&json!(first), &json!(end)), "{page}");
        assert_eq!((&page["head"], &page["next"]), (&json!(head), &Value::Null));
        let back = client.get(&format!("/v1/events?{query}&order=desc")).unwrap().expect(200);
        assert_eq!(positions(&back["events"]), expected.rev().collect::<Vec<_>>(), "{back}");
    }
    // Pages go on by `after`, whichever way.
    for (order, expected) in [("asc", [2, 3, 4, 5]), ("desc", [5, 4, 3, 2])] {
        let (mut found, mut after) = (Vec::new(), Value::Null);
        loop {
            let body = json!({"query": {"items": [{"tags": ["t:1"]}]}, "since": at(10), "until": at(30),
                              "after": after, "limit": 3, "order": order});
            let page = client.post("/v1/query", &body).unwrap().expect(200);
            found.extend(positions(&page["events"]));
            after = page["next"].clone();
            if after.is_null() {
                break;
            }
        }
        assert_eq!(found, expected, "{order}");
    }
    let lines = [("Accept", "application/x-ndjson")];
    let path = format!("/v1/events?since={}&until={}", at(20), at(31));
    let stream = client.call("GET", &path, &lines, b"").unwrap().text();
    assert_eq!(stream.lines().count(), 3, "{stream}");
    for wrong in ["yesterday", "2026-13-01", ""] {
        let refused = client.get(&format!("/v1/events?since={wrong}")).unwrap().problem(422);
        assert_eq!(refused["field"], "since", "{refused}");
        let body = json!({"query": {"items": []}, "until": wrong});
        assert_eq!(client.post("/v1/query", &body).unwrap().problem(422)["field"], "until");
    }
}

fn project(client: &mut Client, more: &Value) -> Answer {
    let sum = json!({"types": ["T"], "reduce": {"sum": ""}});
    let count = json!({"types": ["T"], "reduce": "count"});
    // Counted from the index, and folded.
    let counted = json!({"projections": {"count": count}});
    let folded = json!({"projections": {"count": count, "sum": sum}});
    let [counted, folded] = [counted, folded].map(|mut body| {
        let more = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(more);
        client.post("/v1/project", &body).unwrap()
    });
    assert_eq!(counted.status, folded.status);
    if counted.status == 200 {
        let (counted, folded) = (counted.json(), folded.json());
        assert_eq!(counted["states"]["count"], folded["states"]["count"]);
        for member in ["position", "since", "until", "appendCondition"] {
            assert_eq!(counted[member], folded[member], "{member}");
        }
    }
    folded
}

#[test]
fn a_projection_of_times_past_has_no_condition() {
    let server = Server::start();
    let mut client = server.client();
    record(&mut client, &MINUTES);
    let head = client.get("/v1/head").unwrap().expect(200)["head"].clone();
    let both = json!({"since": at(10), "until": at(30)});
    let answer = project(&mut client, &both).expect(200);
    assert_eq!(answer["states"], json!({"count": 4, "sum": 14}));
    assert_eq!(
        (&answer["since"], &answer["until"], &answer["position"]),
        (&json!(2), &json!(6), &json!(5))
    );
    assert!(answer.get("appendCondition").is_none(), "{answer}");
    let since = project(&mut client, &json!({"since": at(20)})).expect(200);
    assert_eq!(since["states"], json!({"count": 3, "sum": 18}));
    assert_eq!((&since["position"], &since["appendCondition"]["after"]), (&head, &head));
    let after = project(&mut client, &json!({"since": at(10), "after": 4})).expect(200);
    assert_eq!(after["states"]["count"], 3, "whichever is later");
    let future = project(&mut client, &json!({"until": "9999-01-01"})).expect(200);
    assert_eq!((&future["states"]["count"], &future["position"]), (&json!(7), &head));
    assert_eq!(project(&mut client, &json!({"since": 7})).problem(422)["field"], "since");
}

#[test]
fn a_subscription_begins_with_a_time() {
    let mut server = Server::start();
    let mut client = server.client();
    record(&mut client, &MINUTES);
    let events = [("Accept", "text/event-stream")];
    let path = format!("/v1/events?until={}", at(10));
    assert_eq!(client.call("GET", &path, &events, b"").unwrap().problem(422)["field"], "until");
    let path = format!("GET /v1/events?since={}", at(20));
    let request = format!("{path} HTTP/1.1\r\nHost: l\r\nAccept: text/event-stream\r\n\r\n");
    let mut stream = server.client();
    stream.send(request.as_bytes()).unwrap();
    let mut ids = Vec::new();
    while ids.len() < 4 {
        let line = stream.line().unwrap().expect("a stream");
        if let Some(id) = line.strip_prefix("id: ") {
            ids.push(id.split('@').next().unwrap().parse::<u64>().unwrap());
        }
    }
    assert_eq!(ids, [4, 5, 6, 7], "where it begins, and the events");
    // What comes before a time that has not come is not sent.
    let mut stream = server.client();
    let path = "GET /v1/events?since=9999-01-01&type=U";
    let request = format!("{path} HTTP/1.1\r\nHost: l\r\nAccept: text/event-stream\r\n\r\n");
    stream.send(request.as_bytes()).unwrap();
    while stream.line().unwrap().expect("a stream") != ": wellspring" {}
    client.post("/v1/append", &json!({"events": [{"type": "U", "data": 1}]})).unwrap().expect(200);
    server.terminate();
    while let Ok(Some(line)) = stream.line() {
        assert!(!line.starts_with("data: {\"position\":8,\"type\""), "{line}");
    }
}
