//! The window in the figures is exactly the time that events have waited.

use std::sync::Arc;
use std::time::{Duration, Instant};
use wellspring_log::batcher::{Batcher, Options, Sink, SinkOutcome};
use wellspring_log::{Clock, SystemClock};
use wellspring_patience::until;

/// A clock of a process that has run for an hour.
#[derive(Debug)]
struct LateClock;

impl Clock for LateClock {
    fn wall_us(&self) -> u64 {
        SystemClock.wall_us()
    }

    fn monotonic_us(&self) -> u64 {
        3_600_000_000 + SystemClock.monotonic_us()
    }
}

struct SlowSink;

impl Sink for SlowSink {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        std::thread::sleep(Duration::from_millis(20));
        let bytes = parts.iter().map(|part| part.len()).sum();
        SinkOutcome { bytes, events: bytes as u64, trouble: None }
    }
}

#[test]
fn the_window_is_as_long_as_events_have_waited() {
    let begun = Instant::now();
    let batcher = Batcher::start(SlowSink, Options::default(), Arc::new(LateClock)).unwrap();
    let mut producer = batcher.producer(0, None);
    for pause_ms in [0, 1, 30, 0, 5] {
        std::thread::sleep(Duration::from_millis(pause_ms));
        producer.push(&[1]).unwrap();
        until("it is stored", || !producer.has_unstored() && batcher.figures().window_last_us > 0);
        let figures = batcher.figures();
        assert!(figures.window_last_us >= 20_000, "{figures:?}: the sink alone takes 20 ms");
        let most_us = begun.elapsed().as_micros() as u64;
        assert!(figures.window_longest_us <= most_us, "{figures:?} in {most_us} µs");
    }
}
