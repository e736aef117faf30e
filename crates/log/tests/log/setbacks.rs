//! Discarded staged events: everything that depends on them is discarded too, and the cost is
//! proportional to what was staged.

use crate::gated::GatedStorage;
use crate::oracle::{append, append_if, open, read_all, small_segments};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use wellspring_log::batcher;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{
    Append, AppendError, Appended, Basis, CommitOn, Log, Options, RequestKey, Staged,
};
use wellspring_patience::until;
use wellspring_types::{AppendCondition, DataKind, Event, Query};

pub type Outcome = Result<Appended, AppendError>;

pub fn event(tag: &str, bytes: usize) -> Event {
    Event::json("T", &[tag], &format!("\"{}\"", "x".repeat(bytes)))
}

fn keyed(key: &str, tag: &str) -> Append {
    let key = RequestKey { key: key.to_owned(), digest: [1; 16] };
    Append { key: Some(key), ..append(&[event(tag, 10)]) }
}

pub fn stage(log: &Log, append: Append) -> (Staged, mpsc::Receiver<Outcome>) {
    let (tell, told) = mpsc::channel();
    let staged = log.stage(append, Box::new(move |outcome| tell.send(outcome).unwrap()));
    (staged, told)
}

/// A log whose next barrier waits at the gate, with `append` in the batch that waits there.
pub fn at_the_device(append: Append) -> (Log, GatedStorage, mpsc::Receiver<Outcome>) {
    let (log, storage) = gated();
    let told = bring_to_the_device(&log, &storage, append);
    (log, storage, told)
}

pub fn gated() -> (Log, GatedStorage) {
    let storage = GatedStorage::new(7);
    let log = Log::open_on(Arc::new(storage.clone()), Options::default()).unwrap();
    (log, storage)
}

/// Closes the gate and waits until the barrier of `append` is there.
pub fn bring_to_the_device(
    log: &Log,
    storage: &GatedStorage,
    append: Append,
) -> mpsc::Receiver<Outcome> {
    storage.gate.close();
    let before = storage.gate.arrived();
    let (_, told) = stage(log, append);
    log.commit(CommitOn::JournalThread);
    storage.gate.wait_for_arrival(before);
    told
}

#[test]
fn a_retry_shares_the_doubt_of_its_first_attempt() {
    let (log, storage, first) = at_the_device(keyed("k", "a"));
    let (_, retry) = stage(&log, keyed("k", "a"));
    log.commit(CommitOn::JournalThread);
    storage.disk.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    storage.gate.open();
    assert!(matches!(first.recv().unwrap(), Err(AppendError::Unknown { .. })));
    let retried = retry.recv().unwrap();
    assert!(matches!(retried, Err(AppendError::Unknown { .. })), "{retried:?}");
}

#[test]
fn a_refusal_is_told_when_its_event_is_durable_not_when_the_queue_is() {
    let (log, storage, first) = at_the_device(append(&[event("a", 10)]));
    let (_, other) = stage(&log, append(&[event("b", 10)]));
    let condition = AppendCondition::not_exists(Query::item(&[], &["a"]));
    let (_, refused) = stage(&log, append_if(&[event("c", 10)], condition));
    // The barrier of the first batch passes, that of the second fails.
    storage.disk.set_faults(Faults { sync_fails_after: Some(1), ..Faults::default() });
    log.commit(CommitOn::JournalThread);
    storage.gate.open();
    assert_eq!(first.recv().unwrap().unwrap().first, 1);
    let refused = refused.recv().unwrap();
    assert!(matches!(&refused, Err(AppendError::Conflict(c)) if c.position == 1), "{refused:?}");
    assert!(matches!(other.recv().unwrap(), Err(AppendError::Unknown { .. })));
}

