//! The batcher in front of a log whose disk is full, fails, is slow, or loses power: everything
//! accepted is stored once and in order, or the figures say that it can be lost.

use crate::gated::{Gate, GatedStorage};
use crate::oracle::{append, open, read_all, small_segments};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wellspring_log::batcher::{
    Amount, Batcher, EventTemplate, Options, Overflow, Producer, PushError, Receipt,
};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{AppendError, Log};
use wellspring_patience::{PATIENCE, Patience, until};
use wellspring_types::{DataKind, Event};

/// Record header, and the type and tag of [`Numbered`] with the tag's length.
const OVERHEAD_BYTES: u64 = 32 + 8 + 1 + 10;

/// A producer that numbers its events.
struct Numbered {
    producer: Producer,
    template: EventTemplate,
    next: u64,
    fill: usize,
}

impl Numbered {
    fn new(batcher: &Batcher, number: u8, fill: usize) -> Numbered {
        let producer = batcher.producer(number, None);
        let template = EventTemplate::new("Numbered", &[format!("producer:{number}")]).unwrap();
        Numbered { producer, template, next: 0, fill }
    }

    fn data(n: u64, fill: usize) -> Vec<u8> {
        format!("{n:08} {}", "x".repeat(fill)).into_bytes()
    }

    fn push(&mut self) -> Result<Receipt, PushError> {
        let data = Numbered::data(self.next, self.fill);
        let receipt = self.producer.push_event(&self.template, DataKind::Binary, &data)?;
        self.next += 1;
        Ok(receipt)
    }

    fn try_push(&mut self) -> Result<(), PushError> {
        let data = Numbered::data(self.next, self.fill);
        let data = std::iter::once(&data[..]);
        self.producer.try_push_events(&self.template, DataKind::Binary, data)?;
        self.next += 1;
        Ok(())
    }

    /// Pushes until it is refused for a reason other than a full partition.
    fn push_until_refused(&mut self) -> PushError {
        let mut patience = Patience::new();
        loop {
            match self.try_push() {
                Ok(()) => {}
                Err(PushError::NoRoom) => {
                    patience.pause("it only waits");
                }
                Err(refusal) => return refusal,
            }
        }
    }

    /// Pushes as soon as the device is no longer full.
    fn push_when_there_is_room(&mut self) {
        let mut patience = Patience::new();
        while let Err(refusal) = self.push() {
            assert_eq!(refusal, PushError::StorageFull);
            patience.pause("still full");
        }
    }

    fn event_bytes(&self) -> u64 {
        OVERHEAD_BYTES + 9 + self.fill as u64
    }
}

/// Checks that the events of a producer are numbered 0, 1, 2, … and unchanged; returns their
/// number.
fn count(log: &Log, number: u8, fill: usize) -> u64 {
    let tag = format!("producer:{number}");
    let all = read_all(log).into_iter().filter(|seen| seen.event.tags.contains(&tag));
    let mut next = 0;
    for seen in all {
        assert_eq!(seen.event.data, Numbered::data(next, fill), "at {}", seen.position);
        next += 1;
    }
    next
}

fn start(log: &Log, overflow: Overflow) -> Batcher {
    let options = Options { partition_bytes: 64 << 10, overflow, ..Options::default() };
    log.batcher(options).unwrap()
}

#[test]
fn a_full_disk_refuses_what_comes_and_keeps_what_it_accepted() {
    for capacity_kib in [40, 100, 333] {
        let storage = SimulatedStorage::new(1);
        let log = open(&storage, small_segments()).unwrap();
        let batcher = start(&log, Overflow::Block);
        let capacity_bytes = Some(capacity_kib << 10);
        storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
        let mut producers = [Numbered::new(&batcher, 0, 700), Numbered::new(&batcher, 1, 20)];
        for producer in &mut producers {
            assert_eq!(producer.push_until_refused(), PushError::StorageFull);
        }
        let accepted = producers[0].next + producers[1].next;
        let figures = batcher.figures();
        assert_eq!((figures.accepted.events, figures.shed.events), (accepted, 0));
        assert_eq!(figures.stored.events, log.head());
        assert!(figures.lost_possible().events > 0, "something waits for room");
        let large = format!("\"{}\"", "x".repeat(400_000));
        let refused = log.append(append(&[Event::json("Other", &["o"], &large)]));
        assert_eq!(refused, Err(AppendError::StorageFull), "the same goes for appends");
        storage.set_faults(Faults::default());
        producers[0].push_when_there_is_room();
        batcher.close();
        let figures = batcher.figures();
        assert_eq!(figures.accepted, figures.stored);
        assert_eq!(figures.stored.events, accepted + 1);
        assert_eq!(figures.stored.bytes, producers.iter().map(|p| p.next * p.event_bytes()).sum());
        log.close();
        let log = open(&storage, small_segments()).unwrap();
        assert_eq!(log.head(), accepted + 1, "nothing twice");
        for (number, producer) in (0..).zip(&producers) {
            assert_eq!(count(&log, number, producer.fill), producer.next);
        }
    }
}

