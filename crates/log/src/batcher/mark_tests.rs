//! Waiting for what other producers have pushed, with sinks that fail in every way.

#![allow(clippy::disallowed_methods)] // tests start threads

use super::*;
use crate::options::SystemClock;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake as TaskWake, Waker};
use std::thread::Thread;
use std::time::Instant;
use wellspring_patience::{PATIENCE, until};

/// Controls the sink of these tests, whose frames are one byte each.
#[derive(Debug, Default)]
struct Switches {
    shut: AtomicBool,
    full: AtomicBool,
    broken: AtomicBool,
    /// Number of bytes stored per call; 0 means all.
    at_a_time: AtomicUsize,
    calls: AtomicU64,
}

struct SwitchedSink(Arc<Switches>);

impl Sink for SwitchedSink {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        let switches = &self.0;
        switches.calls.fetch_add(1, Ordering::SeqCst);
        while switches.shut.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let given: usize = parts.iter().map(|part| part.len()).sum();
        let (bytes, trouble) = if switches.broken.load(Ordering::SeqCst) {
            (0, Some(Trouble::Closed("it broke".to_owned())))
        } else if switches.full.load(Ordering::SeqCst) {
            (0, Some(Trouble::Full))
        } else {
            match switches.at_a_time.load(Ordering::SeqCst) {
                some if some > 0 && some < given => (some, Some(Trouble::Busy)),
                _ => (given, None),
            }
        };
        SinkOutcome { bytes, events: bytes as u64, trouble }
    }
}

fn batcher() -> (Batcher, Arc<Switches>) {
    let switches = Arc::new(Switches::default());
    // Long, so that waiters cannot depend on it.
    let options = Options { flush_age: Duration::from_secs(3600), ..Options::default() };
    let sink = SwitchedSink(Arc::clone(&switches));
    (Batcher::start(sink, options, Arc::new(SystemClock)).unwrap(), switches)
}

/// Wakes by unparking, and counts.
struct Unpark {
    thread: Thread,
    woken: AtomicU64,
}

impl TaskWake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// A task on this thread that waits for one mark after another.
struct Task {
    unpark: Arc<Unpark>,
    waker: Waker,
    waits: RefCell<Option<StoredMark>>,
}

impl Task {
    fn new() -> Task {
        let unpark = Arc::new(Unpark { thread: std::thread::current(), woken: AtomicU64::new(0) });
        Task { waker: Arc::clone(&unpark).into(), unpark, waits: RefCell::new(None) }
    }

    fn woken(&self) -> u64 {
        self.unpark.woken.load(Ordering::SeqCst)
    }

    fn poll(&self, batcher: &Batcher, mark: &Mark) -> Poll<Result<(), MarkError>> {
        let mut waits = self.waits.borrow_mut();
        let stored = waits.get_or_insert_with(|| batcher.stored(mark.clone()));
        let polled = Pin::new(stored).poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            *waits = None;
        }
        polled
    }

    /// Polls only when woken, as an async runtime does.
    fn wait(&self, batcher: &Batcher, mark: &Mark) -> Result<(), MarkError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let woken = self.woken();
            if let Poll::Ready(known) = self.poll(batcher, mark) {
                return known;
            }
            while self.woken() == woken {
                let left = deadline.checked_duration_since(Instant::now()).expect("never woken");
                std::thread::park_timeout(left);
            }
        }
    }
}

#[test]
fn an_idle_batcher_lets_everyone_go_at_once() {
    let (batcher, switches) = batcher();
    let task = Task::new();
    assert_eq!(task.poll(&batcher, &batcher.mark()), Poll::Ready(Ok(())));
    let mut producer = batcher.producer(0, None);
    assert_eq!(task.poll(&batcher, &batcher.mark()), Poll::Ready(Ok(())));
    producer.push(b"x").unwrap();
    task.wait(&batcher, &batcher.mark()).unwrap();
    assert!(!producer.has_unstored());
    let calls = switches.calls.load(Ordering::SeqCst);
    for _ in 0..100 {
        assert_eq!(task.poll(&batcher, &batcher.mark()), Poll::Ready(Ok(())));
    }
    assert_eq!(switches.calls.load(Ordering::SeqCst), calls, "nobody was hurried");
    batcher.close();
    assert_eq!(task.poll(&batcher, &batcher.mark()), Poll::Ready(Ok(())), "nothing was lost");
}

#[test]
fn what_is_pushed_after_the_mark_is_not_waited_for() {
    let (batcher, switches) = batcher();
    let mut producers = [batcher.producer(0, None), batcher.producer(1, None)];
    producers[0].push(b"x").unwrap();
    let mark = batcher.mark();
    Task::new().wait(&batcher, &mark).unwrap();
    switches.shut.store(true, Ordering::SeqCst);
    producers[0].push(b"x").unwrap();
    producers[1].push(b"x").unwrap();
    let mut late = batcher.producer(0, None);
    late.push(b"x").unwrap();
    let task = Task::new();
    assert_eq!(task.poll(&batcher, &mark), Poll::Ready(Ok(())));
    let later = batcher.mark();
    assert_eq!(task.poll(&batcher, &later), Poll::Pending);
    switches.shut.store(false, Ordering::SeqCst);
    task.wait(&batcher, &later).unwrap();
    assert!(!late.has_unstored() && !producers[1].has_unstored());
}

