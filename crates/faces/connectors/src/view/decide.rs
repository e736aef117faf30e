//! Deciding commands about connectors.

use super::event::{COMMANDED, Change, DefinedData, write};
use super::state::{Connector, ConnectorKey, Connectors, Origin};
use serde_json::Value;
use wellspring_host::view::contract::Decision;
use wellspring_types::{HistoryId, Position, QueryItem};

/// Most connectors.
pub(crate) const MAX_CONNECTORS: usize = 64;
/// Most pending skips of one sink.
pub(crate) const MAX_SKIPS: usize = 10_000;

/// A command about one connector.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) key: ConnectorKey,
    pub(crate) action: Action,
}

/// An action on a connector.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Define {
        /// Its document.
        definition: Value,
        /// Who defines it.
        origin: Origin,
        /// The id, if it is new.
        id: String,
        /// The start of a new sink.
        start: StartPoint,
    },
    Remove {
        /// Whether it is still in the configuration, from which it then must be removed.
        is_configured: bool,
    },
    Pause,
    /// Resume or restart it.
    Resume,
    /// Skip an event.
    Skip(Position),
    /// Move it to another position.
    Reset {
        /// Where it continues.
        start: StartPoint,
    },
    /// Note the history of a sink that has none.
    Place {
        /// The history of its log, in which its cursor fits.
        history: HistoryId,
    },
}

/// Where a generation of a sink begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StartPoint {
    /// The position after which it begins.
    pub(crate) position: Position,
    /// The history that the position is of, if the log knows it.
    pub(crate) history: Option<HistoryId>,
}

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectorOutcome {
    /// It was created.
    Created,
    /// It was changed.
    Changed,
    /// It was already so.
    Unchanged,
}

/// Why a command is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectorRefusal {
    /// No such connector.
    NotFound,
    /// It is defined in the configuration.
    Configured,
    /// The limit of [`MAX_CONNECTORS`] is reached.
    TooMany,
    /// The limit of [`MAX_SKIPS`] is reached.
    TooManySkips,
}

/// Decides a command.
pub(super) fn decide(
    connectors: &Connectors,
    command: &Command,
) -> Result<Decision<ConnectorOutcome>, ConnectorRefusal> {
    let key = &command.key;
    let known = connectors.get(key);
    let (change, outcome) = match (&command.action, known) {
        (Action::Define { definition, origin, id, start }, None) => {
            if connectors.len() >= MAX_CONNECTORS {
                return Err(ConnectorRefusal::TooMany);
            }
            let (definition, id) = (definition.clone(), id.clone());
            let StartPoint { position: start, history } = *start;
            let data = DefinedData { definition, origin: *origin, id, start, history };
            (Some(Change::Defined(data)), ConnectorOutcome::Created)
        }
        (_, None) => return Err(ConnectorRefusal::NotFound),
        (Action::Define { definition, origin, .. }, Some(known)) => {
            redefine(known, definition, *origin)?
        }
        (Action::Remove { is_configured: true }, Some(_)) => {
            return Err(ConnectorRefusal::Configured);
        }
        (Action::Remove { .. }, Some(_)) => (Some(Change::Removed), ConnectorOutcome::Changed),
        (Action::Pause, Some(known)) if known.is_paused => (None, ConnectorOutcome::Unchanged),
        (Action::Pause, Some(_)) => (Some(Change::Paused), ConnectorOutcome::Changed),
        // Also for one that is not paused: it may have stopped.
        (Action::Resume, Some(_)) => (Some(Change::Resumed), ConnectorOutcome::Changed),
        (Action::Skip(position), Some(known)) if known.skip.contains(position) => {
            (Some(Change::Resumed), ConnectorOutcome::Unchanged)
        }
        (Action::Skip(position), Some(known)) => {
            if known.skip.len() >= MAX_SKIPS {
                return Err(ConnectorRefusal::TooManySkips);
            }
            (Some(Change::Skipped { position: *position }), ConnectorOutcome::Changed)
        }
        (Action::Reset { start }, Some(known)) => {
            let generation = known.generation + 1;
            let StartPoint { position: start, history } = *start;
            (Some(Change::Reset { generation, start, history }), ConnectorOutcome::Changed)
        }
        (Action::Place { history }, Some(known)) if known.history.is_none() => {
            let (generation, history) = (known.generation, *history);
            (Some(Change::Placed { generation, history }), ConnectorOutcome::Changed)
        }
        (Action::Place { .. }, Some(_)) => (None, ConnectorOutcome::Unchanged),
    };
    Ok(Decision {
        events: change.iter().map(|change| write(key, change)).collect(),
        unless: match change {
            Some(_) => vec![QueryItem::new(&COMMANDED, &[&key.to_string()])],
            None => Vec::new(),
        },
        outcome,
    })
}

/// Defines an existing connector, perhaps differently.
fn redefine(
    known: &Connector,
    definition: &Value,
    origin: Origin,
) -> Result<(Option<Change>, ConnectorOutcome), ConnectorRefusal> {
    if origin == Origin::Api && known.origin == Origin::Configuration {
        return Err(ConnectorRefusal::Configured);
    }
    if known.definition == *definition && known.origin == origin {
        return Ok((None, ConnectorOutcome::Unchanged));
    }
    // Id, start and history are those of the first definition.
    let (definition, id) = (definition.clone(), String::new());
    let data = DefinedData { definition, origin, id, start: 0, history: None };
    Ok((Some(Change::Defined(data)), ConnectorOutcome::Changed))
}
