//! A subscriber never sees N without all earlier matches, and misses or repeats nothing, across
//! restarts of the log and of itself.

use crate::oracle::{append, small_segments};
use crate::{JournalUnderTest, Nodes};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wellspring_types::{Event, Query};

/// A subscriber that continues after each restart of everything, each time at another node, while
/// events are appended.
pub fn catch_up_and_live_have_no_seam_and_a_restart_resumes(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let query = Query::item(&[], &["even"]);
    let mut resume = 0;
    let mut seen = Vec::new();
    let mut number = 0u64;
    for round in 0..4 {
        let log = nodes.log(round % nodes.count()).unwrap();
        let mut subscription = log.subscribe(query.clone(), resume);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..300 {
                    number += 1;
                    let parity = if number.is_multiple_of(2) { "even" } else { "odd" };
                    let data = format!("\"{}\"", "x".repeat(500));
                    nodes.append(append(&[Event::json("T", &[parity], &data)])).unwrap();
                }
                nodes.wait_until("the subscriber's node has all", || {
                    log.head() >= nodes.acknowledged()
                });
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
        nodes.restart();
    }
    let expected: Vec<u64> = (1..=1200).filter(|position| position % 2 == 0).collect();
    assert_eq!(seen, expected);
}

/// It does not wait for events that cannot come.
pub fn a_subscriber_is_told_when_the_log_closes(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &small_segments());
    let log = nodes.reader();
    let mut subscription = log.subscribe(Query::all(), 0);
    std::thread::scope(|scope| {
        let waiter =
            scope.spawn(move || subscription.next(Duration::from_secs(60)).unwrap().is_none());
        log.close();
        assert!(waiter.join().unwrap());
    });
}
