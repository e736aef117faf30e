//! The nodes of the Raft engine under the simulated processes: their WALs on simulated disks, a
//! network that the seed decides about, and an account of what they promise.

pub mod copies;
pub mod facts;
mod operator;
mod steps;
pub mod watched;
pub mod wires;

use crate::clock::NodeClock;
use crate::dice::Dice;
use copies::{Copies, Keeps};
use facts::GroupFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use watched::{LogFacts, WatchedLog};
use wellspring_journal_raft::by_hand::HandNode;
use wellspring_journal_raft::plants::{Plant, planted};
use wellspring_journal_raft::wal::{Identity, Wal, WalFault, WalOptions};
use wellspring_journal_raft::{LeadChoice, MembersChange, Message, RaftOptions};
use wellspring_log::shared::entry::ClusterId;
use wellspring_log::shared::{Arrival, AskId, OfferId, Place, SharedLog};
use wellspring_log::storage::Storage as _;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wires::{WireFaults, Wires};

/// A log that all nodes write beside that of the clients: its entries are in the same frames.
const BESIDE: &str = "beside";

/// A node of the group.
pub struct Member {
    /// Its id.
    pub id: u64,
    disk: SimulatedStorage,
    clock: Arc<NodeClock>,
    running: Option<RunningMember>,
    /// Its WAL is not worked on.
    is_slow: bool,
    /// Whether its disk refuses or fails.
    has_trouble: bool,
    /// Whether its WAL was damaged: it may refuse to open, and the node is replaced then.
    is_rotten: bool,
}

struct RunningMember {
    node: HandNode,
    beside: WatchedLog,
    /// Deliveries up to this index were checked.
    checked: u64,
}

/// The group.
pub struct Group {
    members: Vec<Member>,
    wires: Wires,
    told: LogFacts,
    keeps: Keeps,
    /// The copies of its members.
    pub copies: Copies,
    /// What its members promise.
    pub facts: GroupFacts,
    patience: Duration,
    /// Most that happens in a step.
    pace: u64,
    faults: WireFaults,
    /// Ids whose memory is gone.
    lost: BTreeSet<u64>,
    last_id: u64,
    /// Nodes that found the group.
    first_voters: usize,
    last_offer: u64,
    /// Changes of the members that are under way.
    changes: Vec<MembersChange>,
    /// As the trace has it.
    last_state: String,
}

/// Why a member does not start.
#[derive(Debug)]
pub enum NotStarted {
    /// Its disk is in trouble: later it may.
    Later(String),
    /// Its WAL is damaged.
    Damaged(String),
}

fn new_disk(id: u64, number: usize, dice: &mut Dice) -> SimulatedStorage {
    let disk = SimulatedStorage::new(dice.draw());
    let (cluster, node) = (ClusterId([9; 16]), format!("n{number}"));
    let identity = Identity { cluster, generation: 1, node, node_id: id };
    Wal::create(Arc::new(disk.clone()), &identity).expect("a disk without faults");
    disk
}

impl Group {
    /// A group whose nodes have these clocks, of which so many are to found it.
    #[must_use]
    pub fn new(
        clocks: Vec<Arc<NodeClock>>,
        first_voters: usize,
        patience: Duration,
        (faults, keeps): (WireFaults, Keeps),
        dice: &mut Dice,
    ) -> Group {
        let last_id = clocks.len() as u64;
        let members = clocks.into_iter().enumerate().map(|(number, clock)| Member {
            id: number as u64 + 1,
            disk: new_disk(number as u64 + 1, number, dice),
            clock,
            running: None,
            is_slow: false,
            has_trouble: false,
            is_rotten: false,
        });
        let members = members.collect();
        let told = LogFacts::default();
        Group {
            members,
            wires: Wires::default(),
            facts: GroupFacts::new(told.clone()),
            told,
            keeps,
            copies: Copies::default(),
            patience,
            pace: [15, 40, 80][dice.index(3)],
            faults,
            lost: BTreeSet::new(),
            last_id,
            first_voters,
            last_offer: 0,
            changes: Vec::new(),
            last_state: String::new(),
        }
    }

