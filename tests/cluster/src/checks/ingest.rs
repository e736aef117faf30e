//! Every 202 of a process that was not killed is stored once; of a killed one, the newest may be
//! missing.

use super::{Event, Findings};
use crate::history::{Kind, Operation, Outcome};
use crate::node::LifeEnd;
use std::collections::{BTreeMap, HashMap};

/// The answers on one connection, and what is stored of it.
#[derive(Debug, Default)]
struct Connection<'a> {
    operations: BTreeMap<u64, &'a Operation>,
    /// By position.
    stored: Vec<u64>,
}

pub(super) fn check(
    operations: &[Operation],
    events: &[Event],
    end_of: &dyn Fn(&str, u64) -> LifeEnd,
) -> Findings {
    let mut found = Findings::of("ingest");
    let mut connections: HashMap<u64, Connection<'_>> = HashMap::new();
    for operation in operations.iter().filter(|operation| operation.kind == Kind::Ingest) {
        let connection = connections.entry(operation.key.parse().unwrap_or_default()).or_default();
        connection.operations.insert(operation.new, operation);
    }
    for event in events.iter().filter(|event| event.kind == "Ingested") {
        let connection = connections.entry(event.number("connection")).or_default();
        connection.stored.push(event.number("n"));
    }
    for (name, connection) in &connections {
        look(*name, connection, end_of, &mut found);
    }
    found
}

fn look(
    name: u64,
    connection: &Connection<'_>,
    end_of: &dyn Fn(&str, u64) -> LifeEnd,
    found: &mut Findings,
) {
    let stored = &connection.stored;
    for pair in stored.windows(2) {
        if pair[0] == pair[1] {
            found.add(format!("connection {name}: {} is stored twice", pair[0]));
        } else if pair[0] > pair[1] {
            found.add(format!("connection {name}: {} is stored before {}", pair[0], pair[1]));
        }
    }
    let newest = stored.iter().copied().max().unwrap_or(0);
    for (number, operation) in &connection.operations {
        let is_there = stored.contains(number);
        let of = format!("connection {name}, node {} life {}", operation.node, operation.life);
        let end = end_of(&operation.node, operation.life);
        match operation.outcome {
            Outcome::Done if !is_there && end != LifeEnd::Killed => {
                found.add(format!("{of}: {number} got 202 and is missing, and the node {end:?}"));
            }
            Outcome::Done if !is_there && *number < newest => {
                found.add(format!("{of}: {number} got 202 and is missing, {newest} is there"));
            }
            Outcome::Refused | Outcome::Conflict if is_there => {
                found.add(format!("{of}: {number} was refused ({}) and is stored", operation.told));
            }
            _ => {}
        }
    }
    if let Some(number) = stored.iter().find(|number| !connection.operations.contains_key(number)) {
        found.add(format!("connection {name}: nobody sent {number}"));
    }
}
