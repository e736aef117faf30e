//! Events of one connection are stored in the order they were sent, whatever path they take.

use crate::server::{BOTH_LOOPS, Server};
use serde_json::json;

#[test]
fn an_append_comes_after_the_events_that_its_connection_handed_in_before() {
    for flags in BOTH_LOOPS {
        let server = Server::start_with(&flags);
        let mut client = server.client();
        for n in 0..200 {
            client
                .call("POST", "/e?type=R", &[], (2 * n).to_string().as_bytes())
                .unwrap()
                .expect(202);
            let event = json!({"type": "R", "data": 2 * n + 1});
            client.post("/v1/append", &json!({"events": [event]})).unwrap().expect(200);
        }
        let read = client.get("/v1/events?type=R&limit=1000").unwrap().expect(200);
        let events = read["events"].as_array().unwrap().iter();
        let order: Vec<u64> = events.map(|event| event["data"].as_u64().unwrap()).collect();
        assert_eq!(order, (0..400).collect::<Vec<_>>(), "{flags:?}");
    }
}

#[test]
fn an_append_to_one_log_does_not_hide_what_was_handed_in_to_another() {
    let server = Server::start_with(&["--ingest-flush-ms", "200"]);
    let mut client = server.client();
    client.call("PUT", "/v1/logs/other", &[], b"").unwrap().expect(201);
    let append = |n: u64| json!({"events": [{"type": "R", "data": n}]});
    for n in 0..5 {
        let handed_in = (2 * n).to_string();
        client
            .call("POST", "/v1/logs/other/e?type=R", &[], handed_in.as_bytes())
            .unwrap()
            .expect(202);
        client.post("/v1/append", &append(n)).unwrap().expect(200);
        client.post("/v1/logs/other/append", &append(2 * n + 1)).unwrap().expect(200);
    }
    let read = client.get("/v1/logs/other/events?type=R").unwrap().expect(200);
    let events = read["events"].as_array().unwrap().iter();
    let order: Vec<u64> = events.map(|event| event["data"].as_u64().unwrap()).collect();
    assert_eq!(order, (0..10).collect::<Vec<_>>());
}
