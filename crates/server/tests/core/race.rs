//! 200 keys × 8 concurrent identical conditional appends: one winner per key,
//! the others 409 with the winner's position. With conditions by tag, by type
//! and mixed, and with 100,000 unrelated events in between.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};
use std::sync::Barrier;

const KEYS: usize = 200;
const CONTENDERS: usize = 8;

fn race(server: &Server, request: impl Fn(usize) -> Value + Sync) {
    let start = Barrier::new(CONTENDERS);
    let answers: Vec<Vec<Answer>> = std::thread::scope(|scope| {
        let contender = || {
            let mut client = server.client();
            (0..KEYS)
                .map(|key| {
                    let body = request(key);
                    start.wait();
                    client.post("/v1/append", &body).unwrap()
                })
                .collect()
        };
        let threads: Vec<_> = (0..CONTENDERS).map(|_| scope.spawn(contender)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for key in 0..KEYS {
        let all: Vec<&Answer> = answers.iter().map(|answers| &answers[key]).collect();
        let winners: Vec<&&Answer> = all.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(winners.len(), 1, "key {key}");
        let position = winners[0].json()["first"].clone();
        for loser in all.iter().filter(|answer| answer.status != 200) {
            let problem = loser.problem(409);
            assert_eq!(problem["conflict"]["position"], position, "key {key}: {problem}");
            assert_eq!(problem["retry"], "after-reread");
        }
    }
}

fn append(event_type: &str, tags: &[&str], condition: Value) -> Value {
    let events = [json!({"type": event_type, "tags": tags, "data": {"n": 1}})];
    json!({"events": events, "condition": condition})
}

fn unrelated(client: &mut Client, batches: usize) {
    for _ in 0..batches {
        let events: Vec<Value> = (0..1000)
            .map(|i| json!({"type": "Unrelated", "tags": [format!("u:{i}"), "common"], "data": i}))
            .collect();
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
}

#[test]
fn one_winner_per_key_whatever_the_condition_asks() {
    let server = Server::start();
    let run = |round: &str| {
        race(&server, |key| {
            let tag = format!("{round}:{key}");
            let items = json!([{"tags": [tag]}]);
            append("ByTag", &[&tag], json!({"failIfEventsMatch": {"items": items}, "after": 0}))
        });
        race(&server, |key| {
            let name = format!("ByType-{round}-{key}");
            append(&name, &[], json!({"failIfExists": {"items": [{"types": [name]}]}}))
        });
        race(&server, |key| {
            let tag = format!("mixed-{round}:{key}");
            let items = json!([{"types": ["Mixed", "Other"], "tags": ["common", tag]},
                               {"types": ["Absent"], "tags": ["common"]}]);
            append("Mixed", &["common", &tag], json!({"failIfEventsMatch": {"items": items}}))
        });
    };
    run("first");
    unrelated(&mut server.client(), 100);
    run("second");
}
