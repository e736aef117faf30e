//! The batcher's threads together: sequence numbers at full speed, sinks that fail in every way,
//! and a log as the sink.

#![allow(clippy::disallowed_methods)] // tests start threads

use super::*;
use crate::options::SystemClock;
use crate::{Log, Options as LogOptions, ReadOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wellspring_format::record::EncodedEvents;
use wellspring_patience::{PATIENCE, until};
use wellspring_types::{DataKind, Event, Query};

/// Between two looks of a test.
const A_MOMENT: Duration = Duration::from_micros(100);

const FRAME_BYTES: usize = 64;

fn frame(producer: u8, number: u64) -> [u8; FRAME_BYTES] {
    let mut frame = [producer; FRAME_BYTES];
    frame[..8].copy_from_slice(&number.to_le_bytes());
    frame
}

/// What a checking sink does with a call.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Store,
    StoreSome(usize, Trouble2),
}

/// [`Trouble`] without its text.
#[derive(Debug, Clone, Copy)]
enum Trouble2 {
    Busy,
    Full,
}

/// Checks every frame: no gap, no repetition, no other bytes.
struct CheckingSink {
    next: Arc<[AtomicU64; 4]>,
    mood: Box<dyn FnMut() -> Mood + Send>,
}

impl CheckingSink {
    fn new(mood: impl FnMut() -> Mood + Send + 'static) -> (CheckingSink, Arc<[AtomicU64; 4]>) {
        let next = Arc::new([const { AtomicU64::new(0) }; 4]);
        (CheckingSink { next: Arc::clone(&next), mood: Box::new(mood) }, next)
    }

    fn check(&self, seen: &[u8]) {
        let producer = seen[8];
        let next = &self.next[usize::from(producer)];
        let expected = next.load(Ordering::Relaxed);
        assert_eq!(seen, frame(producer, expected), "from producer {producer}");
        next.store(expected + 1, Ordering::Release);
    }
}

impl Sink for CheckingSink {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        let (limit, trouble) = match (self.mood)() {
            Mood::Store => (usize::MAX, None),
            Mood::StoreSome(frames, Trouble2::Busy) => (frames, Some(Trouble::Busy)),
            Mood::StoreSome(frames, Trouble2::Full) => (frames, Some(Trouble::Full)),
        };
        let mut stored = SinkOutcome { bytes: 0, events: 0, trouble: None };
        for seen in parts.iter().flat_map(|part| part.chunks_exact(FRAME_BYTES)) {
            if stored.events as usize == limit {
                stored.trouble = trouble;
                break;
            }
            self.check(seen);
            stored.bytes += FRAME_BYTES;
            stored.events += 1;
        }
        stored
    }
}

fn small(overflow: Overflow) -> Options {
    Options { partition_bytes: 16 << 10, flush_bytes: 4 << 10, overflow, ..Options::default() }
}

fn batcher(sink: impl Sink, options: Options) -> Batcher {
    Batcher::start(sink, options, Arc::new(SystemClock)).unwrap()
}

