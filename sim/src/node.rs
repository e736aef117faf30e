//! A process with its disk and its clock.

use crate::clients::Mailbox;
use crate::clock::NodeClock;
use crate::dice::Dice;
use crate::links::LinksAt;
use crate::mood::Mood;
use std::sync::Arc;
use wellspring_log::shared::SharedLog;
use wellspring_log::storage::Storage;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Driver, Log, OpenError, Options, SharedOptions, Subscription};
use wellspring_types::{Position, Query};

/// The state of a node's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// It is running.
    Yes,
    /// It is paused and will continue.
    Paused,
    /// It is being shut down.
    Leaving,
    /// It is dead.
    Dead,
}

/// Temporary trouble with a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// It accepts a limited number of further bytes.
    Full {
        /// The number of bytes.
        room: u64,
    },
    /// A limited number of further files can be opened.
    FewFiles {
        /// The number of files.
        more: usize,
    },
    /// One barrier fails.
    BarrierFails {
        /// Number of barriers before it.
        after: u64,
    },
}

/// A node.
pub struct Node {
    /// Its number.
    pub id: usize,
    /// Its disk.
    pub storage: SimulatedStorage,
    /// Its clock.
    pub clock: Arc<NodeClock>,
    /// Its copy of the log, while its process lives.
    pub log: Option<Log>,
    /// Whether it gets turns.
    pub running: Running,
    /// Number of its processes so far.
    pub life: u64,
    /// Collects the answers.
    pub mailbox: Mailbox,
    /// Whether it is disconnected from the engine.
    pub cut_off: bool,
    /// The trouble with its disk.
    pub trouble: Trouble,
    /// Whether bytes of its disk have changed: reads may find damage until it is repaired.
    pub rotten: bool,
    /// Events up to this position were read for the invariants.
    pub learned: Position,
    /// Its view.
    pub links: LinksAt,
    /// A subscription to all events.
    pub subscription: Option<Subscription>,
    /// The last position that the subscription returned.
    pub told: Position,
}

impl Node {
    /// A node whose process has not started.
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

    /// Starts a process on the disk's content.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn start(
        &mut self,
        connection: Box<dyn SharedLog>,
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

    /// Kills the process with a power loss: the disk keeps what is durable.
    pub fn crash(&mut self) {
        let left = self.storage.crash();
        self.mailbox = Mailbox::default();
        self.log = None;
        self.subscription = None;
        self.storage = left;
        self.running = Running::Dead;
        self.set_trouble(self.trouble);
    }

    /// Starts shutting the process down.
    pub fn leave(&mut self) {
        self.running = Running::Leaving;
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// The process has ended, and its last answers were collected.
    pub fn has_left(&mut self) {
        self.running = Running::Dead;
        self.log = None;
        self.subscription = None;
    }

    /// Removes the indexes of a dead node.
    pub fn remove_indexes(&mut self, dice: &mut Dice) {
        let mut files = self.storage.contents();
        files.retain(|name, _| !name.ends_with(".idx"));
        self.storage = SimulatedStorage::with_contents(dice.draw(), &files);
        // All segments are read now, and damage is repaired before any read.
        self.rotten = false;
    }

    /// Replaces the disk of a dead node by an empty one.
    pub fn replace_disk(&mut self, dice: &mut Dice) {
        self.storage = SimulatedStorage::new(dice.draw());
        self.rotten = false;
        self.set_trouble(self.trouble);
    }

    /// Starts or ends disk trouble.
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

    /// Flips a bit of a segment or an index of a running process; returns where.
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

    /// Damages bytes of a file of a dead node; returns which.
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
