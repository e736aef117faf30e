//! A full disk, no descriptors, an index that cannot be written: they cost only what was staged,
//! and the log continues afterwards.

use crate::oracle::{append, drain, open, read_all, small_segments};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::storage::{Storage, StorageFile};
use wellspring_log::{AppendError, Log, ReadOptions, inspect};
use wellspring_patience::{Patience, until};
use wellspring_types::{Event, Query};

fn event(bytes: usize) -> Event {
    Event::json("T", &["t"], &format!("\"{}\"", "x".repeat(bytes)))
}

/// Appends `count` events of about a KiB.
fn fill(log: &Log, count: usize) {
    for _ in 0..count {
        log.append(append(&[event(1000)])).unwrap();
    }
}

fn used(storage: &SimulatedStorage) -> u64 {
    storage.contents().values().map(|bytes| bytes.len() as u64).sum()
}

fn segments(storage: &SimulatedStorage) -> usize {
    storage.contents().keys().filter(|name| name.ends_with(".seg")).count()
}

fn no_descriptors(storage: &SimulatedStorage) {
    let descriptors = Some(storage.open_files());
    storage.set_faults(Faults { descriptors, ..Faults::default() });
}

#[test]
fn without_descriptors_appends_are_refused_and_the_log_stays_open() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&log, 30);
    no_descriptors(&storage);
    let mut events = 30;
    let refused = loop {
        match log.append(append(&[event(1000)])) {
            Ok(_) => events += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, AppendError::Unavailable { .. }), "{refused}");
    assert!(log.append(append(&[event(1000)])).is_err());
    assert_eq!((log.closed_reason(), read_all(&log).len()), (None, events));
    storage.set_faults(Faults::default());
    assert_eq!(log.append(append(&[event(1000)])).unwrap().first, events as u64 + 1);
    log.close();
    assert_eq!(read_all(&open(&storage, small_segments()).unwrap()).len(), events + 1);
}

#[test]
fn the_next_segment_is_made_ahead_of_need() {
    for fault in ["no descriptors", "no room"] {
        let storage = SimulatedStorage::new(1);
        let log = open(&storage, small_segments()).unwrap();
        while !storage.contents().contains_key("next.tmp") {
            fill(&log, 1);
        }
        match fault {
            "no descriptors" => no_descriptors(&storage),
            _ => {
                let capacity_bytes = Some(used(&storage));
                storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
            }
        }
        while segments(&storage) == 1 {
            fill(&log, 1);
        }
        storage.set_faults(Faults::default());
        let head = log.head() as usize;
        log.close();
        assert_eq!(read_all(&open(&storage, small_segments()).unwrap()).len(), head, "{fault}");
    }
}

#[test]
fn a_file_made_ahead_of_need_is_removed_when_the_log_is_opened() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    while !storage.contents().contains_key("next.tmp") {
        fill(&log, 1);
    }
    let crashed = storage.crash();
    log.close();
    let log = open(&crashed, small_segments()).unwrap();
    assert!(!crashed.contents().contains_key("next.tmp"));
    fill(&log, 60);
}

#[test]
fn an_index_that_could_not_be_written_is_counted_and_written_later() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    while !storage.contents().contains_key("next.tmp") {
        fill(&log, 1);
    }
    no_descriptors(&storage);
    while segments(&storage) == 1 {
        fill(&log, 1);
    }
    until("it is counted", || log.stats().index_write_failures > 0);
    assert_eq!(log.stats().indexes_unwritten, 1);
    storage.set_faults(Faults::default());
    while segments(&storage) == 2 {
        fill(&log, 1);
    }
    log.close();
    let indexes = storage.contents().keys().filter(|name| name.ends_with(".idx")).count();
    assert_eq!((indexes, log.stats().indexes_unwritten), (2, 0), "after the next full segment");
}

#[test]
fn a_log_on_a_full_disk_opens_and_reads() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&log, 200);
    log.close();
    let epoch = log.stats().epoch;
    let capacity_bytes = Some(used(&storage));
    storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
    let log = open(&storage, small_segments()).unwrap();
    assert_eq!((read_all(&log).len(), log.stats().epoch), (200, epoch + 1));
    while log.append(append(&[event(1000)])).is_ok() {}
    assert!(log.is_full());
    storage.set_faults(Faults::default());
    fill(&log, 1);
    assert!(!log.is_full());
}

