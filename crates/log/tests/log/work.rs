//! Index work stops when its budget is used up, and continues from there.

use crate::oracle::{append, open, small_segments};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Events, Log, Options, Order, ReadError, ReadOptions, Stopped, Work};
use wellspring_types::{Event, Query};

/// Three common tags, any two of which often occur together but never all three, until `last`.
fn three_that_never_meet(options: Options, last: bool) -> Log {
    let log = open(&SimulatedStorage::new(1), options).unwrap();
    let pairs: [&[&str]; 3] = [&["a", "b"], &["b", "c"], &["a", "c"]];
    for chunk in 0..20 {
        let events: Vec<_> =
            (0..1000).map(|i| Event::json("T", pairs[(chunk + i) % 3], "1")).collect();
        log.append(append(&events)).unwrap();
    }
    if last {
        log.append(append(&[Event::json("T", &["a", "b", "c"], "1")])).unwrap();
    }
    log
}

fn all_three() -> Query {
    Query::item(&[], &["a", "b", "c"])
}

/// The position of the next event, read in pieces of `steps`; and how many pieces it took.
fn next_in_pieces(events: &mut Events, steps: u64) -> (Option<u64>, u64) {
    for pieces in 1.. {
        events.bound(Work::unbounded().with_step_limit(steps));
        match events.next() {
            Ok(found) => return (found.map(|record| record.position()), pieces),
            Err(ReadError::Stopped(stopped)) => assert_eq!(stopped, Stopped::Steps),
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("it ends")
}

#[test]
fn a_read_that_was_stopped_goes_on_where_it_stopped() {
    for options in [small_segments(), Options::default()] {
        let log = three_that_never_meet(options, true);
        for order in [Order::Ascending, Order::Descending] {
            let options = ReadOptions { order, ..ReadOptions::default() };
            let mut events = log.snapshot().read(&all_three(), options);
            let (found, pieces) = next_in_pieces(&mut events, 500);
            let (end, more) = next_in_pieces(&mut events, 500);
            assert_eq!((found, end), (Some(20_001), None));
            let pieces = pieces + more;
            assert!((10..2_000).contains(&pieces), "{pieces} pieces: each must get further");
        }
    }
}

#[test]
fn a_read_whose_flag_is_set_stops_within_256_steps() {
    let log = three_that_never_meet(Options::default(), false);
    let stop = Arc::new(AtomicBool::new(false));
    let mut events = log.snapshot().read(&all_three(), ReadOptions::default());
    events.bound(Work::unbounded().with_stop(Arc::clone(&stop)));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(events.next().unwrap_err(), ReadError::Stopped(Stopped::Cancelled));
    assert!(events.work().steps() <= 256, "{:?}", events.work());
}
