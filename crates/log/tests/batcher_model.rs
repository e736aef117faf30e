//! Model checks with loom of the batcher's ring and its wake-up requests: every interleaving of the
//! threads, with every value an atomic load may return. The crate's own source files are compiled
//! here with loom's atomics and cells.

#![allow(unreachable_pub, missing_docs, dead_code)] // one binary, nothing is public

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};

    pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    pub(super) type Chunk<'a> = Vec<u8>;

    /// A cell for each byte, so that loom tracks every access.
    #[derive(Debug)]
    pub(super) struct Bytes {
        cells: Vec<loom::cell::UnsafeCell<u8>>,
    }

    impl Bytes {
        pub(super) fn zeroed(len: usize) -> Bytes {
            Bytes { cells: (0..len).map(|_| loom::cell::UnsafeCell::new(0)).collect() }
        }

        pub(super) unsafe fn write(&self, at: usize, part: &[u8]) {
            for (cell, &byte) in self.cells[at..at + part.len()].iter().zip(part) {
                // SAFETY: loom fails the test if another thread accesses the cell meanwhile.
                cell.with_mut(|to| unsafe { *to = byte });
            }
        }

        pub(super) unsafe fn read(&self, at: usize, len: usize) -> Vec<u8> {
            let cells = &self.cells[at..at + len];
            // SAFETY: as in `write`.
            cells.iter().map(|cell| cell.with(|from| unsafe { *from })).collect()
        }
    }
}

#[allow(clippy::ptr_arg)]
#[path = "../src/batcher/ring.rs"]
mod ring;

#[path = "../src/batcher/wanted.rs"]
mod wanted;

#[path = "../src/waiters.rs"]
mod waiters;

#[path = "../src/batcher/stored_waiters.rs"]
mod stored_waiters;

/// Pushes frames of these lengths, each filled with its number from 1, retrying as necessary.
fn produce(mut writer: ring::Writer, lengths: &[usize]) {
    for (number, &len) in (1u8..).zip(lengths) {
        loop {
            if let Ok(mut room) = writer.reserve(len) {
                room.put(&vec![number; len]);
                room.publish();
                break;
            }
            loom::thread::yield_now();
        }
    }
}

/// Takes frames until all have arrived, releasing only the first of those visible each time.
fn consume(mut reader: ring::Reader, lengths: &[usize]) {
    let mut arrived: Vec<u8> = Vec::new();
    let mut next = 0;
    while next < lengths.len() {
        reader.observe();
        if !reader.has_content() {
            loom::thread::yield_now();
            continue;
        }
        let [first, second] = reader.parts();
        let seen = [first, second].concat();
        let len = lengths[next];
        assert!(seen.len() >= len, "a frame is seen whole or not at all");
        assert!(seen[..len].iter().all(|&byte| usize::from(byte) == next + 1));
        arrived.extend_from_slice(&seen[..len]);
        reader.release(len);
        next += 1;
    }
    assert_eq!(arrived.len(), lengths.iter().sum::<usize>());
}

fn check(lengths: &'static [usize]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let (writer, reader) = ring::ring(4);
        let producer = loom::thread::spawn(move || produce(writer, lengths));
        consume(reader, lengths);
        producer.join().unwrap();
    });
}

#[test]
fn frames_that_fill_the_lap_exactly() {
    check(&[2, 2, 1, 1, 2]);
}

#[test]
fn frames_that_skip_the_end_of_every_lap() {
    check(&[1, 2, 2, 2, 2]);
}

#[test]
fn a_waiter_sees_the_change_or_is_notified() {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};
    loom::model(|| {
        let shared = Arc::new((wanted::WakeRequest::new(), AtomicU64::new(0)));
        let other = Arc::clone(&shared);
        let flusher = loom::thread::spawn(move || {
            other.1.store(1, Ordering::Release);
            other.0.take()
        });
        shared.0.ask();
        let seen = shared.1.load(Ordering::Acquire) == 1;
        let told = flusher.join().unwrap();
        assert!(seen || told, "the asker waits for ever");
    });
}

/// Remembers being woken. Not loom's: it is read after the threads have ended.
#[derive(Default)]
struct WokenFlag(std::sync::atomic::AtomicBool);

impl std::task::Wake for WokenFlag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn each_task_that_registers_sees_the_change_or_is_woken() {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};
    loom::model(|| {
        let shared = Arc::new((stored_waiters::StoredWaiters::new(), AtomicU64::new(0)));
        let wait = |shared: &(stored_waiters::StoredWaiters, AtomicU64)| {
            let woken = std::sync::Arc::new(WokenFlag::default());
            let mut ticket = None;
            shared.0.register(&mut ticket, &std::sync::Arc::clone(&woken).into()).unwrap();
            (shared.1.load(Ordering::Acquire) == 1, woken)
        };
        let threads = [0, 1].map(|thread| {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                if thread == 0 {
                    return Some(wait(&shared));
                }
                shared.1.store(1, Ordering::Release);
                shared.0.wake_all();
                None
            })
        });
        let own = wait(&shared);
        let ended = threads.map(|thread| thread.join().unwrap());
        for (seen, woken) in ended.into_iter().flatten().chain([own]) {
            let woken = woken.0.load(std::sync::atomic::Ordering::SeqCst);
            assert!(seen || woken, "a task waits for ever");
        }
    });
}

/// The basis of marks: a thread that knows of a push finds it in the gauge, and one that finds it
/// released sees what the flusher did before.
#[test]
fn a_gauge_shows_every_push_known_of_and_what_came_before_its_release() {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (mut writer, mut reader) = ring::ring(4);
        let gauge = reader.gauge();
        let told = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let (accepted, published) = (Arc::clone(&told), Arc::clone(&told));
        let producer = loom::thread::spawn(move || {
            for n in 1..=2 {
                let mut room = writer.reserve(2).unwrap();
                room.put(&[0; 2]);
                room.publish();
                accepted.0.store(n, Ordering::Release);
            }
        });
        let flusher = loom::thread::spawn(move || {
            for _ in 0..2 {
                let seen = reader.observe();
                if reader.has_content() {
                    published.1.store(seen / 2, Ordering::Relaxed);
                    reader.release(reader.observed_bytes() as usize);
                }
            }
        });
        let accepted = told.0.load(Ordering::Acquire);
        let mark = gauge.tail();
        assert!(mark >= 2 * accepted, "a push known of lies behind the mark");
        if gauge.released() >= mark {
            assert!(2 * told.1.load(Ordering::Relaxed) >= mark, "not published when released");
        }
        producer.join().unwrap();
        flusher.join().unwrap();
    });
}
