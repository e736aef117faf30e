//! The batcher of the log crate by itself: 64-byte messages pushed at full speed, counted only when
//! the sink has looked at every byte of them; beside it, `memcpy` of 64 bytes into a ring of the
//! same size.

use crate::{
    flags::{Flags, Outcome},
    machine,
    row::{Row, Sink as Rows},
};
use std::{
    hint::black_box,
    sync::{Arc, Barrier, Mutex},
    thread,
    time::{Duration, Instant},
};
use wellspring_log::{
    SystemClock,
    batcher::{Batcher, Options, Producer, Sink, SinkOutcome},
};

/// Bytes of a message, as the original has them.
const MESSAGE_BYTES: usize = 64;
const WORDS: usize = MESSAGE_BYTES / 8;
/// The first word of a message: the producer above this bit, its sequence number below. The others
/// are the first, each changed in its own way: a word that belongs to another message, or lies
/// elsewhere, is seen.
const PRODUCER_SHIFT: u32 = 56;
const CHANGES: [u64; WORDS] = [
    0,
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
];
/// Messages between two looks at the clock.
const STRIDE: u64 = 4096;

/// `wsbench batcher`: one round of everything, in the order `--round` says.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let rows = Rows::from_flags("batcher", "batcher", &mut flags)?;
    let duration = Duration::from_secs_f64(flags.or("seconds", 2.0)?);
    let partition_bytes: usize = flags.or("partition-bytes", Options::default().partition_bytes)?;
    flags.finish()?;
    if !partition_bytes.is_power_of_two() || partition_bytes < MESSAGE_BYTES * 2 {
        return Err("--partition-bytes is a power of two".into());
    }
    let options = Options { partition_bytes, ..Options::default() };
    let mut cases = vec![
        ("memcpy", 1, memcpy as fn(usize, Duration, Options) -> Outcome<Speed>),
        ("batcher", 1, batcher),
        ("memcpy", 2, memcpy),
        ("batcher", 2, batcher),
    ];
    if rows.row("", 0.0, "").round % 2 == 1 {
        cases.reverse();
    }
    for (server, threads, measure) in cases {
        let speed = measure(threads, duration, options)?;
        let case =
            format!("64-byte messages, {threads} producer{}", if threads == 1 { "" } else { "s" });
        let rate = speed.messages as f64 / speed.elapsed.as_secs_f64();
        let row = rows.row(&case, rate, "messages/s");
        rows.put(&Row { server: server.into(), samples: speed.messages, ..row })?;
    }
    Ok(())
}

struct Speed {
    messages: u64,
    elapsed: Duration,
}

/// The n-th message of a producer.
#[inline]
fn message(producer: usize, sequence: u64) -> [u8; MESSAGE_BYTES] {
    let first = ((producer as u64) << PRODUCER_SHIFT) | sequence;
    let mut bytes = [0; MESSAGE_BYTES];
    for (word, change) in bytes.chunks_exact_mut(8).zip(CHANGES) {
        word.copy_from_slice(&(first ^ change).to_le_bytes());
    }
    bytes
}

/// What the sink has seen.
#[derive(Clone, Default, Debug)]
struct Seen {
    /// By producer: how many messages, and so the sequence number that must come next.
    next: Vec<u64>,
    /// The first message that was not what had to come.
    fault: Option<String>,
}

/// Checks every byte of every message.
struct Checker {
    seen: Seen,
    shared: Arc<Mutex<Seen>>,
}

impl Checker {
    /// Checks whole messages; how many they are.
    fn check(&mut self, part: &[u8]) -> u64 {
        let (messages, rest) = part.as_chunks::<MESSAGE_BYTES>();
        if !rest.is_empty() {
            self.fail(format!("a part of {} bytes is not of whole messages", part.len()));
        }
        let mut index = 0;
        while index < messages.len() {
            let producer = (first_word(&messages[index]) >> PRODUCER_SHIFT) as usize;
            let Some(&next) = self.seen.next.get(producer) else {
                self.fail(format!("a message of producer {producer}, which there is not"));
                break;
            };
            // A part is of one producer: as far as it goes, its messages are counted on.
            let good = messages[index..]
                .iter()
                .zip(next..)
                .take_while(|(bytes, sequence)| **bytes == message(producer, *sequence))
                .count();
            self.seen.next[producer] += good as u64;
            index += good;
            if good == 0 {
                let found = first_word(&messages[index]);
                self.fail(format!("producer {producer}: {next} must come, {found:#x} came"));
                break;
            }
        }
        messages.len() as u64
    }

    fn fail(&mut self, fault: String) {
        self.seen.fault.get_or_insert(fault);
    }
}

fn first_word(message: &[u8; MESSAGE_BYTES]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&message[..8]);
    u64::from_le_bytes(word)
}

impl Sink for Checker {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        let events = parts.iter().map(|part| self.check(part)).sum();
        let bytes = parts.iter().map(|part| part.len()).sum();
        self.shared.lock().expect("nobody panics with it").clone_from(&self.seen);
        SinkOutcome { bytes, events, trouble: None }
    }
}

