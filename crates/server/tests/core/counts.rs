//! Counts from the indexes over HTTP.

use crate::server::Server;
use serde_json::{Value, json};

fn fill(server: &Server) {
    let mut client = server.client();
    for chunk in 0..4 {
        let events: Vec<Value> = (0..50)
            .map(|i| {
                let n = chunk * 50 + i;
                let tags =
                    [format!("shop:{}", n % 7), format!("order:{n}"), format!("shop:{}", n % 3)];
                let tags = if n % 7 == n % 3 { &tags[..2] } else { &tags[..] };
                let event_type = ["Placed", "Paid"][n % 2];
                json!({"type": event_type, "tags": tags, "data": {"amount": n}})
            })
            .collect();
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
}

#[test]
fn a_projection_that_only_counts_answers_as_one_that_reads() {
    let server = Server::start_with(&["--segment-bytes", "65536"]);
    fill(&server);
    let mut client = server.client();
    let queries = [
        json!({"items": []}),
        json!({"items": [{"types": ["Paid"]}]}),
        json!({"items": [{"types": ["Paid"]}, {"types": ["Placed", "Paid"]}]}),
        json!({"items": [{"tags": ["shop:1"]}]}),
        json!({"items": [{"types": ["Paid"], "tags": ["shop:2"]}, {"tags": ["shop:1"]}]}),
        json!({"items": [{"types": ["None"]}]}),
    ];
    for (query, after) in queries.iter().flat_map(|query| [0, 17, 200].map(|n| (query, n))) {
        let grouped = json!({"group": {"by": {"tag": "shop"}, "reduce": "count"}});
        let mut body = json!({"after": after, "projections": {
            "all": {"query": query, "reduce": "count", "init": 3},
            "shops": {"query": query, "reduce": grouped}}});
        let counted = client.post("/v1/project", &body).unwrap().expect(200);
        // With a sum as well, the events are read.
        body["projections"]["sum"] = json!({"query": query, "reduce": {"sum": "/amount"}});
        let read = client.post("/v1/project", &body).unwrap().expect(200);
        for name in ["all", "shops"] {
            assert_eq!(counted["states"][name], read["states"][name], "{query} {after}");
        }
        assert_eq!(counted["appendCondition"], read["appendCondition"]);
        assert_eq!(counted["position"], read["position"]);
    }
    for reduce in [json!("count"), json!({"sum": "/amount"})] {
        let body =
            json!({"after": 5_000, "projections": {"p": {"query": queries[0], "reduce": reduce}}});
        let ahead = client.post("/v1/project", &body).unwrap().problem(409);
        assert_eq!(
            (&ahead["type"], &ahead["head"]),
            (&json!("/problems/another-history"), &json!(200))
        );
    }
}

#[test]
fn more_groups_than_there_may_be_are_refused_as_by_a_read() {
    let server = Server::start();
    let mut client = server.client();
    for chunk in 0..11 {
        let events: Vec<Value> = (0..1_000)
            .map(|i| json!({"type": "T", "tags": [format!("n:{}", chunk * 1_000 + i)], "data": 1}))
            .collect();
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
    let grouped = json!({"group": {"by": {"tag": "n"}, "reduce": "count"}});
    let body = json!({"projections": {"p": {"query": {"items": []}, "reduce": grouped}}});
    let problem = client.post("/v1/project", &body).unwrap();
    assert!(problem.status == 413 || problem.status == 422, "{problem:?}");
    assert!(problem.text().contains("groups"), "{}", problem.text());
}

#[test]
fn types_come_in_pages() {
    let server = Server::start();
    fill(&server);
    let mut client = server.client();
    let all = client.get("/v1/types").unwrap().expect(200);
    let both = json!([{"type": "Paid", "count": 100}, {"type": "Placed", "count": 100}]);
    assert_eq!(all, json!({"types": both, "next": null}));
    let first = client.get("/v1/types?limit=1").unwrap().expect(200);
    assert_eq!(first, json!({"types": [both[0]], "next": "Paid"}));
    let second = client.get("/v1/types?limit=1&after=Paid").unwrap().expect(200);
    assert_eq!(second, json!({"types": [both[1]], "next": null}));
    client.get("/v1/types?limit=10001").unwrap().problem(422);
    let log = client.get("/v1/logs/main").unwrap().expect(200);
    assert_eq!((&log["types"], &log["more_types"]), (&json!(2), &json!(false)));
}
