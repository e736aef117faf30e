//! Random histories of pushes and flushes, with every outcome a flush can have, compared with a
//! queue for each producer: the sink always gets the front of the queues, every refusal has a
//! reason, the figures equal those of the queues, and at the end everything accepted has been
//! stored once and in order.
//!
//! The sink passes every call to the test and waits for its outcome, so the history determines when
//! room is released and refusals change. How much of the queues a call contains depends on timing,
//! as in production.

use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use wellspring_log::SystemClock;
use wellspring_log::batcher::{
    Amount, Batcher, Options, Overflow, Producer, PushError, Sink, SinkOutcome, Trouble,
};
use wellspring_patience::{PATIENCE, Patience};

const PRODUCERS: usize = 3;
const PARTITION_BYTES: usize = 4 << 10;
const LONGEST_BYTES: usize = PARTITION_BYTES / 2;
/// Size of a frame's length, producer and number, which precede its filling.
const HEAD_BYTES: usize = 9;

#[derive(Debug, Clone)]
enum Step {
    /// Pushes a frame of this size.
    Push(usize, usize),
    /// Ends the waiting flush with this outcome; with trouble after some frames.
    Flush(Outcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    All,
    Busy(usize),
    Full(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let short = HEAD_BYTES..200usize;
    let long = HEAD_BYTES..LONGEST_BYTES + 20;
    let push = |len| (0..PRODUCERS, len).prop_map(|(producer, len)| Step::Push(producer, len));
    let outcome = prop_oneof![
        3 => Just(Outcome::All),
        2 => (0..12usize).prop_map(Outcome::Busy),
        1 => (0..12usize).prop_map(Outcome::Full),
    ];
    let step = prop_oneof![8 => push(short), 3 => push(long), 4 => outcome.prop_map(Step::Flush)];
    prop::collection::vec(step, 1..120)
}

fn frame(producer: usize, number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![(number as usize * 7 + producer) as u8; len];
    frame[..4].copy_from_slice(&(len as u32).to_le_bytes());
    frame[4] = producer as u8;
    frame[5..9].copy_from_slice(&number.to_le_bytes());
    frame
}

/// Passes every call on and returns the outcome it is given.
struct SteppedSink {
    calls: Sender<Vec<Vec<u8>>>,
    outcomes: Receiver<SinkOutcome>,
}

impl Sink for SteppedSink {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        let mut frames = Vec::new();
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let len = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
                let (frame, after) = rest.split_at(len);
                frames.push(frame.to_vec());
                rest = after;
            }
        }
        let closed =
            || SinkOutcome { bytes: 0, events: 0, trouble: Some(Trouble::Closed("end".into())) };
        if self.calls.send(frames).is_err() {
            return closed();
        }
        self.outcomes.recv().unwrap_or_else(|_| closed())
    }
}

/// The queues and the objects under test. The field order determines the drop order: the batcher
/// waits for its sink, which waits for outcomes.
struct World {
    calls: Receiver<Vec<Vec<u8>>>,
    outcomes: Sender<SinkOutcome>,
    batcher: Batcher,
    producers: Vec<Producer>,
    /// Frames accepted and not stored, by producer.
    queues: Vec<VecDeque<Vec<u8>>>,
    next: [u32; PRODUCERS],
    /// The call waiting for its outcome.
    call: Option<Vec<Vec<u8>>>,
    accepted: Amount,
    stored: Amount,
    shed: Amount,
    full: bool,
}

impl World {
    fn new() -> World {
        let (calls, called) = channel();
        let (outcomes, told) = channel();
        let sink = SteppedSink { calls, outcomes: told };
        let options = Options {
            partition_bytes: PARTITION_BYTES,
            flush_bytes: 1,
            flush_age: Duration::ZERO,
            overflow: Overflow::Shed,
        };
        let batcher = Batcher::start(sink, options, Arc::new(SystemClock)).unwrap();
        World {
            producers: (0..PRODUCERS).map(|_| batcher.producer(0, None)).collect(),
            batcher,
            calls: called,
            outcomes,
            queues: vec![VecDeque::new(); PRODUCERS],
            next: [0; PRODUCERS],
            call: None,
            accepted: Amount::default(),
            stored: Amount::default(),
            shed: Amount::default(),
            full: false,
        }
    }

    fn queued_bytes(&self, producer: usize) -> usize {
        self.queues[producer].iter().map(Vec::len).sum()
    }

