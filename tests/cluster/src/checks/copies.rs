//! All nodes show the same log, SQL shows the same, every account is consistent, and no node
//! panicked.

use super::{Event, Finding, Findings};
use crate::node::Node;
use serde_json::Value;

/// The logs of two nodes are equal, byte for byte.
pub(crate) fn copies((first, log): (&str, &[u8]), (name, other): (&str, &[u8])) -> Option<Finding> {
    let mut found = Findings::of("copies");
    if other != log {
        let at = log.iter().zip(other).take_while(|(one, two)| one == two).count();
        let (len, other_len) = (log.len(), other.len());
        found.add(format!("nodes {first} and {name} differ at byte {at} of {len} and {other_len}"));
    }
    found.list.pop()
}

/// `rows`: position, type and tags of each event in SQL, by position.
pub(crate) fn sql(rows: &[String], events: &[Event]) -> Vec<Finding> {
    let mut found = Findings::of("sql");
    if rows.len() != events.len() {
        found.add(format!("{} rows in ws_event, and the head is {}", rows.len(), events.len()));
    }
    for (row, event) in rows.iter().zip(events) {
        let wanted = format!("{}\t{}\t{}", event.position, event.kind, event.tags.join(" "));
        if *row != wanted {
            found.add(format!("a row is {row:?} where the log has {wanted:?}"));
            break;
        }
    }
    found.list
}

/// `GET /v1/ingest` of a node at rest.
pub(crate) fn accounts(node: &str, account: &Value) -> Vec<Finding> {
    let mut found = Findings::of("accounts");
    let count = |of: &str| account[of]["events"].as_u64().unwrap_or(u64::MAX);
    let (accepted, stored) = (count("accepted"), count("stored"));
    if accepted != stored || count("in_flight") != 0 || count("dropped") != 0 {
        found.add(format!("node {node} at rest: {account}"));
    }
    found.list
}

/// No node has panicked.
pub(crate) fn panics(nodes: &[Node]) -> Vec<Finding> {
    let mut found = Findings::of("panics");
    for node in nodes {
        let told = node.told();
        if let Some(line) = told.lines().find(|line| line.contains("panicked")) {
            found.add(format!("node {}: {line}", node.name));
        }
    }
    found.list
}
