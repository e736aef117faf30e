//! Closing a log and its batcher while the engine is unreachable: within bounded time, and the
//! folder is released.

use crate::oracle::{append, small_segments};
use crate::shared::node;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wellspring_log::batcher::{Batcher, CloseOutcome, EventTemplate, Options as Batching};
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::storage::DiskStorage;
use wellspring_log::{AppendError, Log, OpenError};
use wellspring_patience::until;
use wellspring_types::{DataKind, Event};

const SECOND: Duration = Duration::from_secs(1);

fn open(world: &SimulatedLog, dir: &Path) -> Result<Log, OpenError> {
    let storage = Arc::new(DiskStorage::create(dir).unwrap());
    Log::open_shared(storage, small_segments(), node(1), Box::new(world.connect(1)))
}

fn leader(world: &SimulatedLog, dir: &Path) -> Log {
    let log = open(world, dir).unwrap();
    until("it leads", || log.role().leads());
    log
}

fn push(batcher: &Batcher, events: u64) {
    let template = EventTemplate::new("T", &["a:b"]).unwrap();
    let mut producer = batcher.producer(0, None);
    for _ in 0..events {
        producer.push_event(&template, DataKind::Json, b"1").unwrap();
    }
}

/// The result of an action that must not take longer than this.
fn within<T>(limit: Duration, act: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let outcome = act();
    assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    outcome
}

#[test]
fn a_leader_whose_engine_is_away_closes_in_bounded_time_and_frees_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let world = SimulatedLog::immediate();
    let log = leader(&world, dir.path());
    world.disconnect(1);
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |outcome| tell.send(outcome).unwrap());
    log.submit(append(&[Event::json("T", &[], "1")]), done);
    within(5 * SECOND, || log.close());
    let outcome = told.recv().unwrap();
    assert!(
        matches!(outcome, Err(AppendError::Unknown { .. } | AppendError::Closed { .. })),
        "{outcome:?}"
    );
    // The handle still exists.
    assert!(open(&world, dir.path()).is_ok(), "the folder is free");
}

#[test]
fn a_batcher_that_waits_for_a_shared_log_ends_when_it_is_told_to() {
    for limit in [Some(SECOND / 5), None] {
        let dir = tempfile::tempdir().unwrap();
        let world = SimulatedLog::immediate();
        let log = leader(&world, dir.path());
        let batcher = log.batcher(Batching::default()).unwrap();
        push(&batcher, 10);
        until("it is stored", || batcher.figures().lost_possible().events == 0);
        world.disconnect(1);
        push(&batcher, 5);
        // It waits for its offers; more is pushed meanwhile.
        std::thread::sleep(SECOND / 20);
        push(&batcher, 5);
        within(5 * SECOND, || match limit {
            Some(limit) => {
                let ended = batcher.close_within(limit);
                assert_eq!(ended, CloseOutcome::Ended);
            }
            None => batcher.close(),
        });
        let figures = batcher.figures();
        assert_eq!((figures.stored.events, figures.lost_possible().events), (10, 10));
        within(5 * SECOND, || log.close());
        assert!(open(&world, dir.path()).is_ok(), "the folder is free");
    }
}

#[test]
fn a_batcher_of_a_follower_stores_nothing_and_ends() {
    let world = SimulatedLog::immediate();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let _leader = leader(&world, dirs[0].path());
    let storage = Arc::new(DiskStorage::create(dirs[1].path()).unwrap());
    let follower =
        Log::open_shared(storage, small_segments(), node(2), Box::new(world.connect(2))).unwrap();
    let batcher = follower.batcher(Batching::default()).unwrap();
    push(&batcher, 3);
    assert_eq!(within(5 * SECOND, || batcher.close_within(SECOND / 5)), CloseOutcome::Ended);
    assert_eq!(batcher.figures().lost_possible().events, 3);
}
