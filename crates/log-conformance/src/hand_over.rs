//! Batchers on every node, of which one leads at a time: everything accepted is stored once, in
//! each producer's order.

use crate::coins::Coins;
use crate::harness::histories;
use crate::leadership::while_the_lead_goes_round;
use crate::link::locked;
use crate::nodes::Deadline;
use crate::oracle::read_all;
use crate::sent::numbered;
use crate::{JournalUnderTest, Nodes, OnTheWay};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use wellspring_log::batcher::{
    Batcher, EventTemplate, HandOver, HandOverOutcome, HandedPiece, Options as Batching,
};
use wellspring_log::{Log, Options, Role};
use wellspring_types::DataKind;

/// Producers per node, and events per producer.
const PRODUCERS: u64 = 2;
const EVENTS: u64 = 400;
/// How long a node waits for another's answer.
const ANSWER: Duration = Duration::from_millis(300);

/// A network between the nodes that loses requests and answers, and delivers late and twice.
struct Network {
    nodes: Arc<Nodes>,
    from: usize,
    coins: Coins,
    /// Threads of late deliveries.
    late: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// Delivers a piece; returns the answer if it arrives in time.
fn deliver(log: &Log, piece: &HandedPiece<'_>, wait: Duration) -> HandOverOutcome {
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |outcome| drop(tell.send(HandOverOutcome::of(&outcome))));
    match log.take_handed_over(piece.records, piece.key.clone(), done) {
        Ok(()) => told.recv_timeout(wait).unwrap_or(HandOverOutcome::Unknown),
        Err(fault) => HandOverOutcome::Refused(fault.to_string()),
    }
}

impl Network {
    /// The node to send to: usually the leader, sometimes another.
    fn to(&mut self) -> Option<Log> {
        if self.coins.below(10) == 0 {
            return self.nodes.log(self.coins.below(self.nodes.count() as u64) as usize);
        }
        match self.nodes.log(self.from)?.role() {
            Role::Following { leader: Some(leader) } => {
                self.nodes.log(self.nodes.named(&leader.node)?)
            }
            _ => None,
        }
    }

    #[allow(clippy::disallowed_methods)] // of a test
    fn deliver_late(&mut self, log: Log, piece: HandedPiece<'_>) {
        let (records, events, key) = (piece.records.to_vec(), piece.events, piece.key);
        let pause = Duration::from_millis(self.coins.below(60));
        let late = std::thread::spawn(move || {
            std::thread::sleep(pause);
            let _ = deliver(&log, &HandedPiece { records: &records, events, key }, ANSWER);
        });
        locked(&self.late).push(late);
    }
}

impl HandOver for Network {
    fn hand_over(&mut self, piece: HandedPiece<'_>) -> HandOverOutcome {
        let Some(log) = self.to() else { return HandOverOutcome::NotTaken };
        match self.coins.below(20) {
            0 => HandOverOutcome::Unknown,
            1 => {
                let _ = deliver(&log, &piece, Duration::ZERO);
                HandOverOutcome::Unknown
            }
            2 => {
                self.deliver_late(log, piece);
                HandOverOutcome::Unknown
            }
            3 => {
                let first = deliver(&log, &piece, Duration::ZERO);
                let second = deliver(&log, &piece, ANSWER);
                // Both attempts are of this one piece: what the second says of itself does not
                // undo the first.
                match first {
                    HandOverOutcome::Stored => first,
                    HandOverOutcome::Unknown if second != HandOverOutcome::Stored => first,
                    _ => second,
                }
            }
            _ => deliver(&log, &piece, ANSWER),
        }
    }
}

fn tag(node: usize, producer: u64) -> String {
    format!("producer:{node}-{producer}")
}

