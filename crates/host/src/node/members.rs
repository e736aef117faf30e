//! The nodes of the cluster: each announces itself in the log `system` when it starts. And the
//! logs that operators have pinned to one of them.
//!
//! ```text
//! NodeJoined {"node":"a","url":"https://a.example","version":"0.1.0","start":17}   node:a
//! NodeForgotten {"node":"a"}                                                      node:a
//! LeadPinned {"log":"orders","node":"a"}                                          log:orders
//! LeadUnpinned {"log":"orders"}                                                   log:orders
//! ```

use super::{Node, NodeError};
use crate::cluster::Cluster;
use crate::cluster::node_auth::NodeName;
use crate::names::SYSTEM_LOG;
use crate::setup::SetupError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wellspring_log::batcher::{Batcher, EventTemplate};
use wellspring_log::{Append, EncodedEvents, Log, ReadError, ReadOptions};
use wellspring_types::{DataKind, Event, Position, Query};

/// The type of the event that a node has started.
const NODE_JOINED: &str = "NodeJoined";
/// The type of the event that a node was removed.
const NODE_FORGOTTEN: &str = "NodeForgotten";
/// The type of the event that a log was pinned to a node.
const LEAD_PINNED: &str = "LeadPinned";
/// The type of the event that it no longer is.
const LEAD_UNPINNED: &str = "LeadUnpinned";
/// The place among producers of the log `system`: after the audit.
const ORDER: u8 = 3;

/// A node, as it announced itself at its last start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Member {
    /// Its name.
    pub node: String,
    /// Its URL for others.
    pub url: String,
    /// The version of its program.
    pub version: String,
    /// Random for each life of its process.
    pub start: u64,
}

/// The known nodes.
#[derive(Debug, Default)]
pub(super) struct Members(Mutex<Folded>);

#[derive(Debug, Default)]
struct Folded {
    members: BTreeMap<String, Member>,
    /// Nodes that were removed.
    former: BTreeSet<String>,
    /// Nodes by the names of logs.
    pins: BTreeMap<String, String>,
    position: Position,
}

#[derive(Debug, Deserialize)]
struct ForgottenNode {
    node: String,
}

#[derive(Debug, Deserialize)]
struct Pin {
    log: String,
    /// Absent if it is lifted.
    node: Option<String>,
}

impl Members {
    /// The nodes in the log `system` now, by name.
    ///
    /// # Errors
    /// That log cannot be read.
    fn now(&self, system: &Log) -> Result<Vec<Member>, ReadError> {
        Ok(self.folded(system)?.members.values().cloned().collect())
    }

    /// The URL of a node in the log `system` now.
    pub(super) fn url(&self, system: &Log, node: &str) -> Option<String> {
        Some(self.folded(system).ok()?.members.get(node)?.url.clone())
    }

    fn folded(&self, system: &Log) -> Result<MutexGuard<'_, Folded>, ReadError> {
        let mut folded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = system.snapshot();
        if snapshot.head() == folded.position {
            return Ok(folded);
        }
        let options = ReadOptions { after: Some(folded.position), ..ReadOptions::default() };
        let types = [NODE_JOINED, NODE_FORGOTTEN, LEAD_PINNED, LEAD_UNPINNED];
        let mut events = snapshot.read(&Query::item(&types, &[]), options);
        while let Some(event) = events.next()? {
            folded.apply(event.event_type(), event.data());
        }
        drop(events);
        folded.position = snapshot.head();
        Ok(folded)
    }
}

impl Folded {
    /// Nonsense is ignored: only the server writes that log.
    fn apply(&mut self, event_type: &str, data: &[u8]) {
        if [LEAD_PINNED, LEAD_UNPINNED].contains(&event_type) {
            match serde_json::from_slice(data) {
                Ok(Pin { log, node: Some(node) }) => drop(self.pins.insert(log, node)),
                Ok(Pin { log, node: None }) => drop(self.pins.remove(&log)),
                Err(_) => {}
            }
        } else if event_type == NODE_FORGOTTEN {
            if let Ok(ForgottenNode { node }) = serde_json::from_slice(data) {
                self.members.remove(&node);
                self.former.insert(node);
            }
        } else if let Ok(member) = serde_json::from_slice::<Member>(data)
            && NodeName::parse(&member.node).is_ok()
        {
            self.former.remove(&member.node);
            self.members.insert(member.node.clone(), member);
        }
    }
}

impl Node {
    /// The nodes by name; none outside a cluster.
    ///
    /// # Errors
    /// The log `system` cannot be read.
    pub fn members(&self) -> Result<Vec<Member>, ReadError> {
        match (&self.shared, self.get(SYSTEM_LOG)) {
            (Some(shared), Some(system)) => shared.members.now(&system),
            _ => Ok(Vec::new()),
        }
    }

