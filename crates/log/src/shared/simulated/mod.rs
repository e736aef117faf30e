//! A shared log in memory, for tests, benchmarks and the simulator. It does to offers everything
//! that [`SharedLog`](super::SharedLog) allows an engine to do.
//!
//! - [`immediate`](SimulatedLog::immediate): offers land at once; threads may wait for arrivals.
//! - [`faulty`](SimulatedLog::faulty): the same with delays, losses, repetitions and reordering
//!   drawn from a seed.
//! - [`by_hand`](SimulatedLog::by_hand): nothing lands, becomes visible or is answered on its own.
//!   The simulator inspects what is [in flight](SimulatedLog::under_way) and decides; each node
//!   sees the entries that it is [shown](SimulatedLog::show).

mod node;
mod trimmed;
mod world;

pub use node::SimulatedNode;

use super::{EngineLeader, Place, Retention, SharedLimits};
use crate::threads;
use node::Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;
use wellspring_types::Position;
use world::World;

/// The properties of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Its limits.
    pub limits: SharedLimits,
    /// Whether it refuses an offer if an entry follows the place that the offer names.
    pub compares: bool,
    /// Whether it elects the leader, as set by [`elect`](SimulatedLog::elect).
    pub elects: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: SharedLimits {
                entry_bytes: 8 << 20,
                window: 4,
                lead_timeout_min: Duration::from_millis(10),
                retention: Retention::Everything,
            },
            compares: false,
            elects: false,
        }
    }
}

/// Random faults of a [faulty](SimulatedLog::faulty) log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// How many of 1,000 offers and questions are lost; half of these offers report an unknown
    /// outcome.
    pub lose_permille: u32,
    /// How many of 1,000 offers land a second time, later.
    pub duplicate_permille: u32,
    /// How many of 1,000 offers are overtaken by later ones.
    pub reorder_permille: u32,
    /// Maximum delay before offers land and questions are answered.
    pub delay_us: u64,
}

/// Identifies an operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnderWayId(pub u64);

/// An operation of a node that is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    /// Its id.
    pub id: UnderWayId,
    /// The node.
    pub node: u64,
    /// Its stage.
    pub stage: Stage,
}

/// The stage of an operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// An offer that may or may not land; its node waits for the outcome.
    Offered,
    /// An offer whose node will not hear of it again: its outcome was reported as unknown, the node
    /// died, or it is a repetition. It may still land.
    Zombie,
    /// An offer that has landed or was refused, but not reported to its node.
    Settled,
    /// A question for the end.
    Asked,
}

/// The result of landing an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// It landed at this place.
    Stands(Place),
    /// The engine compares, and an entry followed the place that the offer names.
    Refused,
    /// No offer with this id is waiting to land.
    NothingToLand,
}

/// A shared log in memory. Clones share it.
#[derive(Clone)]
pub struct SimulatedLog {
    shared: Arc<Shared>,
}

struct Shared {
    world: Mutex<World>,
}

/// Time between checks for due operations in a faulty log.
const TICK: Duration = Duration::from_micros(500);

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all waiting nodes: something may have arrived. Called without the lock on the world.
    fn changed(&self) {
        let wakers: Vec<Waker> = self.world().take_wakers();
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Performs due operations as long as the world exists.
fn tick(shared: &Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        if shared.world().settle_due() {
            shared.changed();
        }
        drop(shared);
        std::thread::sleep(TICK);
    }
}

impl SimulatedLog {
    /// A log in which offers land and questions are answered immediately.
    #[must_use]
    pub fn immediate() -> SimulatedLog {
        SimulatedLog::of(World::new(world::Mode::Immediate, 0))
    }

    /// A log with these faults, drawn from `seed`.
    #[must_use]
    pub fn faulty(seed: u64, faults: Faults) -> SimulatedLog {
        SimulatedLog::of(World::new(world::Mode::Faulty(faults), seed))
    }

    /// A log in which nothing happens on its own. Remaining choices are drawn from `seed`.
    #[must_use]
    pub fn by_hand(seed: u64) -> SimulatedLog {
        SimulatedLog::of(World::new(world::Mode::ByHand, seed))
    }

    fn of(world: World) -> SimulatedLog {
        let ticks = matches!(world.mode, world::Mode::Faulty(_));
        let shared = Arc::new(Shared { world: Mutex::new(world) });
        if ticks {
            let world = Arc::downgrade(&shared);
            let ticking = threads::spawn("simulated-log", move || tick(&world));
            assert!(ticking.is_ok(), "the system gives a thread to a test");
        }
        SimulatedLog { shared }
    }

    /// The same with other settings; before any node connects.
    #[must_use]
    pub fn with(self, settings: Settings) -> SimulatedLog {
        self.shared.world().settings = settings;
        self
    }

    /// A connection of a node. A node can have several, simultaneously or one after another.
    #[must_use]
    pub fn connect(&self, node: u64) -> SimulatedNode {
        SimulatedNode::new(Arc::clone(&self.shared), node)
    }

