//! A shared log in memory, for tests, benchmarks and the simulator: what it may do to offers is
//! what [`SharedLog`](super::SharedLog) allows an engine, and nothing kinder.
//!
//! - [`immediate`](SimulatedLog::immediate): offers land at once; threads may wait for arrivals.
//! - [`faulty`](SimulatedLog::faulty): the same with delays, losses, repetitions and reordering
//!   drawn from a seed.
//! - [`by_hand`](SimulatedLog::by_hand): nothing lands, shows or is answered by itself. The
//!   simulator looks at what is [under way](SimulatedLog::under_way) and decides; each node sees as
//!   far as it is [shown](SimulatedLog::show).

mod node;
mod world;

pub use node::SimulatedNode;

use super::{EngineLeader, Place, SharedLimits};
use crate::threads;
use node::Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;
use world::World;

/// What an engine is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What it takes.
    pub limits: SharedLimits,
    /// Whether it refuses an offer if something stands behind the place it names.
    pub compares: bool,
    /// Whether it elects who leads: whom it is told to by [`elect`](SimulatedLog::elect).
    pub elects: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: SharedLimits {
                entry_bytes: 8 << 20,
                window: 4,
                lead_timeout_min: Duration::from_millis(10),
            },
            compares: false,
            elects: false,
        }
    }
}

/// What goes wrong by itself in a [faulty](SimulatedLog::faulty) log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Of 1,000 offers and questions, so many are lost; half of these offers say that their outcome
    /// is unknown.
    pub lose_permille: u32,
    /// Of 1,000 offers, so many land a second time, later.
    pub duplicate_permille: u32,
    /// Of 1,000 offers, so many are overtaken by those behind them.
    pub reorder_permille: u32,
    /// Offers land, and questions are answered, after up to so long.
    pub delay_us: u64,
}

/// Names something under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnderWayId(pub u64);

/// Something a node began and that is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    /// Its name.
    pub id: UnderWayId,
    /// Who began it.
    pub node: u64,
    /// How far it has come.
    pub stage: Stage,
}

/// How far something under way has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// An offer that may land or not; its node waits to hear of it.
    Offered,
    /// An offer of which its node will hear no more, because it was told that the outcome is
    /// unknown, or has died, or because this is a repetition of it. It may land all the same.
    Zombie,
    /// An offer that has landed, or was refused, and whose node has not been told.
    Settled,
    /// A question for the end.
    Asked,
}

/// What landing came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// It stands here now.
    Stands(Place),
    /// The engine compares, and something stood behind the place it names.
    Refused,
    /// Nothing of this name waits to land.
    NothingToLand,
}

/// A shared log in memory. Clones are the same log.
#[derive(Clone)]
pub struct SimulatedLog {
    shared: Arc<Shared>,
}

struct Shared {
    world: Mutex<World>,
}

