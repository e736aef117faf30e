//! The cost of the journal over a shared log compared with the journal of files, both in a folder
//! in memory.
//!
//! ```text
//! cargo run --release -p wellspring-log --example journals
//! ```
//!
//! The runs alternate, so that variations of the machine affect both. See `docs/benchmarks.md`.

#![allow(missing_docs, clippy::disallowed_methods)] // a measurement

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::storage::DiskStorage;
use wellspring_log::{Append, EncodedEvents, Log, Options, Role, SharedOptions};
use wellspring_types::{Event, Query};

const CLIENTS: u64 = 64;
const SECONDS: u64 = 2;
const ROUNDS: usize = 5;

fn append(n: u64) -> Append {
    let mut events = EncodedEvents::new();
    let tag = format!("entity:{}", n % 1_000);
    let event =
        Event::json("Measured", &[&tag, "all"], "{\"value\":12345678,\"text\":\"some words\"}");
    events.push(&event.as_ref()).expect("a valid event");
    Append { events, ..Append::default() }
}

/// A new folder in memory, removed on drop.
fn folder() -> (tempfile::TempDir, Arc<DiskStorage>) {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let storage = DiskStorage::create(dir.path()).expect("a folder");
    (dir, Arc::new(storage))
}

fn file() -> (tempfile::TempDir, Log) {
    let (dir, storage) = folder();
    (dir, Log::open_on(storage, Options::default()).expect("a log"))
}

fn shared(world: &SimulatedLog, node: u64) -> (tempfile::TempDir, Log) {
    let mut options = SharedOptions::new(&format!("node-{node}"), "");
    options.lead_timeout = Duration::from_secs(60);
    let (dir, storage) = folder();
    let engine = Box::new(world.connect(node));
    (dir, Log::open_shared(storage, Options::default(), options, engine).expect("a log"))
}

fn lead(log: &Log) {
    while !log.role().leads() {
        if matches!(log.role(), Role::Following { .. }) {
            log.claim_lead();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Appends per second with this many clients.
fn rate(log: &Log, clients: u64) -> f64 {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (stop, done) = (&stop, &done);
            scope.spawn(move || {
                let mut n = client << 32;
                while !stop.load(Ordering::Relaxed) {
                    log.append(append(n)).expect("appended");
                    n += 1;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(SECONDS));
        stop.store(true, Ordering::Relaxed);
    });
    done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64()
}

/// Events per second that a node applies after it was away.
fn follow_rate(world: &SimulatedLog, head: u64) -> f64 {
    let begun = Instant::now();
    let (_dir, log) = shared(world, 2);
    while log.head() < head {
        std::thread::sleep(Duration::from_micros(200));
    }
    let rate = head as f64 / begun.elapsed().as_secs_f64();
    log.close();
    rate
}

/// Time from another node's claim until this node follows, with a full active segment and staged
/// batches; and the longest read meanwhile.
fn step_down(world: &SimulatedLog, leader: &Log) -> (Duration, Duration) {
    let (_dir, other) = shared(world, 3);
    while !matches!(other.role(), Role::Following { .. }) || other.head() < leader.head() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for n in 0..2_000 {
        leader.submit(append(n), Box::new(|_| {}));
    }
    let begun = Instant::now();
    other.claim_lead();
    let mut longest = Duration::ZERO;
    while leader.role().leads() {
        let read = Instant::now();
        let mut events =
            leader.snapshot().read(&Query::item(&[], &["entity:7"]), Default::default());
        for _ in 0..10 {
            let _ = events.next().expect("it reads");
        }
        longest = longest.max(read.elapsed());
    }
    let took = begun.elapsed();
    other.close();
    (took, longest)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut ratios = Vec::new();
    let mut follow_ratios = Vec::new();
    let mut one_client = Vec::new();
    for round in 0..ROUNDS {
        let (_dir, log) = file();
        let files = rate(&log, CLIENTS);
        let files_one = rate(&log, 1);
        log.close();
        let world = SimulatedLog::immediate();
        let (_dir, log) = shared(&world, 1);
        lead(&log);
        let over_shared = rate(&log, CLIENTS);
        let head = log.head();
        let followed = follow_rate(&world, head);
        let shared_one = rate(&log, 1);
        let (took, longest) = step_down(&world, &log);
        log.close();
        println!(
            "round {round}: files {files:.0}/s, shared {over_shared:.0}/s, follower {followed:.0}/s; one client {files_one:.0}/s and {shared_one:.0}/s; \
             steps down in {:.1} ms with {head} events, longest read {:.2} ms",
            took.as_secs_f64() * 1e3,
            longest.as_secs_f64() * 1e3
        );
        ratios.push(over_shared / files);
        follow_ratios.push(followed / over_shared);
        one_client.push(shared_one / files_one);
    }
    println!("shared / files, {CLIENTS} clients: {:.2}", median(ratios));
    println!("shared / files, one client: {:.2}", median(one_client));
    println!("follower / leader: {:.2}", median(follow_ratios));
}