#[test]
fn missing_files_are_noticed() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&log, 200);
    log.close();
    let epoch = log.stats().epoch;
    let whole = storage.contents();
    let without = |gone: &dyn Fn(&str) -> bool| {
        let mut files = whole.clone();
        files.retain(|name, _| !gone(name));
        open(&SimulatedStorage::with_contents(1, &files), small_segments())
    };
    let last = whole.keys().rfind(|name| name.ends_with(".seg")).unwrap();
    let error = without(&|name| name == last).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    let error = without(&|name| name.ends_with(".seg")).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    let error = without(&|name| name.ends_with(".seg") || name.ends_with(".idx")).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    let log = without(&|name| name == "epoch").unwrap();
    assert_eq!(log.stats().epoch, epoch + 1, "headers tell the epoch, too");
}

#[test]
fn an_index_of_another_segment_is_not_used() {
    let two_logs = [1, 2].map(|seed| {
        let storage = SimulatedStorage::new(seed);
        let log = open(&storage, small_segments()).unwrap();
        for i in 0..200u64 {
            let tag = format!("log:{seed} number:{i}");
            log.append(append(&[Event::json("T", &[&tag], &"1".repeat(1000))])).unwrap();
        }
        log.close();
        storage.contents()
    });
    let [mut files, others] = two_logs;
    let index = files.keys().find(|name| name.ends_with(".idx")).unwrap().clone();
    assert!(files.insert(index.clone(), others[&index].clone()).is_some());
    let storage = SimulatedStorage::with_contents(1, &files);
    let log = open(&storage, small_segments()).unwrap();
    let query = Query::item(&[], &["log:1 number:3"]);
    let found = drain(log.snapshot().read(&query, ReadOptions::default())).unwrap();
    assert_eq!(found.len(), 1, "it was made anew");
}

#[test]
fn a_damaged_index_is_rebuilt_once_and_its_file_replaced() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&log, 200);
    log.close();
    let mut files = storage.contents();
    let index = files.keys().find(|name| name.ends_with(".idx")).unwrap().clone();
    let middle = files[&index].len() / 3;
    for byte in &mut files.get_mut(&index).unwrap()[middle..] {
        *byte ^= 0x55;
    }
    let damaged = files[&index].clone();
    let storage = SimulatedStorage::with_contents(1, &files);
    let log = open(&storage, small_segments()).unwrap();
    let query = Query::item(&["T"], &["t"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let read = || drain(log.snapshot().read(&query, ReadOptions::default()));
                // A reader that finds the damage halfway must read again.
                let found = (0..5).find_map(|_| read().ok());
                assert_eq!(found.map(|found| found.len()), Some(200));
            });
        }
    });
    assert_ne!(storage.contents()[&index], damaged);
}

#[test]
fn a_full_disk_with_room_again_is_noticed_without_an_append() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&log, 3);
    let capacity_bytes = Some(used(&storage));
    storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
    let refused = loop {
        match log.append(append(&[event(9_000)])) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(refused, AppendError::StorageFull);
    // The check needs as much room as was refused: a little room does not suffice.
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(log.is_full(), "still");
    storage.set_faults(Faults::default());
    let mut patience = Patience::new();
    while log.is_full() {
        patience.pause("room is not noticed");
    }
    let head = log.head();
    assert_eq!(log.append(append(&[event(9_000)])).unwrap().first, head + 1);
}

/// A folder whose first listing is from a moment before its last segments were begun.
#[derive(Debug)]
struct SeenEarlier {
    inner: SimulatedStorage,
    hidden: usize,
    listings: AtomicUsize,
}

impl Storage for SeenEarlier {
    delegate!(inner: name lock unlock file_bytes open create rename remove sync_dir);

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.inner.list()?;
        if self.listings.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut segments: Vec<_> =
                names.iter().filter(|name| name.ends_with(".seg")).cloned().collect();
            segments.sort();
            let hidden = segments.split_off(segments.len() - self.hidden);
            names.retain(|name| !hidden.contains(name));
        }
        Ok(names)
    }
}

#[test]
fn a_log_that_grows_while_it_is_verified_has_lost_nothing() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&log, 200);
    log.close();
    assert!(segments(&storage) > 3);
    for hidden in 1..segments(&storage) {
        let seen = SeenEarlier { inner: storage.clone(), hidden, listings: AtomicUsize::new(0) };
        let report = inspect::verify_on(&seen, &mut |_, _| ()).unwrap();
        assert_eq!(report.damage, [], "{hidden} segments were begun meanwhile");
    }
}
