//! W5: an open key takes at most 160 bytes, a delivery 128 more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use wellspring_consumers::{
    Backoff, Checkpoint, Consumer, Definition, FailureRule, KeyName, KeyedEvent, OpenKey, OrderKey,
    RunState, ScanFrom,
};

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Counts what each thread has allocated and not freed.
struct Counting;

// SAFETY: it hands every call on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        _ = BYTES.try_with(|bytes| bytes.set(bytes.get() - layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn definition(keys: u64) -> Definition {
    Definition {
        key: OrderKey::Tag("customer".into()),
        hold_us: 30_000_000,
        max_hold_us: 600_000_000,
        max_in_flight: keys as usize,
        run: 1,
        max_tries: 8,
        backoff: Backoff { first_us: 1_000_000, most_us: 60_000_000 },
        on_failure: FailureRule::ParkKey,
        max_open_keys: keys as usize,
    }
}

/// The bytes that something takes, and the bytes that are left of it.
fn measure<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let before = BYTES.get();
    let made = run();
    ((BYTES.get() - before) as f64, made)
}

fn name(key: u64) -> String {
    format!("customer-{key:07}")
}

/// A consumer whose keys all lag behind, with as many known positions as a key can have.
fn restored(keys: u64) -> Consumer {
    let open = (0..keys).map(|key| OpenKey {
        key: KeyName::Value(name(key).into()),
        next: key + 1,
        tries: 0,
        is_parked: false,
    });
    let chain = [Checkpoint {
        generation: 1,
        is_full: true,
        head: 0,
        scanned: keys * 100,
        state: RunState::Running,
        open: open.collect(),
        closed: Vec::new(),
    }];
    let mut consumer = Consumer::restore(definition(keys), &chain, keys * 100).expect("a chain");
    while let [look_up, ..] = &consumer.wanted_look_ups(usize::MAX, 1)[..] {
        let KeyName::Value(value) = &look_up.key else { unreachable!() };
        let events: Vec<KeyedEvent<'_>> = (0..8)
            .map(|nth| KeyedEvent { position: look_up.after + 1 + nth * keys, keys: vec![value] })
            .collect();
        consumer.found(look_up, &events, false);
    }
    consumer
}

/// A consumer whose keys all have one event.
fn scanned(keys: u64) -> Consumer {
    let mut consumer = Consumer::new(definition(keys), 1, 0);
    for key in 0..keys {
        let name = name(key);
        let from = ScanFrom { generation: 1, after: key };
        let event = KeyedEvent { position: key + 1, keys: vec![&name] };
        consumer.scanned(from, &[event], key + 1);
    }
    consumer.checkpoint(0);
    consumer.checkpoint_recorded(1);
    consumer
}

#[test]
fn an_open_key_takes_160_bytes_and_a_delivery_128() {
    for keys in [60_000, 70_000, 100_000, 140_000] {
        let (bytes, mut consumer) = measure(|| restored(keys));
        let a_key = bytes / keys as f64;
        assert!(a_key <= 160.0, "{a_key} bytes for each of {keys} looked-up keys");
        let (bytes, _) = measure(|| {
            consumer.begin_turn("worker", 1, 0);
            for _ in 0..keys {
                consumer.take("worker", 1, 1, 0, || 7).expect("its turn");
            }
        });
        assert_eq!(consumer.status().in_flight as u64, keys);
        let a_delivery = bytes / keys as f64;
        assert!(a_delivery <= 128.0, "{a_delivery} bytes for each of {keys} deliveries");
        let (bytes, _consumer) = measure(|| scanned(keys));
        let a_new_key = bytes / keys as f64;
        assert!(a_new_key <= 160.0, "{a_new_key} bytes for each of {keys} new keys");
        println!("{keys}: {a_key:.0} looked up, {a_new_key:.0} new, {a_delivery:.0} a delivery");
    }
}
