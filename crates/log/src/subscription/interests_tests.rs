//! Waiting subscriptions: which events wake them, and that none is missed.

#![allow(clippy::disallowed_methods)] // tests start threads and look at the time

use crate::{Append, EncodedEvents, Log, Options, Subscription, TooManyWaiters};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use wellspring_patience::Patience;
use wellspring_types::{Event, Query, QueryItem};

/// Counts how often it is woken.
#[derive(Default)]
struct WakeCounter(AtomicU64);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A subscription as held by a task of an async runtime.
struct Task {
    subscription: Subscription,
    count: Arc<WakeCounter>,
    waker: Waker,
}

impl Task {
    /// A subscription that has read everything and waits.
    fn waiting(log: &Log, query: Query) -> Task {
        let count = Arc::new(WakeCounter::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut task = Task { subscription: log.subscribe(query, log.head()), count, waker };
        assert!(task.poll().is_pending());
        task
    }

    fn poll(&mut self) -> Poll<Result<(), TooManyWaiters>> {
        self.subscription.poll_ready(&mut Context::from_waker(&self.waker))
    }

    fn woken(&self) -> u64 {
        self.count.0.load(Ordering::SeqCst)
    }
}

fn append(log: &Log, event_type: &str, tags: &[&str]) {
    append_many(log, 1, event_type, tags);
}

fn append_many(log: &Log, count: usize, event_type: &str, tags: &[&str]) {
    let mut events = EncodedEvents::new();
    for _ in 0..count {
        events.push(&Event::json(event_type, tags, "{}").as_ref()).unwrap();
    }
    log.append(Append { events, ..Append::default() }).unwrap();
}

/// Waits until the notifier has covered everything, as seen by a waiting subscription.
fn until(mut reached: impl FnMut() -> bool) {
    let mut patience = Patience::new();
    while !reached() {
        patience.pause("it does not get there");
    }
}

fn log() -> (tempfile::TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    (dir, log)
}

#[test]
fn idle_subscriptions_are_not_woken_and_advance_all_the_same() {
    let (_dir, log) = log();
    let mut idle: Vec<_> = (0..20_000)
        .map(|n| Task::waiting(&log, Query::item(&["Paid"], &[&format!("account:{n}")])))
        .collect();
    for n in 0..300 {
        append(&log, "Paid", &[&format!("other:{n}")]);
    }
    until(|| idle[7].subscription.position() == 300);
    assert_eq!(idle.iter().map(Task::woken).sum::<u64>(), 0);
    assert!(idle.iter_mut().all(|task| task.poll().is_pending()), "they need not look again");
    append(&log, "Paid", &["account:19999"]);
    until(|| idle[19_999].woken() == 1);
    assert_eq!(idle[19_999].subscription.position(), 300, "all before is known not to match");
    assert!(idle[19_999].poll().is_ready());
    let event = idle[19_999].subscription.next(Duration::ZERO).unwrap().unwrap();
    assert_eq!(event.position(), 301);
    assert_eq!(idle.iter().map(Task::woken).sum::<u64>(), 1);
}

#[test]
fn an_event_wakes_those_that_want_it_by_tag_type_or_anything() {
    let (_dir, log) = log();
    let two = Query {
        items: vec![QueryItem::new(&["A", "B"], &[]), QueryItem::new(&[], &["t:1", "t:long"])],
    };
    let mut many = Query::all();
    many.items = (0..65).map(|n| QueryItem::new(&[&format!("T{n}")], &[])).collect();
    let queries = [
        Query::item(&["A"], &[]),
        Query::item(&["B"], &["t:2"]),
        Query::all(),
        two,
        Query::item(&[], &["A"]),
        many,
    ];
    let expected: [(&str, &[&str], [u64; 6]); 5] = [
        ("A", &[], [1, 0, 1, 1, 0, 1]),
        ("B", &["t:2"], [0, 1, 1, 1, 0, 1]),
        ("C", &["t:1", "t:long"], [0, 0, 1, 1, 0, 1]),
        ("C", &["A"], [0, 0, 1, 0, 1, 1]),
        ("C", &[], [0, 0, 1, 0, 0, 1]),
    ];
    for (event_type, tags, woken) in expected {
        let tasks = queries.clone().map(|query| Task::waiting(&log, query));
        append(&log, event_type, tags);
        let head = log.head();
        until(|| tasks.iter().all(|task| task.woken() > 0 || task.subscription.position() == head));
        assert_eq!(tasks.each_ref().map(Task::woken), woken, "{event_type} {tags:?}");
    }
}

#[test]
fn a_batch_larger_than_all_that_wait_are_worth_wakes_them_unread() {
    let (_dir, log) = log();
    let mut tasks: Vec<_> =
        (0..3).map(|n| Task::waiting(&log, Query::item(&[], &[&format!("a:{n}")]))).collect();
    append_many(&log, 900, "Other", &[]);
    until(|| tasks.iter().all(|task| task.woken() == 1));
    for task in &mut tasks {
        assert!(task.poll().is_ready());
        assert!(task.subscription.next(Duration::ZERO).unwrap().is_none());
        assert_eq!(task.subscription.position(), 900);
        assert!(task.poll().is_pending());
    }
}

#[test]
fn closing_wakes_all_and_a_subscription_that_is_given_up_leaves_nothing() {
    let (_dir, log) = log();
    let mut tasks: Vec<_> =
        (0..3).map(|n| Task::waiting(&log, Query::item(&[], &[&format!("a:{n}")]))).collect();
    let gone = tasks.pop().unwrap();
    let count = Arc::clone(&gone.count);
    drop(gone);
    log.close();
    assert!(tasks.iter().all(|task| task.woken() == 1));
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    assert!(tasks.iter_mut().all(|task| task.poll() == Poll::Ready(Ok(()))));
    assert!(tasks[0].subscription.next(Duration::from_secs(20)).unwrap().is_none());
}

/// Threads that sleep until woken, while others write matching and other events.
#[test]
fn no_event_is_missed_by_subscriptions_that_wait_while_others_write() {
    const EACH: u64 = 400;
    let (_dir, log) = log();
    let readers: Vec<_> = (0..6)
        .map(|reader| {
            let tag = format!("r:{reader}");
            let query = Query::item(&[], &[&tag]);
            let mut subscription = log.subscribe(query, 0);
            std::thread::spawn(move || {
                let mut last = 0;
                for n in 0..EACH {
                    let event = subscription.next(Duration::from_secs(20)).unwrap();
                    let event =
                        event.unwrap_or_else(|| panic!("{tag} waits for event {n} for ever"));
                    assert!(event.position() > last && event.tags().any(|found| found == tag));
                    last = event.position();
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let log = log.clone();
            std::thread::spawn(move || {
                for n in 0..EACH {
                    for reader in [writer, writer + 3] {
                        append(&log, "X", &[&format!("r:{reader}"), "noise:1"]);
                    }
                    append(&log, "X", &[&format!("noise:{n}")]);
                    if n % 50 == writer {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            })
        })
        .collect();
    writers.into_iter().chain(readers).for_each(|thread| thread.join().unwrap());
}

/// One event at a time, each awaited before the next: every one must wake its reader.
#[test]
fn a_single_quiet_commit_is_told_at_once() {
    let (_dir, log) = log();
    let mut subscription = log.subscribe(Query::item(&["Ping"], &[]), 0);
    let begun = Instant::now();
    for n in 1..=200 {
        let writer = log.clone();
        let thread = std::thread::spawn(move || append(&writer, "Ping", &[]));
        let event = subscription.next(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(event.position(), n);
        thread.join().unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
