//! A connection that is handed over pushes to an earlier producer, then to a later one: its events
//! are stored in this order, even if the earlier producer has only just been created.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_log::SystemClock;
use wellspring_log::batcher::{Batcher, Options, Sink, SinkOutcome};

/// Keeps the numbers it gets, in storage order.
struct OrderSink(Arc<Mutex<Vec<u64>>>);

impl Sink for OrderSink {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        let all = parts.concat();
        let numbers = all.chunks_exact(8).map(|n| u64::from_le_bytes(n.try_into().unwrap()));
        self.0.lock().unwrap().extend(numbers);
        SinkOutcome { bytes: all.len(), events: all.len() as u64 / 8, trouble: None }
    }
}

#[test]
fn an_earlier_producer_made_a_moment_ago_still_comes_first() {
    const PAIRS: u64 = 30_000;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let options =
        Options { partition_bytes: 4 << 10, flush_age: Duration::ZERO, ..Options::default() };
    let sink = OrderSink(Arc::clone(&seen));
    let batcher = Batcher::start(sink, options, Arc::new(SystemClock)).unwrap();
    let mut later = batcher.producer(1, None);
    // Observing these takes the flusher time, during which a pair may arrive.
    let idle: Vec<_> = (0..100).map(|n| batcher.producer(n % 2, None)).collect();
    for pair in 0..PAIRS {
        let mut earlier = batcher.producer(0, None);
        earlier.push(&(2 * pair).to_le_bytes()).unwrap();
        later.push(&(2 * pair + 1).to_le_bytes()).unwrap();
    }
    batcher.close();
    drop(idle);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len() as u64, 2 * PAIRS);
    let mut place = vec![0; 2 * PAIRS as usize];
    seen.iter().enumerate().for_each(|(at, &number)| place[number as usize] = at);
    for pair in place.chunks_exact(2) {
        assert!(
            pair[0] < pair[1],
            "the first of a pair was stored at {}, the second at {}",
            pair[0],
            pair[1]
        );
    }
}

#[test]
fn what_goes_to_a_later_producer_afterwards_is_stored_afterwards() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let options = Options { partition_bytes: 16 << 10, flush_bytes: 4 << 10, ..Options::default() };
    let sink = OrderSink(Arc::clone(&seen));
    let batcher = Batcher::start(sink, options, Arc::new(SystemClock)).unwrap();
    // Created in reverse, so that only the order parameter decides.
    let mut later = batcher.producer(1, None);
    let mut earlier = batcher.producer(0, None);
    // Idle producers in between: observing them gives the pushes time to fall between two
    // observations.
    let idle: Vec<_> = (0..500).map(|_| batcher.producer(0, None)).collect();
    for pair in 0..200_000u64 {
        earlier.push(&(2 * pair).to_le_bytes()).unwrap();
        later.push(&(2 * pair + 1).to_le_bytes()).unwrap();
    }
    batcher.close();
    drop(idle);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 400_000);
    let mut earlier_seen = 0;
    for &number in &*seen {
        if number % 2 == 0 {
            earlier_seen = number / 2 + 1;
        } else {
            assert!(earlier_seen > number / 2, "{number} came before what was pushed before it");
        }
    }
}
