//! The catalog of logs in a cluster: events of the log `system`, folded by every node.
//!
//! ```text
//! LogCreated {"log":"orders","incarnation":1}   log:orders
//! LogDropped {"log":"orders","incarnation":1}   log:orders
//! ```
//!
//! A log that is dropped and created again is another one: its incarnation is part of its name in
//! the journal. `system` always exists, without an event; `main` until it is dropped.

use crate::names::{MAIN, SYSTEM_LOG, is_name};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use wellspring_log::{EncodedEvents, Log, ReadError, ReadOptions};
use wellspring_types::{AppendCondition, Event, Position, Query};

/// The type of the event that a log was created.
const LOG_CREATED: &str = "LogCreated";
/// The type of the event that a log was dropped.
const LOG_DROPPED: &str = "LogDropped";

/// The existing logs.
#[derive(Debug)]
pub(super) struct Catalog {
    logs: BTreeMap<String, Incarnation>,
    /// Position up to which events are folded.
    position: Position,
    /// Logs whose state here may differ from the catalog.
    due: BTreeSet<String>,
    /// Logs that were dropped since this was last asked, with their incarnations.
    dropped: Vec<(String, u64)>,
}

/// The latest incarnation of each name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incarnation {
    Present(u64),
    Dropped(u64),
}

/// A change of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatalogChange {
    Create,
    /// It is dropped.
    Drop,
    /// It is dropped and replaced by an empty one.
    Replace,
}

/// The content of an event.
#[derive(Debug, Deserialize)]
struct Content {
    log: String,
    incarnation: u64,
}

impl Catalog {
    /// The catalog of an empty log `system`.
    pub(super) fn new() -> Catalog {
        let there = |name: &str| (name.to_owned(), Incarnation::Present(0));
        Catalog {
            logs: [MAIN, SYSTEM_LOG].into_iter().map(there).collect(),
            position: 0,
            due: BTreeSet::from([MAIN.to_owned()]),
            dropped: Vec::new(),
        }
    }

    /// Folds new events of the log `system`.
    ///
    /// # Errors
    /// That log cannot be read.
    pub(super) fn fold(&mut self, system: &Log) -> Result<(), ReadError> {
        let snapshot = system.snapshot();
        let options = ReadOptions { after: Some(self.position), ..ReadOptions::default() };
        let mut events = snapshot.read(&Query::item(&[LOG_CREATED, LOG_DROPPED], &[]), options);
        while let Some(event) = events.next()? {
            self.apply(event.event_type(), event.data());
        }
        drop(events);
        self.position = snapshot.head();
        Ok(())
    }

    /// Nonsense is ignored: only the server writes that log.
    fn apply(&mut self, event_type: &str, data: &[u8]) {
        let Ok(Content { log, incarnation }) = serde_json::from_slice(data) else { return };
        if !is_name(&log) || log == SYSTEM_LOG {
            return;
        }
        let state = match event_type {
            LOG_CREATED => Incarnation::Present(incarnation),
            _ => {
                self.dropped.push((log.clone(), incarnation));
                Incarnation::Dropped(incarnation)
            }
        };
        self.logs.insert(log.clone(), state);
        self.due.insert(log);
    }

    /// Position up to which events are folded.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The incarnation of a log, if it exists.
    pub(super) fn incarnation(&self, name: &str) -> Option<u64> {
        match self.logs.get(name) {
            Some(Incarnation::Present(incarnation)) => Some(*incarnation),
            Some(Incarnation::Dropped(_)) | None => None,
        }
    }

