//! The state of the simulation.

use crate::clients::Clients;
use crate::clock::NodeClock;
use crate::dice::Dice;
use crate::engine::{Engine, EngineKind};
use crate::facts::{Fact, News};
use crate::group::Group;
use crate::group::copies::Keeps;
use crate::group::wires::WireFaults;
use crate::mood::Mood;
use crate::node::Node;
use crate::trace::Trace;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::{ReadError, ReadOptions};
use wellspring_types::Query;

/// The least that the Raft engine takes.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);

fn new_group(mood: &Mood, nodes: &[Node], dice: &mut Dice) -> Group {
    let clocks = nodes.iter().map(|node| Arc::clone(&node.clock)).collect();
    let voters = if nodes.len() > 3 && dice.chance(500) { 3 } else { nodes.len() };
    let patience = mood.lead_timeout / [1, 2, 4][dice.index(3)];
    let faults = WireFaults { lose: mood.lose / 4, double: mood.duplicate, reorder: mood.reorder };
    let keeps = Keeps::draw(mood.trim > 0, dice);
    Group::new(clocks, voters, patience.max(LEAST_PATIENCE), (faults, keeps), dice)
}

/// The whole state: nodes, engine, clients, time.
pub struct World {
    /// The source of randomness.
    pub dice: Dice,
    /// The mixture of faults.
    pub mood: Mood,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The shared log.
    pub engine: Engine,
    /// The clients.
    pub clients: Clients,
    /// What happened in this step.
    pub news: Vec<News>,
    /// Number of steps so far.
    pub step: u64,
    /// The node to lead after recovery, if a node must be asked.
    pub elected: usize,
    now_us: Arc<AtomicU64>,
    trace: Rc<RefCell<Trace>>,
}

impl World {
    /// The world of a seed, before its first step.
    #[must_use]
    pub fn new(seed: u64, kind: EngineKind, trace: Rc<RefCell<Trace>>) -> World {
        let mut dice = Dice::new(seed);
        let mood = Mood::draw(&mut dice);
        let now_us = Arc::new(AtomicU64::new(0));
        let engine_seed = dice.draw();
        let nodes: Vec<Node> = (0..mood.nodes)
            .map(|id| {
                let clock = NodeClock::new(Arc::clone(&now_us), dice.below(1 << 40));
                Node::new(id, clock, &mut dice)
            })
            .collect();
        let engine = match kind {
            EngineKind::Simulated => {
                Engine::Simulated(SimulatedLog::by_hand(engine_seed).with(mood.engine))
            }
            EngineKind::Raft => Engine::Raft(Box::new(new_group(&mood, &nodes, &mut dice))),
        };
        let world = World {
            dice,
            mood,
            nodes,
            engine,
            clients: Clients::default(),
            news: Vec::new(),
            step: 0,
            elected: 0,
            now_us,
            trace,
        };
        world.say(format_args!("{:?}", world.mood));
        world
    }

    /// Writes a line of the trace.
    pub fn say(&self, what: fmt::Arguments<'_>) {
        self.trace.borrow_mut().line(self.step, self.now_us(), what);
    }

    /// The current time.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::Relaxed)
    }

    /// Advances the time.
    pub fn pass(&mut self, us: u64) {
        self.now_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Reads what the nodes show now, for the invariants.
    pub fn observe(&mut self) {
        for at in 0..self.nodes.len() {
            self.observe_node(at);
            self.hear_subscription(at);
        }
    }

    /// Reads from the subscription to all events at a node.
    fn hear_subscription(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Node { log: Some(log), subscription: Some(subscription), .. } = node else { return };
        while node.told < log.head() {
            match subscription.next(Duration::ZERO) {
                Ok(Some(record)) => {
                    let (position, expected) = (record.position(), node.told + 1);
                    node.told = position;
                    if position != expected {
                        self.news.push(News::Told { node: at, position, expected });
                        return;
                    }
                }
                Ok(None) => {
                    let expected = node.told + 1;
                    self.news.push(News::Told { node: at, position: 0, expected });
                    return;
                }
                Err(ReadError::Corrupt(_)) if node.rotten => {
                    node.subscription = Some(log.subscribe(Query::all(), node.told));
                    return;
                }
                Err(error) => {
                    self.news.push(News::Unreadable { node: at, what: error.to_string() });
                    return;
                }
            }
        }
    }

    fn observe_node(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(log) = &node.log else { return };
        let head = log.head();
        let place = log.shared_stats().map_or(0, |stats| stats.place.0);
        let stands = News::Stands { node: at, life: node.life, role: log.role(), head, place };
        self.news.push(stands);
        if head <= node.learned {
            return;
        }
        let options = ReadOptions { after: Some(node.learned), ..ReadOptions::default() };
        let mut events = log.snapshot().read(&Query::all(), options);
        loop {
            match events.next() {
                Ok(Some(record)) => match Fact::read(&record) {
                    Some(fact) if fact.position == node.learned + 1 => {
                        node.learned += 1;
                        self.news.push(News::Seen { node: at, fact });
                    }
                    fact => {
                        let after = node.learned;
                        let what = format!("after {after} comes {fact:?}");
                        self.news.push(News::Unreadable { node: at, what });
                        return;
                    }
                },
                Ok(None) if node.learned >= head => return,
                Ok(None) => {
                    let what =
                        format!("the head is {head}, and nothing comes after {}", node.learned);
                    self.news.push(News::Unreadable { node: at, what });
                    return;
                }
                // It is repaired while reads continue.
                Err(ReadError::Corrupt(_)) if node.rotten => return,
                Err(error) => {
                    self.news.push(News::Unreadable { node: at, what: error.to_string() });
                    return;
                }
            }
        }
    }
}
