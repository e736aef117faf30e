//! A node's connection to a simulated shared log.

use super::Shared;
use crate::options::{Clock, SystemClock};
use crate::shared::{
    Arrival, AskId, EngineLeader, OfferId, Place, SharedLimits, SharedLog, SharedLogError,
};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

/// What the world knows of a connection.
pub(super) struct Connection {
    pub(super) node: u64,
    /// The last place delivered; `None` before it follows.
    pub(super) read: Option<Place>,
    /// Outcomes and answers not yet delivered.
    pub(super) told: VecDeque<Arrival>,
    pub(super) woken: bool,
    /// When the last of its offers that keep their order is due.
    pub(super) in_order_us: u64,
}

/// A node's connection. Dropping it is the death of its process: its offers may land all the same.
pub struct SimulatedNode {
    shared: Arc<Shared>,
    node: u64,
    connection: u64,
}

struct NodeWaker {
    shared: Arc<Shared>,
    connection: u64,
}

impl Wake for NodeWaker {
    fn wake(self: Arc<Self>) {
        if let Some(connection) = self.shared.world().connections.get_mut(&self.connection) {
            connection.woken = true;
        }
        self.shared.changed.notify_all();
    }
}

impl SimulatedNode {
    pub(super) fn new(shared: Arc<Shared>, node: u64) -> SimulatedNode {
        let connection = {
            let mut world = shared.world();
            let id = world.new_id();
            let connection = Connection {
                node,
                read: None,
                told: VecDeque::new(),
                woken: false,
                in_order_us: 0,
            };
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

/// What is there for a connection now.
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
    if read < world.first_kept() {
        return Err(dropped(world.first_kept()));
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
        // A copy never holds what its node has not been shown.
        let seen = &mut world.of_node(self.node).sees;
        *seen = after.max(*seen);
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        let mut world = self.shared.world();
        let limit = world.settings.limits.entry_bytes;
        assert!(entry.len() <= limit, "an entry of {} bytes, over {limit}", entry.len());
        world.offer(self.connection, id, after, entry);
        if world.waiting > 0 {
            self.shared.changed.notify_all();
        }
    }

    fn ask_end(&mut self, id: AskId) {
        self.shared.world().ask(self.connection, id);
    }

    fn next(&mut self, wait: Duration) -> Result<Arrival, SharedLogError> {
        let mut world = self.shared.world();
        let mut deadline_us = None;
        loop {
            let due_us = world.settle_due();
            match take(&mut world, self.connection) {
                Ok(Some(arrival)) => return Ok(arrival),
                Ok(None) => {}
                // By hand it is said at once; else after the wait, so that a thread does not spin.
                Err(error)
                    if wait.is_zero() || matches!(world.mode, super::world::Mode::ByHand) =>
                {
                    return Err(error);
                }
                Err(error) => {
                    let now_us = SystemClock.monotonic_us();
                    let end_us = *deadline_us.get_or_insert(now_us + wait.as_micros() as u64);
                    if now_us >= end_us {
                        return Err(error);
                    }
                }
            }
            let connection = world.connections.get_mut(&self.connection).expect("as above");
            if std::mem::take(&mut connection.woken) || wait.is_zero() {
                return Ok(Arrival::Nothing);
            }
            if matches!(world.mode, super::world::Mode::ByHand) {
                return Ok(Arrival::Nothing);
            }
            let now_us = SystemClock.monotonic_us();
            let end_us = *deadline_us.get_or_insert(now_us.saturating_add(wait.as_micros() as u64));
            if now_us >= end_us {
                return Ok(Arrival::Nothing);
            }
            let until_us = due_us.map_or(end_us, |due_us| due_us.min(end_us));
            world.waiting += 1;
            let timeout = Duration::from_micros(until_us.saturating_sub(now_us).max(1));
            let waited = self.shared.changed.wait_timeout(world, timeout);
            world = waited.unwrap_or_else(PoisonError::into_inner).0;
            world.waiting -= 1;
        }
    }

    fn waker(&self) -> Waker {
        let (shared, connection) = (Arc::clone(&self.shared), self.connection);
        Waker::from(Arc::new(NodeWaker { shared, connection }))
    }

    fn fetch(
        &mut self,
        after: Place,
        max_bytes: usize,
    ) -> Result<Vec<(Place, Arc<[u8]>)>, SharedLogError> {
        let mut world = self.shared.world();
        if world.of_node(self.node).disconnected {
            return Err(unavailable(self.node));
        }
        if after < world.first_kept() {
            return Err(dropped(world.first_kept()));
        }
        let (mut bytes, mut place, mut fetched) = (0, after, Vec::new());
        while let Some(entry) = world.entry_after(place) {
            bytes += entry.len();
            if bytes > max_bytes && !fetched.is_empty() {
                break;
            }
            place = Place(place.0 + 1);
            fetched.push((place, entry));
        }
        Ok(fetched)
    }

    fn first_kept(&mut self) -> Result<Place, SharedLogError> {
        let mut world = self.shared.world();
        if world.of_node(self.node).disconnected {
            return Err(unavailable(self.node));
        }
        Ok(world.first_kept())
    }

    fn engine_leader(&self) -> Option<EngineLeader> {
        let mut world = self.shared.world();
        if !world.settings.elects {
            return None;
        }
        Some(world.of_node(self.node).elected)
    }
}