    /// The names of the existing logs.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.logs.keys().filter(|name| self.incarnation(name).is_some());
        names.map(String::as_str)
    }

    /// Logs whose state here may differ from the catalog.
    pub(super) fn due(&self) -> Vec<String> {
        self.due.iter().cloned().collect()
    }

    /// Takes the logs that were dropped since the last call.
    pub(super) fn take_dropped(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.dropped)
    }

    /// Marks a log as being in its catalog state here.
    pub(super) fn settled(&mut self, name: &str) {
        self.due.remove(name);
    }

    /// The events that make a change, and their append condition: no event about this log beyond
    /// the fold. `None` if nothing changes.
    pub(super) fn change(
        &self,
        name: &str,
        change: CatalogChange,
    ) -> Option<(EncodedEvents, AppendCondition)> {
        let (present, last) = match self.logs.get(name) {
            Some(Incarnation::Present(incarnation)) => (true, Some(*incarnation)),
            Some(Incarnation::Dropped(incarnation)) => (false, Some(*incarnation)),
            None => (false, None),
        };
        let drops = (LOG_DROPPED, last.unwrap_or(0));
        let creates = (LOG_CREATED, last.unwrap_or(0) + 1);
        let rows = match (change, present) {
            (CatalogChange::Create, true) | (CatalogChange::Drop, false) => return None,
            (CatalogChange::Create, false) | (CatalogChange::Replace, false) => vec![creates],
            (CatalogChange::Drop, true) => vec![drops],
            (CatalogChange::Replace, true) => vec![drops, creates],
        };
        let tag = format!("log:{name}");
        let mut events = EncodedEvents::new();
        for (event_type, incarnation) in rows {
            let data = format!(r#"{{"log":"{name}","incarnation":{incarnation}}}"#);
            let event = Event::json(event_type, &[&tag], &data);
            events.push(&event.as_ref()).expect("a name of a log makes a tag");
        }
        let about = Query::item(&[LOG_CREATED, LOG_DROPPED], &[&tag]);
        Some((events, AppendCondition::no_match_after(about, self.position)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_log::{Append, Options};

    fn make(log: &Log, catalog: &mut Catalog, name: &str, change: CatalogChange) {
        let (events, condition) = catalog.change(name, change).expect("a change");
        let condition = Some(condition);
        log.append(Append { events, condition, ..Append::default() }).expect("it is appended");
        catalog.fold(log).unwrap();
    }

    #[test]
    fn a_log_that_is_made_again_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let mut catalog = Catalog::new();
        assert_eq!(catalog.names().collect::<Vec<_>>(), [MAIN, SYSTEM_LOG]);
        assert!(catalog.change("a", CatalogChange::Drop).is_none());
        assert!(catalog.change(MAIN, CatalogChange::Create).is_none());
        make(&log, &mut catalog, "a", CatalogChange::Create);
        assert_eq!(catalog.incarnation("a"), Some(1));
        make(&log, &mut catalog, "a", CatalogChange::Drop);
        assert_eq!(catalog.incarnation("a"), None);
        make(&log, &mut catalog, "a", CatalogChange::Create);
        assert_eq!(catalog.incarnation("a"), Some(2));
        make(&log, &mut catalog, MAIN, CatalogChange::Replace);
        assert_eq!(catalog.incarnation(MAIN), Some(1));
        assert_eq!(catalog.due(), ["a", MAIN]);
        catalog.settled("a");
        let mut again = Catalog::new();
        again.fold(&log).unwrap();
        assert_eq!(again.names().collect::<Vec<_>>(), ["a", MAIN, SYSTEM_LOG]);
        assert_eq!((again.incarnation("a"), again.incarnation(MAIN)), (Some(2), Some(1)));
        assert_eq!(again.position(), 5);
    }

    #[test]
    fn two_nodes_never_make_the_same_change() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let (mut one, other) = (Catalog::new(), Catalog::new());
        make(&log, &mut one, "a", CatalogChange::Create);
        let (events, condition) = other.change("a", CatalogChange::Create).unwrap();
        let late = Append { events, condition: Some(condition), ..Append::default() };
        assert!(log.append(late).is_err());
    }

    #[test]
    fn rubbish_is_passed_over() {
        let mut catalog = Catalog::new();
        for data in
            ["", "{}", r#"{"log":"../x","incarnation":1}"#, r#"{"log":"system","incarnation":7}"#]
        {
            catalog.apply(LOG_DROPPED, data.as_bytes());
        }
        assert_eq!(catalog.names().collect::<Vec<_>>(), [MAIN, SYSTEM_LOG]);
        assert_eq!(catalog.incarnation(SYSTEM_LOG), Some(0));
    }
}