#[test]
fn without_descriptors_a_batcher_keeps_what_it_accepted_and_goes_on() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let batcher = start(&log, Overflow::Block);
    let descriptors = Some(storage.open_files());
    storage.set_faults(Faults { descriptors, ..Faults::default() });
    let mut producer = Numbered::new(&batcher, 1, 1000);
    // Until the next segment cannot be created, and then as long as there is room.
    let refused = loop {
        match producer.try_push() {
            Ok(()) => {}
            Err(PushError::NoRoom) if batcher.figures().stored.events < producer.next => {
                match log.append(append(&[Event::json("Other", &["o"], "1")])) {
                    Err(error) => break error,
                    Ok(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            Err(PushError::NoRoom) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
    };
    assert!(matches!(refused, AppendError::Unavailable { .. }), "{refused}");
    storage.set_faults(Faults::default());
    batcher.close();
    assert_eq!(batcher.figures().stored.events, producer.next);
    assert_eq!(count(&log, 1, producer.fill), producer.next);
}

#[test]
fn a_disk_that_is_full_only_for_others_gets_nothing_twice() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, wellspring_log::Options::default()).unwrap();
    let batcher = log.batcher(Options::default()).unwrap();
    let mut numbered = Numbered::new(&batcher, 0, 1);
    let stop = AtomicBool::new(false);
    let give_room = || {
        let capacity_bytes = Some(log.stats().disk_bytes + (600 << 10));
        storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
    };
    give_room();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Too large for the remaining room: everything staged with it is discarded too.
            let large = [Event::json("Other", &["o"], &format!("\"{}\"", "x".repeat(900_000)))];
            while !stop.load(Ordering::SeqCst) {
                let _ = log.append(append(&large));
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let deadline = Instant::now() + Duration::from_secs(3);
        while Instant::now() < deadline && numbered.next < 100_000 {
            if numbered.push().is_err() {
                give_room();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    storage.set_faults(Faults::default());
    batcher.close();
    assert_eq!(batcher.figures().accepted, batcher.figures().stored);
    assert_eq!(count(&log, 0, 1), numbered.next);
}

#[test]
fn a_disk_that_stays_full_ends_in_a_loss_that_is_told() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let batcher = start(&log, Overflow::Block);
    storage.set_faults(Faults { capacity_bytes: Some(100 << 10), ..Faults::default() });
    let mut producer = Numbered::new(&batcher, 0, 700);
    assert_eq!(producer.push_until_refused(), PushError::StorageFull);
    let begun = Instant::now();
    batcher.close();
    assert!(begun.elapsed() < Duration::from_secs(10), "it gives up");
    assert!(matches!(producer.push(), Err(PushError::Closed { .. })));
    let figures = batcher.figures();
    assert_eq!(figures.accepted.events, producer.next);
    assert!(figures.lost_possible().events > 0);
    log.close();
    let log = open(&storage, small_segments()).unwrap();
    assert_eq!(log.head(), figures.stored.events, "exactly what the figures say");
    assert_eq!(count(&log, 0, 700), figures.stored.events);
}

#[test]
fn a_failed_barrier_refuses_everything_and_the_figures_say_what_is_in_doubt() {
    for good_barriers in [0, 1, 5] {
        let storage = SimulatedStorage::new(1);
        // One segment, so that the failing barrier is not one of a sealed index.
        let log = open(&storage, wellspring_log::Options::default()).unwrap();
        let batcher = start(&log, Overflow::Block);
        let mut producer = Numbered::new(&batcher, 0, 100);
        let (tell, told) = mpsc::channel();
        let mut waiting = Numbered::new(&batcher, 1, 100);
        let wake = move || {
            let _ = tell.send(());
        };
        waiting.producer = batcher.producer(1, Some(Arc::new(wake)));
        producer.push().unwrap();
        until("the first is stored", || batcher.figures().stored.events == 1);
        let faults = Faults { sync_fails_after: Some(good_barriers), ..Faults::default() };
        storage.set_faults(faults);
        let receipt = waiting.push().unwrap();
        waiting.producer.want_wake();
        while !waiting.producer.is_stored(receipt) && waiting.producer.refusal().is_none() {
            told.recv_timeout(PATIENCE).expect("who waits is told");
            waiting.producer.want_wake();
        }
        assert_eq!(waiting.producer.is_stored(receipt), good_barriers > 0);
        let refusal = producer.push_until_refused();
        let PushError::Closed { reason } = &refusal else { panic!("{refusal:?}") };
        assert!(reason.contains("journal failed"), "{reason}");
        assert_eq!(waiting.push(), Err(refusal));
        batcher.close();
        let figures = batcher.figures();
        assert_eq!(figures.accepted.events, producer.next + waiting.next);
        assert_eq!(figures.stored.events, log.head(), "what is in doubt is not called stored");
        assert!(figures.lost_possible().events > 0);
        assert!(log.closed_reason().is_some());
        log.close();
        let log = open(&storage, wellspring_log::Options::default()).unwrap();
        let there = log.head();
        assert!((figures.stored.events..=figures.accepted.events).contains(&there));
        assert_eq!(count(&log, 0, 100) + count(&log, 1, 100), there, "in order, no gap");
    }
}

/// Opens its gate on drop, so that a failing test does not hang.
struct OpenedAtLast(Arc<Gate>);

impl Drop for OpenedAtLast {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A log on a slow disk. The field order determines the drop order.
struct Slow {
    gate: OpenedAtLast,
    batcher: Batcher,
    log: Log,
}

/// A batcher whose log waits for a closed gate.
fn slow(overflow: Overflow) -> Slow {
    let storage = GatedStorage::new(1);
    let gate = Arc::clone(&storage.gate);
    let log = Log::open_on(Arc::new(storage), small_segments()).unwrap();
    let batcher = start(&log, overflow);
    gate.close();
    Slow { gate: OpenedAtLast(gate), batcher, log }
}

#[test]
fn behind_a_slow_disk_shed_refuses_and_counts_what_it_refuses() {
    let Slow { gate, batcher, log } = &slow(Overflow::Shed);
    let mut producer = Numbered::new(batcher, 0, 500);
    let mut shed = 0;
    for _ in 0..1000 {
        if let Err(refusal) = producer.push() {
            assert_eq!(refusal, PushError::NoRoom);
            shed += 1;
        }
    }
    let (accepted, bytes) = (producer.next, producer.event_bytes());
    assert_eq!(accepted, (64 << 10) / bytes, "as many as fit into the partition");
    let amount = |events| Amount { events, bytes: events * bytes };
    let figures = batcher.figures();
    assert_eq!((figures.accepted, figures.shed), (amount(accepted), amount(shed)));
    assert_eq!((figures.stored.events, log.head()), (0, 0), "nothing has passed the gate");
    gate.0.open();
    until("all is stored", || !producer.producer.has_unstored());
    producer.push().expect("there is room again");
    batcher.close();
    let figures = batcher.figures();
    assert_eq!((figures.stored, figures.shed), (amount(accepted + 1), amount(shed)));
    assert_eq!(count(log, 0, 500), accepted + 1);
}

#[test]
fn behind_a_slow_disk_block_waits_and_goes_on() {
    const EVENTS: u64 = 1000;
    let Slow { gate, batcher, log } = &slow(Overflow::Block);
    let mut producer = Numbered::new(batcher, 0, 500);
    let fit = (64 << 10) / producer.event_bytes();
    let pusher = std::thread::spawn(move || {
        for _ in 0..EVENTS {
            producer.push().unwrap();
        }
        producer.next
    });
    until("the partition fills", || batcher.figures().accepted.events == fit);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(batcher.figures().accepted.events, fit, "it waits");
    assert!(!pusher.is_finished());
    gate.0.open();
    assert_eq!(pusher.join().unwrap(), EVENTS);
    batcher.close();
    assert_eq!(batcher.figures().shed, Amount::default());
    assert_eq!(count(log, 0, 500), EVENTS);
}

#[test]
fn a_log_that_is_busy_is_handed_the_rest_later() {
    let storage = SimulatedStorage::new(1);
    // One piece at a time: every other flush finds the log busy.
    let options = wellspring_log::Options { staged_bytes: 1, ..small_segments() };
    let log = open(&storage, options).unwrap();
    let options = Options { partition_bytes: 4 << 20, ..Options::default() };
    let batcher = log.batcher(options).unwrap();
    let mut producers = [Numbered::new(&batcher, 0, 100), Numbered::new(&batcher, 1, 100)];
    for n in 0..12_000 {
        producers[n % 2].push().unwrap();
    }
    batcher.close();
    assert_eq!(batcher.figures().stored.events, 12_000);
    assert_eq!((count(&log, 0, 100), count(&log, 1, 100)), (6_000, 6_000));
}

#[test]
fn a_power_loss_takes_the_newest_of_each_producer_and_nothing_known_as_stored() {
    let (mut missing, mut known_stored) = (0, 0);
    for seed in 0..60u64 {
        let storage = SimulatedStorage::new(seed);
        let log = open(&storage, small_segments()).unwrap();
        let batcher = start(&log, Overflow::Block);
        let mut producers = [Numbered::new(&batcher, 0, 60), Numbered::new(&batcher, 1, 900)];
        let mut receipts = [Vec::new(), Vec::new()];
        for n in 0..seed * 13 {
            let which = usize::from((n ^ seed) % 3 == 0);
            receipts[which].push(producers[which].push().unwrap());
        }
        let known = [0, 1].map(|which| {
            let stored = |receipt: &&Receipt| producers[which].producer.is_stored(**receipt);
            receipts[which].iter().filter(stored).count() as u64
        });
        let crashed = storage.crash();
        let log = open(&crashed, small_segments()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for (which, fill) in [(0, 60), (1, 900)] {
            let there = count(&log, which, fill);
            let (known, pushed) = (known[usize::from(which)], producers[usize::from(which)].next);
            assert!((known..=pushed).contains(&there), "seed {seed}: {there} of {known}..{pushed}");
            missing += pushed - there;
            known_stored += known;
        }
    }
    println!("{known_stored} were known as stored, {missing} others were lost");
    assert!(missing > 0 && known_stored > 0, "the crashes came in the middle");
}
