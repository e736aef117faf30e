//! No acknowledged append is missing, duplicated or partial, and no refused append is present.

use super::{Event, Findings};
use crate::history::{Kind, Operation, Outcome};
use std::collections::HashMap;

pub(super) fn check(operations: &[Operation], events: &[Event]) -> Findings {
    let mut found = Findings::of("appends");
    let mut stored: HashMap<u64, Vec<&Event>> = HashMap::new();
    for event in events {
        match event.kind.as_str() {
            "Numbered" => stored.entry(event.number("n")).or_default().push(event),
            "RegisterSet" => stored.entry(event.number("value")).or_default().push(event),
            _ => {}
        }
    }
    for operation in operations {
        let wanted = match operation.kind {
            Kind::Append => operation.old as usize,
            Kind::Cas => 1,
            _ => continue,
        };
        let there = stored.remove(&operation.new).unwrap_or_default();
        let what = format!("{:?} {} at node {}", operation.kind, operation.new, operation.node);
        match operation.outcome {
            Outcome::Done if there.is_empty() => {
                found.add(format!("{what} was acknowledged and is missing"));
            }
            Outcome::Conflict | Outcome::Refused if !there.is_empty() => {
                let (at, told) = (there[0].position, &operation.told);
                found.add(format!("{what} was refused ({told}) and is at position {at}"));
            }
            _ if there.is_empty() => {}
            _ => whole(&what, operation, &there, wanted, &mut found),
        }
    }
    let strangers: Vec<_> = stored.values().flatten().map(|event| event.position).take(5).collect();
    if !strangers.is_empty() {
        found.add(format!("nobody asked for what is at {strangers:?}"));
    }
    found
}

/// Each append is present once, contiguous, and at its reported position.
fn whole(what: &str, operation: &Operation, there: &[&Event], wanted: usize, found: &mut Findings) {
    let positions: Vec<_> = there.iter().map(|event| event.position).collect();
    if there.len() > wanted {
        found.add(format!("{what} is there more than once: {positions:?}"));
    } else if there.len() < wanted {
        found.add(format!("{what} is there in part: {positions:?} of {wanted}"));
    } else if !positions.windows(2).all(|pair| pair[1] == pair[0] + 1) {
        found.add(format!("{what} is torn apart: {positions:?}"));
    } else if operation.position.is_some_and(|told| told != positions[0]) {
        found.add(format!(
            "{what} was told to be at {:?} and is at {positions:?}",
            operation.position
        ));
    }
}
