//! Appends of unique numbers, one to three events each.

use super::{TrialClient, World, WriteAnswer, event_id};
use crate::history::{Kind, Outcome};
use crate::http::Request;
use crate::plant::Plant;
use serde_json::json;
use std::thread::Scope;
use std::time::Duration;

/// Time between two new clients.
const NEWCOMERS: Duration = Duration::from_millis(100);

/// Short-lived clients that send one request to each log: others may still wait for answers of a
/// dead node.
pub(super) fn newcomers<'scope>(scope: &'scope Scope<'scope, '_>, world: &'scope World) {
    for thrower in 10_000.. {
        let before = world.history.now();
        std::thread::sleep(NEWCOMERS);
        let after = world.history.now();
        if after - before > 4 * NEWCOMERS.as_nanos() as u64 {
            world.stalls.lock().expect("stalls").push((before, after));
        }
        if world.has_ended() {
            return;
        }
        for log in &world.cluster.logs {
            scope.spawn(move || {
                let mut client = TrialClient::new(world, thrower);
                let node = client.any_node();
                let number = world.history.number();
                let event = json!({"type": "Numbered", "data": {"n": number, "part": 0, "of": 1}});
                let body = json!({"events": [event]});
                let mut line = client.line(Kind::Append, node);
                (line.new, line.old, line.log) = (number, 1, log.clone());
                let target = format!("/v1/logs/{log}/append");
                let told = client.write(node, &Request::post(&target, &body));
                client.note(line, told);
            });
        }
    }
}

/// The permanent client of the node `home`.
pub(super) fn run(mut client: TrialClient<'_>, home: usize) {
    let node = &client.world.cluster.nodes[home];
    let plant = client.world.arguments.plant;
    while !client.world.has_ended() {
        let number = client.world.history.number();
        let count = client.dice.between(1, 3);
        // A repeated request is recognized by event ids, by a request key, or not at all.
        let (with_ids, with_key) = client.dice.one(&[(true, false), (false, true), (false, false)]);
        let events: Vec<_> = (0..count)
            .map(|part| {
                let mut event =
                    json!({"type": "Numbered", "data": {"n": number, "part": part, "of": count}});
                if with_ids {
                    event["id"] = json!(event_id(number, part));
                }
                event
            })
            .collect();
        let body = json!({"events": events});
        let log = client.any_log();
        let target = format!("/v1/logs/{log}/append");
        let mut request = Request::post(&target, &body);
        if with_key {
            request = request.header("Idempotency-Key", format!("append-{number}"));
        }
        let tries = if with_ids || with_key { client.dice.one(&[1, 4]) } else { 1 };
        let mut line = client.line(Kind::Append, node);
        (line.new, line.old, line.log) = (number, count, log.to_owned());
        if plant == Some(Plant::LostAppend) && client.dice.percent(1) {
            (line.outcome, line.end_ns) = (Outcome::Done, client.world.history.now());
            client.world.history.add(line);
            continue;
        }
        let (_, told) = client.write_again(node, &request, tries);
        if plant == Some(Plant::Twice)
            && !with_ids
            && !with_key
            && matches!(told, WriteAnswer::Done(_))
        {
            let _ = client.write(node, &request);
        }
        client.note(line, told);
        client.pause();
    }
}
