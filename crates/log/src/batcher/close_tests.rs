//! Closing a batcher whose sink is slow, stuck or in trouble: it ends in time, and the figures show
//! what is lost.

#![allow(clippy::disallowed_methods)] // tests measure time

use super::*;
use crate::options::SystemClock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use wellspring_patience::until;

const SECOND: Duration = Duration::from_secs(1);

/// A sink that hangs, or is in trouble, until it is released; then it stores everything.
struct StuckSink {
    entered: Arc<AtomicBool>,
    free: Arc<AtomicBool>,
    trouble: Option<Trouble>,
}

impl Sink for StuckSink {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        self.entered.store(true, Ordering::SeqCst);
        while !self.free.load(Ordering::SeqCst) {
            if let Some(trouble) = &self.trouble {
                return SinkOutcome { bytes: 0, events: 0, trouble: Some(trouble.clone()) };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        SinkOutcome { bytes, events: bytes as u64, trouble: None }
    }
}

fn stuck(trouble: Option<Trouble>) -> (Batcher, Arc<AtomicBool>) {
    let free = Arc::<AtomicBool>::default();
    let entered = Arc::<AtomicBool>::default();
    let sink = StuckSink { entered: Arc::clone(&entered), free: Arc::clone(&free), trouble };
    let batcher = Batcher::start(sink, Options::default(), Arc::new(SystemClock)).unwrap();
    batcher.producer(0, None).push(b"x").unwrap();
    until("the sink is entered", || entered.load(Ordering::SeqCst));
    (batcher, free)
}

#[test]
fn closing_leaves_a_sink_that_does_not_return_and_tells_what_may_be_lost() {
    let (batcher, free) = stuck(None);
    let begun = Instant::now();
    assert_eq!(batcher.close_within(SECOND / 10), CloseOutcome::SinkAtWork);
    assert!(begun.elapsed() < 5 * SECOND);
    assert_eq!(batcher.figures().lost_possible().events, 1);
    assert!(matches!(batcher.refusal(), Some(PushError::Closed { .. })));
    // Nothing waits for it any more: neither a second call nor the last handle.
    batcher.close();
    let other = batcher.clone();
    free.store(true, Ordering::SeqCst);
    until("what the sink was given is stored when it returns", || {
        other.figures().lost_possible().events == 0
    });
    let (batcher, free) = stuck(None);
    assert_eq!(batcher.close_within(Duration::ZERO), CloseOutcome::SinkAtWork);
    drop(batcher);
    free.store(true, Ordering::SeqCst);
}

#[test]
fn a_limit_that_comes_later_ends_a_wait_without_one() {
    let (batcher, free) = stuck(None);
    let waits = batcher.clone();
    let waiting = std::thread::spawn(move || waits.close());
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished());
    assert_eq!(batcher.close_within(SECOND / 20), CloseOutcome::SinkAtWork);
    waiting.join().unwrap();
    free.store(true, Ordering::SeqCst);
    assert_eq!(batcher.close_within(SECOND), CloseOutcome::SinkAtWork, "the first limit stays");
}

#[test]
fn a_sink_in_trouble_is_tried_for_as_long_as_there_is_time() {
    for trouble in [Trouble::Full, Trouble::Unavailable, Trouble::Busy] {
        let (batcher, free) = stuck(Some(trouble.clone()));
        let closing = batcher.clone();
        // Without a limit it would have given up after a second.
        let closing = std::thread::spawn(move || closing.close_within(20 * SECOND));
        std::thread::sleep(SECOND * 3 / 2);
        assert!(!closing.is_finished(), "{trouble:?}");
        free.store(true, Ordering::SeqCst);
        assert_eq!(closing.join().unwrap(), CloseOutcome::Ended);
        assert_eq!(batcher.figures().lost_possible().events, 0);
        let (batcher, _free) = stuck(Some(trouble));
        let begun = Instant::now();
        let _ = batcher.close_within(SECOND / 5);
        assert!(begun.elapsed() < 5 * SECOND);
        assert_eq!(batcher.figures().lost_possible().events, 1);
    }
}