/// Pushes from three threads at full speed through a sink that behaves according to `mood`.
fn deliver(mood: impl FnMut() -> Mood + Send + 'static, each: u64) {
    let (sink, next) = CheckingSink::new(mood);
    let batcher = batcher(sink, small(Overflow::Block));
    let threads: Vec<_> = (0..3u8)
        .map(|number| {
            let mut producer = batcher.producer(number % 2, None);
            std::thread::spawn(move || {
                let mut n = 0;
                while n < each {
                    match producer.push(&frame(number, n)) {
                        Ok(_) => n += 1,
                        Err(PushError::StorageFull) => std::thread::sleep(A_MOMENT),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    batcher.close();
    assert!((0..3).all(|number| next[number].load(Ordering::Acquire) == each));
    let figures = batcher.figures();
    let all = Amount { events: 3 * each, bytes: 3 * each * FRAME_BYTES as u64 };
    assert_eq!((figures.accepted, figures.stored), (all, all));
    assert_eq!((figures.shed, figures.lost_possible()), Default::default());
}

#[test]
fn every_message_arrives_once_and_in_order_at_full_speed() {
    deliver(|| Mood::Store, 200_000);
}

#[test]
fn a_sink_that_stores_little_at_a_time_loses_nothing() {
    let mut call = 0;
    let mood = move || {
        call += 1;
        match call % 4 {
            0 => Mood::Store,
            n => {
                Mood::StoreSome(call * 7 % 90, if n == 1 { Trouble2::Full } else { Trouble2::Busy })
            }
        }
    };
    deliver(mood, 500);
}

/// A sink that waits until it is released.
fn gate() -> (impl FnMut() -> Mood + Send + 'static, Arc<AtomicBool>) {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let mood = move || {
        while !gate.load(Ordering::Acquire) {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        Mood::Store
    };
    (mood, open)
}

#[test]
fn a_full_partition_sheds_counts_and_recovers() {
    let (mood, open) = gate();
    let (sink, next) = CheckingSink::new(mood);
    let batcher = batcher(sink, small(Overflow::Shed));
    let mut producer = batcher.producer(0, None);
    let mut accepted = 0;
    let mut refused = 0;
    for _ in 0..1000 {
        match producer.push(&frame(0, accepted)) {
            Ok(_) => accepted += 1,
            Err(error) => {
                assert_eq!(error, PushError::NoRoom);
                refused += 1;
            }
        }
    }
    assert_eq!(accepted, (16 << 10) / FRAME_BYTES as u64, "what fits");
    let figures = batcher.figures();
    assert_eq!((figures.accepted.events, figures.shed.events), (accepted, refused));
    assert_eq!(figures.lost_possible().events, accepted, "nothing is stored yet");
    open.store(true, Ordering::Release);
    // Counted as stored just before its room is released.
    until("its room is released", || !producer.has_unstored());
    producer.push(&frame(0, accepted)).unwrap();
    batcher.close();
    assert_eq!(next[0].load(Ordering::Acquire), accepted + 1);
}

#[test]
fn a_receipt_is_stored_soon_after_it_is_asked_for() {
    let (sink, _) = CheckingSink::new(|| Mood::Store);
    let options = Options { flush_age: Duration::from_secs(3600), ..small(Overflow::Block) };
    let batcher = batcher(sink, options);
    let (tell, told) = std::sync::mpsc::channel();
    let wake: Wake = Arc::new(move || {
        let _ = tell.send(());
    });
    let mut producer = batcher.producer(0, Some(wake));
    for number in 0..100 {
        let receipt = producer.push(&frame(0, number)).unwrap();
        producer.want_wake();
        while !producer.is_stored(receipt) {
            told.recv_timeout(PATIENCE).expect("a wake");
            producer.want_wake();
        }
    }
    assert!(!producer.has_unstored());
}

#[test]
fn after_a_sleep_a_push_is_flushed_without_being_asked_for() {
    let (sink, next) = CheckingSink::new(|| Mood::Store);
    let batcher = batcher(sink, small(Overflow::Block));
    let mut producer = batcher.producer(0, None);
    for number in 0..20 {
        // Long enough for the flusher to be in either of its sleeps.
        std::thread::sleep(Duration::from_millis(number % 5));
        producer.push(&frame(0, number)).unwrap();
    }
    until("all 20 are stored", || next[0].load(Ordering::Acquire) == 20);
}

#[test]
fn producers_that_go_leave_their_counts_and_their_frames() {
    let (sink, next) = CheckingSink::new(|| Mood::Store);
    let batcher = batcher(sink, small(Overflow::Block));
    for number in 0..50 {
        batcher.producer(0, None).push(&frame(0, number)).unwrap();
    }
    batcher.close();
    assert_eq!(next[0].load(Ordering::Acquire), 50);
    let figures = batcher.figures();
    assert_eq!((figures.accepted.events, figures.partitions), (50, 0));
}

#[test]
fn a_sink_that_panics_refuses_pushes_instead_of_hanging_them() {
    let (sink, _) = CheckingSink::new(|| panic!("meant: the sink of this test panics"));
    let batcher = batcher(sink, small(Overflow::Block));
    let (tell, told) = std::sync::mpsc::channel();
    let mut waiting = batcher.producer(
        0,
        Some(Arc::new(move || {
            let _ = tell.send(());
        })),
    );
    waiting.want_wake();
    waiting.push(&frame(1, 0)).unwrap();
    told.recv_timeout(PATIENCE).expect("who waits is told");
    let mut producer = batcher.producer(0, None);
    let refused = (0..1_000_000u64).find_map(|n| producer.push(&frame(0, n)).err());
    assert!(matches!(refused, Some(PushError::Closed { .. })), "{refused:?}");
}

#[test]
fn a_template_encodes_what_the_record_format_says() {
    let long = format!("\"{}\"", "x".repeat(300));
    let tags = [&[][..], &["t:1"], &["t:1", "ü:2"]];
    for (tags, data) in tags.into_iter().flat_map(|tags| [(tags, "7"), (tags, &long)]) {
        let event = Event::json("Type", tags, data);
        let data = data.as_bytes();
        let mut expected = EncodedEvents::new();
        expected.push(&event.as_ref()).unwrap();
        let template = EventTemplate::new("Type", tags).unwrap();
        let (mut writer, mut reader) = ring::ring(4096);
        let mut room = writer.reserve(template.frame_bytes(data)).unwrap();
        template.put(&mut room, DataKind::Json, data);
        room.publish();
        reader.observe();
        assert_eq!(reader.parts()[0], expected.bytes());
    }
    assert_eq!(EventTemplate::new("", &["a"]).unwrap_err().field, "type");
    assert_eq!(EventTemplate::new("T", &["a", "a"]).unwrap_err().field, "tags[1]");
}

#[test]
fn a_log_stores_everything_in_order_and_reads_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path(), LogOptions::default()).unwrap();
    let options = Options { partition_bytes: 64 << 10, ..Options::default() };
    let batcher = log.batcher(options).unwrap();
    let clicked = EventTemplate::new("Clicked", &["page:home"]).unwrap();
    let foreign = batcher.producer(0, None).push(b"not an event");
    assert_eq!(foreign, Err(PushError::EventsOnly));
    let producers: Vec<_> = (0..2)
        .map(|number| {
            let (mut producer, clicked) = (batcher.producer(0, None), clicked.clone());
            std::thread::spawn(move || {
                for n in 0..5000u32 {
                    let data = format!("[{number},{n}]");
                    producer.push_event(&clicked, DataKind::Json, data.as_bytes()).unwrap();
                }
            })
        })
        .collect();
    // The log accepts other appends meanwhile.
    let mut events = EncodedEvents::new();
    events.push(&Event::json("Other", &["x"], "{}").as_ref()).unwrap();
    log.append(crate::Append { events, ..Default::default() }).unwrap();
    producers.into_iter().for_each(|thread| thread.join().unwrap());
    batcher.close();
    let mut next = [0; 2];
    let mut events =
        log.snapshot().read(&Query::item(&["Clicked"], &["page:home"]), ReadOptions::default());
    while let Some(event) = events.next().unwrap() {
        let text = std::str::from_utf8(event.data()).unwrap().trim_matches(['[', ']']).to_owned();
        let (producer, number) = text.split_once(',').unwrap();
        let next = &mut next[producer.parse::<usize>().unwrap()];
        assert_eq!(number.parse(), Ok(*next));
        *next += 1;
    }
    assert_eq!(next, [5000, 5000]);
    assert_eq!(log.head(), 10_001);
    assert_eq!(batcher.figures().stored.events, 10_000);
}

/// Counts how often the time is read.
#[derive(Debug, Default)]
struct AskedClock(AtomicU64);

impl Clock for AskedClock {
    fn wall_us(&self) -> u64 {
        SystemClock.wall_us()
    }

    fn monotonic_us(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        SystemClock.monotonic_us()
    }
}

#[test]
fn hurrying_a_flusher_that_has_nothing_to_do_does_not_keep_it_busy() {
    let (sink, _) = CheckingSink::new(|| Mood::Store);
    let clock = Arc::new(AskedClock::default());
    let batcher =
        Batcher::start(sink, small(Overflow::Block), Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    let mut producer = batcher.producer(0, None);
    let receipt = producer.push(&frame(0, 0)).unwrap();
    until("it is stored", || producer.is_stored(receipt));
    producer.want_wake();
    std::thread::sleep(Duration::from_millis(100));
    // It reads the clock after each sleep: at most about once per millisecond.
    let asked = clock.0.load(Ordering::Relaxed);
    assert!(asked < 1_000, "it has slept {asked} times");
}

/// A sink that has no node to store for it.
struct NobodyStores(Arc<AtomicU64>);

impl Sink for NobodyStores {
    fn store(&mut self, _parts: &[&[u8]]) -> SinkOutcome {
        self.0.fetch_add(1, Ordering::Relaxed);
        SinkOutcome { bytes: 0, events: 0, trouble: Some(Trouble::Unavailable) }
    }
}

/// Each attempt wakes the waiters, which request a flush again; the pause between attempts must
/// hold nevertheless.
#[test]
fn a_waiter_for_a_sink_that_stores_nothing_does_not_keep_the_flusher_busy() {
    let attempts = Arc::<AtomicU64>::default();
    let clock = Arc::new(SystemClock);
    let sink = NobodyStores(Arc::clone(&attempts));
    let batcher = Batcher::start(sink, small(Overflow::Block), clock).unwrap();
    let woken = Arc::<AtomicBool>::default();
    let wakes = Arc::clone(&woken);
    let wake: Wake = Arc::new(move || wakes.store(true, Ordering::SeqCst));
    let mut producer = batcher.producer(0, Some(wake));
    producer.push(&frame(0, 0)).unwrap();
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        if woken.swap(false, Ordering::SeqCst) {
            producer.want_wake();
        }
        std::thread::sleep(A_MOMENT);
        producer.want_wake();
    }
    let attempts = attempts.load(Ordering::Relaxed);
    assert!((2..40).contains(&attempts), "{attempts} attempts in 300 ms");
    let _ = batcher.close_within(Duration::from_millis(10));
}

/// One producer trickles, so the flusher always finds something, while others come and go.
#[test]
fn partitions_of_producers_that_are_gone_are_given_back_while_others_push() {
    /// Stores everything.
    struct DiscardingSink;
    impl Sink for DiscardingSink {
        fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
            let bytes: usize = parts.iter().map(|part| part.len()).sum();
            SinkOutcome { bytes, events: bytes as u64, trouble: None }
        }
    }
    let options = small(Overflow::Block);
    let batcher = Batcher::start(DiscardingSink, options, Arc::new(SystemClock)).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let (stop, pusher) = (Arc::clone(&done), batcher.clone());
    let trickle = std::thread::spawn(move || {
        let mut producer = pusher.producer(0, None);
        while !stop.load(Ordering::SeqCst) {
            producer.push(b"x").unwrap();
            std::thread::sleep(A_MOMENT);
        }
    });
    let mut most = 0;
    for _ in 0..400 {
        batcher.producer(0, None).push(b"x").unwrap();
        std::thread::sleep(Duration::from_micros(250));
        most = most.max(batcher.figures().partitions);
    }
    done.store(true, Ordering::SeqCst);
    trickle.join().unwrap();
    assert!(most < 200, "{most} partitions of 400 producers that are gone");
}
