//! A copy over an engine that drops what copies hold.

use crate::shared::node;
use crate::shared_trouble::{HandClock, by_turns};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wellspring_log::shared::simulated::{Settings, SimulatedLog};
use wellspring_log::shared::{Retention, SharedLimits};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Append, EncodedEvents, Log, Role, TurnProgress};
use wellspring_types::Event;

fn run(log: &Log) {
    while log.turn().did == TurnProgress::Something {}
}

/// A copy that waits to be compared with the engine has nothing to report. It was due all the same,
/// and its thread never slept while the engine had no majority.
#[test]
fn a_copy_that_cannot_report_yet_sleeps() {
    let (unsynced_bytes, within) = (1 << 20, Duration::from_millis(1));
    let retention = Retention::UntilCopied { unsynced_bytes, within };
    let limits = SharedLimits { retention, ..Settings::default().limits };
    let world = SimulatedLog::immediate().with(Settings { limits, ..Settings::default() });
    let (clock, storage) = (Arc::<HandClock>::default(), Arc::new(SimulatedStorage::new(1)));
    let open = || {
        let storage = Arc::clone(&storage) as _;
        let engine = Box::new(world.connect(1));
        Log::open_shared(storage, by_turns(&clock), node(1), engine).unwrap()
    };
    let log = open();
    run(&log);
    log.claim_lead();
    run(&log);
    assert!(log.role().leads(), "{:?}", log.role());
    let mut events = EncodedEvents::new();
    events.push(&Event::json("Told", &[], "1").as_ref()).unwrap();
    log.append(Append { events, ..Append::default() }).unwrap();
    log.close();
    drop(log);
    world.disconnect(1);
    let log = open();
    run(&log);
    clock.0.fetch_add(10_000_000, Ordering::Relaxed);
    run(&log);
    assert!(matches!(log.role(), Role::CatchingUp { .. }), "{:?}", log.role());
    let due_in = log.turn().due_in;
    assert!(due_in.is_none_or(|due_in| due_in > Duration::ZERO), "{due_in:?}");
}