/// A log with seven tenths of its only segment filled, on a disk that has just become full: the
/// allocated space lasts to the end of the segment, and there is no room for another.
pub fn full_before_the_next_segment() -> (Log, SimulatedStorage, usize) {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let mut events = 0;
    while events < 45 {
        log.append(append(&[event("t", 1000)])).unwrap();
        events += 1;
    }
    let used: u64 = storage.contents().values().map(|bytes| bytes.len() as u64).sum();
    storage.set_faults(Faults { capacity_bytes: Some(used), ..Faults::default() });
    let refused = loop {
        match log.append(append(&[event("t", 1000)])) {
            Ok(_) => events += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, AppendError::StorageFull);
    (log, storage, events)
}

#[test]
fn a_refused_append_at_the_end_of_a_segment_reads_nothing() {
    let (log, storage, events) = full_before_the_next_segment();
    let before = storage.bytes_read();
    for _ in 0..50 {
        assert_eq!(log.append(append(&[event("t", 1000)])), Err(AppendError::StorageFull));
    }
    assert_eq!(storage.bytes_read() - before, 0, "a setback costs what was staged");
    assert_eq!(read_all(&log).len(), events);
    storage.set_faults(Faults::default());
    let appended = log.append(append(&[event("t", 1000)])).unwrap();
    assert_eq!(appended.first, events as u64 + 1);
    log.close();
    assert_eq!(read_all(&open(&storage, small_segments()).unwrap()).len(), events + 1);
}

#[test]
fn what_rests_on_a_setback_is_refused() {
    let (log, storage, _) = full_before_the_next_segment();
    let (first, told) = stage(&log, append(&[event("first", 1000)]));
    let Staged::Placed { setbacks, .. } = first else { panic!("{first:?}") };
    log.commit(CommitOn::ThisThread);
    assert_eq!(told.recv().unwrap(), Err(AppendError::StorageFull));
    storage.set_faults(Faults::default());
    let (tell, told) = mpsc::channel();
    let basis = Basis { setbacks: Some(setbacks), ..Basis::default() };
    let second = log.stage_on(
        basis,
        append(&[event("second", 10)]),
        Box::new(move |outcome| tell.send(outcome).unwrap()),
    );
    assert_eq!((second, told.recv().unwrap()), (Staged::Answered, Err(AppendError::SetBack)));
    let (again, _) = stage(&log, append(&[event("second", 10)]));
    let Staged::Placed { setbacks: now, .. } = again else { panic!("{again:?}") };
    assert!(now > setbacks);
}

#[test]
fn staging_says_whether_there_are_positions() {
    let (log, storage, first) = at_the_device(keyed("k", "a"));
    let condition = AppendCondition::not_exists(Query::item(&[], &["a"]));
    let (refused, _) = stage(&log, append_if(&[event("b", 10)], condition));
    let (retry, _) = stage(&log, keyed("k", "a"));
    let (placed, _) = stage(&log, append(&[event("c", 10)]));
    assert_eq!(refused, Staged::WaitsFor { position: 1 });
    assert_eq!(retry, Staged::WaitsFor { position: 1 });
    assert!(matches!(placed, Staged::Placed { first: 2, last: 2, .. }));
    storage.gate.open();
    first.recv().unwrap().unwrap();
}

#[test]
fn a_retry_is_not_answered_on_a_thread_that_commits() {
    let (log, storage, first) = at_the_device(keyed("k", "a"));
    let (tell, told) = mpsc::channel();
    let done = move |outcome: Outcome| {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        tell.send((thread, outcome.unwrap().replayed)).unwrap();
    };
    log.stage(keyed("k", "a"), Box::new(done));
    storage.gate.open();
    assert!(!first.recv().unwrap().unwrap().replayed);
    assert_eq!(told.recv().unwrap(), ("wellspring-replay".to_owned(), true));
}

#[test]
fn a_full_log_tries_each_durable_append() {
    let (log, storage, events) = full_before_the_next_segment();
    assert!(log.is_full());
    storage.set_faults(Faults::default());
    // The committer is busy with one of them: the other is not refused because of that.
    storage.hold_barriers();
    let (_, first) = stage(&log, append(&[event("t", 1000)]));
    log.commit(CommitOn::JournalThread);
    storage.wait_for_held_barrier();
    let (second, told) = stage(&log, append(&[event("t", 10)]));
    assert!(matches!(second, Staged::Placed { .. }), "{second:?}");
    log.commit(CommitOn::JournalThread);
    storage.release_barriers();
    assert_eq!(first.recv().unwrap().unwrap().first, events as u64 + 1);
    assert_eq!(told.recv().unwrap().unwrap().first, events as u64 + 2);
    assert!(!log.is_full());
}

#[test]
fn on_a_full_disk_what_fits_is_stored_although_what_follows_does_not() {
    let (log, _storage, events) = full_before_the_next_segment();
    // A few hundred bytes are left before the end of the segment.
    let (_, small) = stage(&log, append(&[event("t", 10)]));
    let (_, large) = stage(&log, append(&[event("t", 3000)]));
    log.commit(CommitOn::ThisThread);
    log.commit(CommitOn::ThisThread);
    assert_eq!(small.recv().unwrap().unwrap().first, events as u64 + 1);
    assert_eq!(large.recv().unwrap(), Err(AppendError::StorageFull));
}

#[test]
fn a_panic_in_the_journal_closes_the_log_and_answers_the_waiters() {
    let (log, storage, first) = at_the_device(keyed("k", "a"));
    let (_, retry) = stage(&log, keyed("k", "a"));
    let (_, behind) = stage(&log, append(&[event("b", 10)]));
    storage.gate.panic_once();
    storage.gate.open();
    assert!(matches!(first.recv().unwrap(), Err(AppendError::Unknown { .. })));
    assert!(matches!(retry.recv().unwrap(), Err(AppendError::Unknown { .. })));
    assert!(matches!(behind.recv().unwrap(), Err(AppendError::Closed { .. })));
    assert!(log.closed_reason().is_some());
    log.close();
}

#[test]
fn every_close_waits_until_the_log_is_closed() {
    let (log, storage, first) = at_the_device(append(&[event("a", 10)]));
    std::thread::scope(|scope| {
        let close = || {
            log.close();
            log.head()
        };
        let closers = [scope.spawn(close), scope.spawn(close)];
        until("it closes", || log.closed_reason().is_some());
        storage.gate.open();
        for closer in closers {
            assert_eq!(closer.join().unwrap(), 1, "what was staged is durable when it returns");
        }
    });
    first.recv().unwrap().unwrap();
}

#[test]
fn batchers_leave_room_for_appends() {
    let storage = GatedStorage::new(3);
    let options = Options { staged_bytes: 1 << 20, ..Options::default() };
    let log = Log::open_on(Arc::new(storage.clone()), options).unwrap();
    let batcher = log.batcher(batcher::Options::default()).unwrap();
    storage.gate.close();
    let before = storage.gate.arrived();
    let mut producer = batcher.producer(1, None);
    let template = batcher::EventTemplate::new("Ingested", &["t"]).unwrap();
    for _ in 0..3000 {
        producer.push_event(&template, DataKind::Binary, &[7; 1000]).unwrap();
    }
    storage.gate.wait_for_arrival(before);
    // Until the flusher has staged its share: then it commits and waits at the gate.
    let (staged, told) = stage(&log, append(&[event("large", 400 << 10)]));
    assert!(matches!(staged, Staged::Placed { .. }), "{staged:?}");
    assert!(log.stats().staged_bytes <= 1 << 20);
    storage.gate.open();
    log.commit(CommitOn::JournalThread);
    told.recv().unwrap().unwrap();
    batcher.close();
    assert_eq!(log.head(), 3001);
}

/// Contenders for keys, with a disk that repeatedly fills up and a process that runs out of
/// descriptors: each key has at most one winner, acknowledged events exist, and nothing else does.
#[test]
fn with_faults_on_and_off_each_key_has_one_winner() {
    for seed in 0..4 {
        let storage = SimulatedStorage::new(seed);
        let log = open(&storage, small_segments()).unwrap();
        let keys = 400;
        let won = Mutex::new(vec![Vec::new(); keys]);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(|| contend(&log, &won))).collect();
            scope.spawn(|| {
                let mut round = 0;
                while !done.load(Ordering::Acquire) {
                    let used: u64 = storage.contents().values().map(|b| b.len() as u64).sum();
                    let faults = match round % 4 {
                        1 => Faults { capacity_bytes: Some(used), ..Faults::default() },
                        3 => {
                            let descriptors = Some(storage.open_files());
                            Faults { descriptors, ..Faults::default() }
                        }
                        _ => Faults::default(),
                    };
                    storage.set_faults(faults);
                    round += 1;
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                storage.set_faults(Faults::default());
            });
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            done.store(true, Ordering::Release);
        });
        assert_eq!(log.closed_reason(), None);
        let check = |log: &Log| {
            let all = read_all(log);
            for (key, won) in won.lock().unwrap().iter().enumerate() {
                let tag = format!("key:{key}");
                let found: Vec<u64> = all
                    .iter()
                    .filter(|seen| seen.event.tags.contains(&tag))
                    .map(|seen| seen.position)
                    .collect();
                assert_eq!((&found, found.len()), (won, 1), "seed {seed}, key {key}");
            }
            assert_eq!(all.len(), keys);
        };
        check(&log);
        log.close();
        check(&open(&storage, small_segments()).unwrap());
    }
}

/// Wins each key or sees that another contender has.
fn contend(log: &Log, won: &Mutex<Vec<Vec<u64>>>) {
    let keys = won.lock().unwrap().len();
    for key in 0..keys {
        let tag = format!("key:{key}");
        loop {
            let condition = AppendCondition::not_exists(Query::item(&[], &[&tag]));
            match log.append(append_if(&[event(&tag, 700)], condition)) {
                Ok(appended) => won.lock().unwrap()[key].push(appended.first),
                Err(AppendError::Conflict(conflict)) => {
                    // A refusal is reported only once the refusing event is durable.
                    assert!(log.head() >= conflict.position);
                }
                Err(AppendError::StorageFull | AppendError::Unavailable { .. }) => {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                    continue;
                }
                Err(other) => panic!("{other}"),
            }
            break;
        }
    }
}
