//! A reader that waits for other producers' accepted events and then finds them in the log.

use crate::oracle::{open, small_segments};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use wellspring_log::Log;
use wellspring_log::batcher::{
    Batcher, EventTemplate, Mark, MarkError, Options, Producer, PushError,
};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Options as LogOptions, ReadOptions};
use wellspring_types::{DataKind, Position, Query};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits like an async runtime: polls when woken.
fn wait(batcher: &Batcher, mark: &Mark, timeout: Duration) -> Poll<Result<(), MarkError>> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut stored = pin!(batcher.stored(mark.clone()));
    let deadline = Instant::now() + timeout;
    loop {
        match stored.as_mut().poll(&mut context) {
            Poll::Pending if Instant::now() < deadline => {
                std::thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
            }
            outcome => return outcome,
        }
    }
}

const LONG: Duration = Duration::from_secs(20);

/// Reads events with one tag, each once, like a view.
#[derive(Default)]
struct TagReader {
    after: Position,
    seen: u64,
}

impl TagReader {
    /// How many a snapshot taken now shows in total.
    fn look(&mut self, log: &Log, tag: &str) -> u64 {
        let query = Query::item(&["Clicked"], &[tag]);
        let options = ReadOptions { after: Some(self.after), ..ReadOptions::default() };
        let snapshot = log.snapshot();
        let mut events = snapshot.read(&query, options);
        while let Some(event) = events.next().unwrap() {
            self.after = event.position();
            self.seen += 1;
        }
        self.seen
    }
}

/// The progress of the producers that push in turn.
struct PushPlan {
    tag: String,
    accepted: AtomicU64,
}

/// Maximum number of events of a producer: readers must finish long before.
const MOST: u64 = 200_000;

/// Pushes until stopped, through a producer that is replaced periodically.
fn push(batcher: &Batcher, pushing: &PushPlan, number: u8, stop: &AtomicBool) {
    let clicked = EventTemplate::new("Clicked", &[&pushing.tag]).unwrap();
    while !stop.load(Ordering::Relaxed) && pushing.accepted.load(Ordering::Relaxed) < MOST {
        let mut producer = batcher.producer(number % 2, None);
        for n in 0..200 {
            producer.push_event(&clicked, DataKind::Json, b"{}").unwrap();
            // Relaxed would be too weak: this publishes the push to the reader.
            pushing.accepted.fetch_add(1, Ordering::Release);
            if n % 20 == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// Producers come and go; readers mark, wait, and find everything counted as accepted.
fn readers_find_everything(log: &Log) {
    let batcher = log.batcher(Options { partition_bytes: 64 << 10, ..Options::default() }).unwrap();
    let all: [PushPlan; 3] = std::array::from_fn(|number| PushPlan {
        tag: format!("link:{number}"),
        accepted: AtomicU64::new(0),
    });
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, pushing) in (0..).zip(&all) {
            let (batcher, stop) = (&batcher, &stop);
            scope.spawn(move || push(batcher, pushing, number, stop));
        }
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (batcher, all) = (&batcher, &all);
                scope.spawn(move || {
                    let mut following = [(); 3].map(|()| TagReader::default());
                    for round in 0..300 {
                        let number = (round + reader) % all.len();
                        let pushing = &all[number];
                        let accepted = pushing.accepted.load(Ordering::Acquire);
                        let mark = batcher.mark();
                        assert_eq!(wait(batcher, &mark, LONG), Poll::Ready(Ok(())));
                        let shown = following[number].look(log, &pushing.tag);
                        assert!(shown >= accepted, "{shown} of {accepted} in round {round}");
                    }
                })
            })
            .collect();
        let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    let mark = batcher.mark();
    assert_eq!(wait(&batcher, &mark, LONG), Poll::Ready(Ok(())));
    let accepted: u64 = all.iter().map(|pushing| pushing.accepted.load(Ordering::Acquire)).sum();
    assert!(accepted > 0);
    assert_eq!(log.head(), accepted);
}

#[test]
fn a_reader_that_waits_finds_all_that_had_been_accepted() {
    let dir = tempfile::tempdir().unwrap();
    readers_find_everything(&Log::open(dir.path(), LogOptions::default()).unwrap());
    readers_find_everything(&open(&SimulatedStorage::new(7), small_segments()).unwrap());
}

/// Fills the disk; returns how many events were accepted until it was full.
fn fill(storage: &SimulatedStorage, producer: &mut Producer) -> u64 {
    let clicked = EventTemplate::new("Clicked", &["link:1"]).unwrap();
    storage.set_faults(Faults { capacity_bytes: Some(60 << 10), ..Faults::default() });
    let data = format!("\"{}\"", "x".repeat(1000));
    let mut accepted = 0;
    loop {
        match producer.push_event(&clicked, DataKind::Json, data.as_bytes()) {
            Ok(_) => accepted += 1,
            Err(refused) => {
                assert_eq!(refused, PushError::StorageFull);
                return accepted;
            }
        }
    }
}

#[test]
fn on_a_full_disk_a_reader_waits_until_there_is_room() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let batcher = log.batcher(Options::default()).unwrap();
    let mut producer = batcher.producer(0, None);
    let accepted = fill(&storage, &mut producer);
    let mark = batcher.mark();
    assert_eq!(wait(&batcher, &mark, Duration::from_millis(250)), Poll::Pending);
    assert!(log.head() < accepted, "something waits for room");
    storage.set_faults(Faults::default());
    assert_eq!(wait(&batcher, &mark, LONG), Poll::Ready(Ok(())));
    let shown = TagReader::default().look(&log, "link:1");
    assert_eq!((log.head(), shown), (accepted, accepted));
    // What the disk never stores is reported when the batcher ends.
    fill(&storage, &mut producer);
    let mark = batcher.mark();
    batcher.close();
    let outcome = wait(&batcher, &mark, LONG);
    assert!(matches!(outcome, Poll::Ready(Err(MarkError::Closed { .. }))), "{outcome:?}");
}