    /// All entries with their places, also those that were [trimmed](Self::trim).
    #[must_use]
    pub fn entries(&self) -> Vec<(Place, Arc<[u8]>)> {
        let world = self.shared.world();
        [world.trimmed.entries.clone(), world.entries_after(Place(0))].concat()
    }

    /// All batches that took effect, each as one entry.
    #[must_use]
    pub fn accepted(&self) -> Vec<(Place, Arc<[u8]>)> {
        self.shared.world().accepted_after(Place(0))
    }

    /// The last place.
    #[must_use]
    pub fn end(&self) -> Place {
        self.shared.world().end()
    }

    /// Appends a foreign entry.
    pub fn append(&self, entry: &[u8]) -> Place {
        let place = self.shared.world().stand(entry.into());
        self.shared.changed();
        place
    }

    /// Drops the entries up to this place, as retention would.
    pub fn drop_up_to(&self, place: Place) {
        self.shared.world().drop_up_to(place);
    }

    /// Drops the entries that the copies of all of these nodes are known to hold, and keeps what a
    /// reader needs in their place. Returns where the rest begins.
    ///
    /// # Panics
    /// If a copy has told another state than the dropped entries lead to.
    pub fn trim(&self, nodes: &[u64]) -> Place {
        self.shared.world().trim(nodes)
    }

    /// The last position of what a node's copy is known to hold durably.
    #[must_use]
    pub fn durable_head(&self, node: u64) -> Option<Position> {
        self.shared.world().trimmed.durable_head(node)
    }

    /// A node's copy is gone: nothing is known to be durable there.
    pub fn lose_copy(&self, node: u64) {
        self.shared.world().trimmed.durable.remove(&node);
    }

    /// Breaks the promise of a shared log: forgets all entries after a place, acknowledged or not,
    /// as a failover to a lagging replica does. Delivered entries stay delivered.
    pub fn forget_after(&self, place: Place) {
        self.shared.world().forget_after(place);
    }

    /// Disconnects a node: nothing is delivered to it, and its operations wait until it is
    /// connected again (or are landed by hand).
    pub fn disconnect(&self, node: u64) {
        self.shared.world().of_node(node).disconnected = true;
        self.shared.changed();
    }

    /// Reconnects a node.
    pub fn reconnect(&self, node: u64) {
        self.shared.world().of_node(node).disconnected = false;
        self.shared.changed();
    }

    /// Sets the leader that an electing engine reports to a node.
    pub fn elect(&self, node: u64, leader: EngineLeader) {
        self.shared.world().of_node(node).elected = leader;
        self.shared.changed();
    }
}

/// Control by hand.
impl SimulatedLog {
    /// The operations in flight, oldest first.
    #[must_use]
    pub fn under_way(&self) -> Vec<UnderWay> {
        self.shared.world().under_way()
    }

    /// Number of offers, questions and outcomes in flight.
    #[must_use]
    pub fn under_way_len(&self) -> usize {
        self.shared.world().under_way_len()
    }

    /// Lands an offer. Its node learns the outcome through [`report`](Self::report), and sees the
    /// entry when it is shown.
    pub fn land(&self, id: UnderWayId) -> Landing {
        self.shared.world().land(id)
    }

    /// Repeats an offer without the node's knowledge; returns the new id, if there was an offer to
    /// repeat.
    pub fn duplicate(&self, id: UnderWayId) -> Option<UnderWayId> {
        self.shared.world().duplicate(id)
    }

    /// Reports the outcome of an offer to its node: placed, refused or unknown. An offer with an
    /// unknown outcome stays as a zombie.
    pub fn report(&self, id: UnderWayId) {
        self.shared.world().report(id, world::Truth::Told);
    }

    /// Reports to the node that an offer's outcome is unknown, even if it has landed.
    pub fn report_unknown(&self, id: UnderWayId) {
        self.shared.world().report(id, world::Truth::Withheld);
    }

    /// Loses an offer, an outcome or a question: the node never hears of it again.
    pub fn lose(&self, id: UnderWayId) {
        self.shared.world().lose(id);
    }

    /// Answers a question with a place between the end when it was asked and the current end.
    pub fn answer(&self, id: UnderWayId) {
        self.shared.world().answer(id, world::Truth::Told);
    }

    /// Answers a question with an unknown end.
    pub fn answer_unknown(&self, id: UnderWayId) {
        self.shared.world().answer(id, world::Truth::Withheld);
    }

    /// Shows a number of further entries to a node; returns how far it sees now.
    pub fn show(&self, node: u64, more: u64) -> Place {
        let mut world = self.shared.world();
        let end = world.end();
        let seen = &mut world.of_node(node).sees;
        *seen = Place(seen.0.saturating_add(more)).min(end);
        *seen
    }

    /// How far a node has been shown entries.
    #[must_use]
    pub fn shown(&self, node: u64) -> Place {
        self.shared.world().of_node(node).sees
    }

    /// Number of entries shown, outcomes and answers that a node has not fetched with `next`. Zero
    /// for a node without a connection.
    #[must_use]
    pub fn waiting_for(&self, node: u64) -> u64 {
        self.shared.world().waiting_for(node)
    }
}

#[cfg(test)]
mod tests;
