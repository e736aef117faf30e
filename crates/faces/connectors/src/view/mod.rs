//! The view of connectors: their definitions and, unless the destination stores it, their progress.
//! Folded from the log `system`, so that all nodes agree and a new leader continues where the last
//! one was.

mod decide;
mod event;
mod history_text;
mod state;

pub(crate) use decide::{
    Action, Command, ConnectorOutcome, ConnectorRefusal, MAX_CONNECTORS, MAX_SKIPS, StartPoint,
};
pub(crate) use event::advanced;
pub(crate) use state::{Connector, ConnectorKey, ConnectorKind, Connectors, Origin};

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use wellspring_host::view::contract::{Decision, LogEvent, SnapshotFault, Ticket, View};
use wellspring_types::Query;

/// The fold, shared with its readers.
#[derive(Debug, Default)]
pub(crate) struct Folded(Mutex<Connectors>);

impl Folded {
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Connectors) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) struct ConnectorView(Arc<Folded>);

impl View for ConnectorView {
    const NAME: &'static str = "connectors";
    const VERSION: u32 = 2;

    type Folded = Folded;
    /// Nothing: a decision that meets a pending one is a conflict, and is decided again.
    type Staged = ();
    type Command = Command;
    type Context = ();
    type Outcome = ConnectorOutcome;
    type Refusal = ConnectorRefusal;

    fn new() -> ConnectorView {
        ConnectorView(Arc::default())
    }

    fn query() -> Query {
        Query::item(&event::TYPES, &[])
    }

    fn folded(&self) -> &Arc<Folded> {
        &self.0
    }

    fn apply(&mut self, event: &impl LogEvent) {
        let Some(change) = event::read(event) else { return };
        let mut connectors = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        connectors.apply(change, event.position());
    }

    fn outcome(_: &impl LogEvent) -> Option<ConnectorOutcome> {
        Some(ConnectorOutcome::Changed)
    }

    fn decide(
        folded: &Folded,
        (): &(),
        (): &(),
        command: &Command,
    ) -> Result<Decision<ConnectorOutcome>, ConnectorRefusal> {
        folded.read(|connectors| decide::decide(connectors, command))
    }

    fn stage((): &mut (), _: &Decision<ConnectorOutcome>, _: Ticket) {}

    fn settle((): &mut (), _: Ticket) {}

    fn encode(folded: &Folded, out: &mut impl Write) -> std::io::Result<()> {
        let connectors = folded.read(Clone::clone);
        serde_json::to_writer(out, &connectors).map_err(Into::into)
    }

    fn decode(input: &mut impl Read) -> Result<ConnectorView, SnapshotFault> {
        let connectors: Connectors = serde_json::from_reader(input)
            .map_err(|_| SnapshotFault::Malformed("these are no connectors"))?;
        Ok(ConnectorView(Arc::new(Folded(Mutex::new(connectors)))))
    }
}

#[cfg(test)]
mod tests;
