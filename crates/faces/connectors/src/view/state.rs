//! The fold: each connector by its kind and name.

use super::event::Change;
use super::history_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wellspring_connectors::Cursor;
use wellspring_types::{HistoryId, Position};

/// The direction of a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConnectorKind {
    /// From a log to a destination.
    Sink,
    /// From elsewhere into a log.
    Source,
}

impl ConnectorKind {
    /// The word for one of them.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ConnectorKind::Sink => "sink",
            ConnectorKind::Source => "source",
        }
    }
}

/// The key of a connector. Its text, `sink:orders`, is the tag of its events.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectorKey {
    pub(crate) kind: ConnectorKind,
    /// Its name, among those of its kind.
    pub(crate) name: String,
}

impl ConnectorKey {
    /// The key of a sink.
    pub(crate) fn sink(name: &str) -> ConnectorKey {
        ConnectorKey { kind: ConnectorKind::Sink, name: name.to_owned() }
    }

    /// The key of a source.
    pub(crate) fn source(name: &str) -> ConnectorKey {
        ConnectorKey { kind: ConnectorKind::Source, name: name.to_owned() }
    }

    /// Parses the tag of an event.
    pub(super) fn of_tag(tag: &str) -> Option<ConnectorKey> {
        let (kind, name) = tag.split_once(':')?;
        match kind {
            "sink" => Some(ConnectorKey::sink(name)),
            "source" => Some(ConnectorKey::source(name)),
            _ => None,
        }
    }
}

impl fmt::Display for ConnectorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.word(), self.name)
    }
}

/// Who defined a connector, and may change its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    /// A client.
    Api,
    /// The server's configuration. The connector runs only while it is in there.
    Configuration,
}

/// A connector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Connector {
    /// Its definition, as a document.
    pub(crate) definition: Value,
    /// Who defined it.
    pub(crate) origin: Origin,
    /// Generated at its first definition: tells it from others of the same name elsewhere or
    /// earlier.
    pub(crate) id: String,
    /// Number of times its start was set, from 1.
    pub(crate) generation: u64,
    /// A sink: the position after which this generation begins.
    pub(crate) start: Position,
    /// A sink: the history of its log in which this generation delivers. `None`: an earlier
    /// version defined or reset it, and it has not been placed yet.
    #[serde(with = "history_text")]
    pub(crate) history: Option<HistoryId>,
    /// The same of its first generation.
    #[serde(with = "history_text")]
    pub(crate) first_history: Option<HistoryId>,
    /// Whether it is paused.
    pub(crate) is_paused: bool,
    /// Events that it skips.
    pub(crate) skip: BTreeSet<Position>,
    /// Its progress, unless the destination stores that.
    pub(crate) cursor: Option<StoredCursor>,
    /// Position of its last command: a running connector is restarted when this grows.
    pub(crate) revision: Position,
    /// Position of the last event about it.
    pub(crate) applied: Position,
}

/// A stored cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredCursor {
    pub(crate) position: Position,
    pub(crate) anchor: u32,
}

impl Connector {
    /// Its progress, unless the destination stores that.
    pub(crate) fn cursor(&self) -> Option<Cursor> {
        let StoredCursor { position, anchor } = self.cursor?;
        let Connector { generation, history, .. } = *self;
        Some(Cursor { generation, history, position, anchor })
    }

    /// Its identity for receivers that remember what they have had: in another history than its
    /// first, the same position is another event.
    pub(crate) fn receiver_identity(&self, identity: &str) -> String {
        match self.history {
            Some(history) if self.first_history != Some(history) => format!("{identity}-{history}"),
            _ => identity.to_owned(),
        }
    }
}

/// All connectors, by the text of their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Connectors {
    by_key: BTreeMap<String, Connector>,
}

impl Connectors {
    /// One of them.
    pub(crate) fn get(&self, key: &ConnectorKey) -> Option<&Connector> {
        self.by_key.get(&key.to_string())
    }

    /// All of them, in order of their kinds and names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (ConnectorKey, &Connector)> {
        self.by_key.iter().filter_map(|(tag, it)| Some((ConnectorKey::of_tag(tag)?, it)))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Folds a change. Changes of unknown connectors, and those folded already, are ignored.
    pub(super) fn apply(&mut self, (key, change): (ConnectorKey, Change), position: Position) {
        let tag = key.to_string();
        let existing = self.by_key.get_mut(&tag);
        if existing.as_ref().is_some_and(|connector| connector.applied >= position) {
            return;
        }
        match (existing, change) {
            (None, Change::Defined(defined)) => {
                self.by_key.insert(tag, defined.connector(position));
            }
            (Some(connector), Change::Defined(defined)) => {
                connector.definition = defined.definition;
                connector.origin = defined.origin;
                connector.command(position);
            }
            (Some(_), Change::Removed) => {
                self.by_key.remove(&tag);
            }
            (Some(connector), change) => connector.apply(change, position),
            (None, _) => {}
        }
    }
}

impl Connector {
    fn command(&mut self, position: Position) {
        (self.revision, self.applied) = (position, position);
    }

    fn apply(&mut self, change: Change, position: Position) {
        match change {
            Change::Paused => self.is_paused = true,
            Change::Resumed => self.is_paused = false,
            Change::Skipped { position } => {
                self.skip.insert(position);
            }
            Change::Reset { generation, start, history } => {
                (self.generation, self.start, self.cursor) = (generation, start, None);
                self.history = history;
                self.skip.clear();
            }
            Change::Placed { generation, history } => {
                if (generation, None) == (self.generation, self.history) {
                    self.history = Some(history);
                    self.first_history = self.first_history.or(self.history);
                }
            }
            Change::Advanced { generation, position: reached, anchor } => {
                if generation == self.generation {
                    self.cursor = Some(StoredCursor { position: reached, anchor });
                    self.skip.retain(|skipped| *skipped > reached);
                }
                self.applied = position;
                return;
            }
            Change::Defined(_) | Change::Removed => {}
        }
        self.command(position);
    }
}
