//! `POST /e`: consecutive numbers on a connection.

use super::{Desk, WriteAnswer};
use crate::history::{Kind, Outcome};
use crate::http::Request;
use crate::plant::Plant;

/// Number of requests between two pauses.
const BURST: u64 = 3;

/// The client of the node `home`.
pub(super) fn run(mut desk: Desk<'_>, home: usize) {
    let node = &desk.world.cluster.nodes[home];
    let plant = desk.world.arguments.plant;
    let mut sequence = 0;
    while !desk.world.has_ended() {
        for _ in 0..BURST {
            if !desk.http.is_connected(node.address) && sequence > 0 {
                // The order is promised per connection.
                desk.who = desk.world.history.number();
                sequence = 0;
            }
            sequence += 1;
            let mut line = desk.line(Kind::Ingest, node);
            (line.key, line.new) = (desk.who.to_string(), sequence);
            if plant == Some(Plant::LostIngest) && desk.dice.percent(1) {
                (line.outcome, line.end_ns) = (Outcome::Done, desk.world.history.now());
                desk.world.history.add(line);
                continue;
            }
            let body = format!("{{\"connection\":{},\"n\":{sequence}}}", desk.who);
            let mut request = Request::post("/e", &serde_json::Value::Null);
            request.body = body.into_bytes();
            let told = desk.write(node, &request);
            let is_done = matches!(told, WriteAnswer::Done(_));
            desk.note(line, told);
            if !is_done {
                std::thread::sleep(std::time::Duration::from_millis(100));
                break;
            }
        }
        desk.pause();
    }
}
