//! Registers: a conditional append is a compare-and-swap, and a tag's newest event is the value.

use super::{Desk, WriteAnswer, event_id};
use crate::history::{Kind, Outcome};
use crate::http::{Answer, Request};
use crate::node::Node;
use crate::plant::Plant;
use serde_json::{Value, json};

/// How long a key is used: the checker's work grows with the operations per key.
const KEY_NS: u64 = 4_000_000_000;
/// Number of simultaneous keys.
const KEYS: u64 = 3;

/// The state of a register according to a read.
#[derive(Debug, Clone, Copy)]
struct RegisterRead {
    value: u64,
    /// Position of the event that set it; 0 if there is none.
    position: u64,
}

pub(super) fn run(mut desk: Desk<'_>) {
    // The newest position reported to this client.
    let mut newest = 0;
    while !desk.world.has_ended() {
        let key = key(&mut desk);
        let node = desk.any_node();
        match desk.dice.below(10) {
            0..4 => _ = read(&mut desk, node, &key, Freshness::Linearizable),
            4 => _ = read(&mut desk, node, &key, Freshness::After(newest)),
            5 => _ = read(&mut desk, node, &key, Freshness::Cached),
            _ => {
                let Some(seen) = read(&mut desk, node, &key, Freshness::Local) else { continue };
                let node = desk.any_node();
                newest = swap(&mut desk, node, &key, seen).unwrap_or(newest);
            }
        }
        desk.pause();
    }
}

fn key(desk: &mut Desk<'_>) -> String {
    let generation = desk.world.history.now() / KEY_NS;
    format!("{generation}-{}", desk.dice.below(KEYS))
}

/// The freshness that a read requests.
#[derive(Debug, Clone, Copy)]
enum Freshness {
    Linearizable,
    Local,
    Cached,
    /// Whatever the node has, but at least this position.
    After(u64),
}

fn read(desk: &mut Desk<'_>, node: &Node, key: &str, wanted: Freshness) -> Option<RegisterRead> {
    let is_planted = desk.world.arguments.plant == Some(Plant::StaleReads);
    let consistency = match wanted {
        Freshness::Linearizable if is_planted => "cached",
        Freshness::Linearizable => "linearizable",
        Freshness::Local => "local",
        Freshness::Cached | Freshness::After(_) => "cached",
    };
    let target = format!(
        "/v1/events?tag=register:{key}&order=desc&limit=1&consistency={consistency}&wait_ms=3000"
    );
    let mut request = Request::get(&target);
    if let Freshness::After(position) = wanted {
        request = request.header("Wellspring-Min-Position", position.to_string());
    }
    let kind = if matches!(wanted, Freshness::Linearizable) { Kind::Read } else { Kind::Local };
    let mut line = desk.line(kind, node);
    line.key = key.to_owned();
    if let Freshness::After(position) = wanted {
        line.position = Some(position);
    }
    let answer = desk.ask(node, &request);
    line.end_ns = desk.world.history.now();
    let sight = match &answer {
        Ok(answer) if answer.status == 200 => sight(answer),
        Ok(answer) => Err(format!("{} {}", answer.status, answer.problem())),
        Err(failure) => Err(failure.to_string()),
    };
    let seen = match sight {
        Ok((seen, head)) => {
            (line.outcome, line.new, line.head) = (Outcome::Done, seen.value, Some(head));
            Some(seen)
        }
        Err(told) => {
            (line.outcome, line.told) = (Outcome::Refused, told);
            None
        }
    };
    desk.world.history.add(line);
    seen
}

/// The state and the head in an answer.
fn sight(answer: &Answer) -> Result<(RegisterRead, u64), String> {
    let json = answer.json();
    let head = json["head"].as_u64().ok_or("an answer without its head")?;
    let event = &json["events"][0];
    if event == &Value::Null {
        return Ok((RegisterRead { value: 0, position: 0 }, head));
    }
    let (value, position) = (event["data"]["value"].as_u64(), event["position"].as_u64());
    let seen = value.zip(position).ok_or("an event that is none of a register")?;
    Ok((RegisterRead { value: seen.0, position: seen.1 }, head))
}

/// Sets a register if it is unchanged; returns the position if successful.
fn swap(desk: &mut Desk<'_>, node: &Node, key: &str, seen: RegisterRead) -> Option<u64> {
    let value = desk.world.history.number();
    let tag = format!("register:{key}");
    let mut event = json!({"type": "RegisterSet", "tags": [tag], "data": {"value": value}});
    // With an id the request is recognized and can be repeated.
    let tries = if desk.dice.percent(50) {
        event["id"] = json!(event_id(value, 0));
        4
    } else {
        1
    };
    let mut condition = json!({"failIfEventsMatch": {"items": [{"tags": [tag]}]}});
    if seen.position > 0 {
        condition["after"] = json!(seen.position);
    }
    let request = json!({"events": [event], "condition": condition});
    let mut line = desk.line(Kind::Cas, node);
    (line.key, line.old, line.new) = (key.to_owned(), seen.value, value);
    let node = desk.world.cluster.nodes.iter().find(|known| known.name == node.name)?;
    let (_, told) = desk.write_again(node, &Request::post("/v1/append", &request), tries);
    let position = match &told {
        WriteAnswer::Done(answer) => answer.json()["first"].as_u64(),
        _ => None,
    };
    desk.note(line, told);
    position
}
