//! The graph's store by itself, in process and on one thread: memory, writes, reads, events,
//! snapshot.
//!
//! `graph-store [nodes]`: 1,000,000 nodes if nothing is said, and five times as many relationships.
//! One line a figure.

#![allow(clippy::disallowed_methods)]

mod commits;
mod random;
mod reads;
mod writes;

use random::Random;
use std::time::Instant;
use wellspring_graph::Graph;

/// Resident memory of this process, in MiB.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4096.0 / f64::from(1 << 20)
}

/// Seconds that this thread was on a processor.
fn on_processor() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// Runs something that does `count` things, and says what one of them took: on the processor, as
/// others may be using the machine, and by the clock.
fn measure<T>(what: &str, count: u64, run: impl FnOnce() -> T) -> T {
    let (start, used) = (Instant::now(), on_processor());
    let result = run();
    let (elapsed, used) = (start.elapsed().as_secs_f64(), on_processor() - used);
    let each = |seconds: f64| seconds * 1e6 / count as f64;
    println!(
        "{what}: {:.3} us each on the processor, {:.3} by the clock",
        each(used),
        each(elapsed)
    );
    result
}

fn main() {
    let nodes = std::env::args().nth(1).and_then(|nodes| nodes.parse().ok()).unwrap_or(1_000_000);
    let mut random = Random(7);
    let empty = resident();
    let graph = measure("node in bulk, 3 properties, 1 random index", nodes, || {
        writes::nodes(Graph::new(), nodes, &mut random)
    });
    println!("  memory: {:.0} MiB", resident() - empty);
    let graph = measure("relationship in bulk, random ends, 1 property", nodes * 5, || {
        writes::relationships(graph, nodes * 5, nodes, &mut random)
    });
    println!("  memory of both: {:.0} MiB", resident() - empty);
    reads::all(&graph, nodes, &mut random);
    writes::versions(&graph, nodes, &mut random);
    commits::all(&graph);
    commits::snapshot(graph);
}
