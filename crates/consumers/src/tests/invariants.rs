//! What holds between the parts of a consumer's state after every call.

use crate::Consumer;
use crate::key::{KeyName, KeyState};
use std::collections::BTreeSet;
use wellspring_types::Position;

/// The events that the keys of this state are at, each once.
fn events(consumer: &Consumer, state: impl Fn(KeyState) -> bool) -> BTreeSet<Position> {
    let keys = consumer.keys.iter().filter(|(_, key)| state(key.state));
    keys.map(|(_, key)| key.next).collect()
}

/// That these keys stand for these events, one for each.
fn stands_for(consumer: &Consumer, keys: &[u32], events: &BTreeSet<Position>, what: &str) {
    let at: BTreeSet<Position> = keys.iter().map(|&key| consumer.keys[key].next).collect();
    assert_eq!((at.len(), &at), (keys.len(), events), "{what}");
}

pub(super) fn assert_invariants(consumer: &Consumer) {
    let ready: Vec<u32> = consumer.ready.iter().copied().collect();
    stands_for(consumer, &ready, &events(consumer, |s| s == KeyState::Ready), "ready");
    let retrying = |state| matches!(state, KeyState::Retrying(_));
    let retries: Vec<u32> = consumer.retries.iter().map(|(_, key)| *key).collect();
    stands_for(consumer, &retries, &events(consumer, retrying), "retries");
    for (due, key) in &consumer.retries {
        assert_eq!(consumer.keys[*key].state, KeyState::Retrying(*due));
    }
    let held: Vec<u32> = consumer.deliveries.values().map(|held| held.key).collect();
    let is_held = |state| matches!(state, KeyState::Held(_));
    stands_for(consumer, &held, &events(consumer, is_held), "held");
    for (number, held) in &consumer.deliveries {
        assert!(0 < held.count && held.staged <= held.count, "{held:?}");
        assert!(consumer.keys[held.key].positions().count() >= usize::from(held.count));
        for key in consumer.event_keys(held.key) {
            assert_eq!(consumer.keys[key].state, KeyState::Held(*number));
        }
        assert!(consumer.workers.get(held.worker).held.contains(number));
    }
    let looking: BTreeSet<u32> = consumer.lookups.iter().copied().collect();
    let expected = consumer.keys.iter().filter(|(_, key)| key.state == KeyState::Looking);
    assert_eq!(looking, expected.map(|(number, _)| number).collect());
    assert_eq!(looking.len(), consumer.lookups.len(), "each key is looked up once");
    let pending = consumer.unsaved.in_flight.iter().flatten().chain(&consumer.unsaved.pending);
    let pending: BTreeSet<Position> = pending.map(|&key| consumer.keys[key].next).collect();
    let waits = |s| matches!(s, KeyState::Parking { .. } | KeyState::Replaying);
    assert_eq!(pending, events(consumer, waits), "what waits for a checkpoint");
    for (position, keys) in &consumer.shared {
        assert!(keys.len() > 1);
        for &key in keys {
            let key = &consumer.keys[key];
            assert!(key.next <= *position && matches!(key.name, KeyName::Value(_)), "{key:?}");
        }
    }
    for (number, key) in consumer.keys.iter() {
        assert_eq!(consumer.keys.get(key.name.borrowed()), Some(number));
        assert!(key.positions().is_sorted() && key.next <= key.last, "{key:?}");
    }
}
