//! Tests that kill a server again and again.

use crate::done::StopSignal;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Crash cycles of a test.
pub fn cycles() -> usize {
    let cycles = std::env::var("WELLSPRING_TEST_CRASH_CYCLES");
    cycles.map_or(12, |text| text.parse().expect("a number of cycles"))
}

/// Alternates between the two ways.
pub fn flags(cycle: usize) -> [&'static str; 2] {
    ["--lean-loop", if cycle.is_multiple_of(2) { "true" } else { "false" }]
}

/// The longest time for a write and its barrier until `done` is set: what disk and machine add to
/// the window.
pub fn slowest_barrier(dir: &Path, done: &StopSignal) -> Duration {
    let mut file = std::fs::File::create(dir.join("yardstick")).unwrap();
    let mut slowest = Duration::ZERO;
    while !done.is_set() {
        let begun = Instant::now();
        file.write_all(&[1; 512]).unwrap();
        file.sync_data().unwrap();
        slowest = slowest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    slowest
}
