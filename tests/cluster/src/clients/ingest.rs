//! `POST /e`: consecutive numbers on a connection.

use super::{TrialClient, WriteAnswer};
use crate::history::{Kind, Outcome};
use crate::http::Request;
use crate::plant::Plant;

/// Number of requests between two pauses.
const BURST: u64 = 3;

/// The client of the node `home`.
pub(super) fn run(mut client: TrialClient<'_>, home: usize) {
    let node = &client.world.cluster.nodes[home];
    let plant = client.world.arguments.plant;
    let mut sequence = 0;
    while !client.world.has_ended() {
        for _ in 0..BURST {
            if !client.http.is_connected(node.address) && sequence > 0 {
                // The order is promised per connection.
                client.who = client.world.history.number();
                sequence = 0;
            }
            sequence += 1;
            let mut line = client.line(Kind::Ingest, node);
            (line.key, line.new) = (client.who.to_string(), sequence);
            if plant == Some(Plant::LostIngest) && client.dice.percent(1) {
                (line.outcome, line.end_ns) = (Outcome::Done, client.world.history.now());
                client.world.history.add(line);
                continue;
            }
            let body = format!("{{\"connection\":{},\"n\":{sequence}}}", client.who);
            let mut request = Request::post("/e", &serde_json::Value::Null);
            request.body = body.into_bytes();
            let told = client.write(node, &request);
            let is_done = matches!(told, WriteAnswer::Done(_));
            client.note(line, told);
            if !is_done {
                std::thread::sleep(std::time::Duration::from_millis(100));
                break;
            }
        }
        client.pause();
    }
}
