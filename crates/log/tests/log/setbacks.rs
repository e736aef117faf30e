//! What is staged and comes to nothing: it takes along what rests on it, and costs what was staged.

use crate::gated::GatedStorage;
use crate::oracle::{append, append_if, open, read_all, small_segments};
use std::sync::{Arc, mpsc};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Append, AppendError, Appended, CommitOn, Log, Options, RequestKey, Staged};
use wellspring_types::{AppendCondition, Event, Query};

type Outcome = Result<Appended, AppendError>;

fn event(tag: &str, bytes: usize) -> Event {
    Event::json("T", &[tag], &format!("\"{}\"", "x".repeat(bytes)))
}

fn keyed(key: &str, tag: &str) -> Append {
    let key = RequestKey { key: key.to_owned(), digest: [1; 16] };
    Append { key: Some(key), ..append(&[event(tag, 10)]) }
}

fn stage(log: &Log, append: Append) -> (Staged, mpsc::Receiver<Outcome>) {
    let (tell, told) = mpsc::channel();
    let staged = log.stage(append, Box::new(move |outcome| tell.send(outcome).unwrap()));
    (staged, told)
}

/// A log whose next barrier waits at the gate, with `append` in the batch that waits there.
fn at_the_device(append: Append) -> (Log, GatedStorage, mpsc::Receiver<Outcome>) {
    let storage = GatedStorage::new(7);
    let log = Log::open_on(Arc::new(storage.clone()), Options::default()).unwrap();
    storage.gate.close();
    let before = storage.gate.arrived();
    let (_, told) = stage(&log, append);
    log.commit(CommitOn::JournalThread);
    storage.gate.wait_for_arrival(before);
    (log, storage, told)
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

/// A log with seven tenths of its only segment filled, on a disk that has just become full: what
/// has been allocated suffices to the end of the segment, and there is no room for another.
fn full_before_the_next_segment() -> (Log, SimulatedStorage, usize) {
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
