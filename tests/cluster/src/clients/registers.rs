//! Registers: a conditional append is a compare-and-swap, and a tag's newest event is the value.

use super::{TrialClient, WriteAnswer, event_id};
use crate::history::{Kind, Outcome};
use crate::http::{Answer, Request};
use crate::node::Node;
use crate::plant::Plant;
use serde_json::{Value, json};
use std::collections::HashMap;

/// How long a key is used: the checker's work grows with the operations per key.
const KEY_NS: u64 = 4_000_000_000;
/// Number of simultaneous keys.
const KEYS: u64 = 6;

/// The state of a register according to a read.
#[derive(Debug, Clone, Copy)]
struct RegisterRead {
    value: u64,
    /// Position of the event that set it; 0 if there is none.
    position: u64,
}

pub(super) fn run(mut client: TrialClient<'_>) {
    // The newest positions reported to this client, by log.
    let mut newest: HashMap<&str, u64> = HashMap::new();
    while !client.world.has_ended() {
        let (key, log) = key(&mut client);
        let newest = newest.entry(log).or_default();
        let key = &Register { key, log };
        let node = client.any_node();
        match client.dice.below(10) {
            0..4 => _ = read(&mut client, node, key, Freshness::Linearizable),
            4 => _ = read(&mut client, node, key, Freshness::After(*newest)),
            5 => _ = read(&mut client, node, key, Freshness::Cached),
            _ => {
                let Some(seen) = read(&mut client, node, key, Freshness::Local) else { continue };
                let node = client.any_node();
                *newest = swap(&mut client, node, key, seen).unwrap_or(*newest);
            }
        }
        client.pause();
    }
}

/// A register and the log that holds it.
struct Register<'a> {
    key: String,
    log: &'a str,
}

fn key<'a>(client: &mut TrialClient<'a>) -> (String, &'a str) {
    let generation = client.world.history.now() / KEY_NS;
    let (logs, number) = (&client.world.cluster.logs, client.dice.below(KEYS));
    (format!("{generation}-{number}"), &logs[number as usize % logs.len()])
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

fn read(
    client: &mut TrialClient<'_>,
    node: &Node,
    Register { key, log }: &Register<'_>,
    wanted: Freshness,
) -> Option<RegisterRead> {
    let is_planted = client.world.arguments.plant == Some(Plant::StaleReads);
    let consistency = match wanted {
        Freshness::Linearizable if is_planted => "cached",
        Freshness::Linearizable => "linearizable",
        Freshness::Local => "local",
        Freshness::Cached | Freshness::After(_) => "cached",
    };
    let target = format!(
        "/v1/logs/{log}/events?tag=register:{key}&order=desc&limit=1&consistency={consistency}&wait_ms=3000"
    );
    let mut request = Request::get(&target);
    if let Freshness::After(position) = wanted {
        request = request.header("Wellspring-Min-Position", position.to_string());
    }
    let kind = if matches!(wanted, Freshness::Linearizable) { Kind::Read } else { Kind::Local };
    let mut line = client.line(kind, node);
    (line.key, line.log) = (key.clone(), (*log).to_owned());
    if let Freshness::After(position) = wanted {
        line.position = Some(position);
    }
    let answer = client.ask(node, &request);
    line.end_ns = client.world.history.now();
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
    client.world.history.add(line);
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
fn swap(
    client: &mut TrialClient<'_>,
    node: &Node,
    Register { key, log }: &Register<'_>,
    seen: RegisterRead,
) -> Option<u64> {
    let value = client.world.history.number();
    let tag = format!("register:{key}");
    let mut event = json!({"type": "RegisterSet", "tags": [tag], "data": {"value": value}});
    // With an id the request is recognized and can be repeated.
    let tries = if client.dice.percent(50) {
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
    let mut line = client.line(Kind::Cas, node);
    (line.key, line.old, line.new) = (key.clone(), seen.value, value);
    line.log = (*log).to_owned();
    let node = client.world.cluster.nodes.iter().find(|known| known.name == node.name)?;
    let target = format!("/v1/logs/{log}/append");
    let (_, told) = client.write_again(node, &Request::post(&target, &request), tries);
    let position = match &told {
        WriteAnswer::Done(answer) => answer.json()["first"].as_u64(),
        _ => None,
    };
    client.note(line, told);
    position
}
