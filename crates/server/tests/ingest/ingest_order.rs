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
