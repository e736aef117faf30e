//! A full disk, a failing barrier, a locked folder.

use crate::oracle::{append, open, read_all, small_segments};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{AppendError, OpenError, Options};
use wellspring_patience::until;
use wellspring_types::{AppendCondition, Event, Query};

fn event(i: usize, bytes: usize) -> Event {
    Event::json("T", &[&format!("t:{i}")], &format!("\"{}\"", "x".repeat(bytes)))
}

#[test]
fn on_a_full_disk_appends_fail_cleanly_and_resume_when_there_is_room() {
    for capacity_kib in [40, 100, 150, 333] {
        let storage = SimulatedStorage::new(1);
        let log = open(&storage, small_segments()).unwrap();
        let capacity_bytes = Some(capacity_kib << 10);
        storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
        let mut good = 0;
        let refused = loop {
            match log.append(append(&[event(good, 3000)])) {
                Ok(_) => good += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused, AppendError::StorageFull);
        for _ in 0..5 {
            assert_eq!(log.append(append(&[event(0, 3000)])), Err(AppendError::StorageFull));
        }
        assert_eq!(read_all(&log).len(), good, "reads go on");
        storage.set_faults(Faults::default());
        let appended = log.append(append(&[event(good, 3000)])).unwrap();
        assert_eq!(appended.first, good as u64 + 1, "no position was used up");
        // Refused events are not judged against.
        let tag = format!("t:{}", good + 1);
        let condition = AppendCondition::not_exists(Query::item(&[], &[&tag]));
        log.append(crate::oracle::append_if(&[event(good + 1, 10)], condition)).unwrap();
        log.close();
        let log = open(&storage, small_segments()).unwrap();
        assert_eq!(log.head(), good as u64 + 2);
    }
}

#[test]
fn everything_staged_on_a_refused_batch_is_refused_with_it() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    log.append(append(&[event(0, 10)])).unwrap();
    storage.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    let refused = Arc::new(AtomicUsize::new(0));
    for i in 0..100 {
        let refused = Arc::clone(&refused);
        log.stage(
            append(&[event(i, 2000)]),
            Box::new(move |outcome| {
                if outcome == Err(AppendError::StorageFull) {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
            }),
        );
    }
    // The room reserved before the disk filled up takes a few events, whatever their batches; this
    // one may be the last of them.
    let last = log.append(append(&[event(1, 2000)]));
    assert!(last.is_ok() || last == Err(AppendError::StorageFull), "{last:?}");
    storage.set_faults(Faults::default());
    let head = log.append(append(&[event(2, 10)])).unwrap().first - 1;
    let staged_refused = refused.load(Ordering::SeqCst) as u64;
    assert!(staged_refused > 80, "only {staged_refused} of 100 were refused");
    assert_eq!(staged_refused + u64::from(last.is_err()) + head, 102);
    assert_eq!(read_all(&log).len() as u64, head + 1);
}

#[test]
fn after_a_failed_barrier_nothing_more_is_taken_until_recovery() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    log.append(append(&[event(0, 10)])).unwrap();
    storage.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    assert!(matches!(log.append(append(&[event(1, 10)])), Err(AppendError::Unknown { .. })));
    assert!(matches!(log.append(append(&[event(2, 10)])), Err(AppendError::Closed { .. })));
    assert_eq!(read_all(&log).len(), 1, "reads go on, and do not show the doubtful event");
    log.close();
    let log = open(&storage, Options::default()).unwrap();
    let head = log.head();
    assert!(head == 1 || head == 2, "the doubtful event is there or not");
    assert_eq!(log.append(append(&[event(3, 10)])).unwrap().first, head + 1);
}

#[test]
fn a_failing_read_is_an_error_not_a_short_answer() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    log.append(append(&[event(0, 10)])).unwrap();
    storage.set_faults(Faults { reads_fail: true, ..Faults::default() });
    let mut events = log.snapshot().read(&Query::all(), Default::default());
    assert!(events.next().is_err());
    storage.set_faults(Faults::default());
    assert_eq!(events.next().unwrap().unwrap().position(), 1, "the cursor stayed where it was");
}

#[test]
fn a_folder_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let log = wellspring_log::Log::open(dir.path(), Options::default()).unwrap();
    let second = wellspring_log::Log::open(dir.path(), Options::default());
    assert!(matches!(second, Err(OpenError::Locked { .. })));
    log.close();
    assert!(matches!(log.append(append(&[event(0, 1)])), Err(AppendError::Closed { .. })));
    let again = wellspring_log::Log::open(dir.path(), Options::default()).unwrap();
    assert!(again.stats().epoch > log.stats().epoch, "the epoch only grows");
}

#[test]
fn an_empty_log_costs_kilobytes() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    log.append(append(&[event(0, 10)])).unwrap();
    assert!(log.stats().disk_bytes < 64 << 10, "{} bytes", log.stats().disk_bytes);
}

#[test]
fn everything_staged_is_durable_when_a_log_has_been_closed() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    storage.hold_barriers();
    let data = format!("\"{}\"", "x".repeat(1_000_000));
    // More than fits into a batch, so that several wait behind the one at the device.
    let large: Vec<Event> = (0..6).map(|_| Event::json("T", &[], &data)).collect();
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..5 {
        let tell = tell.clone();
        log.submit(append(&large), Box::new(move |outcome| tell.send(outcome).unwrap()));
    }
    storage.wait_for_held_barrier();
    let closing = log.clone();
    let closer = std::thread::spawn(move || closing.close());
    until("it closes", || log.closed_reason().is_some());
    std::thread::sleep(std::time::Duration::from_millis(20));
    storage.release_barriers();
    closer.join().unwrap();
    drop(tell);
    let outcomes: Vec<_> = told.iter().collect();
    assert_eq!(outcomes.len(), 5);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    drop(log);
    assert_eq!(open(&storage, Options::default()).unwrap().head(), 30);
}
