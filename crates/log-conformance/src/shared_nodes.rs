//! The nodes of a log over any engine, each with a folder on a simulated disk and a connection to
//! the engine that can be cut.

use crate::coins::Coins;
use crate::{Harness, Link, OnTheWay};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wellspring_log::shared::{SharedLog, SharedOptions};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Log, OpenError, Options};

/// Connects a node, given its number, to the engine.
type Connect = Box<dyn Fn(usize) -> Box<dyn SharedLog> + Send + Sync>;

/// A [`Harness`] of nodes over an engine. An engine's crate only provides a function that connects.
pub struct SharedNodes {
    nodes: Vec<Mutex<Node>>,
    /// Derived from the seed, unique to each process.
    starts: Mutex<Coins>,
    lead_timeout: Duration,
    connect: Connect,
}

struct Node {
    disk: SimulatedStorage,
    link: Link,
}

impl SharedNodes {
    /// This many nodes of one log. `connect` is called with a node's number each time its log is
    /// opened; all nodes get the same log's entries.
    #[must_use]
    pub fn new(
        nodes: usize,
        seed: u64,
        lead_timeout: Duration,
        connect: impl Fn(usize) -> Box<dyn SharedLog> + Send + Sync + 'static,
    ) -> SharedNodes {
        let seeds = (0..nodes as u64).map(|node| seed.wrapping_mul(31).wrapping_add(node));
        let node = |seed| Node { disk: SimulatedStorage::new(seed), link: Link::new(seed) };
        SharedNodes {
            nodes: seeds.map(|seed| Mutex::new(node(seed))).collect(),
            starts: Mutex::new(Coins(seed)),
            lead_timeout,
            connect: Box::new(connect),
        }
    }

    fn node(&self, node: usize) -> MutexGuard<'_, Node> {
        self.nodes[node].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Harness for SharedNodes {
    fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn open(&self, node: usize, options: Options) -> Result<Log, OpenError> {
        let name = self.name(node);
        let start = {
            let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
            (starts.below(1 << 31) << 31) | starts.below(1 << 31)
        };
        let shared = SharedOptions {
            start,
            lead_timeout: self.lead_timeout,
            ..SharedOptions::new(&name, &format!("http://{name}"))
        };
        let engine = (self.connect)(node);
        let mut node = self.node(node);
        node.link = Link::new(start);
        let storage = Arc::new(node.disk.clone());
        let engine = node.link.over(engine);
        drop(node);
        Log::open_shared(storage, options, shared, engine)
    }

    fn kill(&self, node: usize) {
        let mut node = self.node(node);
        node.link.end(OnTheWay::Delivered);
        node.disk = node.disk.crash();
    }

    fn disk(&self, node: usize) -> Option<SimulatedStorage> {
        Some(self.node(node).disk.clone())
    }

    fn link(&self, node: usize) -> Option<Link> {
        Some(self.node(node).link.clone())
    }
}
