//! Events that come with the time at which another log recorded them.

use crate::oracle::{append, open, small_segments};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{
    Append, AppendError, Clock, EncodedEvents, Log, Options, ReadOptions, RequestKey,
};
use wellspring_types::{Event, Invalid, Query, Reason};

/// A wall clock that a test sets.
#[derive(Debug, Clone)]
struct WallClock(Arc<AtomicU64>);

impl Clock for WallClock {
    fn wall_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn monotonic_us(&self) -> u64 {
        self.wall_us()
    }
}

const NOW_US: u64 = 1_000;

fn options(clock: &WallClock) -> Options {
    Options { clock: Arc::new(clock.clone()), ..small_segments() }
}

fn clock() -> WallClock {
    WallClock(Arc::new(AtomicU64::new(NOW_US)))
}

/// Events of a kilobyte with these times; 0: without.
fn recorded(times_us: &[u64]) -> Append {
    let event = Event::json("T", &["t"], &format!("\"{}\"", "x".repeat(1_000)));
    let mut events = EncodedEvents::new();
    for &time_us in times_us {
        events.push_recorded(&event.as_ref(), time_us).unwrap();
    }
    Append { events, ..Append::default() }
}

fn times(log: &Log) -> Vec<u64> {
    let mut all = Vec::new();
    let mut events = log.snapshot().read(&Query::all(), ReadOptions::default());
    while let Some(event) = events.next().unwrap() {
        all.push(event.recorded_at_us());
    }
    all
}

fn refused(event: usize, reason: Reason) -> AppendError {
    AppendError::Invalid(Invalid { field: format!("events[{event}].recorded_at"), reason })
}

#[test]
fn times_are_kept_if_they_do_not_decrease_and_have_come() {
    let (storage, clock) = (SimulatedStorage::new(1), clock());
    let log = open(&storage, options(&clock)).unwrap();
    log.append(recorded(&[3, 3, 7])).unwrap();
    log.append(recorded(&[7, 9])).unwrap();
    for (times_us, event, reason) in [
        (&[8][..], 0, Reason::BeforeLast { last_us: 9 }),
        (&[9, 12, 11], 2, Reason::BeforeLast { last_us: 12 }),
        (&[10, NOW_US, NOW_US + 1], 2, Reason::InFuture { now_us: NOW_US }),
        (&[10, 0, 999], 2, Reason::BeforeLast { last_us: NOW_US }),
    ] {
        let outcome = log.append(recorded(times_us));
        assert_eq!(outcome, Err(refused(event, reason)), "{times_us:?}");
    }
    assert_eq!(times(&log), [3, 3, 7, 7, 9], "nothing of what was refused");
    // Without a time it is the clock's, and everything after that is later.
    log.append(recorded(&[20, 0])).unwrap();
    clock.0.store(NOW_US / 2, Ordering::Relaxed);
    log.append(append(&[Event::json("T", &[], "1")])).unwrap();
    let late = log.append(recorded(&[NOW_US / 2]));
    assert_eq!(late, Err(refused(0, Reason::BeforeLast { last_us: NOW_US })));
    let kept = [3, 3, 7, 7, 9, 20, NOW_US, NOW_US];
    assert_eq!(times(&log), kept);
    log.close();
    let log = open(&storage, options(&clock)).unwrap();
    assert_eq!(times(&log), kept);
    assert!(log.append(recorded(&[NOW_US / 2])).is_err(), "the last time outlives a restart");
}

#[test]
fn what_a_full_disk_discarded_is_staged_again_with_its_times() {
    let (storage, clock) = (SimulatedStorage::new(1), clock());
    let log = open(&storage, options(&clock)).unwrap();
    let mut stored = 0;
    while stored < 45 {
        log.append(recorded(&[5])).unwrap();
        stored += 1;
    }
    let used: u64 = storage.contents().values().map(|bytes| bytes.len() as u64).sum();
    storage.set_faults(Faults { capacity_bytes: Some(used), ..Faults::default() });
    while log.append(recorded(&[5])).is_ok() {
        stored += 1;
    }
    assert_eq!(log.append(recorded(&[6, 7])), Err(AppendError::StorageFull));
    storage.set_faults(Faults::default());
    log.append(recorded(&[6])).unwrap();
    assert_eq!(times(&log)[stored..], [6]);
}

#[test]
fn a_retry_is_known_whatever_has_been_recorded_since() {
    let log = open(&SimulatedStorage::new(1), options(&clock())).unwrap();
    let key = || Some(RequestKey { key: "k".into(), digest: [1; 16] });
    let first = log.append(Append { key: key(), ..recorded(&[3, 4]) }).unwrap();
    log.append(recorded(&[0])).unwrap();
    let again = log.append(Append { key: key(), ..recorded(&[3, 4]) }).unwrap();
    assert_eq!((again.first, again.last, again.replayed), (first.first, first.last, true));
    assert_eq!(times(&log), [3, 4, NOW_US]);
}