#[test]
fn producers_that_are_gone_are_waited_for() {
    let (batcher, switches) = batcher();
    let task = Task::new();
    for _ in 0..50 {
        switches.shut.store(true, Ordering::SeqCst);
        batcher.producer(0, None).push(b"x").unwrap();
        let mark = batcher.mark();
        assert_eq!(task.poll(&batcher, &mark), Poll::Pending);
        switches.shut.store(false, Ordering::SeqCst);
        task.wait(&batcher, &mark).unwrap();
        assert_eq!(batcher.figures().lost_possible().events, 0);
    }
}

#[test]
fn a_sink_that_stores_little_at_a_time_gets_there_without_being_asked_again() {
    let (batcher, switches) = batcher();
    switches.at_a_time.store(3, Ordering::SeqCst);
    let mut producer = batcher.producer(0, None);
    for _ in 0..100 {
        producer.push(b"x").unwrap();
    }
    let (mark, task) = (batcher.mark(), Task::new());
    task.wait(&batcher, &mark).unwrap();
    assert!(task.woken() <= 34 + 1, "woken {} times", task.woken());
}

#[test]
fn a_full_device_keeps_a_task_pending_and_the_flusher_calm_until_there_is_room() {
    let (batcher, switches) = batcher();
    let mut producer = batcher.producer(0, None);
    switches.full.store(true, Ordering::SeqCst);
    producer.push(b"x").unwrap();
    let (mark, task) = (batcher.mark(), Task::new());
    let began = Instant::now();
    // Like requests that arrive and give up, each with its own task.
    while began.elapsed() < Duration::from_millis(350) {
        assert_eq!(Task::new().poll(&batcher, &mark), Poll::Pending);
        assert_eq!(task.poll(&batcher, &mark), Poll::Pending);
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(producer.refusal(), Some(PushError::StorageFull));
    let calls = switches.calls.load(Ordering::SeqCst);
    assert!((2..40).contains(&calls), "{calls} attempts in 350 ms, one per 100 ms is meant");
    assert_eq!(task.woken(), 0, "nothing has changed");
    switches.full.store(false, Ordering::SeqCst);
    task.wait(&batcher, &mark).unwrap();
}

#[test]
fn closing_stores_what_a_task_waits_for_or_says_that_it_will_not() {
    for breaks in [false, true] {
        let (batcher, switches) = batcher();
        let mut producer = batcher.producer(0, None);
        switches.shut.store(true, Ordering::SeqCst);
        producer.push(b"x").unwrap();
        let (mark, task) = (batcher.mark(), Task::new());
        assert_eq!(task.poll(&batcher, &mark), Poll::Pending);
        let closer = batcher.clone();
        let closing = std::thread::spawn(move || closer.close());
        until("it closes", || batcher.refusal().is_some());
        assert_eq!(task.poll(&batcher, &mark), Poll::Pending, "it is not decided yet");
        switches.broken.store(breaks, Ordering::SeqCst);
        switches.shut.store(false, Ordering::SeqCst);
        let known = task.wait(&batcher, &mark);
        closing.join().unwrap();
        assert_eq!(known.is_err(), breaks);
        assert!(known.is_ok() || matches!(known, Err(MarkError::Closed { .. })), "{known:?}");
        assert_eq!(task.poll(&batcher, &mark), Poll::Ready(known));
    }
}

#[test]
fn a_sink_that_panics_notifies_the_waiters() {
    struct Panics;
    impl Sink for Panics {
        fn store(&mut self, _: &[&[u8]]) -> SinkOutcome {
            panic!("meant: the sink of this test panics")
        }
    }
    let batcher = Batcher::start(Panics, Options::default(), Arc::new(SystemClock)).unwrap();
    batcher.producer(0, None).push(b"x").unwrap();
    let known = Task::new().wait(&batcher, &batcher.mark());
    assert!(matches!(known, Err(MarkError::Closed { .. })), "{known:?}");
}

#[test]
fn many_tasks_at_once_are_all_woken() {
    let (batcher, _) = batcher();
    let mut producer = batcher.producer(0, None);
    let done = Arc::new(AtomicBool::new(false));
    let waiting: Vec<_> = (0..6)
        .map(|_| {
            let (batcher, done) = (batcher.clone(), Arc::clone(&done));
            std::thread::spawn(move || {
                let (task, mut rounds) = (Task::new(), 0u64);
                while !done.load(Ordering::SeqCst) {
                    task.wait(&batcher, &batcher.mark()).unwrap();
                    rounds += 1;
                }
                rounds
            })
        })
        .collect();
    for _ in 0..20_000 {
        producer.push(b"x").unwrap();
        std::thread::yield_now();
    }
    // What is unstored now is stored only if one of the waiters requests it.
    Task::new().wait(&batcher, &batcher.mark()).unwrap();
    done.store(true, Ordering::SeqCst);
    for thread in waiting {
        assert!(thread.join().unwrap() > 0);
    }
}

#[test]
fn tasks_that_give_up_leave_nothing_and_none_wakes_another() {
    let (batcher, switches) = batcher();
    let mut producer = batcher.producer(0, None);
    switches.full.store(true, Ordering::SeqCst);
    producer.push(b"x").unwrap();
    let mark = batcher.mark();
    let tasks: Vec<_> = (0..20_000).map(|_| Task::new()).collect();
    for _ in 0..3 {
        assert!(tasks.iter().all(|task| task.poll(&batcher, &mark).is_pending()));
    }
    assert_eq!(tasks.iter().map(Task::woken).sum::<u64>(), 0);
    assert_eq!(batcher.closer.shared.waiters.taken(), 20_000);
    drop(tasks);
    assert_eq!(batcher.closer.shared.waiters.taken(), 0);
}
