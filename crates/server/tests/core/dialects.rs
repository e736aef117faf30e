//! The two DCB dialects of other projects, used as their own k6 suites do.

use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};

fn encode(value: &Value) -> String {
    value.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn read(client: &mut Client, query: &Value, options: &Value) -> Value {
    let path = format!("/read?query={}&options={}", encode(query), encode(options));
    client.get(&path).unwrap().expect(200)
}

#[test]
fn the_dcb_projects_own_dialect() {
    let server = Server::start();
    let mut client = server.client();
    let event = json!({"type": "E", "tags": ["t:1"], "data": "{\"a\": 1}"});
    let answer = client.post("/append", &json!({"events": [event]})).unwrap().expect(200);
    assert_eq!(answer["appendConditionFailed"], false);
    assert!(answer["durationInMicroseconds"].is_u64());
    let plain = json!({"type": "F", "tags": [], "data": "not json"});
    client.post("/append", &json!({"events": [plain]})).unwrap().expect(200);
    let condition = json!({"failIfEventsMatch": {"items": [{"tags": ["t:1"]}]}, "after": 0});
    let hit = json!({"events": [event], "condition": condition});
    let answer = client.post("/append", &hit).unwrap().expect(200);
    assert_eq!(answer["appendConditionFailed"], true, "a hit is not an HTTP error here");
    let all = read(&mut client, &json!({"items": []}), &json!({"from": 0}));
    assert_eq!(
        all,
        json!([{"type": "E", "tags": ["t:1"], "data": "{\"a\": 1}", "position": 1},
               {"type": "F", "tags": [], "data": "not json", "position": 2}])
    );
    let last = read(&mut client, &json!({"items": []}), &json!({"backwards": true, "limit": 1}));
    assert_eq!(last[0]["position"], 2);
    let by_type = read(&mut client, &json!({"items": [{"types": ["E"]}]}), &json!({}));
    assert_eq!(by_type.as_array().unwrap().len(), 1);
}

#[test]
fn the_crablet_dialect() {
    let server = Server::start_with(&["--dev-endpoints"]);
    let mut client = server.client();
    let event = json!({"type": "CourseDefined", "tags": ["course:1"], "data": "{\"n\":1}"});
    let one = json!({"events": event});
    client.post("/append", &one).unwrap().expect(200);
    let condition = json!({"failIfEventsMatch": {"items": [{"types": ["X"], "tags": ["nocolon"]}]}, "after": "1"});
    let headers = [("Content-Type", "application/json"), ("X-Append-If-Isolation", "serializable")];
    let body = json!({"events": [event], "condition": condition}).to_string();
    let answer = client.call("POST", "/append", &headers, body.as_bytes()).unwrap().expect(200);
    assert_eq!(answer["appendConditionFailed"], false);
    let query = json!({"query": {"items": [{"types": ["CourseDefined"], "tags": ["course:1"]}]}});
    let answer = client.post("/read", &query).unwrap().expect(200);
    assert_eq!(
        (&answer["numberOfMatchingEvents"], &answer["checkpointEventId"]),
        (&json!(2), &json!("2"))
    );
    let none = json!({"query": {"items": [{"types": ["Nothing"], "tags": []}]}});
    let answer = client.post("/read", &none).unwrap().expect(200);
    assert_eq!(answer["numberOfMatchingEvents"], 0);
    assert!(answer.get("checkpointEventId").is_none());
    let projector = json!({"id": "c", "query": query["query"], "initialState": 0, "transitionFunction": "(s) => s + 1"});
    let answer = client.post("/project", &json!({"projectors": [projector]})).unwrap().expect(200);
    assert_eq!(answer["states"]["c"], 2);
    assert!(answer["appendCondition"]["failIfEventsMatch"]["items"].is_array());
    let loaded = client.post("/load-test-data?size=tiny", &json!({})).unwrap().expect(200);
    assert_eq!(
        (&loaded["courses"], &loaded["students"], &loaded["enrollments"]),
        (&json!(5), &json!(10), &json!(18))
    );
    assert_eq!(client.post("/cleanup", &json!({})).unwrap().expect(200)["success"], true);
    let everything = json!({"query": {"items": []}});
    assert_eq!(client.post("/read", &everything).unwrap().expect(200)["numberOfMatchingEvents"], 0);
}

#[test]
fn without_the_flag_the_development_endpoints_are_not_there() {
    let server = Server::start();
    server.client().post("/cleanup", &json!({})).unwrap().problem(404);
}