    /// Removes a node from the list until it starts again. Blocks until that is durable; call it on
    /// the leader of `system`.
    ///
    /// # Errors
    /// [`NodeError::NotFound`] if there is none of that name, [`NodeError::NotRecorded`].
    pub fn forget_member(&self, node: &str) -> Result<Position, NodeError> {
        let members = self.members().map_err(|error| NodeError::View(error.to_string().into()))?;
        if !members.iter().any(|member| member.node == node) {
            return Err(NodeError::NotFound);
        }
        let data = format!(r#"{{"node":"{node}"}}"#);
        self.record(NODE_FORGOTTEN, &format!("node:{node}"), &data)
    }

    /// Whether a node of this name was on the list, and was removed.
    pub fn has_forgotten(&self, node: &str) -> bool {
        let folded = self.shared.as_ref().zip(self.get(SYSTEM_LOG));
        folded.is_some_and(|(shared, system)| {
            shared.members.folded(&system).is_ok_and(|folded| folded.former.contains(node))
        })
    }

    /// The logs that are pinned, with their nodes.
    pub fn pins(&self) -> BTreeMap<String, String> {
        let folded = self.shared.as_ref().zip(self.get(SYSTEM_LOG));
        let pins = folded.and_then(|(shared, system)| {
            shared.members.folded(&system).map(|folded| folded.pins.clone()).ok()
        });
        pins.unwrap_or_default()
    }

    /// Pins a log to a node, or lifts its pin. Blocks until that is durable; call it on the leader
    /// of `system`.
    ///
    /// # Errors
    /// [`NodeError::NotFound`] if there is no such log, [`NodeError::NotRecorded`].
    pub fn pin(&self, log: &str, node: Option<&NodeName>) -> Result<Position, NodeError> {
        if self.get(log).is_none() || log == SYSTEM_LOG {
            return Err(NodeError::NotFound);
        }
        let tag = format!("log:{log}");
        match node {
            Some(node) => {
                let data = format!(r#"{{"log":"{log}","node":"{node}"}}"#);
                self.record(LEAD_PINNED, &tag, &data)
            }
            None => self.record(LEAD_UNPINNED, &tag, &format!(r#"{{"log":"{log}"}}"#)),
        }
    }

    /// Appends an event to the log `system`.
    fn record(&self, event_type: &str, tag: &str, data: &str) -> Result<Position, NodeError> {
        let system = self.get(SYSTEM_LOG).ok_or(NodeError::NotFound)?;
        let mut events = EncodedEvents::new();
        let event = Event::json(event_type, &[tag], data);
        events.push(&event.as_ref()).expect("a name makes a tag");
        let append = Append { events, ..Append::default() };
        system.append(append).map(|appended| appended.last).map_err(NodeError::NotRecorded)
    }
}

/// Announces this node's start. The leader of `system` stores it.
///
/// # Errors
/// A sentence: the batcher accepts nothing.
pub(super) fn join(cluster: &Cluster, batcher: &Batcher) -> Result<(), SetupError> {
    let Cluster { node, url, start, .. } = cluster;
    let template = EventTemplate::new(NODE_JOINED, &[&format!("node:{node}")])
        .map_err(|invalid| invalid.to_string())?;
    let url = serde_json::to_string(url).map_err(|error| error.to_string())?;
    let version = env!("CARGO_PKG_VERSION");
    let data = format!(r#"{{"node":"{node}","url":{url},"version":"{version}","start":{start}}}"#);
    let mut producer = batcher.producer(ORDER, None);
    let pushed =
        producer.try_push_events(&template, DataKind::Json, std::iter::once(data.as_bytes()));
    pushed.map(drop).map_err(|error| SetupError::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_each_node_counts() {
        let mut folded = Folded::default();
        let joined = |node: &str, url: &str| {
            format!(r#"{{"node":"{node}","url":"{url}","version":"1","start":1,"more":2}}"#)
        };
        for (event_type, data) in [
            (NODE_JOINED, joined("a", "http://1")),
            (NODE_JOINED, joined("b", "http://2")),
            (NODE_JOINED, joined("a", "http://3")),
            (NODE_JOINED, joined("No Name", "http://3")),
            (NODE_JOINED, "rubbish".to_owned()),
            (NODE_FORGOTTEN, r#"{"node":"b"}"#.to_owned()),
            (NODE_FORGOTTEN, "{}".to_owned()),
            (LEAD_PINNED, r#"{"log":"x","node":"a"}"#.to_owned()),
            (LEAD_PINNED, r#"{"log":"y","node":"a"}"#.to_owned()),
            (LEAD_PINNED, r#"{"log":"y","node":"b"}"#.to_owned()),
            (LEAD_UNPINNED, r#"{"log":"x"}"#.to_owned()),
        ] {
            folded.apply(event_type, data.as_bytes());
        }
        let members: Vec<_> = folded.members.values().map(|m| (&*m.node, &*m.url)).collect();
        assert_eq!(members, [("a", "http://3")]);
        assert_eq!(folded.former, BTreeSet::from(["b".to_owned()]));
        assert_eq!(folded.pins, BTreeMap::from([("y".to_owned(), "b".to_owned())]));
    }
}
