//! A group of nodes in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use wellspring_journal_raft::wal::{Identity, Wal, WalOptions};
use wellspring_journal_raft::{
    CopySource, LeadChoice, Links, Message, RaftLog, RaftNode, RaftOptions,
};
use wellspring_log::shared::entry::ClusterId;
use wellspring_log::shared::{Place, PlacedEntry, SharedLogError};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Log, SystemClock};

/// The group's nodes, numbered from 0; the id of a node is its number + 1.
pub struct Group {
    patience: Duration,
    nodes: Vec<Mutex<Node>>,
    reach: Mutex<Vec<Reach>>,
    starts: Mutex<u64>,
    keeps: Keeps,
    pub copies: Copies,
}

/// What a node reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    All,
    Nothing,
    /// It is heard and hears nothing.
    Deaf,
}

struct Node {
    disk: SimulatedStorage,
    running: Option<Arc<RaftNode>>,
}

struct Wires {
    group: Weak<Group>,
    from: u64,
}

impl Links for Wires {
    fn send(&self, to: u64, message: Message) {
        let Some(group) = self.group.upgrade() else { return };
        let (from, to_number) = (self.from as usize - 1, to as usize - 1);
        {
            let reach = group.reach.lock().unwrap();
            if reach[from] == Reach::Nothing || reach[to_number] != Reach::All {
                return;
            }
        }
        if let Some(node) = &group.node(to_number).running {
            node.arrived(self.from, message);
        }
    }
}

/// How much a group keeps of what its copies hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    Everything,
    /// A file of this many bytes.
    File(u64),
}

/// The copies of the log of each node that is open.
#[derive(Default)]
pub struct Copies(Mutex<BTreeMap<usize, Log>>);

impl Copies {
    pub fn are(&self, number: usize, log: Option<&Log>) {
        let mut copies = self.0.lock().unwrap();
        match log {
            Some(log) => copies.insert(number, log.clone()),
            None => copies.remove(&number),
        };
    }
}

/// The copies of the other nodes.
struct OtherCopies(usize, Weak<Group>, AtomicUsize);

impl CopySource for OtherCopies {
    fn accepted_after(
        &self,
        _: &str,
        after: Place,
        max_bytes: usize,
    ) -> Result<Vec<PlacedEntry>, SharedLogError> {
        let none = |reason: &str| SharedLogError::Unavailable { reason: reason.to_owned() };
        let group = self.1.upgrade().ok_or_else(|| none("the group is gone"))?;
        let turn = self.2.fetch_add(1, Ordering::Relaxed);
        let copies = group.copies.0.lock().unwrap().clone();
        let others: Vec<&Log> =
            copies.iter().filter(|(of, _)| **of != self.0).map(|(_, copy)| copy).collect();
        if others.is_empty() {
            return Err(none("no other node has a copy"));
        }
        let copy = others[turn % others.len()];
        copy.accepted_after(after, max_bytes.min(4000)).map_err(|error| none(&error.to_string()))
    }
}

impl Group {
    /// A founded group of this many nodes, which run.
    pub fn new(nodes: usize, seed: u64, patience: Duration) -> Arc<Group> {
        Group::of_voters(nodes, nodes, seed, patience)
    }

    /// A group of the first `voters` of this many nodes. The others run and are no members.
    pub fn of_voters(nodes: usize, voters: usize, seed: u64, patience: Duration) -> Arc<Group> {
        Group::that_keeps(Keeps::Everything, nodes, voters, seed, patience)
    }

    /// The same, which keeps so much.
    pub fn that_keeps(
        keeps: Keeps,
        nodes: usize,
        voters: usize,
        seed: u64,
        patience: Duration,
    ) -> Arc<Group> {
        let made = (0..nodes as u64).map(|number| {
            let disk = SimulatedStorage::new(seed.wrapping_mul(37).wrapping_add(number));
            let identity = Identity {
                cluster: ClusterId([7; 16]),
                generation: 1,
                node: format!("node-{number}"),
                node_id: number + 1,
            };
            Wal::create(Arc::new(disk.clone()), &identity).unwrap();
            Mutex::new(Node { disk, running: None })
        });
        let nodes: Vec<_> = made.collect();
        let reach = Mutex::new(vec![Reach::All; nodes.len()]);
        let starts = Mutex::new(seed << 20);
        let copies = Copies::default();
        let group = Arc::new(Group { patience, nodes, reach, starts, keeps, copies });
        (0..group.nodes.len()).for_each(|number| group.start(number));
        let voters: Vec<u64> = (1..=voters as u64).collect();
        group.running(0).found(&voters).unwrap();
        group
    }

    fn node(&self, number: usize) -> MutexGuard<'_, Node> {
        self.nodes[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn running(&self, number: usize) -> Arc<RaftNode> {
        Arc::clone(self.node(number).running.as_ref().expect("it runs"))
    }

    /// Starts a node on what its disk has.
    pub fn start(self: &Arc<Self>, number: usize) {
        let start = {
            let mut starts = self.starts.lock().unwrap();
            *starts = starts.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *starts
        };
        let mut node = self.node(number);
        let (file_bytes, keep_bytes) = match self.keeps {
            Keeps::Everything => (1 << 20, u64::MAX),
            Keeps::File(bytes) => (bytes, 1),
        };
        let sizes = WalOptions { file_bytes, recent_bytes: 64 << 10 };
        let wal = Wal::open(Arc::new(node.disk.clone()), sizes).unwrap().expect("its identity");
        let links = Arc::new(Wires { group: Arc::downgrade(self), from: number as u64 + 1 });
        let copies = Arc::new(OtherCopies(number, Arc::downgrade(self), AtomicUsize::new(0)));
        let (patience, clock) = (self.patience, Arc::new(SystemClock));
        let options = RaftOptions { patience, start, clock, keep_bytes, copies, runtime: None };
        node.running = Some(Arc::new(RaftNode::start(wal, links, options).unwrap()));
    }

    /// Kills a node's process: its disk keeps what was behind a barrier, and what it likes of the
    /// rest.
    pub fn kill(&self, number: usize) {
        let running = self.node(number).running.take();
        drop(running);
        let mut node = self.node(number);
        node.disk = node.disk.crash();
    }

    pub fn set_reach(&self, number: usize, reach: Reach) {
        self.reach.lock().unwrap()[number] = reach;
    }

    /// Leaves the disk of a node so many bytes of room.
    pub fn set_room(&self, number: usize, room: Option<u64>) {
        let disk = &self.node(number).disk;
        let used: usize = disk.contents().values().map(Vec::len).sum();
        let capacity_bytes = room.map(|room| used as u64 + room);
        disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    }

    pub fn connect(&self, number: usize, log: &str) -> RaftLog {
        self.running(number).connect(log, LeadChoice::Claims)
    }

    /// The number of the node that orders, once one does.
    pub fn orderer(&self) -> usize {
        let begun = Instant::now();
        loop {
            for number in 0..self.nodes.len() {
                let id = number as u64 + 1;
                let node = self.node(number);
                let reach = self.reach.lock().unwrap()[number];
                if reach == Reach::All
                    && node.running.as_ref().is_some_and(|n| n.report().orderer == Some(id))
                {
                    return number;
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "nobody orders");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
