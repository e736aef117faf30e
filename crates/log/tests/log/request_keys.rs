//! Looking up request keys near the head of a long log.

use crate::oracle::{append, open, small_segments};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Append, ReadError, RequestKey, Stopped, Work};
use wellspring_patience::until;
use wellspring_types::Event;

fn keyed(number: u64, digest: u8) -> Append {
    let events = [Event::json("T", &[], &format!("\"{}\"", "x".repeat(1_000))), event(number)];
    let key = Some(RequestKey { key: format!("k{number}"), digest: [digest; 16] });
    Append { key, ..append(&events) }
}

fn event(number: u64) -> Event {
    Event::json("Settled", &[], &number.to_string())
}

#[test]
fn a_key_is_found_after_a_position_only_if_its_request_is() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let requests = 200;
    for number in 1..=requests {
        log.append(keyed(number, number as u8)).unwrap();
    }
    until("indexes are written", || log.stats().indexes_unwritten == 0);
    assert!(log.segments() > 3);
    let snapshot = log.snapshot();
    let mut work = Work::unbounded();
    let mut look_up = |number: u64, after| {
        let key = format!("k{number}");
        snapshot.request_with_key_after(&key, after, &mut work).unwrap()
    };
    for number in 1..=requests {
        let first = 2 * number - 1;
        let found = look_up(number, first - 1).expect("its request comes after it");
        assert_eq!((found.first, found.events, found.digest), (first, 2, [number as u8; 16]));
        assert_eq!(look_up(number, 0), Some(found));
        assert_eq!(look_up(number, first), None, "the first event has the key");
    }
    assert_eq!(look_up(requests + 1, 0), None);
    assert_eq!(look_up(requests, log.head()), None);
    assert_eq!(look_up(requests, u64::MAX), None, "nothing follows the last position");
    // A snapshot does not grow.
    let before = log.snapshot();
    log.append(keyed(requests + 1, 1)).unwrap();
    let key = format!("k{}", requests + 1);
    assert_eq!(before.request_with_key_after(&key, 0, &mut Work::unbounded()).unwrap(), None);
}

#[test]
fn the_tail_is_looked_at_without_old_segments() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    for number in 1..=200 {
        log.append(keyed(number, 1)).unwrap();
    }
    let snapshot = log.snapshot();
    // The last segment's index is in memory, so only older ones are read.
    let after = log.head() - 2;
    storage.set_faults(Faults { reads_fail: true, ..Faults::default() });
    let look_up = |key: &str| snapshot.request_with_key_after(key, after, &mut Work::unbounded());
    for number in 1..200 {
        assert_eq!(look_up(&format!("k{number}")).unwrap(), None);
    }
    let mut stopped = Work::unbounded().with_step_limit(0);
    let found = snapshot.request_with_key_after("k1", 0, &mut stopped);
    assert_eq!(found, Err(ReadError::Stopped(Stopped::Steps)));
}