/// Time between looks at what is due in a faulty log.
const TICK: Duration = Duration::from_micros(500);

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever asked: something may have arrived. With the world free.
    fn changed(&self) {
        let wakers: Vec<Waker> = self.world().take_wakers();
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Lets time do what is due, as long as the world is there.
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
    /// One in which offers land and questions are answered at once.
    #[must_use]
    pub fn immediate() -> SimulatedLog {
        SimulatedLog::of(World::new(world::Mode::Immediate, 0))
    }

    /// One in which these faults happen, drawn from `seed`.
    #[must_use]
    pub fn faulty(seed: u64, faults: Faults) -> SimulatedLog {
        SimulatedLog::of(World::new(world::Mode::Faulty(faults), seed))
    }

    /// One in which nothing happens by itself. What little is left open is drawn from `seed`.
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

    /// The same with other settings; before anybody connects.
    #[must_use]
    pub fn with(self, settings: Settings) -> SimulatedLog {
        self.shared.world().settings = settings;
        self
    }

    /// A connection of a node. A node may have several at a time, or one after another.
    #[must_use]
    pub fn connect(&self, node: u64) -> SimulatedNode {
        SimulatedNode::new(Arc::clone(&self.shared), node)
    }

    /// All entries that stand, with their places.
    #[must_use]
    pub fn entries(&self) -> Vec<(Place, Arc<[u8]>)> {
        self.shared.world().entries_after(Place(0))
    }

    /// The last place.
    #[must_use]
    pub fn end(&self) -> Place {
        self.shared.world().end()
    }

    /// Appends an entry from outside: somebody else's bytes.
    pub fn append(&self, entry: &[u8]) -> Place {
        let place = self.shared.world().stand(entry.into());
        self.shared.changed();
        place
    }

    /// Drops the entries up to this place, as retention would.
    pub fn drop_up_to(&self, place: Place) {
        self.shared.world().drop_up_to(place);
    }

    /// Breaks the promise of a shared log: forgets what stands behind a place, acknowledged or not,
    /// as a failover to a copy that was behind does. What was delivered stays delivered.
    pub fn forget_after(&self, place: Place) {
        self.shared.world().forget_after(place);
    }

    /// Cuts a node off: it gets nothing more, and what it begins waits until it is connected again
    /// (or may land by hand).
    pub fn disconnect(&self, node: u64) {
        self.shared.world().of_node(node).disconnected = true;
        self.shared.changed();
    }

    /// Connects a node again.
    pub fn reconnect(&self, node: u64) {
        self.shared.world().of_node(node).disconnected = false;
        self.shared.changed();
    }

    /// What the engine, if it elects, tells a node.
    pub fn elect(&self, node: u64, leader: EngineLeader) {
        self.shared.world().of_node(node).elected = leader;
        self.shared.changed();
    }
}

/// By hand.
impl SimulatedLog {
    /// What is under way, oldest first.
    #[must_use]
    pub fn under_way(&self) -> Vec<UnderWay> {
        self.shared.world().under_way()
    }

    /// How many offers, questions and outcomes are under way.
    #[must_use]
    pub fn under_way_len(&self) -> usize {
        self.shared.world().under_way_len()
    }

    /// Lands an offer. Its node hears of the outcome by [`report`](Self::report), and sees the
    /// entry when it is shown.
    pub fn land(&self, id: UnderWayId) -> Landing {
        self.shared.world().land(id)
    }

    /// Makes another offer of the same bytes, of which the node knows nothing; its name, if there
    /// was one to repeat.
    pub fn duplicate(&self, id: UnderWayId) -> Option<UnderWayId> {
        self.shared.world().duplicate(id)
    }

    /// Tells the node what became of an offer: where it stands, that it was refused, or that this
    /// is unknown. An offer whose outcome is unknown stays, as a zombie.
    pub fn report(&self, id: UnderWayId) {
        self.shared.world().report(id, world::Truth::Told);
    }

    /// Tells the node that the outcome of an offer is unknown, even if it has landed.
    pub fn report_unknown(&self, id: UnderWayId) {
        self.shared.world().report(id, world::Truth::Withheld);
    }

    /// Loses an offer, an outcome or a question: nobody hears of it again.
    pub fn lose(&self, id: UnderWayId) {
        self.shared.world().lose(id);
    }

    /// Answers a question with a place between the end when it was asked and the end now.
    pub fn answer(&self, id: UnderWayId) {
        self.shared.world().answer(id, world::Truth::Told);
    }

    /// Answers a question with "could not be found out".
    pub fn answer_unknown(&self, id: UnderWayId) {
        self.shared.world().answer(id, world::Truth::Withheld);
    }

    /// Shows so many more entries to a node; how far it sees now.
    pub fn show(&self, node: u64, more: u64) -> Place {
        let mut world = self.shared.world();
        let end = world.end();
        let seen = &mut world.of_node(node).sees;
        *seen = Place(seen.0.saturating_add(more)).min(end);
        *seen
    }

    /// How far a node has been shown.
    #[must_use]
    pub fn shown(&self, node: u64) -> Place {
        self.shared.world().of_node(node).sees
    }

    /// What a node has not yet fetched by `next`: entries it was shown, outcomes and answers. Zero
    /// for a node without a connection.
    #[must_use]
    pub fn waiting_for(&self, node: u64) -> u64 {
        self.shared.world().waiting_for(node)
    }
}

#[cfg(test)]
mod tests;
