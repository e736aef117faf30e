//! A subscriber never sees N without all matches before N, misses nothing and
//! repeats nothing, across restarts of the log and of itself.

use crate::oracle::{append, open, small_segments};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_types::{Event, Query};

#[test]
fn catch_up_and_live_have_no_seam_and_a_restart_resumes() {
    let storage = SimulatedStorage::new(1);
    let query = Query::item(&[], &["even"]);
    let mut resume = 0;
    let mut seen = Vec::new();
    let mut number = 0u64;
    for _ in 0..4 {
        let log = open(&storage, small_segments()).unwrap();
        let mut subscription = log.subscribe(query.clone(), resume);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..300 {
                    number += 1;
                    let parity = if number.is_multiple_of(2) { "even" } else { "odd" };
                    let data = format!("\"{}\"", "x".repeat(500));
                    log.append(append(&[Event::json("T", &[parity], &data)])).unwrap();
                }
                done.store(true, Ordering::SeqCst);
            });
            loop {
                let finished = done.load(Ordering::SeqCst);
                match subscription.next(Duration::from_millis(5)).unwrap() {
                    Some(record) => seen.push(record.position()),
                    None if finished => break,
                    None => {}
                }
            }
        });
        resume = subscription.position();
        assert_eq!(resume, log.head(), "a filtered subscription gets past what does not match");
        log.close();
    }
    let expected: Vec<u64> = (1..=1200).filter(|position| position % 2 == 0).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_subscriber_is_told_when_the_log_closes() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    let mut subscription = log.subscribe(Query::all(), 0);
    std::thread::scope(|scope| {
        let waiter =
            scope.spawn(move || subscription.next(Duration::from_secs(60)).unwrap().is_none());
        log.close();
        assert!(waiter.join().unwrap());
    });
}
