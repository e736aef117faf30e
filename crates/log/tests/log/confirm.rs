//! A confirmed head is the end of the log, and an unknown end is not confirmed.

use crate::gated::GatedStorage;
use crate::oracle::{append, open, read_all};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Log, NotConfirmed, Options};
use wellspring_types::{Event, Position};

fn event(i: usize) -> Event {
    Event::json("T", &[&format!("t:{i}")], "1")
}

/// The journal of files answers immediately.
fn confirmed(log: &Log) -> Result<Position, NotConfirmed> {
    let Poll::Ready(told) = pin!(log.confirm()).poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("it waits")
    };
    told
}

#[test]
fn the_head_is_confirmed_while_this_process_leads() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    assert_eq!(confirmed(&log), Ok(0));
    for i in 0..5 {
        let appended = log.append(append(&[event(i)])).unwrap();
        assert_eq!(confirmed(&log), Ok(appended.last));
    }
    // A full disk does not affect existing events.
    storage.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    let refused = (0..10_000).find(|&i| log.append(append(&[event(i)])).is_err());
    assert!(refused.is_some(), "the disk is full");
    assert_eq!(confirmed(&log), Ok(log.head()));
    log.close();
    let Err(NotConfirmed::Closed { reason }) = confirmed(&log) else { panic!("it is closed") };
    assert_eq!(reason, "it has been closed");
}

#[test]
fn what_is_at_the_device_is_not_waited_for() {
    let storage = GatedStorage::new(1);
    let log = Log::open_on(Arc::new(storage.clone()), Options::default()).unwrap();
    log.append(append(&[event(0)])).unwrap();
    let before = storage.gate.arrived();
    storage.gate.close();
    let (tell, told) = std::sync::mpsc::channel();
    log.submit(append(&[event(1)]), Box::new(move |outcome| tell.send(outcome).unwrap()));
    storage.gate.wait_for_arrival(before);
    assert_eq!(confirmed(&log), Ok(1), "nobody was told of the second");
    storage.gate.open();
    told.recv().unwrap().unwrap();
    assert_eq!(confirmed(&log), Ok(2));
}

#[test]
fn after_a_failed_barrier_nothing_is_confirmed_and_reads_go_on() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    log.append(append(&[event(0)])).unwrap();
    storage.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    log.append(append(&[event(1)])).unwrap_err();
    for _ in 0..3 {
        assert!(matches!(confirmed(&log), Err(NotConfirmed::Closed { .. })));
    }
    assert_eq!(read_all(&log).len(), 1);
    drop(log);
    let log = open(&storage.crash(), Options::default()).unwrap();
    assert_eq!(confirmed(&log), Ok(log.head()));
}

#[test]
fn whose_folder_was_taken_away_confirms_nothing() {
    let outside = tempfile::tempdir().unwrap();
    let (dir, elsewhere) = (outside.path().join("log"), outside.path().join("elsewhere"));
    let log = Log::open(&dir, Options::default()).unwrap();
    log.append(append(&[event(0)])).unwrap();
    assert_eq!(confirmed(&log), Ok(1));
    std::fs::rename(&dir, &elsewhere).unwrap();
    assert!(matches!(confirmed(&log), Err(NotConfirmed::FolderLost { .. })));
    // Another process starts over in the same place.
    let other = Log::open(&dir, Options::default()).unwrap();
    other.append(append(&[event(0), event(1)])).unwrap();
    assert!(matches!(confirmed(&log), Err(NotConfirmed::FolderLost { .. })));
    assert_eq!(confirmed(&other), Ok(2));
    assert_eq!(read_all(&log).len(), 1, "reads go on");
    other.close();
    drop(other);
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::rename(&elsewhere, &dir).unwrap();
    assert_eq!(confirmed(&log), Ok(1), "it is back");
}