/// Pushes for `duration`; the time is that until everything pushed has been delivered and checked.
fn batcher(producers: usize, duration: Duration, options: Options) -> Outcome<Speed> {
    let seen = Seen { next: vec![0; producers], fault: None };
    let shared = Arc::new(Mutex::new(seen.clone()));
    let checker = Checker { seen, shared: Arc::clone(&shared) };
    // The flusher inherits the cores of the thread that starts it: those the producers leave, if
    // any.
    let all = machine::affinity()?;
    if let Some(core) = core_beside(producers) {
        machine::pin_to(core)?;
    }
    let batcher = Batcher::start(checker, options, Arc::new(SystemClock))?;
    machine::set_affinity(&all)?;
    let barrier = Arc::new(Barrier::new(producers + 1));
    let threads: Vec<_> = (0..producers)
        .map(|producer| {
            let (barrier, pusher) = (Arc::clone(&barrier), batcher.producer(0, None));
            thread::spawn(move || push(producer, pusher, &barrier, duration))
        })
        .collect();
    barrier.wait();
    let started = Instant::now();
    let mut pushed = Vec::new();
    for thread in threads {
        pushed.push(thread.join().map_err(|_| "a producer panicked")??);
    }
    batcher.close();
    let elapsed = started.elapsed();
    let seen = shared.lock().expect("nobody panics with it").clone();
    let messages = pushed.iter().sum();
    let figures = batcher.figures();
    if let Some(fault) = seen.fault {
        return Err(format!("not trusted: {fault}").into());
    }
    if seen.next != pushed
        || figures.accepted.events != messages
        || figures.stored.events != messages
    {
        return Err(format!(
            "not trusted: pushed {pushed:?}, delivered {:?}, by the batcher's own account {figures:?}",
            seen.next
        )
        .into());
    }
    Ok(Speed { messages, elapsed })
}

/// A core that no producer is pinned to.
fn core_beside(producers: usize) -> Option<usize> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (producers < cores).then_some(producers)
}

/// Pins itself and pushes; how many messages were accepted.
fn push(
    producer: usize,
    mut pusher: Producer,
    barrier: &Barrier,
    duration: Duration,
) -> Result<u64, String> {
    // Where there is no such core, the scheduler decides.
    let _ = machine::pin_to(producer);
    barrier.wait();
    let until = Instant::now() + duration;
    let mut sequence = 0;
    while Instant::now() < until {
        for _ in 0..STRIDE {
            pusher.push(&message(producer, sequence)).map_err(|error| error.to_string())?;
            sequence += 1;
        }
    }
    Ok(sequence)
}

/// Copies the same message into a ring over and over; nothing is counted, checked or handed on.
fn memcpy(threads: usize, duration: Duration, options: Options) -> Outcome<Speed> {
    let barrier = Arc::new(Barrier::new(threads + 1));
    let copiers: Vec<_> = (0..threads)
        .map(|core| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                let _ = machine::pin_to(core);
                let mut ring = vec![1u8; options.partition_bytes];
                barrier.wait();
                copy_into(&mut ring, &message(core, 7), duration)
            })
        })
        .collect();
    barrier.wait();
    let started = Instant::now();
    let mut messages = 0;
    for copier in copiers {
        messages += copier.join().map_err(|_| "a copying thread panicked")?;
    }
    Ok(Speed { messages, elapsed: started.elapsed() })
}

fn copy_into(ring: &mut [u8], message: &[u8; MESSAGE_BYTES], duration: Duration) -> u64 {
    let mask = ring.len() - 1;
    let until = Instant::now() + duration;
    let (mut at, mut count) = (0, 0);
    while Instant::now() < until {
        for _ in 0..STRIDE {
            ring[at..at + MESSAGE_BYTES].copy_from_slice(black_box(message));
            at = (at + MESSAGE_BYTES) & mask;
        }
        black_box(&mut *ring);
        count += STRIDE;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checker(producers: usize) -> Checker {
        let seen = Seen { next: vec![0; producers], fault: None };
        Checker { seen, shared: Arc::default() }
    }

    fn after(sequence: impl IntoIterator<Item = (usize, u64)>) -> Seen {
        let part: Vec<u8> =
            sequence.into_iter().flat_map(|(producer, n)| message(producer, n)).collect();
        let mut checker = checker(2);
        checker.check(&part);
        checker.seen
    }

    #[test]
    fn order_of_each_producer_is_all_that_is_asked() {
        let seen = after([(0, 0), (0, 1), (1, 0), (0, 2), (1, 1)]);
        assert_eq!((seen.next, seen.fault), (vec![3, 2], None));
    }

    #[test]
    fn gaps_repeats_reordering_and_strangers_are_faults() {
        for wrong in [
            [(0, 0), (0, 2)],
            [(0, 0), (0, 0)],
            [(0, 1), (0, 0)],
            [(0, 0), (2, 0)],
            [(1, 1), (0, 0)],
        ] {
            assert!(after(wrong).fault.is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn every_changed_byte_is_a_fault() {
        for byte in 0..MESSAGE_BYTES * 3 {
            let mut part: Vec<u8> = (0..3).flat_map(|n| message(1, n)).collect();
            part[byte] ^= 0x40;
            let mut checker = checker(2);
            checker.check(&part);
            assert!(checker.seen.fault.is_some(), "byte {byte}");
        }
        let mut checker = checker(2);
        checker.check(&message(0, 0)[..63]);
        assert!(checker.seen.fault.is_some());
    }
}
