//! A node's connection to a simulated shared log.

use super::Shared;
use super::world::Mode;
use crate::shared::{
    Arrival, AskId, EngineLeader, Fetched, LogStart, OfferId, Place, PlacedEntry, SharedLimits,
    SharedLog, SharedLogError,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// The world's state of a connection.
pub(super) struct Connection {
    pub(super) node: u64,
    /// The last place delivered; `None` before it follows.
    pub(super) read: Option<Place>,
    /// Outcomes and answers that are not delivered yet.
    pub(super) told: VecDeque<Arrival>,
    /// The waker of the last call that returned nothing.
    pub(super) waker: Option<Waker>,
    /// When the last of its in-order offers is due.
    pub(super) in_order_us: u64,
}

/// A node's connection. Dropping it simulates the death of its process: its offers may still land.
pub struct SimulatedNode {
    shared: Arc<Shared>,
    node: u64,
    connection: u64,
}

impl SimulatedNode {
    pub(super) fn new(shared: Arc<Shared>, node: u64) -> SimulatedNode {
        let connection = {
            let mut world = shared.world();
            let id = world.new_id();
            let connection =
                Connection { node, read: None, told: VecDeque::new(), waker: None, in_order_us: 0 };
            world.connections.insert(id, connection);
            id
        };
        SimulatedNode { shared, node, connection }
    }
}

impl Drop for SimulatedNode {
    fn drop(&mut self) {
        self.shared.world().connections.remove(&self.connection);
    }
}

fn unavailable(node: u64) -> SharedLogError {
    SharedLogError::Unavailable { reason: format!("node {node} is cut off") }
}

fn dropped(first_kept: Place) -> SharedLogError {
    let reason = format!("the entries up to place {} were dropped", first_kept.0);
    SharedLogError::Unusable { reason }
}

/// The first entries, at least one and about as many bytes.
fn up_to(max_bytes: usize, mut entries: Vec<PlacedEntry>) -> Vec<PlacedEntry> {
    let mut bytes = 0;
    let fits = |(n, (_, entry)): (usize, &PlacedEntry)| {
        bytes += entry.len();
        n == 0 || bytes <= max_bytes
    };
    let count = entries.iter().enumerate().map(fits).take_while(|fits| *fits).count();
    entries.truncate(count);
    entries
}

/// The next arrival for a connection.
fn take(world: &mut super::World, id: u64) -> Result<Option<Arrival>, SharedLogError> {
    let connection = world.connections.get_mut(&id).expect("lives as long as its node");
    let node = connection.node;
    if world.of_node(node).disconnected {
        return Err(unavailable(node));
    }
    let connection = world.connections.get_mut(&id).expect("as before");
    if let Some(told) = connection.told.pop_front() {
        return Ok(Some(told));
    }
    let Some(read) = connection.read else { return Ok(None) };
    if let Some(start) = world.gap_after(read) {
        if start.state.is_none() {
            return Err(dropped(start.place));
        }
        world.connections.get_mut(&id).expect("as before").read = Some(start.place);
        let sees = &mut world.of_node(node).sees;
        *sees = start.place.max(*sees);
        return Ok(Some(Arrival::Gap(start)));
    }
    if read >= world.sight(node) {
        return Ok(None);
    }
    let Some(entry) = world.entry_after(read) else { return Ok(None) };
    let place = Place(read.0 + 1);
    world.connections.get_mut(&id).expect("as before").read = Some(place);
    Ok(Some(Arrival::Entry { place, entry }))
}

impl SharedLog for SimulatedNode {
    fn limits(&self) -> SharedLimits {
        self.shared.world().settings.limits
    }

    fn follow(&mut self, after: Place) {
        let mut world = self.shared.world();
        let connection =
            world.connections.get_mut(&self.connection).expect("lives as long as this");
        connection.read = Some(after);
        // A copy never contains entries that its node has not been shown.
        let seen = &mut world.of_node(self.node).sees;
        *seen = after.max(*seen);
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        let mut world = self.shared.world();
        let limit = world.settings.limits.entry_bytes;
        assert!(entry.len() <= limit, "an entry of {} bytes, over {limit}", entry.len());
        world.offer(self.connection, id, after, entry);
        drop(world);
        self.shared.changed();
    }

    fn ask_end(&mut self, id: AskId) {
        self.shared.world().ask(self.connection, id);
        self.shared.changed();
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        let mut world = self.shared.world();
        world.settle_due();
        let taken = take(&mut world, self.connection);
        if !matches!(taken, Ok(Some(_))) {
            let connection = world.connections.get_mut(&self.connection).expect("as above");
            match &mut connection.waker {
                Some(known) => known.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        Ok(taken?.unwrap_or(Arrival::Nothing))
    }

    fn lends_threads(&self) -> bool {
        matches!(self.shared.world().mode, Mode::Faulty(_))
    }

    fn fetch(&mut self, after: Place, max_bytes: usize) -> Result<Fetched, SharedLogError> {
        let mut world = self.shared.world();
        if world.of_node(self.node).disconnected {
            return Err(unavailable(self.node));
        }
        match world.gap_after(after) {
            None => Ok(Fetched::Entries(up_to(max_bytes, world.entries_after(after)))),
            Some(LogStart { place, state: None }) => Err(dropped(place)),
            Some(_) => Ok(Fetched::Accepted(up_to(max_bytes, world.accepted_after(after)))),
        }
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        let mut world = self.shared.world();
        if world.of_node(self.node).disconnected {
            return Err(unavailable(self.node));
        }
        Ok(world.gap_after(after))
    }

    fn durable(&mut self, upto: Place, state: Arc<[u8]>) {
        self.shared.world().durable(self.node, upto, state);
    }

    fn engine_leader(&self) -> Option<EngineLeader> {
        let mut world = self.shared.world();
        if !world.settings.elects {
            return None;
        }
        Some(world.of_node(self.node).elected)
    }
}
