//! Which nodes there are: events of the log `system`, folded as they come.
//!
//! ```text
//! NodeJoined {"node":"a","url":"https://a.example:4000","version":"0.1.0","start":"…"}   node:a
//! ```
//!
//! A node that has joined stays, reachable or not; the last event of it counts.

use serde::Deserialize;
use std::collections::BTreeMap;
use wellspring_log::{Log, ReadError, ReadOptions};
use wellspring_types::{Position, Query};

/// The type of the event that a node was started.
const NODE_JOINED: &str = "NodeJoined";

/// The nodes there are, with where they are reached, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members {
    urls: BTreeMap<String, String>,
    /// Everything up to here is folded.
    position: Position,
}

/// What is looked at of the event.
#[derive(Debug, Deserialize)]
struct Joined {
    node: String,
    url: String,
}

impl Members {
    /// Folds what has been added to the log `system`.
    ///
    /// # Errors
    /// That log cannot be read.
    pub(super) fn fold(&mut self, system: &Log) -> Result<(), ReadError> {
        let snapshot = system.snapshot();
        let options = ReadOptions { after: Some(self.position), ..ReadOptions::default() };
        let mut events = snapshot.read(&Query::item(&[NODE_JOINED], &[]), options);
        while let Some(event) = events.next()? {
            // What makes no sense is passed over: nobody but the server writes that log.
            if let Ok(Joined { node, url }) = serde_json::from_slice(event.data()) {
                self.urls.insert(node, url);
            }
        }
        drop(events);
        self.position = snapshot.head();
        Ok(())
    }

    /// Adds a node that is known otherwise; what it says of itself now counts more than the log.
    pub(super) fn know(&mut self, node: &str, url: &str) {
        self.urls.insert(node.to_owned(), url.to_owned());
    }

    /// Where a node is reached, if there is one of this name.
    pub(super) fn url(&self, node: &str) -> Option<&str> {
        self.urls.get(node).map(String::as_str)
    }

    /// Names and URLs, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.urls.iter().map(|(node, url)| (node.as_str(), url.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_log::{Append, EncodedEvents, Options};
    use wellspring_types::Event;

    fn join(log: &Log, data: &str) {
        let mut events = EncodedEvents::new();
        events.push(&Event::json(NODE_JOINED, &["node:x"], data).as_ref()).unwrap();
        log.append(Append { events, ..Append::default() }).unwrap();
    }

    #[test]
    fn the_last_that_a_node_said_counts() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let mut members = Members::default();
        join(&log, r#"{"node":"a","url":"http://a:1","version":"0.1.0","start":"1"}"#);
        join(&log, r#"{"node":"b","url":"http://b:1"}"#);
        join(&log, "[]");
        members.fold(&log).unwrap();
        join(&log, r#"{"node":"a","url":"http://a:2"}"#);
        members.fold(&log).unwrap();
        assert_eq!(members.iter().collect::<Vec<_>>(), [("a", "http://a:2"), ("b", "http://b:1")]);
        members.know("b", "http://b:9");
        assert_eq!((members.url("b"), members.url("c")), (Some("http://b:9"), None));
    }
}
