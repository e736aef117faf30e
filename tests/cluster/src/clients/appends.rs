//! Appends of unique numbers, one to three events each.

use super::{Desk, Told, event_id};
use crate::history::{Kind, Outcome};
use crate::http::Request;
use crate::plant::Plant;
use serde_json::json;

/// Client of the node `home`: every node has one that sends all the time.
pub(super) fn run(mut desk: Desk<'_>, home: usize) {
    let node = &desk.world.cluster.nodes[home];
    let plant = desk.world.arguments.plant;
    while !desk.world.has_ended() {
        let number = desk.world.history.number();
        let count = desk.dice.between(1, 3);
        // Known again when it is repeated: by ids of events, by a key of the request, or not at all.
        let (with_ids, with_key) = desk.dice.one(&[(true, false), (false, true), (false, false)]);
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
        let mut request = Request::post("/v1/append", &body);
        if with_key {
            request = request.header("Idempotency-Key", format!("append-{number}"));
        }
        let tries = if with_ids || with_key { desk.dice.one(&[1, 4]) } else { 1 };
        let mut line = desk.line(Kind::Append, node);
        (line.new, line.old) = (number, count);
        if plant == Some(Plant::LostAppend) && desk.dice.percent(1) {
            (line.outcome, line.end_ns) = (Outcome::Done, desk.world.history.now());
            desk.world.history.add(line);
            continue;
        }
        let (_, told) = desk.write_again(node, &request, tries);
        if plant == Some(Plant::Twice) && !with_ids && !with_key && matches!(told, Told::Done(_)) {
            let _ = desk.write(node, &request);
        }
        desk.note(line, told);
        desk.pause();
    }
}
