//! Regressions found by an independent review: each was a failing test first.

use crate::oracle::{append, open, small_segments};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::storage::{Storage, StorageFile};
use wellspring_log::{AppendError, Clock, OpenError, Options, ReadOptions, RequestKey, Sync};
use wellspring_types::{Event, Query};

fn event(i: usize, bytes: usize) -> Event {
    Event::json("T", &[&format!("t:{i}")], &format!("\"{}\"", "x".repeat(bytes)))
}

fn kill9(storage: &SimulatedStorage, log: wellspring_log::Log) {
    std::mem::forget(log); // no close, no barrier: the process is gone, its page cache is not
    storage.unlock();
}

#[test]
fn interval_barrier_comes() {
    let storage = SimulatedStorage::new(1);
    let options = Options { sync: Sync::Interval(Duration::from_millis(5)), ..Options::default() };
    let log = open(&storage, options).unwrap();
    std::thread::sleep(Duration::from_millis(50)); // the journal's thread parks
    let before = storage.syncs();
    for i in 0..20 {
        log.append(append(&[event(i, 10)])).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(storage.syncs() > before, "no barrier in 500 ms under interval=5ms");
}

fn killed_between_write_and_barrier() -> SimulatedStorage {
    let storage = SimulatedStorage::new(3);
    let log = open(&storage, Options::default()).unwrap();
    let mut request = append(&[event(0, 2000)]);
    request.key = Some(RequestKey { key: "k".into(), digest: [7; 16] });
    storage.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    log.append(request).unwrap_err(); // Unknown: written, never behind a barrier
    kill9(&storage, log);
    storage.set_faults(Faults::default());
    storage
}

#[test]
fn a_replay_after_restart_is_durable() {
    let storage = killed_between_write_and_barrier();
    let log = open(&storage, Options::default()).unwrap();
    let mut retry = append(&[event(0, 2000)]);
    retry.key = Some(RequestKey { key: "k".into(), digest: [7; 16] });
    let answer = log.append(retry).unwrap();
    assert!(answer.replayed); // acknowledged as durable now
    for _ in 0..50 {
        let after = open(&storage.crash(), Options::default()).unwrap();
        assert_eq!(after.head(), 1, "an acknowledged event is gone");
    }
}

#[test]
fn a_power_loss_after_a_restart_leaves_a_log_that_opens() {
    let storage = killed_between_write_and_barrier();
    let log = open(&storage, Options::default()).unwrap();
    storage.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    log.append(append(&[event(1, 2000)])).unwrap_err(); // power goes before its barrier
    for _ in 0..200 {
        match open(&storage.crash(), Options::default()) {
            Ok(_) => {}
            Err(OpenError::Corrupt(c)) => panic!("a plain crash is called rot: {c:?}"),
            Err(e) => panic!("{e:?}"),
        }
    }
}

#[derive(Default)]
struct Hand(AtomicU64);
impl Clock for Hand {
    fn wall_us(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn monotonic_us(&self) -> u64 {
        self.wall_us()
    }
}

#[test]
fn time_does_not_go_back_over_an_empty_last_segment() {
    let storage = SimulatedStorage::new(1);
    let clock = Arc::new(Hand::default());
    let options = || Options { clock: clock.clone(), ..small_segments() };
    let log = open(&storage, options()).unwrap();
    clock.0.store(1_000_000, Ordering::SeqCst);
    for i in 0..7 {
        log.append(append(&[event(i, 8000)])).unwrap();
    }
    let used: u64 = storage.contents().values().map(|b| b.len() as u64).sum();
    storage.set_faults(Faults { capacity_bytes: Some(used + 100), ..Faults::default() });
    log.append(append(&[event(7, 30_000)])).unwrap_err(); // the segment is made, the batch is not
    storage.set_faults(Faults::default());
    log.close();
    assert_eq!(storage.contents().keys().filter(|n| n.ends_with(".seg")).count(), 2);
    clock.0.store(10, Ordering::SeqCst);
    let log = open(&storage, options()).unwrap();
    log.append(append(&[event(8, 10)])).unwrap();
    let mut events = log.snapshot().read(&Query::all(), ReadOptions::default());
    let mut last = 0;
    while let Some(record) = events.next().unwrap() {
        assert!(record.recorded_at_us() >= last, "{} after {last}", record.recorded_at_us());
        last = record.recorded_at_us();
    }
}

#[test]
fn rot_in_the_last_header_is_not_a_torn_write() {
    // Sizes until the last 8 bytes of the second batch's header are in the next sector.
    for bytes in 100..800 {
        let storage = SimulatedStorage::new(1);
        let log = open(&storage, small_segments()).unwrap();
        log.append(append(&[event(0, bytes)])).unwrap();
        let files = storage.contents();
        let name = files.keys().find(|n| n.ends_with(".seg")).unwrap().clone();
        let end = files[&name].iter().rposition(|&b| b != 0).unwrap() + 1;
        if end % 512 != 456 {
            continue;
        }
        log.append(append(&[event(1, 100)])).unwrap();
        log.close();
        let mut files = storage.contents();
        files.get_mut(&name).unwrap()[end + 24] ^= 1; // one bit of an acknowledged batch
        match open(&SimulatedStorage::with_contents(1, &files), small_segments()) {
            Err(OpenError::Corrupt(_)) => return,
            Ok(log) => panic!("opened, head {} of 2: an acknowledged batch was cut", log.head()),
            Err(e) => panic!("{e:?}"),
        }
    }
    panic!("no size fits");
}

#[test]
fn a_panicking_completion_does_not_hang_others() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    log.submit(append(&[event(0, 10)]), Box::new(|_| panic!("a caller's mistake")));
    std::thread::sleep(Duration::from_millis(200));
    let (tell, told) = mpsc::channel();
    let other = log.clone();
    std::thread::spawn(move || tell.send(other.append(append(&[event(1, 10)]))));
    let answer = told.recv_timeout(Duration::from_secs(3)).expect("an answer");
    assert_eq!(answer.unwrap().first, 2);
    log.close();
}

#[derive(Debug)]
struct FullDir(SimulatedStorage, std::sync::atomic::AtomicBool);
impl Storage for FullDir {
    delegate!(0: name lock unlock list open create rename remove);

    fn sync_dir(&self) -> std::io::Result<()> {
        if self.1.swap(false, Ordering::SeqCst) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0.sync_dir()
    }
}

#[test]
fn a_segment_renamed_but_refused_leaves_no_trap() {
    let sim = SimulatedStorage::new(1);
    let storage = Arc::new(FullDir(sim.clone(), false.into()));
    let log = wellspring_log::Log::open_on(storage.clone(), small_segments()).unwrap();
    for i in 0..7 {
        log.append(append(&[event(i, 8000)])).unwrap();
    }
    storage.1.store(true, Ordering::SeqCst);
    // A crash may leave the segment, so the log must not continue as if it did not exist.
    let refused = log.append(append(&[event(7, 30_000)])).unwrap_err();
    assert!(matches!(refused, AppendError::Closed { .. }), "{refused}");
    assert!(log.append(append(&[event(8, 10)])).is_err());
    log.close();
    let log = open(&sim, small_segments()).expect("the log opens");
    assert_eq!(log.append(append(&[event(8, 10)])).unwrap().first, 8);
}

#[test]
fn closing_from_within_an_answer_does_not_wait_for_itself() {
    let log = open(&SimulatedStorage::new(1), Options::default()).unwrap();
    let (tell, told) = mpsc::channel();
    let other = log.clone();
    let done = Box::new(move |_| {
        other.close();
        tell.send(()).unwrap();
    });
    log.stage(append(&[event(0, 10)]), done);
    std::thread::spawn(move || log.commit(wellspring_log::CommitOn::ThisThread));
    told.recv_timeout(Duration::from_secs(3)).expect("it came back");
}