    /// The first promise that was broken.
    #[must_use]
    pub fn broken(&self) -> Option<facts::Broken> {
        let told = || self.told.broken().map(|what| ("the engine tells the truth", what));
        self.facts.broken.clone().or_else(told)
    }

    /// What happened: terms, changes of the members, WALs that were lost.
    #[must_use]
    pub fn happened(&self) -> [usize; 3] {
        let [terms, changes] = self.facts.happened();
        [terms, changes, self.lost.len()]
    }

    /// Starts a member on its WAL, unless it runs.
    ///
    /// # Errors
    /// [`NotStarted`].
    pub fn start(&mut self, at: usize, dice: &mut Dice) -> Result<(), NotStarted> {
        if self.members[at].running.is_some() {
            return Ok(());
        }
        let Keeps { file_bytes, keep_bytes } = self.keeps;
        let options = WalOptions { file_bytes, recent_bytes: 4 << 10 };
        let member = &self.members[at];
        let wal = match Wal::open(Arc::new(member.disk.clone()), options) {
            Ok(wal) => wal.expect("it has an identity"),
            Err(fault @ (WalFault::Io { .. } | WalFault::Failed { .. })) => {
                return Err(NotStarted::Later(fault.to_string()));
            }
            Err(fault) => return Err(NotStarted::Damaged(fault.to_string())),
        };
        self.lost.remove(&member.id);
        self.facts.opened(member.id, &wal);
        // All of it was read.
        self.members[at].is_rotten = false;
        let member = &self.members[at];
        let clock = Arc::clone(&member.clock) as Arc<_>;
        let (patience, start) = (self.patience, dice.draw());
        let copies = self.copies.others(at);
        let options = RaftOptions { patience, start, clock, keep_bytes, copies, runtime: None };
        let node = HandNode::start(wal, self.wires.links(member.id), options);
        let node = node.map_err(|error| NotStarted::Later(error.to_string()))?;
        // The start may have purged what a checkpoint stands for.
        self.facts.worked(self.members[at].id, node.wal());
        let beside = node.connect(BESIDE, LeadChoice::Claims);
        let mut beside = WatchedLog::new(beside, (at, BESIDE), self.told.clone(), None);
        beside.follow(Place(0));
        if at == 0 && !self.facts.is_founded() {
            let voters: Vec<u64> =
                self.members[..self.first_voters].iter().map(|member| member.id).collect();
            node.begin_founding(&voters);
        }
        self.members[at].running = Some(RunningMember { node, beside, checked: 0 });
        Ok(())
    }

    /// A connection of a running member's log.
    #[must_use]
    pub fn connect(&self, at: usize, log: &str, lead: LeadChoice) -> Option<Box<dyn SharedLog>> {
        let running = self.members[at].running.as_ref()?;
        let connection = running.node.connect(log, lead);
        let copies = Some(self.copies.clone());
        Some(Box::new(WatchedLog::new(connection, (at, log), self.told.clone(), copies)))
    }

    /// Ends a member's process: its disk has what it wrote.
    pub fn stop(&mut self, at: usize) {
        self.copies.closed(at);
        let running = self.members[at].running.as_ref();
        if running.is_some_and(|running| running.node.report().stopped.is_some()) {
            self.facts.doubt(self.members[at].id);
        }
        self.members[at].running = None;
    }

    /// The power of a member fails: its disk has what a barrier covered, and of the rest what it
    /// likes.
    pub fn lose_power(&mut self, at: usize) {
        let left = self.members[at].disk.crash();
        self.stop(at);
        let member = &mut self.members[at];
        member.disk = left;
        member.has_trouble = false;
    }

    /// The power fails within the next piece of work on the WAL.
    pub fn lose_power_at_work(&mut self, at: usize, dice: &mut Dice) {
        let member = &mut self.members[at];
        let faults = Faults { power_fails_after: Some(dice.below(4)), ..Faults::default() };
        member.disk.set_faults(faults);
        if let Some(running) = &mut member.running {
            running.node.work_on_wal();
        }
        self.note_work(at);
        self.facts.doubt(self.members[at].id);
        self.lose_power(at);
    }

