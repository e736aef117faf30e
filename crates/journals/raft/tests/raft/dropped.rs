//! The group drops entries that copies hold, and a node without them reads other nodes' copies.

use crate::group::{Group, Keeps};
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Append, EncodedEvents, Log, Options, ReadOptions, Role, SharedOptions};
use wellspring_patience::until;
use wellspring_types::{Event, Query};

const PATIENCE: Duration = Duration::from_millis(50);
const FILE_BYTES: u64 = 64 << 10;

/// Nodes of a group with their copies of two logs, one of them with few events.
struct Nodes {
    group: Arc<Group>,
    disks: Vec<SimulatedStorage>,
    logs: Vec<Option<Log>>,
}

impl Nodes {
    fn new(nodes: usize, voters: usize, seed: u64) -> Nodes {
        let group = Group::that_keeps(Keeps::File(FILE_BYTES), nodes, voters, seed, PATIENCE);
        let disks = (0..nodes as u64).map(|n| SimulatedStorage::new(seed + n)).collect();
        let mut new = Nodes { group, disks, logs: vec![None; nodes] };
        (0..voters).for_each(|number| new.open(number));
        new
    }

    fn open(&mut self, number: usize) {
        let name = format!("node-{number}");
        let shared = SharedOptions {
            lead_timeout: Duration::from_millis(300),
            ..SharedOptions::new(&name, &format!("http://{name}"))
        };
        let engine = Box::new(self.group.connect(number, "main"));
        let storage = Arc::new(self.disks[number].clone());
        let options = Options { segment_bytes: 100 << 10, ..Options::default() };
        let log = Log::open_shared(storage, options, shared, engine).unwrap();
        self.group.copies.are(number, Some(&log));
        self.logs[number] = Some(log);
    }

    fn kill(&mut self, number: usize) {
        self.group.copies.are(number, None);
        drop(self.logs[number].take());
        self.group.kill(number);
        self.disks[number] = self.disks[number].crash();
    }

    fn log(&self, number: usize) -> &Log {
        self.logs[number].as_ref().unwrap()
    }

    /// Appends so many events of a kilobyte, wherever that is possible.
    fn append(&self, count: usize) {
        for number in 0..count {
            let data = format!("\"{number}{}\"", "x".repeat(1000));
            let mut events = EncodedEvents::new();
            events.push(&Event::json("Added", &[], &data).as_ref()).unwrap();
            let append = Append { events, ..Append::default() };
            until("an append", || {
                let mut logs = self.logs.iter().flatten();
                logs.find(|log| log.role().leads())
                    .is_some_and(|log| log.append(append.clone()).is_ok())
            });
        }
    }

    fn wal_bytes(&self, number: usize) -> u64 {
        self.group.running(number).report().kept_bytes
    }

    fn purged(&self, number: usize) -> u64 {
        self.group.running(number).report().purged
    }

    /// Waits until two nodes show the same events.
    fn until_equal(&self, one: usize, other: usize) {
        let (one, other) = (self.log(one), self.log(other));
        until("the other catches up", || {
            assert!(!matches!(other.role(), Role::Detached { .. }), "{:?}", other.role());
            one.head() == other.head() && !matches!(other.role(), Role::CatchingUp { .. })
        });
        let all = |log: &Log| {
            let snapshot = log.snapshot();
            let mut events = snapshot.read(&Query::all(), ReadOptions::default());
            let mut all = Vec::new();
            while let Some(event) = events.next().unwrap() {
                all.push((event.position(), event.recorded_at_us(), event.data().to_vec()));
            }
            all
        };
        assert_eq!(all(one).len() as u64, one.head());
        assert!(all(one) == all(other), "the copies have the same events");
    }
}

#[test]
fn the_wal_stays_short_while_the_log_grows() {
    let nodes = Nodes::new(3, 3, 21);
    for _ in 0..10 {
        nodes.append(100);
        // A look a second: until then it grows.
        until("entries are dropped", || (0..3).all(|n| nodes.wal_bytes(n) <= 3 * FILE_BYTES));
    }
    assert!((0..3).all(|number| nodes.purged(number) > 0));
    nodes.until_equal(0, 1);
    nodes.until_equal(0, 2);
}

#[test]
fn who_was_away_for_long_is_completed_from_copies_and_so_is_an_empty_one() {
    let mut nodes = Nodes::new(3, 3, 22);
    nodes.append(50);
    nodes.until_equal(0, 2);
    let had = nodes.log(2).head();
    nodes.kill(2);
    nodes.append(400);
    until("entries are dropped", || (0..2).all(|n| nodes.wal_bytes(n) <= 3 * FILE_BYTES));
    nodes.group.start(2);
    nodes.open(2);
    nodes.until_equal(0, 2);
    assert!(nodes.log(2).head() > had + 300);
    // Its copy alone is gone; what the WAL has is not enough.
    nodes.kill(1);
    nodes.disks[1] = SimulatedStorage::new(99);
    nodes.group.start(1);
    nodes.open(1);
    nodes.until_equal(0, 1);
    // All start anew, on what is left.
    (0..3).for_each(|number| nodes.kill(number));
    for number in 0..3 {
        nodes.group.start(number);
        nodes.open(number);
    }
    nodes.append(50);
    nodes.until_equal(0, 1);
    nodes.until_equal(0, 2);
}

#[test]
fn who_joins_gets_the_checkpoint_and_the_copies() {
    let mut nodes = Nodes::new(4, 3, 23);
    nodes.append(300);
    until("entries are dropped", || nodes.purged(nodes.group.orderer()) > 0);
    nodes.group.running(nodes.group.orderer()).add_learner(4).wait().unwrap();
    nodes.open(3);
    nodes.until_equal(0, 3);
    nodes.group.running(nodes.group.orderer()).change_voters(&[1, 2, 3, 4]).wait().unwrap();
    nodes.append(20);
    nodes.until_equal(0, 3);
}
