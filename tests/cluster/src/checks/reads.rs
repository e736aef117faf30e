//! Every answer shows the log up to its head, and a linearizable one everything acknowledged before
//! it.

use super::{Event, Findings};
use crate::history::{Kind, Operation, Outcome};
use std::collections::HashMap;

pub(super) fn check(operations: &[Operation], events: &[Event]) -> Findings {
    let mut found = Findings::of("reads");
    prefixes(operations, events, &mut found);
    fresh(operations, &mut found);
    forward(operations, &mut found);
    found
}

/// The reported value of a register is the one at the answer's head.
fn prefixes(operations: &[Operation], events: &[Event], found: &mut Findings) {
    let mut registers: HashMap<&str, Vec<(u64, u64)>> = HashMap::new();
    for event in events.iter().filter(|event| event.kind == "RegisterSet") {
        let key = event.tags.first().and_then(|tag| tag.strip_prefix("register:"));
        let set = (event.position, event.number("value"));
        registers.entry(key.unwrap_or_default()).or_default().push(set);
    }
    for (operation, head) in reads(operations) {
        let sets = registers.get(operation.key.as_str()).map_or(&[][..], Vec::as_slice);
        let count = sets.partition_point(|(position, _)| *position <= head);
        let value = count.checked_sub(1).map_or(0, |newest| sets[newest].1);
        if value != operation.new {
            let (node, key, seen) = (&operation.node, &operation.key, operation.new);
            found.add(format!(
                "node {node} showed register {key} as {seen} up to {head}, where it is {value}"
            ));
        }
    }
}

/// Answered reads with their heads.
fn reads(operations: &[Operation]) -> impl Iterator<Item = (&Operation, u64)> {
    let answered = operations.iter().filter(|operation| {
        matches!(operation.kind, Kind::Read | Kind::Local) && operation.outcome == Outcome::Done
    });
    answered.filter_map(|operation| Some((operation, operation.head?)))
}

/// No linearizable answer is behind what was reported to any client before the read started; nor is
/// one with a minimum position.
fn fresh(operations: &[Operation], found: &mut Findings) {
    let mut known: Vec<(u64, u64)> = Vec::new();
    for operation in operations {
        let told = match operation.kind {
            Kind::Append | Kind::Cas => operation.position,
            Kind::Read => operation.head,
            _ => None,
        };
        known.extend(
            told.filter(|_| operation.outcome == Outcome::Done)
                .map(|told| (operation.end_ns, told)),
        );
    }
    known.sort_unstable();
    let mut most = 0;
    for (_, told) in &mut known {
        most = most.max(*told);
        *told = most;
    }
    for (operation, head) in reads(operations) {
        let wanted = if operation.kind == Kind::Read {
            let before = known.partition_point(|(end, _)| *end < operation.start_ns);
            before.checked_sub(1).map_or(0, |last| known[last].1)
        } else {
            operation.position.unwrap_or(0)
        };
        if head < wanted {
            let (node, at) = (&operation.node, operation.start_ns / 1_000_000);
            found.add(format!("node {node} answered up to {head} at {at} ms; {wanted} was known"));
        }
    }
}

/// Within a process of a node, no client sees the head go back.
fn forward(operations: &[Operation], found: &mut Findings) {
    let mut heads: HashMap<(u64, &str, u64), (u64, u64)> = HashMap::new();
    for (operation, head) in reads(operations) {
        let of = (operation.client, operation.node.as_str(), operation.life);
        let last = heads.entry(of).or_insert((0, 0));
        if head < last.1 && operation.start_ns > last.0 {
            let node = &operation.node;
            found.add(format!("node {node} showed a client {} and later {head}", last.1));
        }
        *last = (operation.end_ns, last.1.max(head));
    }
}
