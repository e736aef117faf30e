//! Finding the first event of a time, against a linear scan.

use crate::oracle::{append, open, small_segments};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_format::segment::SEGMENT_HEADER_BYTES;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Append, Clock, EncodedEvents, Log, Options, Order, ReadError, ReadOptions};
use wellspring_log::{Snapshot, Stopped, Work};
use wellspring_types::{Event, Position, Query};

/// A clock that a test sets.
#[derive(Debug, Clone, Default)]
struct WallClock(Arc<AtomicU64>);

impl Clock for WallClock {
    fn wall_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn monotonic_us(&self) -> u64 {
        self.wall_us()
    }
}

/// The positions and times of all events.
fn scan(snapshot: &Snapshot) -> Vec<(Position, u64)> {
    let mut all = Vec::new();
    let mut events = snapshot.read(&Query::all(), ReadOptions::default());
    while let Some(event) = events.next().unwrap() {
        all.push((event.position(), event.recorded_at_us()));
    }
    all
}

fn first_since(snapshot: &Snapshot, time_us: u64) -> Result<Position, ReadError> {
    snapshot.first_since(time_us).step(&mut Work::unbounded())
}

/// Checks every time that matters against the scan.
fn check(snapshot: &Snapshot) {
    let all = scan(snapshot);
    assert!(all.is_sorted_by_key(|&(_, time_us)| time_us));
    let mut times: Vec<u64> =
        all.iter().flat_map(|&(_, at)| [at.saturating_sub(1), at, at + 1]).collect();
    times.extend([0, u64::MAX]);
    times.dedup();
    for time_us in times {
        let expected = all.iter().find(|&&(_, at)| at >= time_us);
        let expected = expected.map_or(snapshot.head() + 1, |&(position, _)| position);
        assert_eq!(first_since(snapshot, time_us), Ok(expected), "{time_us}");
    }
}

fn event(bytes: usize) -> Event {
    Event::json("T", &["t"], &format!("\"{}\"", "x".repeat(bytes)))
}

/// A log with batches of equal and of different times, as clocks and imports give them.
fn grown(seed: u64, storage: &SimulatedStorage) -> (Log, WallClock) {
    let clock = WallClock::default();
    clock.0.store(1_000, Ordering::Relaxed);
    let log =
        open(storage, Options { clock: Arc::new(clock.clone()), ..small_segments() }).unwrap();
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..60 {
        clock.0.fetch_add([0, 1, 7, 10_000][random(4) as usize], Ordering::Relaxed);
        let count = 1 + random(9) as usize;
        if random(3) > 0 {
            log.append(append(&vec![event(random(4_000) as usize); count])).unwrap();
            continue;
        }
        let mut events = EncodedEvents::new();
        let now_us = clock.wall_us();
        for _ in 0..count {
            events.push_recorded(&event(random(4_000) as usize).as_ref(), now_us).unwrap();
        }
        log.append(Append { events, ..Append::default() }).unwrap();
    }
    (log, clock)
}

#[test]
fn the_first_event_of_a_time_is_that_of_a_linear_scan() {
    for seed in 0..10 {
        let storage = SimulatedStorage::new(seed);
        let (log, clock) = grown(seed, &storage);
        assert!(log.segments() > 3, "{}", log.segments());
        let empty = log.snapshot().up_to(0);
        assert_eq!((first_since(&empty, 0), first_since(&empty, 1)), (Ok(1), Ok(1)));
        check(&log.snapshot());
        check(&log.snapshot().up_to(seed * 7));
        log.close();
        let options = Options { clock: Arc::new(clock), ..small_segments() };
        check(&open(&storage, options).unwrap().snapshot());
    }
}

#[test]
fn a_read_keeps_to_its_times_in_both_directions() {
    let (log, _) = grown(3, &SimulatedStorage::new(3));
    let snapshot = log.snapshot();
    let all = scan(&snapshot);
    let (since, until) = (first_since(&snapshot, all[40].1).unwrap(), all[all.len() - 9].0);
    assert!(1 < since && since < until, "{since} to {until}");
    for order in [Order::Ascending, Order::Descending] {
        let options = ReadOptions { order, ..ReadOptions::default() };
        let read = snapshot.up_to(until - 1).read(&Query::all(), options);
        let mut events = read.only_after(since - 1);
        let mut found = Vec::new();
        while let Some(event) = events.next().unwrap() {
            found.push(event.position());
        }
        found.sort_unstable();
        assert_eq!(found, (since..until).collect::<Vec<_>>(), "{order:?}");
    }
}

#[test]
fn a_search_reads_few_events_and_goes_on_where_it_was_stopped() {
    let storage = SimulatedStorage::new(5);
    let (log, _) = grown(5, &storage);
    let snapshot = log.snapshot();
    let all = scan(&snapshot);
    let middle = all[all.len() / 2].1;
    let expected = first_since(&snapshot, middle).unwrap();
    let before = storage.bytes_read();
    assert_eq!(first_since(&snapshot, middle).unwrap(), expected);
    let segment_events = all.len() as u64 / log.segments();
    let most = (2 + segment_events.ilog2() as u64) * (8 << 10);
    assert!(storage.bytes_read() - before <= most, "the beginnings of segments are known");
    let mut search = snapshot.first_since(middle);
    let mut stops = 0;
    let found = loop {
        match search.step(&mut Work::unbounded().with_step_limit(3)) {
            Ok(found) => break found,
            Err(ReadError::Stopped(Stopped::Steps)) => stops += 1,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(found == expected && stops > 0, "{found}, {stops} stops");
}

#[test]
fn damage_in_the_way_fails_the_search() {
    let storage = SimulatedStorage::new(9);
    let (log, _) = grown(9, &storage);
    let times = scan(&log.snapshot());
    log.close();
    let mut files = storage.contents();
    let name = files.keys().filter(|name| name.ends_with(".seg")).nth(1).unwrap().clone();
    let segment = files.get_mut(&name).unwrap();
    // Every payload of the segment, so that whichever event is looked at is damaged; but not its
    // header, whose salt may have such a byte, or nothing would open.
    for byte in segment[SEGMENT_HEADER_BYTES..].iter_mut().filter(|byte| **byte == b'x') {
        *byte = b'y';
    }
    let log = open(&SimulatedStorage::with_contents(9, &files), small_segments()).unwrap();
    let snapshot = log.snapshot();
    let searched: Vec<_> = times.iter().map(|&(_, at)| first_since(&snapshot, at)).collect();
    assert!(searched.iter().any(Result::is_err), "{searched:?}");
    for (found, &(_, at)) in searched.iter().zip(&times) {
        let expected = times.iter().find(|&&(_, time_us)| time_us >= at).unwrap().0;
        assert!(matches!(found, Err(ReadError::Corrupt(_))) || *found == Ok(expected), "{found:?}");
    }
}
