//! The log as a node returns it at the end.

use crate::http::{Client, Request};
use crate::node::Node;
use serde_json::Value;
use std::time::Duration;

/// The part of an event that checks use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) position: u64,
    pub(crate) kind: String,
    pub(crate) tags: Vec<String>,
    pub(crate) data: Value,
}

impl Event {
    fn new(json: &Value) -> Option<Event> {
        let tags = json["tags"].as_array().map_or(&[][..], Vec::as_slice).iter();
        Some(Event {
            position: json["position"].as_u64()?,
            kind: json["type"].as_str()?.to_owned(),
            tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
            data: json["data"].clone(),
        })
    }

    /// A number in its data.
    pub(crate) fn number(&self, field: &str) -> u64 {
        self.data[field].as_u64().unwrap_or_default()
    }
}

/// Every event of a log, one per line, after the end was confirmed.
pub(crate) fn fetch(node: &Node, log: &str) -> Result<Vec<u8>, String> {
    let target = format!("/v1/logs/{log}/events?consistency=linearizable&wait_ms=30000");
    let request = Request::get(&target)
        .header("Accept", "application/x-ndjson".into())
        .wait(Duration::from_secs(120));
    let answer = Client::default().ask(node.address, &request);
    let answer = answer.map_err(|failure| format!("node {}: {failure}", node.name))?;
    if answer.status != 200 {
        let body = String::from_utf8_lossy(&answer.body);
        return Err(format!("node {}: {} {body}", node.name, answer.status));
    }
    Ok(answer.body)
}

/// The events of these lines, which are dense.
pub(crate) fn events(lines: &[u8]) -> Result<Vec<Event>, String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events: Option<Vec<_>> =
        lines.map(|line| Event::new(&serde_json::from_slice(line).ok()?)).collect();
    let events = events.ok_or("a line that is no event")?;
    let mut expected = 1..;
    match events.iter().find(|event| Some(event.position) != expected.next()) {
        Some(event) => Err(format!("a gap before position {}", event.position)),
        None => Ok(events),
    }
}
