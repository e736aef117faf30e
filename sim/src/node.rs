//! A process with its disk and its clock.

use crate::clients::Mailbox;
use crate::clock::NodeClock;
use crate::dice::Dice;
use crate::links::LinksAt;
use crate::mood::Mood;
use std::sync::Arc;
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::storage::Storage;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Driver, Log, OpenError, Options, SharedOptions, Subscription};
use wellspring_types::{Position, Query};

/// Whether a node's process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// It does.
    Yes,
    /// It is stopped and will go on.
    Paused,
    /// It is being shut down.
    Leaving,
    /// It is dead.
    Dead,
}

/// What may be wrong with a disk for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// It takes so many bytes more.
    Full {
        /// How many.
        room: u64,
    },
    /// So many files more can be opened.
    FewFiles {
        /// How many.
        more: usize,
    },
    /// A barrier fails, once.
    BarrierFails {
        /// Barriers before it.
        after: u64,
    },
}

/// A node.
pub struct Node {
    /// Which.
    pub id: usize,
    /// Its disk.
    pub storage: SimulatedStorage,
    /// Its clock.
    pub clock: Arc<NodeClock>,
    /// Its copy of the log, while its process lives.
    pub log: Option<Log>,
    /// Whether it gets turns.
    pub running: Running,
    /// How many processes it has had.
    pub life: u64,
    /// Where answers arrive.
    pub mailbox: Mailbox,
    /// Whether it is cut off from the engine.
    pub cut_off: bool,
    /// What is wrong with its disk.
    pub trouble: Trouble,
    /// Whether bytes of its disk have changed: reads may meet damage, until it is mended.
    pub rotten: bool,
    /// Events up to here were read for the invariants.
    pub learned: Position,
    /// Its view.
    pub links: LinksAt,
    /// Somebody who wants to hear of every event.
    pub subscription: Option<Subscription>,
    /// The last event that one was told of.
    pub told: Position,
}

impl Node {
    /// A node whose process has not begun.
    #[must_use]
    pub fn new(id: usize, clock: NodeClock, dice: &mut Dice) -> Node {
        Node {
            id,
            storage: SimulatedStorage::new(dice.draw()),
            clock: Arc::new(clock),
            log: None,
            running: Running::Dead,
            life: 0,
            mailbox: Mailbox::default(),
            cut_off: false,
            trouble: Trouble::None,
            rotten: false,
            learned: 0,
            links: LinksAt::default(),
            subscription: None,
            told: 0,
        }
    }

    /// Begins a process on what the disk holds.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn start(
        &mut self,
        engine: &SimulatedLog,
        mood: &Mood,
        dice: &mut Dice,
    ) -> Result<(), OpenError> {
        self.life += 1;
        let options = Options {
            segment_bytes: 64 << 10,
            staged_bytes: 1 << 20,
            clock: Arc::clone(&self.clock) as Arc<_>,
            driver: Driver::Turns { seed: dice.draw() },
            ..Options::default()
        };
        let shared = SharedOptions {
            log: "main".into(),
            node: format!("n{}", self.id),
            url: format!("http://n{}", self.id),
            start: dice.draw(),
            lead_timeout: mood.lead_timeout,
            claims: mood.claims,
        };
        let connection = Box::new(engine.connect(self.id as u64));
        let log = Log::open_shared(Arc::new(self.storage.clone()), options, shared, connection)?;
        self.mailbox = Mailbox::default();
        self.subscription = Some(log.subscribe(Query::all(), 0));
        self.told = 0;
        self.log = Some(log);
        self.running = Running::Yes;
        self.learned = 0;
        self.links = LinksAt::default();
        Ok(())
    }

    /// The process dies, and the power fails: the disk keeps what it keeps.
    pub fn crash(&mut self, engine: &SimulatedLog) {
        let left = self.storage.crash();
        // What the old process does while it is taken apart reaches nobody.
        engine.disconnect(self.id as u64);
        self.mailbox = Mailbox::default();
        self.log = None;
        self.subscription = None;
        self.storage = left;
        if !self.cut_off {
            engine.reconnect(self.id as u64);
        }
        self.running = Running::Dead;
        self.set_trouble(self.trouble);
    }

    /// The process ends as it should.
    pub fn leave(&mut self) {
        self.running = Running::Leaving;
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// The process has ended, and its last answers were taken.
    pub fn has_left(&mut self) {
        self.running = Running::Dead;
        self.log = None;
        self.subscription = None;
    }

    /// The indexes of a dead node are lost.
    pub fn remove_indexes(&mut self, dice: &mut Dice) {
        let mut files = self.storage.contents();
        files.retain(|name, _| !name.ends_with(".idx"));
        self.storage = SimulatedStorage::with_contents(dice.draw(), &files);
        // All segments are read now, and what is damaged is fetched again before anybody reads.
        self.rotten = false;
    }

    /// The disk of a dead node is replaced by an empty one.
    pub fn replace_disk(&mut self, dice: &mut Dice) {
        self.storage = SimulatedStorage::new(dice.draw());
        self.rotten = false;
        self.set_trouble(self.trouble);
    }

    /// Makes trouble of the disk, or ends it.
    pub fn set_trouble(&mut self, trouble: Trouble) {
        self.trouble = trouble;
        let mut faults = Faults::default();
        match trouble {
            Trouble::None => {}
            Trouble::Full { room } => {
                let used: usize = self.storage.contents().values().map(Vec::len).sum();
                faults.capacity_bytes = Some(used as u64 + room);
            }
            Trouble::FewFiles { more } => {
                faults.descriptors = Some(self.storage.open_files() + more);
            }
            Trouble::BarrierFails { after } => faults.sync_fails_after = Some(after),
        }
        self.storage.set_faults(faults);
    }

    /// A bit of a segment or an index changes while the process runs: where.
    pub fn rot_in_place(&mut self, dice: &mut Dice) -> Option<String> {
        let files = self.storage.contents();
        let is_read = |name: &&String| name.ends_with(".seg") || name.ends_with(".idx");
        let names: Vec<&String> = files.keys().filter(is_read).collect();
        let name = *names.get(dice.index(names.len()))?;
        let bytes = &files[name];
        let at = dice.index(bytes.len());
        let flipped = *bytes.get(at)? ^ (1 << dice.below(8));
        self.storage.open(name).ok()?.write_all_at(&[flipped], at as u64).ok()?;
        self.rotten = true;
        Some(format!("a bit of {name} at {at}"))
    }

    /// Bytes of a file of a dead node change: which.
    pub fn rot(&mut self, dice: &mut Dice) -> Option<String> {
        let mut files = self.storage.contents();
        let names: Vec<String> = files
            .iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        let name = names.get(dice.index(names.len()))?.clone();
        let bytes = files.get_mut(&name)?;
        let at = dice.index(bytes.len());
        let what = match dice.index(3) {
            0 => {
                bytes[at] ^= 1 << dice.below(8);
                "a bit"
            }
            1 => {
                let end = (at + 512).min(bytes.len());
                bytes[at..end].fill(0);
                "a sector"
            }
            _ => {
                bytes.truncate(at);
                "the end"
            }
        };
        self.storage = SimulatedStorage::with_contents(dice.draw(), &files);
        self.rotten = true;
        self.set_trouble(self.trouble);
        Some(format!("{what} of {name} at {at}"))
    }
}
