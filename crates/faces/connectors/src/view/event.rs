//! The events of connectors, read and written. Nonsense is ignored.

use super::history_text;
use super::state::{Connector, ConnectorKey, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use wellspring_connectors::Cursor;
use wellspring_host::view::contract::{LogEvent, event, json};
use wellspring_types::{Event, HistoryId, Position};

/// A connector was created or redefined.
const DEFINED: &str = "ConnectorDefined";
/// It was removed.
const REMOVED: &str = "ConnectorRemoved";
/// It was paused.
const PAUSED: &str = "ConnectorPaused";
/// It was resumed or restarted.
const RESUMED: &str = "ConnectorResumed";
/// It skips an event.
const SKIPPED: &str = "ConnectorSkipped";
/// It was moved to another position.
const RESET: &str = "ConnectorReset";
/// A sink that was defined without a history delivers from this one: from now on, or all along.
const PLACED: &str = "ConnectorPlaced";
/// It has advanced.
const ADVANCED: &str = "ConnectorAdvanced";

/// All of them.
pub(super) const TYPES: [&str; 8] =
    [DEFINED, REMOVED, PAUSED, RESUMED, SKIPPED, RESET, PLACED, ADVANCED];
/// Those that result from commands.
pub(super) const COMMANDED: [&str; 7] = [DEFINED, REMOVED, PAUSED, RESUMED, SKIPPED, RESET, PLACED];

/// Data of [`DEFINED`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DefinedData {
    pub(super) definition: Value,
    pub(super) origin: Origin,
    /// Only in the first definition, like the rest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) start: Position,
    /// The history that the start is a position of.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "history_text")]
    pub(super) history: Option<HistoryId>,
}

impl DefinedData {
    /// The new connector.
    pub(super) fn connector(self, position: Position) -> Connector {
        Connector {
            definition: self.definition,
            origin: self.origin,
            id: self.id,
            generation: 1,
            start: self.start,
            history: self.history,
            first_history: self.history,
            is_paused: false,
            skip: BTreeSet::new(),
            cursor: None,
            revision: position,
            applied: position,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SkippedData {
    position: Position,
}

#[derive(Serialize, Deserialize)]
struct ResetData {
    generation: u64,
    start: Position,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "history_text")]
    history: Option<HistoryId>,
}

#[derive(Serialize, Deserialize)]
struct PlacedData {
    generation: u64,
    #[serde(with = "history_text")]
    history: Option<HistoryId>,
}

#[derive(Serialize, Deserialize)]
struct AdvancedData {
    generation: u64,
    position: Position,
    anchor: u32,
}

/// The content of an event.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Defined(DefinedData),
    Removed,
    Paused,
    Resumed,
    Skipped { position: Position },
    Reset { generation: u64, start: Position, history: Option<HistoryId> },
    Placed { generation: u64, history: HistoryId },
    Advanced { generation: u64, position: Position, anchor: u32 },
}

/// The event for a change.
pub(super) fn write(key: &ConnectorKey, change: &Change) -> Event {
    let tag = key.to_string();
    let nothing = || b"{}".to_vec();
    let (event_type, data) = match change {
        Change::Defined(data) => (DEFINED, json(data)),
        Change::Removed => (REMOVED, nothing()),
        Change::Paused => (PAUSED, nothing()),
        Change::Resumed => (RESUMED, nothing()),
        Change::Skipped { position } => (SKIPPED, json(&SkippedData { position: *position })),
        Change::Reset { generation, start, history } => {
            let data = ResetData { generation: *generation, start: *start, history: *history };
            (RESET, json(&data))
        }
        Change::Placed { generation, history } => {
            (PLACED, json(&PlacedData { generation: *generation, history: Some(*history) }))
        }
        Change::Advanced { generation, position, anchor } => {
            let data =
                AdvancedData { generation: *generation, position: *position, anchor: *anchor };
            (ADVANCED, json(&data))
        }
    };
    event(event_type, vec![tag], data)
}

/// The event that a connector has advanced.
pub(crate) fn advanced(key: &ConnectorKey, cursor: Cursor) -> Event {
    // Its history is that of its generation.
    let Cursor { generation, position, anchor, history: _ } = cursor;
    write(key, &Change::Advanced { generation, position, anchor })
}

/// The content of an event, and its connector.
pub(super) fn read(event: &impl LogEvent) -> Option<(ConnectorKey, Change)> {
    let key = event.tags().find_map(ConnectorKey::of_tag)?;
    let data = event.data();
    let change = match event.event_type() {
        DEFINED => Change::Defined(serde_json::from_slice(data).ok()?),
        REMOVED => Change::Removed,
        PAUSED => Change::Paused,
        RESUMED => Change::Resumed,
        SKIPPED => {
            let SkippedData { position } = serde_json::from_slice(data).ok()?;
            Change::Skipped { position }
        }
        RESET => {
            let ResetData { generation, start, history } = serde_json::from_slice(data).ok()?;
            Change::Reset { generation, start, history }
        }
        PLACED => {
            let PlacedData { generation, history } = serde_json::from_slice(data).ok()?;
            Change::Placed { generation, history: history? }
        }
        ADVANCED => {
            let AdvancedData { generation, position, anchor } =
                serde_json::from_slice(data).ok()?;
            Change::Advanced { generation, position, anchor }
        }
        _ => return None,
    };
    Some((key, change))
}
