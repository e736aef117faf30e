//! Commands about connectors, decided.

use super::event::{COMMANDED, Change, DefinedData, write};
use super::state::{Connector, ConnectorKey, Connectors, Origin};
use serde_json::Value;
use wellspring_types::{Position, QueryItem};
use wellspring_views::view::Decision;

/// Most connectors.
pub(crate) const MAX_CONNECTORS: usize = 64;
/// Most events that one sink is told to skip and has not reached yet.
pub(crate) const MAX_SKIPS: usize = 10_000;

/// A command about one connector.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    /// Which.
    pub(crate) key: ConnectorKey,
    /// What.
    pub(crate) action: Action,
}

/// What is wanted.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// It is to do this.
    Define {
        /// A document.
        definition: Value,
        /// Who says so.
        origin: Origin,
        /// The id of one that is not there yet.
        id: String,
        /// Where a sink begins that is not there yet.
        start: Position,
    },
    /// It is to be no more.
    Remove {
        /// Whether it stands in the configuration, which then is the place to remove it from.
        is_configured: bool,
    },
    /// It is not to run.
    Pause,
    /// It is to run, or to try again.
    Resume,
    /// It is to pass over an event.
    Skip(Position),
    /// It is to begin somewhere else.
    Reset {
        /// Behind which position.
        start: Position,
    },
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It came to be.
    Created,
    /// It was changed.
    Changed,
    /// It is so already.
    Unchanged,
}

/// Why a command is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such connector.
    NotFound,
    /// It is defined in the configuration.
    Configured,
    /// There are [`MAX_CONNECTORS`].
    TooMany,
    /// There are [`MAX_SKIPS`] of it.
    TooManySkips,
}

/// Decides a command.
pub(super) fn decide(
    connectors: &Connectors,
    command: &Command,
) -> Result<Decision<Outcome>, Refusal> {
    let key = &command.key;
    let known = connectors.get(key);
    let (change, outcome) = match (&command.action, known) {
        (Action::Define { definition, origin, id, start }, None) => {
            if connectors.len() >= MAX_CONNECTORS {
                return Err(Refusal::TooMany);
            }
            let (definition, id) = (definition.clone(), id.clone());
            let data = DefinedData { definition, origin: *origin, id, start: *start };
            (Some(Change::Defined(data)), Outcome::Created)
        }
        (_, None) => return Err(Refusal::NotFound),
        (Action::Define { definition, origin, .. }, Some(known)) => {
            redefine(known, definition, *origin)?
        }
        (Action::Remove { is_configured: true }, Some(_)) => return Err(Refusal::Configured),
        (Action::Remove { .. }, Some(_)) => (Some(Change::Removed), Outcome::Changed),
        (Action::Pause, Some(known)) if known.is_paused => (None, Outcome::Unchanged),
        (Action::Pause, Some(_)) => (Some(Change::Paused), Outcome::Changed),
        // Also of one that is not paused: it may have stopped.
        (Action::Resume, Some(_)) => (Some(Change::Resumed), Outcome::Changed),
        (Action::Skip(position), Some(known)) if known.skip.contains(position) => {
            (Some(Change::Resumed), Outcome::Unchanged)
        }
        (Action::Skip(position), Some(known)) => {
            if known.skip.len() >= MAX_SKIPS {
                return Err(Refusal::TooManySkips);
            }
            (Some(Change::Skipped { position: *position }), Outcome::Changed)
        }
        (Action::Reset { start }, Some(known)) => {
            let generation = known.generation + 1;
            (Some(Change::Reset { generation, start: *start }), Outcome::Changed)
        }
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

/// One that is there is to do something, perhaps something else.
fn redefine(
    known: &Connector,
    definition: &Value,
    origin: Origin,
) -> Result<(Option<Change>, Outcome), Refusal> {
    if origin == Origin::Api && known.origin == Origin::Configuration {
        return Err(Refusal::Configured);
    }
    if known.definition == *definition && known.origin == origin {
        return Ok((None, Outcome::Unchanged));
    }
    // Id and start are those of the first definition.
    let (definition, id) = (definition.clone(), String::new());
    let data = DefinedData { definition, origin, id, start: 0 };
    Ok((Some(Change::Defined(data)), Outcome::Changed))
}