    /// Replaces the WAL of a member that does not run by an empty one, under a new id.
    pub fn replace(&mut self, at: usize, dice: &mut Dice) {
        let member = &mut self.members[at];
        assert!(member.running.is_none(), "it does not run");
        if planted(Plant::ReusesId) {
            self.facts.forget(member.id);
        } else {
            self.lost.insert(member.id);
            self.last_id += 1;
            member.id = self.last_id;
        }
        member.disk = new_disk(member.id, at, dice);
        (member.is_rotten, member.has_trouble) = (false, false);
    }

    /// Damages the WAL of a member; returns where.
    pub fn rot(&mut self, at: usize, dice: &mut Dice) -> Option<String> {
        let member = &mut self.members[at];
        let mut files = member.disk.contents();
        files.retain(|_, bytes| !bytes.is_empty());
        let name = files.keys().nth(dice.index(files.len()))?.clone();
        let bytes = files.get_mut(&name)?;
        // Most of a file is not written yet; damage there is harmless.
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        let byte = dice.index(written);
        bytes[byte] ^= 1 << dice.below(8);
        if member.running.is_some() {
            let flipped = bytes[byte];
            member.disk.open(&name).ok()?.write_all_at(&[flipped], byte as u64).ok()?;
        } else {
            member.disk = SimulatedStorage::with_contents(dice.draw(), &files);
        }
        member.is_rotten = true;
        self.lost.insert(member.id);
        Some(format!("a bit of {name} at {byte}"))
    }

    fn number_of(&self, id: u64) -> Option<usize> {
        self.members.iter().position(|member| member.id == id)
    }

    fn note_work(&mut self, at: usize) {
        let Member { id, running: Some(running), .. } = &self.members[at] else { return };
        self.facts.worked(*id, running.node.wal());
    }

    /// Turns a member, and checks what it did.
    fn turn(&mut self, at: usize) {
        let Member { id, running: Some(running), .. } = &mut self.members[at] else { return };
        running.node.turn();
        let report = running.node.report();
        self.facts.turned(*id, running.node.wal(), &report, &mut running.checked);
        while let Ok(arrival) = running.beside.next(Waker::noop())
            && arrival != Arrival::Nothing
        {
            // Nobody keeps it.
            if let Arrival::Entry { place, .. } = arrival {
                running.beside.durable(place, Arc::from(&b"any"[..]));
            }
        }
    }

    /// Does one piece of work on the WAL of a member; whether there was one.
    fn work(&mut self, at: usize) -> bool {
        let Some(running) = &mut self.members[at].running else { return false };
        if !running.node.has_wal_work() {
            return false;
        }
        running.node.work_on_wal();
        self.note_work(at);
        self.turn(at);
        true
    }

    fn deliver(&mut self, from: u64, to: u64, message: Message) -> Option<usize> {
        let at = self.number_of(to)?;
        self.members[at].running.as_ref()?.node.arrived(from, message);
        Some(at)
    }

    /// Offers an entry of the log beside that of the clients, and sometimes asks for its end.
    fn offer_beside(&mut self, at: usize, dice: &mut Dice) {
        self.last_offer += 1;
        let id = OfferId(self.last_offer);
        let bytes = dice.below(60) as usize;
        let entry: Vec<u8> =
            dice.draw().to_le_bytes().into_iter().cycle().take(8 + bytes).collect();
        if let Some(running) = &mut self.members[at].running {
            running.beside.offer(id, Place(0), entry.into());
            if dice.chance(600) {
                running.beside.ask_end(AskId(self.last_offer));
            }
        }
    }

    /// Whether entries are dropped once copies hold them.
    #[must_use]
    pub fn drops(&self) -> bool {
        self.keeps.drops()
    }

    /// Whether the engine of a member has stopped while its process lives, or may at any time
    /// because its WAL is damaged.
    #[must_use]
    pub fn has_stopped(&self, at: usize) -> bool {
        let running = self.members[at].running.as_ref();
        running.is_some_and(|running| {
            self.members[at].is_rotten || running.node.report().stopped.is_some()
        })
    }

    /// The running members by what they report.
    fn reports(&self) -> BTreeMap<usize, wellspring_journal_raft::GroupReport> {
        let running = self.members.iter().enumerate();
        running.filter_map(|(at, m)| Some((at, m.running.as_ref()?.node.report()))).collect()
    }
}
