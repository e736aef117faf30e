//! Lines of bulks are stored once and in order, as many as the client was told; statements and
//! leases take effect once.

use super::{Event, Findings};
use crate::history::{Kind, Operation, Outcome};
use std::collections::HashMap;

pub(super) fn check(operations: &[Operation], events: &[Event]) -> Findings {
    let mut found = Findings::of("bulks");
    let (mut lines, mut statements) = (HashMap::<u64, Vec<u64>>::new(), HashMap::new());
    for event in events {
        if let Some((number, line)) = line_of(event) {
            lines.entry(number).or_default().push(line);
        }
        if let Some(number) = statement_of(event) {
            *statements.entry(number).or_insert(0_u64) += 1;
        }
    }
    for operation in operations {
        match operation.kind {
            Kind::Bulk => {
                let stored = lines.remove(&operation.new).unwrap_or_default();
                bulk(operation, &stored, &mut found);
            }
            Kind::Statement => {
                let times = statements.get(&operation.new).copied().unwrap_or(0);
                statement(operation, times, &mut found);
            }
            _ => {}
        }
    }
    leases(operations, &mut found);
    found
}

/// The number of the bulk, and the line of it, that made an event.
fn line_of(event: &Event) -> Option<(u64, u64)> {
    let parsed = |text: &str, prefix: &str, between: char| {
        let (number, line) = text.strip_prefix(prefix)?.split_once(between)?;
        Some((number.parse().ok()?, line.parse().ok()?))
    };
    match event.kind.as_str() {
        "Lined" => Some((event.number("n"), event.number("line"))),
        "LinkCreated" => parsed(event.data["url"].as_str()?, "https://lines.example/", '/'),
        "CatalogueItemAdded" => parsed(event.data["sku"].as_str()?, "lines-", '-'),
        _ => None,
    }
}

/// The number of the statement that made an event.
fn statement_of(event: &Event) -> Option<u64> {
    if event.kind != "GraphChanged" {
        return None;
    }
    let text = event.data.to_string();
    let (_, rest) = text.split_once("statement-")?;
    rest.split_once('.')?.0.parse().ok()
}

fn bulk(operation: &Operation, stored: &[u64], found: &mut Findings) {
    let Operation { key, new, old, outcome, position, told, .. } = operation;
    let what = format!("the bulk {new} of {old} {key} at node {}", operation.node);
    let count = stored.len() as u64;
    if !stored.iter().copied().eq(0..count) {
        let first = stored.iter().zip(0..).find(|(line, expected)| *line != expected);
        found.add(format!("{what} is there with line {first:?} twice, or behind a gap"));
    } else if *outcome == Outcome::Done && count != *old {
        found.add(format!("{what} was acknowledged, and {count} lines are there"));
    } else if let Some(lines) = position.filter(|lines| *lines != count) {
        found.add(format!("{what} was told {lines} lines ({told}), and {count} are there"));
    }
}

fn statement(operation: &Operation, times: u64, found: &mut Findings) {
    let what = format!("the statement {} at node {}", operation.new, operation.node);
    match (operation.outcome, times) {
        (_, 2..) => found.add(format!("{what} was executed {times} times")),
        (Outcome::Done, 0) => found.add(format!("{what} was acknowledged and is missing")),
        (Outcome::Refused | Outcome::Conflict, 1) => {
            found.add(format!("{what} was refused ({}) and executed", operation.told));
        }
        _ => {}
    }
}

/// A later lease has a larger token.
fn leases(operations: &[Operation], found: &mut Findings) {
    let granted = |operation: &&Operation| {
        operation.kind == Kind::Lease && operation.outcome == Outcome::Done
    };
    let mut ended: Vec<&Operation> = operations.iter().filter(granted).collect();
    let mut begun = ended.clone();
    ended.sort_by_key(|operation| operation.end_ns);
    begun.sort_by_key(|operation| operation.start_ns);
    let (mut ended, mut largest) = (ended.into_iter().peekable(), 0);
    for lease in begun {
        while let Some(earlier) = ended.next_if(|earlier| earlier.end_ns < lease.start_ns) {
            largest = largest.max(earlier.new);
        }
        if lease.new <= largest {
            found.add(format!("a lease has token {}, an earlier one {largest}", lease.new));
        }
    }
}