/// Pushes the events of a producer.
fn produce(batcher: &Batcher, tag: &str, mut coins: Coins) {
    let mut producer = batcher.producer(0, None);
    let template = EventTemplate::new("Handed", &[tag]).expect("a valid template");
    for number in 0..EVENTS {
        let data = format!("[{number},\"{}\"]", "x".repeat(coins.below(300) as usize));
        producer.push_event(&template, DataKind::Json, data.as_bytes()).expect("it is accepted");
        if coins.below(8) == 0 {
            std::thread::sleep(Duration::from_micros(coins.below(4_000)));
        }
    }
}

/// Every node accepts events for its batcher while the lead rotates, a leader is cut off, and
/// pieces between nodes are lost, late or duplicated: each event is stored once, in its producer's
/// order.
pub fn what_is_handed_over_is_stored_once_and_in_order(journal: &dyn JournalUnderTest) {
    for seed in 0..histories(journal, 4) {
        let nodes = Arc::new(Nodes::open(journal, seed, &Options::default()));
        let late = Arc::<Mutex<Vec<JoinHandle<()>>>>::default();
        let batcher = |node| {
            let coins = Coins(seed * 100 + node as u64);
            let (nodes, late) = (Arc::clone(&nodes), Arc::clone(&late));
            let log = nodes.log(node).expect("the node is open");
            let network = Network { nodes, from: node, coins, late };
            let batching = Batching { partition_bytes: 32 << 10, ..Batching::default() };
            log.batcher_handing_over(batching, Box::new(network)).expect("a thread")
        };
        let batchers: Vec<Batcher> = (0..nodes.count()).map(batcher).collect();
        while_the_lead_goes_round(&nodes, || {
            std::thread::scope(|scope| {
                for (node, batcher) in batchers.iter().enumerate() {
                    for number in 0..PRODUCERS {
                        let coins = Coins(seed * 1000 + node as u64 * 10 + number);
                        scope.spawn(move || produce(batcher, &tag(node, number), coins));
                    }
                }
                let (leader, _) = nodes.leader();
                nodes.link(leader).cut_off();
                std::thread::sleep(Duration::from_millis(100));
                nodes.link(leader).heal(OnTheWay::Delivered);
            });
        });
        store_all(&nodes, &batchers);
        let late = std::mem::take(&mut *locked(&late));
        late.into_iter().for_each(|late| late.join().expect("it does not panic"));
        check(&nodes);
    }
}

/// Makes the batchers store everything. At any time, stored events have been accepted.
fn store_all(nodes: &Nodes, batchers: &[Batcher]) {
    let mut deadline = Deadline::new(nodes, "everything that was accepted is stored");
    while batchers.iter().any(|batcher| batcher.figures().lost_possible().events > 0) {
        for figures in batchers.iter().map(Batcher::figures) {
            assert!(figures.stored.events <= figures.accepted.events, "{figures:?}");
        }
        nodes.nudge();
        deadline.glance();
    }
    for batcher in batchers {
        batcher.close();
        let figures = batcher.figures();
        assert_eq!(figures.stored, figures.accepted);
        assert_eq!(figures.stored.events, PRODUCERS * EVENTS);
    }
}

/// On every node each producer's events occur once and in order, and nothing else does.
fn check(nodes: &Nodes) {
    let last = nodes.append(numbered(0)).expect("it is appended").last;
    for log in nodes.readers() {
        let mut next: BTreeMap<String, u64> = BTreeMap::new();
        for seen in read_all(&log).iter().filter(|seen| seen.position < last) {
            let producer = next.entry(seen.event.tags[0].clone()).or_default();
            let expected = format!("[{producer},");
            let data = String::from_utf8_lossy(&seen.event.data);
            let (at, tags) = (seen.position, &seen.event.tags);
            assert!(data.starts_with(&expected), "at {at}: {data:.9} of {tags:?}, not {expected}");
            *producer += 1;
        }
        let all = (0..nodes.count()).flat_map(|node| (0..PRODUCERS).map(move |n| tag(node, n)));
        let expected: BTreeMap<String, u64> = all.map(|producer| (producer, EVENTS)).collect();
        assert_eq!(next, expected);
    }
}
