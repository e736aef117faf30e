//! The batcher's ring, and its way of asking to be told, under loom: every order
//! in which two threads can run, with every value an atomic load may return. Both
//! are the crate's own source files, compiled here against loom's atomics and cells.

#![allow(unreachable_pub, missing_docs, dead_code)] // one binary, nothing is public

mod sync {
    pub(super) use loom::sync::Arc;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

    pub(super) type Read<'a> = Vec<u8>;

    /// A cell for each byte, so that loom sees who touches which.
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
                // SAFETY: loom fails the test if another thread touches the cell meanwhile.
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

/// Pushes frames of these lengths, each filled with its number from 1, as often as it takes.
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

/// Takes frames until all have come, releasing only the first of what it sees each time.
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
fn who_asks_sees_the_change_or_is_told_of_it() {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};
    loom::model(|| {
        let shared = Arc::new((wanted::Wanted::new(), AtomicU64::new(0)));
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
