//! The fence of a delivery, with a clock that a test sets.

use super::*;
use crate::consumers::definition::read_definition;
use crate::consumers::stored::RestoredConsumer;
use std::sync::atomic::AtomicU64;
use wellspring_consumers::{Consumer, Delivery, KeyedEvent, ScanFrom};
use wellspring_host::wire::json::document;
use wellspring_log::{Append, Clock, EncodedEvents, Log, Options, RequestKey, Staged, SystemClock};
use wellspring_types::{DataKind, EventRef};

/// Time of the tests, µs.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn monotonic_us(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn wall_us(&self) -> u64 {
        SystemClock.wall_us()
    }
}

/// A consumer of a log with one event, which the worker `w` holds for at most a second.
struct Bench {
    log: Log,
    clock: Arc<SetClock>,
    consumer: Arc<OpenConsumer>,
    delivery: Delivery,
    _dir: tempfile::TempDir,
}

fn one_event() -> Append {
    let mut events = EncodedEvents::new();
    let data = EventRef::<&str> {
        event_type: "T",
        tags: &[],
        data: b"1",
        kind: DataKind::Json,
        id: None,
        metadata: &[],
    };
    events.push(&data).unwrap();
    Append { events, ..Append::default() }
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        log.append(one_event()).unwrap();
        let text = br#"{"query":{},"hold_ms":1000,"max_hold_ms":1000}"#;
        let (definition, _) = document(text, read_definition).unwrap();
        let first = Consumer::new(definition.terms.clone(), 1, 0).checkpoint(0).unwrap();
        let state = Consumer::restore(definition.terms.clone(), &[first], 1);
        let restored = RestoredConsumer { id: "id".into(), definition, state };
        let clock = Arc::new(SetClock(AtomicU64::new(0)));
        let opened = OpenConsumer::new("c", restored, log.clone(), log.epoch(), clock.clone());
        let consumer = opened.unwrap();
        let take = |state: &mut Consumer, now_us| {
            let event = KeyedEvent { position: 1, keys: vec![] };
            state.scanned(ScanFrom { generation: 1, after: 0 }, &[event], 1);
            state.begin_turn("w", 1, now_us);
            state.take("w", 1, 1, now_us, || 7).unwrap().remove(0)
        };
        let delivery = consumer.with(take).unwrap();
        Bench { log, clock, consumer, delivery, _dir: dir }
    }

    fn fence(&self) -> Arc<DeliveryFence> {
        Arc::new(DeliveryFence {
            consumer: Arc::clone(&self.consumer),
            worker: "w".into(),
            delivery: self.delivery.id,
            events: self.delivery.positions.clone(),
            is_same_log: true,
            is_staged: AtomicBool::new(false),
        })
    }

    /// Stages an append with a fence and a key.
    fn stage(&self, fence: &Arc<DeliveryFence>, key: &str) -> Staged {
        let key = RequestKey { key: key.into(), digest: [0; 16] };
        let append = Append { key: Some(key), fence: Some(fence.clone()), ..one_event() };
        let told = Arc::clone(fence);
        self.log.stage(append, Box::new(move |outcome| told.tell(&outcome)))
    }

    /// Lets so much time pass that every delivery ends which can.
    fn pass_time(&self) {
        self.clock.0.fetch_add(5_000_000, Relaxed);
        self.consumer.with(|state, now_us| state.expire(now_us)).unwrap();
    }

    fn is_held(&self) -> bool {
        self.consumer.with(|state, _| state.peek_held("w", self.delivery.id)).unwrap().is_some()
    }

    fn open_keys(&self) -> usize {
        self.consumer.with(|state, _| state.open_key_count()).unwrap()
    }
}

#[test]
fn while_its_append_is_staged_a_delivery_does_not_expire_and_no_other_append_ends_that() {
    let bench = Bench::new();
    let fence = bench.fence();
    fence.stage(bench.log.epoch(), 2).unwrap();
    bench.pass_time();
    assert!(bench.is_held());
    // An append with another key, as that of another log would be.
    assert_eq!(bench.stage(&bench.fence(), "two"), Staged::Answered);
    bench.pass_time();
    assert!(bench.is_held(), "only the outcome of the staged one counts");
    fence.tell(&Ok(Appended { first: 2, last: 2, head: 2, replayed: false }));
    assert_eq!((bench.is_held(), bench.open_keys()), (false, 0));
    assert_eq!(bench.log.head(), 1);
}

#[test]
fn a_setback_gives_the_delivery_back_to_its_worker_unless_that_is_silent() {
    let full = Err(AppendError::StorageFull);
    for is_silent in [false, true] {
        let bench = Bench::new();
        let fence = bench.fence();
        fence.stage(bench.log.epoch(), 2).unwrap();
        if is_silent {
            bench.pass_time();
        }
        fence.tell(&full);
        assert_eq!((bench.is_held(), bench.open_keys()), (!is_silent, 1));
    }
}

/// The log of an append whose outcome is unknown takes no more of them, and so settles no more. The
/// consumer of another log goes on.
#[test]
fn an_unknown_outcome_in_another_log_gives_the_delivery_back() {
    let unknown = Err(AppendError::Unknown { reason: "the device failed".into() });
    for is_same_log in [false, true] {
        let bench = Bench::new();
        let fence = DeliveryFence { is_same_log, ..Arc::into_inner(bench.fence()).unwrap() };
        fence.stage(bench.log.epoch(), 2).unwrap();
        fence.tell(&unknown);
        bench.pass_time();
        assert_eq!((bench.is_held(), bench.open_keys()), (is_same_log, 1));
    }
}

#[test]
fn what_is_not_held_any_more_passes_no_append() {
    let bench = Bench::new();
    let fence = bench.fence();
    bench.pass_time();
    assert_eq!(fence.holds(bench.log.epoch()), Err(FenceRefusal::DeliveryLost));
    assert_eq!(bench.stage(&fence, "late"), Staged::Answered);
    assert_eq!((bench.log.head(), bench.open_keys()), (1, 1));
    bench.consumer.close();
    assert_eq!(bench.fence().stage(bench.log.epoch(), 2), Err(FenceRefusal::DeliveryLost));
}