    fn push(&mut self, producer: usize, len: usize) {
        let frame = frame(producer, self.next[producer], len);
        let amount = Amount { events: 1, bytes: len as u64 };
        let longest_queued = self.queues[producer].iter().map(Vec::len).max().unwrap_or(0);
        let queued = self.queued_bytes(producer);
        match self.producers[producer].push(&frame) {
            Ok(_) => {
                assert!(!self.full && len <= LONGEST_BYTES);
                assert!(queued + len <= PARTITION_BYTES, "nothing is overwritten");
                self.next[producer] += 1;
                self.queues[producer].push_back(frame);
                self.accepted = self.accepted.plus(amount);
            }
            Err(PushError::StorageFull) => assert!(self.full),
            Err(PushError::TooLarge { bytes, limit }) => {
                assert_eq!((bytes, limit), (len, LONGEST_BYTES));
                assert!(len > LONGEST_BYTES);
            }
            Err(PushError::NoRoom) => {
                // At the end of a lap at most a frame's length is unused: that of this frame or of
                // a waiting one.
                let most = queued + len + len.max(longest_queued) - 1;
                assert!(most > PARTITION_BYTES, "{queued} queued, {len} more have room");
                self.shed = self.shed.plus(amount);
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until the flusher calls the sink, which it does if anything is queued.
    fn next_call(&mut self) {
        if self.call.is_some() || self.queues.iter().all(VecDeque::is_empty) {
            return;
        }
        // Shortens its pauses after trouble.
        self.producers[0].want_wake();
        let call = self.calls.recv_timeout(PATIENCE).expect("a flush");
        assert!(!call.is_empty(), "the sink is not asked for nothing");
        let mut seen = [0; PRODUCERS];
        for frame in &call {
            let producer = usize::from(frame[4]);
            assert_eq!(
                Some(frame),
                self.queues[producer].get(seen[producer]),
                "the front of its queue"
            );
            seen[producer] += 1;
        }
        self.call = Some(call);
    }

    fn flush(&mut self, outcome: Outcome) {
        self.next_call();
        let Some(call) = self.call.take() else { return };
        let (most, trouble) = match outcome {
            Outcome::All => (call.len(), None),
            Outcome::Busy(frames) => (frames, Some(Trouble::Busy)),
            Outcome::Full(frames) => (frames, Some(Trouble::Full)),
        };
        let mut stored = SinkOutcome { bytes: 0, events: 0, trouble };
        for frame in call.iter().take(most) {
            stored.bytes += frame.len();
            stored.events += 1;
            let amount = Amount { events: 1, bytes: frame.len() as u64 };
            self.stored = self.stored.plus(amount);
            assert_eq!(self.queues[usize::from(frame[4])].pop_front().as_ref(), Some(frame));
        }
        self.full = match outcome {
            Outcome::All => false,
            Outcome::Busy(_) => self.full,
            Outcome::Full(_) => true,
        };
        self.outcomes.send(stored).unwrap();
        self.settle();
    }

    /// Waits until the flusher has processed an outcome: it counts, releases room, then accepts or
    /// refuses.
    fn settle(&mut self) {
        let mut patience = Patience::new();
        let refusal = self.full.then_some(PushError::StorageFull);
        while self.batcher.figures().stored != self.stored
            || self.producers[0].refusal() != refusal
            || (0..PRODUCERS).any(|p| self.producers[p].has_unstored() == self.queues[p].is_empty())
        {
            let figures = self.batcher.figures();
            patience.pause(format_args!("{figures:?} is not {:?}", self.stored));
        }
    }

    fn check(&self) {
        let figures = self.batcher.figures();
        assert_eq!(figures.accepted, self.accepted);
        assert_eq!(figures.stored, self.stored);
        assert_eq!(figures.shed, self.shed);
        let queued: usize = (0..PRODUCERS).map(|producer| self.queued_bytes(producer)).sum();
        let events = self.queues.iter().map(VecDeque::len).sum::<usize>() as u64;
        assert_eq!(figures.lost_possible(), Amount { events, bytes: queued as u64 });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_time: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_accepted_is_stored_once_and_in_order_whatever_a_flush_comes_to(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Push(producer, len) => world.push(producer, len),
                Step::Flush(outcome) => world.flush(outcome),
            }
            world.check();
        }
        while world.queues.iter().any(|queue| !queue.is_empty()) {
            world.flush(Outcome::All);
        }
        world.check();
        assert_eq!(world.accepted, world.stored);
        drop(world.outcomes);
        world.batcher.close();
        assert!(world.calls.try_recv().is_err(), "nothing comes again");
    }
}
