//! The nodes of a log over any engine: each with a folder on a simulated disk, and a way to the
//! engine that can be cut.

use super::coins::Coins;
use super::{Harness, Link, OnTheWay};
use crate::error::OpenError;
use crate::log::Log;
use crate::options::Options;
use crate::shared::{SharedLog, SharedOptions};
use crate::storage::simulated::SimulatedStorage;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connects a node to the engine, under a number of its own.
type Connect = Box<dyn Fn(usize) -> Box<dyn SharedLog> + Send + Sync>;

/// A [`Harness`] of nodes over an engine. What an engine's crate has to bring is a way to connect.
pub struct SharedNodes {
    nodes: Vec<Mutex<Node>>,
    /// Drawn from the seed: no two lives have the same.
    starts: Mutex<Coins>,
    lead_timeout: Duration,
    connect: Connect,
}

struct Node {
    disk: SimulatedStorage,
    link: Link,
}

impl SharedNodes {
    /// So many nodes of one log. `connect` is called with a node's number at each opening of its
    /// log; it gives the same log's entries to all.
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
