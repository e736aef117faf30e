//! Events a second of a log over three nodes of this process, ÷ a log of files on the same disk, in
//! turns. Each append is durable when it is answered: of the group, on two disks.
//!
//! ```text
//! cargo run --release -p wellspring-journal-raft --example group_rate -- FOLDER [CLIENTS] [SECONDS] [ROUNDS]
//! ```

#![allow(clippy::disallowed_methods)] // a benchmark reads the time and starts threads

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wellspring_journal_raft::wal::{Identity, Wal, WalOptions};
use wellspring_journal_raft::{CopySource, LeadChoice, Links, Message, RaftNode, RaftOptions};
use wellspring_log::shared::entry::ClusterId;
use wellspring_log::shared::{Place, PlacedEntry, SharedLogError};
use wellspring_log::storage::DiskStorage;
use wellspring_log::{Append, EncodedEvents, Log, Options, SharedOptions, SystemClock};
use wellspring_types::Event;

const NODES: u64 = 3;

/// Links in memory.
struct Wires(u64, Arc<[OnceLock<RaftNode>; NODES as usize]>);

impl Links for Wires {
    fn send(&self, to: u64, message: Message) {
        if let Some(node) = self.1[to as usize - 1].get() {
            node.arrived(self.0, message);
        }
    }
}

/// All nodes are there from the beginning.
struct NoCopies;

impl CopySource for NoCopies {
    fn accepted_after(
        &self,
        _: &str,
        _: Place,
        _: usize,
    ) -> Result<Vec<PlacedEntry>, SharedLogError> {
        Ok(Vec::new())
    }
}

type Nodes = Arc<[OnceLock<RaftNode>; NODES as usize]>;

fn group(dir: &Path) -> Nodes {
    let nodes = Nodes::default();
    for id in 1..=NODES {
        let storage = Arc::new(DiskStorage::create(&dir.join(format!("raft-{id}"))).unwrap());
        let (cluster, node) = (ClusterId([1; 16]), format!("node-{id}"));
        let identity = Identity { cluster, generation: 1, node, node_id: id };
        Wal::create(Arc::clone(&storage) as _, &identity).unwrap();
        let wal = Wal::open(storage, WalOptions::default()).unwrap().unwrap();
        let clock = Arc::new(SystemClock);
        let (patience, copies) = (Duration::from_millis(500), Arc::new(NoCopies));
        let options = RaftOptions {
            patience,
            start: id,
            clock,
            keep_bytes: 256 << 20,
            copies,
            runtime: None,
        };
        let node = RaftNode::start(wal, Arc::new(Wires(id, Arc::clone(&nodes))), options).unwrap();
        nodes[id as usize - 1].set(node).unwrap();
    }
    nodes[0].get().unwrap().found(&[1, 2, 3]).unwrap();
    nodes
}

/// The copies of a log on all nodes, and the one at the orderer, which leads.
fn logs(dir: &Path, nodes: &Nodes) -> (Vec<Log>, Log) {
    let orderer = loop {
        if let Some(id) = nodes[0].get().unwrap().report().orderer {
            break id;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let open = |id: u64| {
        let storage = Arc::new(DiskStorage::create(&dir.join(format!("copy-{id}"))).unwrap());
        let name = format!("node-{id}");
        let shared = SharedOptions::new(&name, "http://127.0.0.1:1");
        let engine = nodes[id as usize - 1].get().unwrap().connect("main", LeadChoice::Claims);
        Log::open_shared(storage, Options::default(), shared, Box::new(engine)).unwrap()
    };
    let logs: Vec<Log> = (1..=NODES).map(open).collect();
    let leading = logs[orderer as usize - 1].clone();
    leading.claim_lead();
    while !leading.role().leads() {
        std::thread::sleep(Duration::from_millis(5));
    }
    (logs, leading)
}

/// Appends of so many threads; returns events a second and the median latency in µs.
fn load(log: &Log, clients: usize, seconds: u64) -> (f64, u64) {
    let (count, stops) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut events = EncodedEvents::new();
    let data = format!("\"{}\"", "x".repeat(254));
    events.push(&Event::json("Measured", &["device:1"], &data).as_ref()).unwrap();
    let begun = Instant::now();
    let mut waits: Vec<u64> = std::thread::scope(|scope| {
        let client = || {
            let mut waits = Vec::new();
            while !stops.load(Ordering::Relaxed) {
                let sent = Instant::now();
                log.append(Append { events: events.clone(), ..Append::default() }).unwrap();
                waits.push(sent.elapsed().as_micros() as u64);
                count.fetch_add(1, Ordering::Relaxed);
            }
            waits
        };
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        std::thread::sleep(Duration::from_secs(seconds));
        stops.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let rate = count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
    waits.sort_unstable();
    (rate, waits[waits.len() / 2])
}

fn main() {
    let mut words = std::env::args().skip(1);
    let dir = PathBuf::from(words.next().expect("a folder")).join("group-rate");
    let mut number =
        |usual: u64| words.next().map_or(usual, |word| word.parse().expect("a number"));
    let (clients, seconds, rounds) = (number(64) as usize, number(5), number(3));
    std::fs::create_dir(&dir).expect("a folder that is not there yet");
    let nodes = group(&dir);
    let (copies, leading) = logs(&dir, &nodes);
    let files = Log::open(&dir.join("files"), Options::default()).unwrap();
    for round in 0..rounds {
        let frames = || nodes.iter().map(|node| node.get().unwrap().report().frames).sum::<u64>();
        let before = frames();
        let (of_group, wait_us) = load(&leading, clients, seconds);
        let frames = frames() - before;
        let (of_files, files_wait_us) = load(&files, clients, seconds);
        println!(
            "round {round}: group {of_group:.0}/s (p50 {wait_us} µs, {frames} frames), files \
             {of_files:.0}/s (p50 {files_wait_us} µs): {:.2}",
            of_group / of_files
        );
    }
    copies.into_iter().for_each(|log| log.close());
    drop((leading, nodes));
    std::fs::remove_dir_all(&dir).unwrap();
}
